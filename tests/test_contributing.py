"""CONTRIBUTING: its table matches the tree and the import rules, and its examples work as they are."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airpass
from airpass import (
    Link,
    Scenario,
    TrainOptions,
    channel,
    contracts,
    design,
    designs,
    geometry,
    select,
    selection,
    train,
)
from airpass.core import registry
from airpass.learning import data
from airpass.learning.data.partition import PartitionOptions

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = Path(airpass.__file__).parent


def table() -> list[str]:
    """Modules in the first column of the layout table, as `airpass.x`."""
    names = re.findall(r"^\| `([\w/.]+)` \|", TEXT, re.MULTILINE)
    return ["airpass." + name.removesuffix("/").removesuffix(".py") for name in names]


def modules() -> set[str]:
    """Top-level modules and packages."""
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return {
        f"airpass.{name}"
        for name in found | {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    }


def layers() -> list[list[str]]:
    """Layers of the import rules, from the bottom up."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in reversed(found)]


def example(file: str) -> str:
    """The code block that begins with the name of a file."""
    found: str = next(code for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if file in code)
    return found


def test_the_table_lists_every_module_in_the_order_of_the_import_rules() -> None:
    assert set(table()) == modules()
    ranks = {name: rank for rank, layer in enumerate(layers()) for name in layer}
    assert set(ranks) == modules()
    assert [ranks[name] for name in table()] == sorted(ranks.values())


EXAMPLES: dict[str, tuple[str, Any]] = {
    "selection/strongest.py": ("Strongest", selection),
    "geometry/shuffled.py": ("Shuffled", geometry),
    "designs/random_layout.py": ("RandomLayout", designs),
    "learning/data/stripes.py": ("Stripes", data),
}


def run_with(file: str, method: str) -> None:
    """Run a method or train on a data set, and check that the result makes sense."""
    scenario = Scenario.paper(seed=4)
    if file.startswith("learning"):
        options = TrainOptions(rounds=40, evaluate_every=40, partition=PartitionOptions(kind="iid"))
        done = train(None, method, scenario=scenario, options=options, workers=1)
        assert done.history[-1].test_accuracy > 0.9
        return
    result: Link
    if file.startswith("selection"):
        channels = scenario.channels(scenario.uniform_layout())
        result = select(channels, scenario.weights, scenario.budget, method, options={"place": "1"})
    elif file.startswith("geometry"):
        result = design(scenario, geometry=method, options={"max_iterations": 2})
    else:
        result = design(scenario, method, options={"selection": {"starts": 2}})
    assert np.linalg.norm(result.beam) == pytest.approx(1.0)


@pytest.mark.parametrize("file", EXAMPLES)
def test_a_method_in_a_file_of_its_own(file: str, tmp_path: Path) -> None:
    path = tmp_path / Path(file).name
    path.write_text(example(file))
    run_with(file, f"{path}:{EXAMPLES[file][0]}")


@pytest.mark.parametrize("file", EXAMPLES)
def test_a_method_in_the_package(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, package = EXAMPLES[file]
    (tmp_path / Path(file).name).write_text(example(file))
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    registry._registered.cache_clear()
    try:
        known = package.SOURCES if package is data else package.METHODS
        (found,) = (method for method in known.methods().values() if type(method).__name__ == kind)
        run_with(file, found.name)
    finally:
        registry._registered.cache_clear()
        sys.modules.pop(f"{package.__name__}.{Path(file).stem}", None)


def test_a_method_of_ones_own_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "strongest.py").write_text(example("selection/strongest.py"))
    scenario = Scenario.paper(seed=4)
    np.save(tmp_path / "G.npy", scenario.channels(scenario.uniform_layout()))
    for arguments in (
        ["select", "--channels", "G.npy", "--budget", "0.03", "--method", "strongest.py:Strongest"],
        ["design", "--selection", "strongest.py:Strongest", "--geometry", "fixed"],
    ):
        command = [sys.executable, "-c", "from airpass.cli import main; main()", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "strongest" in done.stdout


def test_a_channel_model_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "wall.py").write_text(example("channel/wall.py"))
    options = ["--set", "channel.model=wall.py:Wall", "--set", "channel.loss_db=20"]
    arguments = [
        "design",
        *options,
        "--method",
        "airpass-plus",
        "--option",
        "effort=fast",
        "--json",
        "out.json",
    ]
    command = [sys.executable, "-c", "from airpass.cli import main; main()", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = airpass.load(tmp_path / "out.json")
    assert isinstance(found, airpass.Design)
    assert found.layout is not None
    # The file names code, which is not imported; the channels are stored.
    with pytest.raises(airpass.InvalidInput, match=r"wall\.py:Wall: only its name and options"):
        found.scenario.channels(found.layout)
    given = dict(found.scenario.to_dict()["channel"])
    assert given == {"model": f"{tmp_path / 'wall.py'}:Wall", "x_m": 20.0, "loss_db": 20.0}
    scenario = Scenario.from_dict(found.scenario.to_dict())
    np.testing.assert_array_equal(scenario.channels(found.layout), found.channels)
    # Behind the wall a tenth of the amplitude is left.
    plain = Scenario.from_dict({k: v for k, v in scenario.to_dict().items() if k != "channel"})
    places = np.array([[10.0, 30.0]] * 5)
    ratio = np.abs(scenario.uplink.terms(places) / plain.uplink.terms(places))
    left = scenario.devices.x_m < 20.0
    np.testing.assert_allclose(ratio[0], [np.where(left, 1.0, 0.1), np.where(left, 0.1, 1.0)], rtol=1e-12)


def test_a_channel_model_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wall.py").write_text(example("channel/wall.py"))
    monkeypatch.setattr(channel, "__path__", [*channel.__path__, str(tmp_path)])
    registry._registered.cache_clear()
    try:
        scenario = Scenario.from_dict({"channel": {"model": "wall", "loss_db": 6}})
        assert scenario.to_dict()["channel"] == {"model": "wall", "x_m": 20.0, "loss_db": 6}
    finally:
        registry._registered.cache_clear()
        sys.modules.pop("airpass.channel.wall", None)


def test_the_example_of_a_function_is_the_example_of_a_class(tmp_path: Path) -> None:
    for file in ("selection/strongest.py", "matched.py"):
        (tmp_path / Path(file).name).write_text(example(f"# {file}"))
    scenario = Scenario.paper(seed=4)
    channels = scenario.channels(scenario.uniform_layout())
    beams = [
        select(channels, scenario.weights, scenario.budget, f"{tmp_path / name}", options={"place": 1}).beam
        for name in ("strongest.py:Strongest", "matched.py:matched")
    ]
    np.testing.assert_allclose(beams[0], beams[1], rtol=1e-12)
    assert all(
        outcome.ok
        for outcome in contracts.check_method(contracts.resolve(f"{tmp_path}/strongest.py:Strongest"))
    )
    function = contracts.resolve(f"{tmp_path}/matched.py:matched", "selection")
    assert all(outcome.ok for outcome in contracts.check_method(function))


def test_the_example_finds_the_strongest_device(tmp_path: Path) -> None:
    path = tmp_path / "strongest.py"
    path.write_text(example("selection/strongest.py"))
    scenario = Scenario.paper(seed=4)
    channels = scenario.channels(scenario.uniform_layout())
    picked = select(channels, scenario.weights, scenario.budget, f"{path}:Strongest")
    assert picked.scores.max() == pytest.approx((np.linalg.norm(picked.effective, axis=0) ** 2).max())
