"""Training that diverges: it ends in that round, says so, and keeps the last finite model."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import airpass
from airpass import ArrayData, Scenario, TrainOptions, compare, prepare, train
from airpass.core.errors import InvalidInput
from airpass.figures.training import draw_training
from airpass.learning.optimisers import ServerOptions
from airpass.study.trial import Trial
from airpass.study.trial import run as run_trial

# The devices' steps overflow in the first round.
AT_ONCE = TrainOptions(rounds=6, evaluate_every=2, learning_rate=1e30, model="linear")
# The server's momentum grows by a factor of 1e8 or so per round, and overflows after a few.
LATER = TrainOptions(
    rounds=40,
    evaluate_every=10,
    local_steps=1,
    learning_rate=0.01,
    model="linear",
    server=ServerOptions("momentum", learning_rate=1e8),
)


def table() -> ArrayData:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3)).astype(np.float32)
    y = (x @ [1.0, -2.0, 0.5]).astype(np.float32)
    return ArrayData(x[:40], y[:40], x[40:], y[40:])


@pytest.fixture(scope="module")
def prepared() -> Any:
    scenario, data = prepare(Scenario.paper(4, 3, 3, 10.0, 2), table(), AT_ONCE, 1)
    return scenario, data, airpass.design(scenario)


@pytest.mark.parametrize("over_the_air", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_it_ends_in_the_first_round(prepared: Any, over_the_air: bool, workers: int) -> None:
    scenario, data, link = prepared
    found = train(
        link if over_the_air else None, data, seed=1, scenario=scenario, options=AT_ONCE, workers=workers
    )
    assert found.diverged
    assert not found.finished
    assert found.status == "diverged in round 1"
    assert [record.round for record in found.history] == [0]
    assert np.isfinite(found.history[0].test_loss)
    assert repr(found).endswith(", diverged in round 1)")


@pytest.mark.parametrize("over_the_air", [False, True])
def test_the_last_finite_model_is_kept_and_evaluated(prepared: Any, over_the_air: bool) -> None:
    scenario, data, link = prepared
    arguments: dict[str, Any] = {"seed": 1, "scenario": scenario, "workers": 1}
    chosen = link if over_the_air else None
    found = train(chosen, data, options=LATER, **arguments)
    last = found.history[-1].round
    assert last > 0
    assert found.status == f"diverged in round {last + 1}"
    assert np.isfinite(found.state).all()
    shorter = train(chosen, data, options=replace(LATER, rounds=last), **arguments)
    assert shorter.status == "done"
    np.testing.assert_array_equal(found.state, shorter.state)
    assert found.history[-1].local_loss == shorter.history[-1].local_loss
    assert all(np.isfinite(record.local_loss) for record in found.history[1:])


def test_a_run_that_is_resumed_diverges_again(prepared: Any, tmp_path: Path) -> None:
    scenario, data, _ = prepared
    arguments: dict[str, Any] = {"seed": 1, "scenario": scenario, "workers": 1, "options": LATER}
    first = train(None, data, checkpoint=tmp_path / "c.npz", **arguments)
    again = train(None, data, checkpoint=tmp_path / "c.npz", resume=True, **arguments)
    assert again.status == first.status
    assert [record.round for record in again.history] == [record.round for record in first.history]
    np.testing.assert_array_equal(again.state, first.state)


def test_other_schemes_go_on_and_the_result_can_be_stored_and_drawn(prepared: Any, tmp_path: Path) -> None:
    scenario, data, link = prepared
    # The received update, which contains noise, is as large as those of the devices: both diverge.
    runs = compare(scenario, {"fedavg": "fedavg", "mine": link}, data, AT_ONCE, 1, workers=1)
    assert [run.status for run in runs] == ["diverged in round 1"] * 2
    runs.save(tmp_path / "runs.json")
    opened = airpass.load(tmp_path / "runs.json")
    assert [run.diverged for run in opened] == [True, True]
    stored = json.loads((tmp_path / "runs.json").read_text())["runs"][0]
    assert (stored["status"], stored["finished"]) == ("diverged in round 1", False)
    assert stored["history"][-1]["test_loss"] is not None
    figure = draw_training(opened)
    for axes in figure.axes:
        assert axes.get_xlim() == (0.0, 1.0)
        crosses = [line for line in axes.lines if line.get_marker() == "x"]
        assert [np.ravel(line.get_xdata()).tolist() for line in crosses] == [[0], [0]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "FedAvg (ideal), 4 devices, diverged in round 1",
        f"mine, {link.selected_count} device{'s'[: link.selected_count - 1]}, diverged in round 1",
    ]


def test_the_command_says_so_in_one_line_and_trains_the_others(run: Any, tmp_path: Path) -> None:
    done = run(
        "train", "--devices", 4, "--waveguides", 2, "--antennas", 2, "--rounds", 3, "--workers", 1,
        "--scheme", "fedavg,mimo-m", "--learning-rate", 1e30, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 1
    said = [line for line in done.err.splitlines() if "diverged" in line]
    assert len(said) == 1
    assert "fedavg diverged in round 1: " in said[0]
    assert "initial model is kept" in said[0]
    assert "--learning-rate" in said[0]
    assert "--resume" not in done.err
    assert not {"nan", "inf"} & set(done.out.split())
    stored = json.loads((tmp_path / "run/history.json").read_text())["runs"]
    assert [found["status"] for found in stored] == ["diverged in round 1", "done"]
    # This scheme selects no device, so that it cannot diverge; nulls in its history are not alike.
    assert [stored[1]["history"][-1][name] for name in ("selected_count", "local_loss")] == [0, None]
    shown = run("show", tmp_path / "run")
    assert shown.code == 0
    assert "diverged in round 1" in shown.out


def test_a_trial_of_a_study_fails_with_a_sentence() -> None:
    trial = Trial(
        job="train",
        figure="mine",
        scheme="fedavg",
        x=None,
        x_label="",
        trial=0,
        seed=1,
        scenario={"devices": {"count": 4, "seed": 1}},
        method={"method": "fedavg"},
        training={"rounds": 3, "learning_rate": 1e30},
    )
    with pytest.raises(InvalidInput, match="training diverged in round 1; try a smaller learning_rate"):
        run_trial(trial)


def test_huge_losses_do_not_set_the_scale() -> None:
    def made(scheme: str, losses: list[float], diverged: bool) -> Any:
        history = [
            SimpleNamespace(round=i, selected_count=2, test_accuracy=0.5, train_loss=loss)
            for i, loss in enumerate(losses)
        ]
        return SimpleNamespace(
            scheme=scheme, history=history, dataset="d", devices=2, scenario=None, diverged=diverged,
            status="diverged in round 3" if diverged else "done",
        )  # fmt: skip

    runs = [made("fedavg", [2.0, 1.0, 0.5], False), made("airpass", [2.0, 50.0, 1e20], True)]
    accuracy, loss = draw_training(runs).axes
    assert loss.get_ylim() == (0.0, 3.0)
    (cross,) = [line for line in loss.lines if line.get_marker() == "x"]
    assert np.ravel(cross.get_xydata()).tolist() == [2.0, 3.0]
    (cross,) = [line for line in accuracy.lines if line.get_marker() == "x"]
    assert np.ravel(cross.get_xydata()).tolist() == [2.0, 50.0]
