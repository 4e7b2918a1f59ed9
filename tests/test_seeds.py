"""One seed: the same design, errors and training in Python and on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import Devices, Scenario, TrainOptions, compare, design, prepare, tolerance, train
from airpass.core.errors import InvalidInput

QUICK = TrainOptions(rounds=2, evaluate_every=1, test_images=50, probe_images=50)


def given(scenario: Scenario) -> Scenario:
    """The same scenario with its devices given one by one."""
    return Scenario.from_dict(scenario.to_dict())


def test_the_seed_of_a_scenario_is_that_of_its_devices() -> None:
    scenario = Scenario.paper(seed=7)
    assert scenario.seed == 7
    assert scenario.with_samples(np.arange(1, 11)).seed == 7
    assert given(scenario).seed == 0
    assert Scenario(devices=Devices([1.0], [2.0], [1.0], [5.0])).seed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["airpass-plus", "airpass", "mimo-mn"])
def test_the_command_and_python_give_the_same_design(method: str, run: Any) -> None:
    outcome = run("design", "--devices", 8, "--snr-db", 0, "--seed", 7, "--method", method, "--json", "-")
    document = json.loads(outcome.out)
    found = design(Scenario.paper(8, snr_db=0.0, seed=7), method)
    assert document["seed"] == found.seed == 7
    assert document["beam"]["re"] == found.beam.real.tolist()
    assert document["layout_m"] == (None if found.layout is None else found.layout.tolist())


def test_a_scenario_file_with_a_seed(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "room.toml"
    path.write_text("[devices]\ncount = 6\nseed = 4\n")
    document = json.loads(run("design", "--scenario", path, "--json", "-").out)
    found = design(Scenario.load(path))
    assert document["seed"] == found.seed == 4
    assert document["beam"]["re"] == found.beam.real.tolist()
    assert json.loads(run("design", "--scenario", path, "--seed", 5, "--json", "-").out)["seed"] == 5


def test_a_seed_that_is_given_is_used() -> None:
    scenario = Scenario.paper(seed=7)
    assert design(scenario, "mimo-m", seed=0).seed == 0
    assert design(given(scenario), "mimo-m").seed == 0
    with pytest.raises(InvalidInput, match="seed = -1"):
        design(scenario, seed=-1)


def test_tolerance_has_the_seed_of_the_design(run: Any) -> None:
    arguments = ("--seed", 3, "--method", "mimo-m", "--tolerance-mm", 2, "--draws", 5, "--json", "-")
    document = json.loads(run("design", *arguments).out)["tolerance"]
    found = tolerance(design(Scenario.paper(seed=3), "mimo-m"), position_mm=2.0, draws=5)
    assert document["seed"] == found.seed == 3
    assert document["receivers"]["rescaled"]["mse"] == pytest.approx(
        found.outcomes["rescaled"].mses.tolist(), rel=0, nan_ok=True
    )


def test_training_has_the_seed_of_the_scenario() -> None:
    drawn = Scenario.paper(4, 2, 2, 10.0, seed=6)
    scenario, data = prepare(drawn, "mnist-mini")
    assert data.digest == prepare(drawn, "mnist-mini", seed=6)[1].digest
    link = design(scenario, "mimo-m")
    by_link = train(link, data, options=QUICK, workers=1)
    by_scenario = train(None, data, scenario=scenario, options=QUICK, workers=1)
    (compared,) = compare(drawn, ["fedavg"], "mnist-mini", QUICK, workers=1)
    assert by_link.config["seed"] == by_scenario.config["seed"] == compared.config["seed"] == 6
    np.testing.assert_array_equal(compared.state, by_scenario.state)
    bare = train(None, data, scenario=given(scenario), options=QUICK, workers=1)
    assert bare.config["seed"] == 0
