"""Results as objects: saved, opened again, shown, drawn, and as data frames."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import airpass
from airpass import (
    Design,
    InvalidInput,
    Link,
    Runs,
    Scenario,
    Selection,
    TrainingRun,
    TrainOptions,
    compare,
    design,
    designs,
    geometry,
    load,
    select,
    selection,
    train,
)
from airpass.core.registry import RecordedMethod, options_dict, parts
from airpass.core.types import Complex
from airpass.designs.alternating import Airpass
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Start
from airpass.designs.colocated import MimoM
from airpass.documents import FORMAT_VERSION
from airpass.learning.models import linear, mnist_cnn
from airpass.selection.base import BeamSearch, RecordedSelection, SelectionMethod
from airpass.selection.hrmc import Hrmc
from command_line import assert_refused

QUICK = TrainOptions(rounds=2, evaluate_every=1, test_images=50, probe_images=50)
LINK_ARRAYS = ("channels", "weights", "beam", "scores", "selected", "transmit")
SHORT: dict[str, dict[str, Any]] = {
    "airpass-plus": {"effort": "fast"},
    "airpass-sdr-dc": {"max_iterations": 1},
    "airpass-mp": {"max_iterations": 2},
}
PNG = b"\x89PNG"


def assert_same_bits(one: Any, other: Any) -> None:
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()


def assert_same_link(one: Link, other: Link) -> None:
    """The same kind of link, with the same numbers to the last bit."""
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    for name in LINK_ARRAYS:
        assert_same_bits(getattr(one, name), getattr(other, name))
    for name in ("budget", "power", "mse_threshold"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("mse", "denoising_factor", "sdr_db"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))
    if isinstance(one, Selection) and isinstance(other, Selection):
        assert_same_search(one, other)
    if isinstance(one, Design) and isinstance(other, Design):
        assert_same_search(one, other)
        assert one.trace == other.trace
        assert one.scenario.to_dict() == other.scenario.to_dict()
        assert one.scenario.devices.drawn_from == other.scenario.devices.drawn_from
        for first, second in ((one.layout, other.layout), (one.array, other.array)):
            assert (first is None) == (second is None)
            if first is not None:
                assert_same_bits(first, second)


def assert_same_search(one: Any, other: Any) -> None:
    for name in ("status", "work", "seconds", "compile_seconds", "seed"):
        assert getattr(one, name) == getattr(other, name)
    assert one.method.name == other.method.name
    assert options_dict(one.method) == options_dict(other.method)
    assert parts(one.method) == parts(other.method)


def assert_same_run(one: TrainingRun, other: TrainingRun) -> None:
    assert repr(one) == repr(other)
    for name in ("scheme", "dataset", "devices", "parameters", "finished", "status"):
        assert getattr(one, name) == getattr(other, name)
    assert dict(one.config) == dict(other.config)
    assert_same_bits(one.state, other.state)
    np.testing.assert_equal([asdict(row) for row in one.history], [asdict(row) for row in other.history])
    assert (one.link is None) == (other.link is None)
    if one.link is not None and other.link is not None:
        assert_same_link(one.link, other.link)
    assert (one.scenario is None) == (other.scenario is None)
    if one.scenario is not None and other.scenario is not None:
        assert one.scenario.to_dict() == other.scenario.to_dict()
        assert one.scenario.seed == other.scenario.seed


def reopened(result: Any, folder: Path) -> Any:
    """A result that was saved and opened; saving it again gives the same bytes."""
    first, second = folder / "first.json", folder / "second.json"
    result.save(first)
    found = load(first)
    found.save(str(second))
    assert first.read_bytes() == second.read_bytes()
    return found


@pytest.fixture(scope="module")
def small() -> Scenario:
    return Scenario.paper(6, 3, 2, 15.0, 3)


@pytest.fixture(scope="module")
def found(small: Scenario) -> Design:
    return design(small, "airpass", options={"max_iterations": 2})


@pytest.fixture(scope="module")
def picked(small: Scenario) -> Selection:
    channels = small.channels(small.uniform_layout())
    return select(channels, small.weights, snr_db=5.0, mse_threshold=0.03, power=2.0, seed=3)


@pytest.fixture(scope="module")
def runs(found: Design) -> Runs:
    return compare(found.scenario, ["fedavg", found], "mnist-mini", QUICK, workers=1)


# Methods of the user's own; they are in no registry.


@dataclass(frozen=True)
class First(SelectionMethod):
    """The beam of one device."""

    name = "first-device"

    place: int = 0

    def search(self, effective: Complex, rng: np.random.Generator, report: Any) -> BeamSearch:
        column = effective[:, self.place]
        return BeamSearch(column / np.linalg.norm(column))


@dataclass(frozen=True)
class Still(DesignMethod):
    """A given layout with a selection."""

    name = "still"

    selection: SelectionMethod = First()
    scale: float = 0.1

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Any, start: Start | None
    ) -> DesignSearch:
        layout = scenario.uniform_layout()
        channels = scenario.channels(layout) * self.scale  # a channel model of its own
        beam = self.selection.search(channels, np.random.default_rng(seed), report).beam
        return DesignSearch(beam, channels, layout, None, (), "done")


class TestRoundTrips:
    @pytest.mark.parametrize("method", sorted(designs.METHODS.methods()))
    def test_every_design_method(self, method: str, small: Scenario, tmp_path: Path) -> None:
        result = design(small, method, options=SHORT.get(method))
        again = reopened(result, tmp_path)
        assert_same_link(again, result)
        assert again.method == result.method

    @pytest.mark.parametrize("method", sorted(selection.METHODS.methods()))
    def test_every_selection_method(self, method: str, small: Scenario, tmp_path: Path) -> None:
        channels = small.channels(small.uniform_layout())
        result = select(channels, small.weights, small.budget, method, seed=5)
        again = reopened(result, tmp_path)
        assert_same_link(again, result)
        assert again.method == result.method

    @pytest.mark.parametrize("name", sorted(geometry.METHODS.methods()))
    def test_pairs_of_selection_and_geometry(self, name: str, small: Scenario, tmp_path: Path) -> None:
        options = {"max_iterations": 1, "selection": {"starts": 2}}
        result = design(small, selection="hrmc", geometry=name, options=options)
        again = reopened(result, tmp_path)
        assert_same_link(again, result)
        assert again.method == result.method

    @pytest.mark.parametrize(
        "method", [MimoM(selection=Hrmc(starts=3), axis="yz"), Airpass(max_iterations=0, patience=3)]
    )
    def test_options_and_nested_methods(self, method: DesignMethod, small: Scenario, tmp_path: Path) -> None:
        again = reopened(design(small, method), tmp_path)
        assert again.method == method

    def test_another_nested_method(self, small: Scenario, tmp_path: Path) -> None:
        method = MimoM(selection=selection.METHODS.resolve("exhaustive"))
        assert reopened(design(small, method), tmp_path).method == method

    def test_methods_of_ones_own(self, small: Scenario, tmp_path: Path) -> None:
        channels = small.channels(small.uniform_layout())
        own = select(channels, small.weights, small.budget, First(place=1))
        again = reopened(own, tmp_path)
        assert_same_link(again, own)
        assert isinstance(again.method, RecordedSelection)
        assert again.method.options == {"place": 1}
        assert again.plot() is not None
        with pytest.raises(InvalidInput, match="first-device: only its name and options are stored"):
            select(channels, small.weights, small.budget, again.method)
        within = design(small, MimoM(selection=First(2)))
        opened = reopened(within, tmp_path)
        assert_same_link(opened, within)
        with pytest.raises(InvalidInput, match="mimo-m: only its name and options are stored"):
            design(small, opened.method)

    def test_channels_that_do_not_follow_from_the_scenario_are_stored(
        self, small: Scenario, found: Design, tmp_path: Path
    ) -> None:
        result = design(small, Still())
        again = reopened(result, tmp_path)
        assert_same_link(again, result)
        assert again.method.nested == {"selection": "first-device"}
        assert json.loads((tmp_path / "first.json").read_text())["channels"] is not None
        found.save(tmp_path / "usual.json")
        assert json.loads((tmp_path / "usual.json").read_text())["channels"] is None

    def test_a_file_names_no_code(self, picked: Selection, tmp_path: Path) -> None:
        (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nName = 1\n")
        path = tmp_path / "picked.json"
        picked.save(path)
        document = json.loads(path.read_text())
        document["method"]["name"] = f"{tmp_path / 'evil.py'}:Name"
        del document["sha256"]
        path.write_text(json.dumps(document))
        assert isinstance(load(path).method, RecordedMethod)
        assert not (tmp_path / "ran").exists()

    @given(
        st.integers(1, 5),
        st.integers(1, 7),
        st.integers(0, 2**32 - 1),
        st.one_of(st.none(), st.floats(1e-3, 1.0)),
        st.floats(1e-3, 1e3),
    )
    def test_links_of_any_size(
        self, chains: int, devices: int, seed: int, threshold: float | None, power: float
    ) -> None:
        rng = np.random.default_rng(seed)
        channels = rng.standard_normal((chains, devices)) + 1j * rng.standard_normal((chains, devices))
        channels *= 10.0 ** rng.uniform(-6, 6)
        beam = rng.standard_normal(chains) + 1j * rng.standard_normal(chains)
        beam.real[0] = -0.0  # its sign is kept
        beam /= np.linalg.norm(beam)
        link = Link(channels, rng.uniform(0.01, 1.0, devices), beam, rng.uniform(0.01, 9.0), power, threshold)
        path = Path(self.folder) / "link.json"
        link.save(path)
        assert_same_link(load(path), link)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.folder = tmp_path_factory.mktemp("links")

    def test_training(self, runs: Runs, tmp_path: Path) -> None:
        again = reopened(runs, tmp_path)
        assert isinstance(again, Runs)
        assert [run.scheme for run in again] == ["fedavg", "airpass"]
        for one, other in zip(again, runs, strict=True):
            assert_same_run(one, other)
        assert again[0].history[-1].predicted_sdr_db == math.inf
        (single,) = reopened(runs[1], tmp_path)
        assert_same_run(single, runs[1])

    def test_training_over_other_links(self, found: Design, picked: Selection, tmp_path: Path) -> None:
        bare = Link(found.channels, found.weights, found.beam, found.budget, 1.0, 0.03)
        for link in (picked, bare):
            done = train(link, "mnist-mini", options=QUICK, workers=1)
            (again,) = reopened(done, tmp_path)
            assert_same_run(again, done)

    def test_nobody_selected(self, tmp_path: Path) -> None:
        result = design(Scenario.paper(4, 2, 2, -60.0, 1), "mimo-m")
        done = train(result, "mnist-mini", options=QUICK, workers=1)
        assert_same_link(reopened(result, tmp_path), result)
        assert math.isnan(done.history[-1].measured_mse)
        assert_same_run(reopened(done, tmp_path)[0], done)

    def test_training_continues_from_a_design_that_was_opened(self, found: Design, tmp_path: Path) -> None:
        """Devices can be drawn again, as the file holds what they were drawn from."""
        options = replace(QUICK, redraw_every=1)
        done = train(found, "mnist-mini", options=options, workers=1)
        again = train(reopened(found, tmp_path), "mnist-mini", options=options, workers=1)
        assert_same_bits(again.state, done.state)


class TestRefusals:
    @pytest.fixture
    def changed(self, found: Design, tmp_path: Path) -> Callable[..., Path]:
        def change(**values: Any) -> Path:
            path = tmp_path / "d.json"
            found.save(path)
            document = json.loads(path.read_text()) | values
            del document["sha256"]
            path.write_text(json.dumps({key: value for key, value in document.items() if value != "absent"}))
            return path

        return change

    def test_newer_versions(self, changed: Any, run: Any) -> None:
        path = changed(format_version=FORMAT_VERSION + 1, version="9.1.0")
        with pytest.raises(InvalidInput, match=r"format version 3, written by airpass 9.1.0.*install"):
            load(path)
        assert_refused(run("show", path), "format version 3", "airpass 9.1.0", "up to 2")
        assert_refused(run("plot", path), "format version 3")

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"format_version": "two"}, "format_version = 'two'"),
            ({"format_version": 0}, "format_version = 0"),
            ({"kind": "recipe"}, "not a result"),
            ({"beam": "absent"}, "beam is missing"),
            ({"beam": {"re": [1.0], "im": [0.0]}}, "damaged"),
            ({"beam": {"re": "x", "im": [0.0]}}, "damaged"),
            ({"scores": [1.0] * 6}, "the scores do not follow"),
            ({"scores": []}, "the scores do not follow"),
            ({"layout_m": [[0.0, 0.1]] * 3}, "at least 0.95 m apart"),
            ({"layout_m": None}, "all missing"),
            ({"scenario": {"receiver": {"lenght": 1}}}, "receiver.lenght: unknown key"),
            ({"scenario": []}, "must be a table of keys"),
            ({"seed": -1}, "seed = -1"),
            ({"trace": [{"step": 1}]}, "damaged"),
            ({"method": "airpass"}, "damaged"),
        ],
    )
    def test_damaged_files(self, changed: Any, run: Any, values: dict[str, Any], words: str) -> None:
        path = changed(**values)
        with pytest.raises(InvalidInput, match=rf"d\.json: .*{words}"):
            load(path)
        assert_refused(run("show", path), "d.json", words)

    @pytest.mark.parametrize(
        ("content", "words"),
        [("{", "not JSON"), ("[1]", "not a result"), ("{}", "not a result"), ("[" * 100_000, "not JSON")],
    )
    def test_other_files(self, run: Any, tmp_path: Path, content: str, words: str) -> None:
        path = tmp_path / "x.json"
        path.write_text(content)
        assert_refused(run("show", path), "x.json", words)
        assert_refused(run("plot", path), "x.json", words)
        assert_refused(run("train", "--design", path), "x.json", words)

    def test_absent_files_and_folders(self, run: Any, tmp_path: Path) -> None:
        assert_refused(run("show", tmp_path / "no.json"), "no.json", "cannot be read")
        assert_refused(run("show", tmp_path), "history.json", "rows.parquet")
        with pytest.raises(InvalidInput, match=r"holds no results"):
            load(tmp_path)
        (tmp_path / "fig2").mkdir()
        (tmp_path / "fig2" / "rows.parquet").touch()
        assert_refused(run("plot", tmp_path), "its folders fig2 do")
        assert_refused(run("plot", tmp_path / "fig2" / "rows.parquet"), "not a Parquet file")

    def test_methods_of_another_version(self, found: Design, changed: Any) -> None:
        method = json.loads(changed().read_text())["method"]
        method["options"]["temperature"] = 3
        again = load(changed(method=method))
        assert isinstance(again.method, RecordedMethod)
        assert again.method.name == "airpass"
        assert again.method.options["temperature"] == 3
        assert_same_bits(again.beam, found.beam)


class TestFirstVersion:
    """Files of airpass 0.1 have no version, no kind, no channels, and fewer columns in the history."""

    NEW = ("sha256", "format_version", "kind", "channels", "power", "drawn_from", "compile_seconds", "sdr_db")

    def old(self, document: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in document.items() if key not in self.NEW} | {"version": "0.1.0"}

    def test_designs(self, found: Design, tmp_path: Path, run: Any) -> None:
        path = tmp_path / "old.json"
        found.save(path)
        path.write_text(json.dumps(self.old(json.loads(path.read_text()))))
        again = load(path)
        for name in LINK_ARRAYS:
            assert_same_bits(getattr(again, name), getattr(found, name))
        assert again.method == found.method
        assert again.compile_seconds == 0.0
        assert run("show", path).code == 0

    def test_selections_have_no_channels(self, picked: Selection, tmp_path: Path, run: Any) -> None:
        path = tmp_path / "old.json"
        picked.save(path)
        path.write_text(json.dumps(self.old(json.loads(path.read_text()))))
        assert_refused(run("show", path), "airpass 0.1.0", "channels", "run airpass select again")

    def test_training(self, runs: Runs, tmp_path: Path, run: Any) -> None:
        path = tmp_path / "old.json"
        runs.save(path)
        document = self.old(json.loads(path.read_text()))
        for one in document["runs"]:
            for key in ("devices", "drawn_from", "link", "state"):
                del one[key]
            if one["design"] is not None:
                one["design"] = self.old(one["design"])
            for row in one["history"]:
                for key in ("predicted_sdr_db", "measured_sdr_db", "largest_power"):
                    del row[key]
        path.write_text(json.dumps(document))
        again = load(path)
        assert [one.devices for one in again] == [6, 6]
        assert again[1].state.size == 0
        assert again[1].history[-1].test_accuracy == runs[1].history[-1].test_accuracy
        assert math.isnan(again[1].history[-1].largest_power)
        assert run("show", path).code == 0
        assert run("plot", path).code == 0


class TestPicturesAndFrames:
    def test_pictures(self, found: Design, picked: Selection, runs: Runs, tmp_path: Path) -> None:
        for result in (found, picked, runs, runs[1]):
            path = tmp_path / "picture.png"
            assert isinstance(result.plot(), Figure)
            assert not path.exists()
            assert isinstance(result.plot(path), Figure)
            assert path.read_bytes().startswith(PNG)
            path.unlink()
        with pytest.raises(InvalidInput, match=r"must end in \.png"):
            found.plot("picture.bmp")

    def test_a_frame_has_a_row_per_device(self, found: Design, picked: Selection) -> None:
        frame = found.to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert len(frame) == 6
        assert frame.score.tolist() == found.scores.tolist()
        assert frame.x_m.tolist() == found.scenario.devices.x_m.tolist()
        assert frame.selected.sum() == found.selected_count
        assert frame.transmit_power.max() <= 1.0 + 1e-12
        assert "x_m" not in picked.to_frame().columns

    def test_a_frame_has_a_row_per_round(self, runs: Runs) -> None:
        frame = runs.to_frame()
        assert frame.groupby("scheme")["round"].max().to_dict() == {"fedavg": 2, "airpass": 2}
        assert len(runs[0].to_frame()) == 3

    def test_without_pandas(self, found: Design, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(InvalidInput, match=r"pip install .airpass\[frames\]"):
            found.to_frame()

    def test_training_runs_are_opened_without_pytorch(self, runs: Runs, tmp_path: Path) -> None:
        runs.save(tmp_path / "runs.json")
        code = (
            "import sys\nsys.modules['torch'] = None\nimport airpass\n"
            f"airpass.load({str(tmp_path / 'runs.json')!r}).plot({str(tmp_path / 'curves.png')!r})\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "curves.png").read_bytes().startswith(PNG)

    def test_public_names(self) -> None:
        assert airpass.load is load
        assert {"load", "Runs", "__version__"} <= set(dir(airpass))


class TestCommands:
    def test_show_prints_what_design_printed(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "d.json"
        arguments = ("--devices", 5, "--method", "mimo-mn", "--tolerance-mm", 1, "--draws", 5)
        printed = run("design", *arguments, "--json", path)
        assert "Position error 1 mm" in printed.out
        assert run("show", path).out == printed.out

    def test_show_prints_what_select_printed(self, run: Any, small: Scenario, tmp_path: Path) -> None:
        np.save(tmp_path / "G.npy", small.channels(small.uniform_layout()))
        arguments = ("--channels", tmp_path / "G.npy", "--snr-db", 5, "--mse-threshold", 0.03)
        printed = run("select", *arguments, "--certify", "--check-set", "0,1", "--json", tmp_path / "p.json")
        assert "at most" in printed.out
        assert "set 0,1: " in printed.out
        assert run("show", tmp_path / "p.json").out == printed.out
        assert run("plot", tmp_path / "p.json", "--out", tmp_path / "p.svg").code == 0
        assert (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")

    def test_train_over_stored_designs(self, run: Any, found: Design, tmp_path: Path) -> None:
        found.save(tmp_path / "d.json")
        out = tmp_path / "run"
        arguments = ("--rounds", 2, "--evaluate-every", 1, "--workers", 1, "--out", out)
        printed = run(
            "train", "--design", tmp_path / "d.json", "--scheme", "fedavg", *arguments,
            "--json", tmp_path / "t.json",
        )  # fmt: skip
        assert printed.code == 0
        assert run("show", out).out == printed.out
        assert printed.out.startswith(run("show", tmp_path / "t.json").out)
        fedavg, trained = load(out)
        assert fedavg.scheme == "fedavg"
        assert trained.scheme == "airpass"
        assert trained.config["seed"] == found.scenario.seed == 3
        assert_same_link(trained.link, found)
        assert_same_run(trained, load(tmp_path / "t.json")[1])
        in_python = train(found, rounds=2, options=TrainOptions(evaluate_every=1), workers=1)
        assert_same_bits(trained.state, in_python.state)
        (out / "curves.png").unlink()
        assert run("plot", out).out.strip() == str(out / "curves.png")
        assert (out / "curves.png").read_bytes().startswith(PNG)

    def test_two_designs_of_one_method_are_named_after_their_files(
        self, run: Any, small: Scenario, tmp_path: Path
    ) -> None:
        for name in ("left", "right"):
            design(small, "mimo-m").save(tmp_path / f"{name}.json")
        files = f"{tmp_path / 'left.json'}, {tmp_path / 'right.json'}"
        out = tmp_path / "run"
        printed = run("train", "--design", files, "--rounds", 1, "--workers", 1, "--out", out)
        assert printed.code == 0
        assert [one.scheme for one in load(out)] == ["left", "right"]
        again = f"{tmp_path / 'left.json'},{tmp_path / 'left.json'}"
        assert_refused(run("train", "--design", again), "same name")

    def test_designs_that_train_refuses(
        self, run: Any, found: Design, picked: Selection, tmp_path: Path
    ) -> None:
        found.save(tmp_path / "d.json")
        picked.save(tmp_path / "p.json")
        design(Scenario.paper(4, 2, 2), "mimo-m").save(tmp_path / "e.json")
        assert_refused(run("train", "--design", tmp_path / "p.json"), "p.json", "no design")
        both = f"{tmp_path / 'd.json'},{tmp_path / 'e.json'}"
        assert_refused(run("train", "--design", both), "4 devices", "has 6", "same devices")
        for flag, value in (("--devices", 4), ("--set", "radio.snr_db=1"), ("--scenario", "room.toml")):
            outcome = run("train", "--design", tmp_path / "d.json", flag, value)
            assert outcome.code == 2
            assert flag in outcome.err or "room.toml" in outcome.err

    def test_studies(self, run: Any, tmp_path: Path) -> None:
        study = tmp_path / "study.toml"
        study.write_text(
            'name = "gap"\nschemes = ["mimo-m", "mimo-mn"]\ntrials = 2\n[axis]\nfield = "radio.snr_db"\n'
            "values = [0, 10]\n[scenario.devices]\ncount = 4\n"
        )
        out = tmp_path / "gap"
        printed = run("sweep", study, "--out", out, "--workers", 1)
        shown = run("show", out)
        assert shown.code == 0
        assert shown.out.startswith("gap\n8 trials\n")
        assert printed.out.partition("\n\n")[0] in shown.out
        first = (out / "gap.png").read_bytes()
        (out / "gap.png").unlink()
        assert f"{out / 'gap.png'} (mean of 2 trials" in run("plot", out).out
        assert (out / "gap.png").read_bytes() == first
        assert run("plot", out / "rows.parquet", "--out", tmp_path / "x.pdf").code == 0
        (out / "provenance.json").write_text("{}")
        assert_refused(run("show", out), "provenance.json", "damaged")
        (out / "provenance.json").unlink()
        assert run("show", out).code == 0
        study.write_text('name = "one"\nschemes = ["mimo-m"]\n[scenario.devices]\ncount = 4\n')
        run("sweep", study, "--out", tmp_path / "one", "--workers", 1)
        assert run("show", tmp_path / "one").code == 0
        assert_refused(run("plot", tmp_path / "one"), "neither an axis nor training")

    @pytest.mark.parametrize(
        ("place", "version"),
        [
            ("results/0.2.0/paper/fig2", "0.2.0"),
            ("results/0.2.0/paper/fig9", "0.2.0"),
            ("results/0.2.0/paper/life", "0.2.0"),
            ("tests/data/table1-0.1.0", "0.1.0"),
        ],
    )
    def test_stored_figures_of_the_paper(self, run: Any, tmp_path: Path, place: str, version: str) -> None:
        folder = Path(__file__).parent.parent / place
        shown = run("show", folder)
        assert shown.code == 0
        assert f"airpass {version}" in shown.out
        assert "C" in shown.out.splitlines()[-1] or "trials" in shown.out
        assert run("plot", folder, "--out", tmp_path / "x.png").code == 0
        assert (tmp_path / "x.png").read_bytes().startswith(PNG)

    def test_an_output_that_cannot_be_drawn(self, run: Any, found: Design, tmp_path: Path) -> None:
        found.save(tmp_path / "d.json")
        assert_refused(run("plot", tmp_path / "d.json", "--out", tmp_path / "x.bmp"), "x.bmp", ".png")
        assert run("plot", tmp_path / "d.json").out.strip() == str(tmp_path / "d.png")


class TestStudies:
    SWEEP: dict[str, Any] = {  # noqa: RUF012
        "name": "two",
        "trials": 1,
        "schemes": ["mimo-m"],
        "axis": {"field": "radio.snr_db", "values": [0.0, 10.0]},
    }

    def test_a_folder_is_a_study(self, tmp_path: Path) -> None:
        made = airpass.sweep(self.SWEEP, tmp_path / "two", workers=1)
        for path in (tmp_path / "two", tmp_path / "two" / "rows.parquet"):
            found = load(str(path))
            assert isinstance(found, airpass.StoredStudy)
            assert {row.key for row in found.rows} == {row.key for row in made.rows}
            if path.suffix == "":
                assert repr(found.rows) == repr(made.rows)

    def test_an_empty_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="holds no results; give a file, or the folder of train"):
            load(tmp_path)


class TestTheModelOfAFile:
    def test_it_is_put_into_a_network(self, tmp_path: Path) -> None:
        run = train(design(Scenario.paper(seed=1), "mimo-m"), options=QUICK, seed=1)
        run.save(tmp_path / "run.json")
        (again,) = load(tmp_path / "run.json")
        assert again.model is None
        network = again.load_into(mnist_cnn())
        assert run.model is not None
        assert not network.training
        expected = run.model.state_dict()
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                assert np.array_equal(value.numpy(), expected[name].numpy()), name

    def test_another_network_is_refused(self) -> None:
        run = train(None, options=QUICK, scenario=Scenario.paper(seed=1))
        with pytest.raises(InvalidInput, match=r"network: has 7850 entries, the global model of the run \d+"):
            run.load_into(linear((1, 28, 28), 10))
