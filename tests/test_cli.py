"""The command line, run as users run it."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import airpass
from airpass import Scenario
from airpass.study.trial import Trial
from airpass.study.trial import run as run_trial
from command_line import assert_refused
from independent import check_design


@pytest.fixture
def channels_file(tmp_path: Path) -> Path:
    scenario = Scenario.paper(12, 4, 3, 10.0, 1)
    path = tmp_path / "G.npy"
    np.save(path, scenario.channels(scenario.uniform_layout()))
    return path


class TestDesign:
    def test_prints_a_table(self, run: Any) -> None:
        outcome = run("design", "--devices", 4, "--waveguides", 3, "--antennas", 2, "--snr-db", 25)
        assert outcome.code == 0
        assert all(line.startswith("airpass: Designing: ") for line in outcome.err.splitlines()[:-1])
        lines = outcome.out.splitlines()
        assert lines[0].endswith("M=3 waveguides, N=2 antennas each, K=4 devices, 25 dB")
        assert lines[1].startswith("selected 4 of 4, weakest score ")
        assert lines[1].endswith(" (threshold 1)")
        assert lines[2].startswith("MSE ")
        assert re.search(r" s(, and [0-9.]+ s to compile)?$", lines[2])
        assert "selected" in outcome.out
        assert "antenna positions, m" in outcome.out

    def test_json_to_standard_output_is_all_there_is(self, run: Any) -> None:
        document = json.loads(run("design", "--seed", 3, "--json", "-").out)
        check_design(document)
        assert document["seed"] == 3
        assert document["scenario"] == Scenario.paper(seed=3).to_dict()
        for key in ("method", "trace", "seconds", "version", "mse_threshold", "denoising_factor"):
            assert key in document

    def test_continues_a_stored_design(self, run: Any, tmp_path: Path) -> None:
        room = ("--devices", 12, "--waveguides", 3, "--antennas", 3, "--snr-db", 3, "--seed", 2)
        path = tmp_path / "first.json"
        assert run("design", *room, "--json", path).code == 0
        options = ("--option", "kicks=0", "--option", "starts=1", "--option", "polish=false")
        again = json.loads(run("design", *room, "--start", path, *options, "--json", "-").out)
        first = json.loads(path.read_text())
        assert again["selected_count"] >= first["selected_count"]
        assert again["trace"][0]["selected_count"] == first["selected_count"]
        # Algorithm 3 takes the layout only; an array has none.
        assert run("design", *room, "--start", path, "--method", "airpass").code == 0
        assert_refused(run("design", *room, "--start", path, "--method", "mimo-m"), "start_layout", "mimo-m")
        array = tmp_path / "array.json"
        run("design", *room, "--method", "mimo-m", "--json", array)
        assert_refused(run("design", *room, "--start", array), "--start", "layout")
        assert_refused(run("design", *room, "--start", tmp_path / "none.json"), "none.json")
        assert_refused(run("design", "--start", path), "layout", "shape")

    def test_scenario_file_shorthand_and_overrides(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "room.toml"
        path.write_text("[receiver]\nwaveguides = 2\nantennas = 2\n[devices]\ncount = 3\nseed = 4\n")
        out = tmp_path / "deep" / "result.json"
        outcome = run(
            "design", "--scenario", path, "--devices", 6, "--set", "receiver.length_m=[10, 12.5]",
            "--set", "weights.normalisation=share", "--json", out,
        )  # fmt: skip
        assert outcome.code == 0
        scenario = json.loads(out.read_text())["scenario"]
        assert scenario["receiver"]["length_m"] == [10, 12.5]
        assert len(scenario["devices"]["x_m"]) == 6
        drawn = Scenario.from_dict({"devices": {"count": 6, "seed": 4}})
        assert scenario["devices"]["x_m"] == drawn.devices.x_m.tolist()
        assert [file.name for file in out.parent.iterdir()] == ["result.json"]

    def test_a_result_runs_again_from_its_own_scenario(self, run: Any, tmp_path: Path) -> None:
        first = json.loads(run("design", "--seed", 8, "--json", "-").out)
        path = tmp_path / "again.toml"
        Scenario.from_dict(first["scenario"]).save(path)
        again = json.loads(run("design", "--scenario", path, "--seed", 8, "--json", "-").out)
        assert again["layout_m"] == first["layout_m"]
        assert again["beam"] == first["beam"]

    def test_options_and_pairs(self, run: Any) -> None:
        outcome = run(
            "design", "--selection", "hrmc", "--geometry", "fixed", "--option", "selection.starts=3",
            "--json", "-",
        )  # fmt: skip
        method = json.loads(outcome.out)["method"]
        assert method["name"] == "hrmc+fixed"
        assert method["options"]["selection"]["starts"] == 3

    @pytest.mark.parametrize("name", ["room.png", "room.pdf", "room.svg"])
    def test_draws_the_room(self, run: Any, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        assert run("design", "--figure", path).code == 0
        magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[path.suffix[1:]]
        assert path.read_bytes().startswith(magic)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--devices", "0"], ["devices.count", "0", ">= 1"]),
            (["--devices", "many"], ["--devices", "many"]),
            (["--snr-db", "nan"], ["radio.snr_db", "nan", "finite"]),
            (["--set", "receiver.length_m=1"], ["receiver.length_m", "1", "3.8"]),
            (["--set", "receiver.lenght_m=1"], ["receiver.lenght_m", "unknown", "length_m"]),
            (["--set", "receiver"], ["--set", "NAME=VALUE"]),
            (["--set", "radio=3"], ["radio", "table"]),
            (["--method", "magic"], ["method", "magic", "airpass"]),
            (["--method", "airpass", "--option", "selection.starts=x"], ["selection.starts", "x", "whole"]),
            (["--option", "nothing=1"], ["nothing", "unknown"]),
            (["--scenario", "no-such.toml"], ["no-such.toml", "cannot be read"]),
            (["--figure", "room.bmp"], ["room.bmp", ".png"]),
            (["--json", "."], ["directory"]),
            (["--seed", "-1"], ["seed", "-1", ">= 0"]),
            (["--snr-db", "4000"], ["radio.snr_db", "4000", "300 dB"]),
            (["--set", "radio.path_gain=1e200"], ["radio.path_gain", "1e+100"]),
            (["--devices", "1000000000000"], ["devices.count", "<= 1000000000"]),
            (["--option", "starts=99999999999999999999"], ["starts", "<= 1000000000"]),
            (["--set", "devices.y_m=[1.0]", "--seed", "3"], ["devices.x_m", "missing"]),
            (["--scenario", "x" * 300], ["cannot be read"]),
            (["--json", "x" * 300], ["x" * 300]),
            (["--no-such-flag"], ["--no-such-flag", "airpass design --help"]),
        ],
    )
    def test_bad_input_ends_in_one_line(self, run: Any, arguments: list[str], words: list[str]) -> None:
        assert_refused(run("design", *arguments), *words)

    def test_a_file_in_the_way_of_a_directory(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert_refused(run("design", "--json", tmp_path / "file" / "x.json"), "cannot be written")


class TestSelect:
    def test_same_answer_from_npy_and_mat(self, run: Any, channels_file: Path, tmp_path: Path) -> None:
        mat = tmp_path / "G.mat"
        scipy.io.savemat(mat, {"G": np.load(channels_file), "phi": np.full((1, 12), 1 / 12)})
        results = [
            json.loads(run("select", "--budget", 0.3, "--json", "-", *arguments).out)
            for arguments in (
                ["--channels", channels_file],
                ["--channels", mat, "--variable", "G"],
            )
        ]
        assert results[0]["scores"] == results[1]["scores"]
        assert results[0]["mse"] is None
        assert results[0]["denoising_factor"] is not None

    def test_snr_and_threshold_give_the_budget_and_the_error(self, run: Any, channels_file: Path) -> None:
        outcome = run(
            "select", "--channels", channels_file, "--snr-db", 10, "--mse-threshold", 0.03, "--json", "-"
        )
        document = json.loads(outcome.out)
        assert document["budget"] == pytest.approx(0.3)
        weakest = min(z for z, chosen in zip(document["scores"], document["selected"], strict=True) if chosen)
        assert document["mse"] == pytest.approx(0.03 / weakest)  # eqs. (22), (31)

    def test_weights_and_figure(self, run: Any, channels_file: Path, tmp_path: Path) -> None:
        weights = tmp_path / "phi.npy"
        np.save(weights, np.arange(1, 13) / 78)
        picture = tmp_path / "scores.png"
        outcome = run(
            "select", "--channels", channels_file, "--weights", weights, "--budget", 0.3,
            "--figure", picture,
        )  # fmt: skip
        assert outcome.code == 0
        assert "4 receive chains, 12 devices" in outcome.out
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_certificates(self, run: Any, channels_file: Path) -> None:
        arguments = [
            "select",
            "--channels",
            channels_file,
            "--budget",
            0.3,
            "--certify",
            "--check-set",
            "0,1,2",
        ]
        outcome = run(*arguments)
        assert "at most" in outcome.out
        assert "set 0,1,2: " in outcome.out
        document = json.loads(run(*arguments, "--json", "-").out)
        assert document["selected_count"] <= document["certificate"]["at_most"] <= 12
        assert document["set"]["verdict"] in ("feasible", "infeasible", "undecided")

    @pytest.mark.parametrize("text", ["0,0", "12", "a", "-1", ""])
    def test_bad_sets(self, run: Any, channels_file: Path, text: str) -> None:
        outcome = run("select", "--channels", channels_file, "--budget", 0.3, "--check-set", text)
        assert_refused(outcome, "set", repr(text))

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.ones(5), ["shape (5,)", "(M, K)"]),
            (np.ones((2, 2, 3, 4)), ["shape (2, 2, 3, 4)", "(M, K)", "(T, M, K)"]),
            (np.zeros((2, 3, 4)), ["draw 0", "row 0", "receive chains M"]),
            (np.ones((0, 3)), ["shape (0, 3)"]),
            (np.array([["a", "b"]]), ["dtype <U1", "complex"]),
            (np.array([[1.0, np.nan], [1.0, 1.0]]), ["[0, 1]", "nan", "finite"]),
            (np.array([[1.0, np.inf * 1j], [1.0, 1.0]]), ["[0, 1]", "finite"]),
            (np.array([[1.0, 2.0], [0.0, 0.0]]), ["row 1", "zeros"]),
            (np.array([[0.0, 2.0], [0.0, 1.0]]), ["column 0", "zeros"]),
        ],
    )
    def test_bad_channels(self, run: Any, tmp_path: Path, array: Any, words: list[str]) -> None:
        path = tmp_path / "bad.npy"
        np.save(path, array)
        assert_refused(run("select", "--channels", path, "--budget", 1.0), "bad.npy", *words)

    @pytest.mark.parametrize("scale", [1e-160, 1e160])
    def test_channels_beyond_the_range_of_floats(self, run: Any, tmp_path: Path, scale: float) -> None:
        path = tmp_path / "extreme.npy"
        np.save(path, np.full((2, 3), scale))
        assert_refused(run("select", "--channels", path, "--budget", 1.0), "range", "scale")

    def test_weights_in_a_file_with_several_variables(
        self, run: Any, channels_file: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "weights.mat"
        scipy.io.savemat(path, {"a": np.ones(12), "phi": np.full(12, 1 / 12)})
        arguments = ["select", "--channels", channels_file, "--budget", 0.3, "--weights", path]
        assert_refused(run(*arguments), "--weights-variable", "a, phi")
        assert run(*arguments, "--weights-variable", "phi").code == 0

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("G.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<c16'", ["not a plain NumPy array"]),
            ("G.npy", b"not an array", ["not a plain NumPy array"]),
            ("G.mat", b"not an array", ["not a MATLAB file"]),
            ("G.npz", b"not an array", ["not a plain NumPy array", ".npz"]),
            ("G.mat", b"\x89HDF\r\n\x1a\n damaged", ["MATLAB"]),
            ("G.csv", b"1,2", [".npy", ".npz", ".mat"]),
            (None, b"", ["no such file"]),
        ],
    )
    def test_bad_files(
        self, run: Any, tmp_path: Path, name: str | None, content: bytes, words: list[str]
    ) -> None:
        path = tmp_path / (name or "absent.npy")
        if name:
            path.write_bytes(content)
        assert_refused(run("select", "--channels", path, "--budget", 1.0), path.name, *words)

    def test_pickled_objects_are_not_loaded(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "objects.npy"
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        assert_refused(run("select", "--channels", path, "--budget", 1.0), "Python objects")

    def test_several_variables_need_a_name(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "two.mat"
        scipy.io.savemat(path, {"A": np.eye(2), "B": np.eye(2)})
        assert_refused(run("select", "--channels", path, "--budget", 1.0), "--variable", "A, B")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], ["--budget is missing", "--snr-db with --mse-threshold"]),
            (["--budget", "0"], ["budget", "> 0"]),
            (["--budget", "1", "--snr-db", "3"], ["--budget and --snr-db are both given"]),
            (["--snr-db", "3"], ["--mse-threshold"]),
            (["--budget", "1", "--method", "magic"], ["method", "magic", "hrmc"]),
            (["--budget", "1", "--power", "-1"], ["power", "> 0"]),
        ],
    )
    def test_bad_arguments(
        self, run: Any, channels_file: Path, arguments: list[str], words: list[str]
    ) -> None:
        assert_refused(run("select", "--channels", channels_file, *arguments), *words)

    @pytest.mark.parametrize(
        ("weights", "words"),
        [
            (np.ones(5), ["shape (5,)", "12 devices"]),
            (np.zeros(12), ["[0]", "> 0"]),
            (np.full(12, np.nan), ["[0]", "finite"]),
            (np.full(12, 1j), ["complex", "real"]),
        ],
    )
    def test_bad_weights(
        self, run: Any, channels_file: Path, tmp_path: Path, weights: Any, words: list[str]
    ) -> None:
        path = tmp_path / "phi.npy"
        np.save(path, weights)
        outcome = run("select", "--channels", channels_file, "--weights", path, "--budget", 1.0)
        assert_refused(outcome, "phi.npy", *words)


class TestOthers:
    def test_methods_lists_every_method_with_options(self, run: Any) -> None:
        rows = json.loads(run("methods", "--json", "-").out)["methods"]
        names = {(row["kind"], row["name"]) for row in rows}
        assert {
            ("selection", "hrmc"),
            ("geometry", "hago"),
            ("geometry", "fixed"),
            ("design", "airpass"),
        } <= names
        assert all(row["summary"] for row in rows)
        text = run("methods", "--options").out
        assert "selection.starts = 1" in text

    @pytest.mark.slow
    def test_demo_writes_a_self_contained_report(self, run: Any, tmp_path: Path) -> None:
        outcome = run("demo", "--out", tmp_path / "demo", "--rounds", 2)
        assert outcome.code == 0
        assert "mimo-mn" in outcome.out
        page = (tmp_path / "demo" / "report.html").read_text()
        assert page.count("data:image/png;base64,") == 5
        assert "://" not in page
        check_design(json.loads((tmp_path / "demo" / "airpass.json").read_text()))

    @pytest.mark.parametrize("command", [[], ["design"], ["select"], ["methods"], ["demo"]])
    def test_help(self, run: Any, command: list[str]) -> None:
        outcome = run(*command, "--help")
        assert outcome.code == 0
        assert "Usage: airpass" in outcome.out

    def test_help_does_not_load_the_solvers(self) -> None:
        code = "import sys, airpass.cli\nairpass.cli.main(['--help'])\nprint(sorted(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for heavy in ("'numba'", "'numpy'", "'matplotlib'", "'scipy'"):
            assert heavy not in done.stdout

    def test_bare_command_shows_help(self, run: Any) -> None:
        outcome = run()
        assert outcome.code == 0
        assert outcome.out.count("\n") > 5

    def test_a_full_disk_is_one_line(self) -> None:
        command = Path(sys.executable).parent / "airpass"
        pipe = f"'{command}' methods --json - > /dev/full"
        done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1

    def test_links_and_devices_are_written_through(self, run: Any, tmp_path: Path) -> None:
        target, link = tmp_path / "target.json", tmp_path / "link.json"
        target.write_text("old")
        link.symlink_to(target)
        assert run("methods", "--json", link).code == 0
        assert link.is_symlink()
        assert json.loads(target.read_text())
        assert run("methods", "--json", "/dev/null").code == 0
        assert not Path("/dev/null").is_file()

    def test_installed_command_and_version(self) -> None:
        command = Path(sys.executable).parent / "airpass"
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("airpass ")

    def test_a_reader_that_goes_away_is_no_error(self) -> None:
        command = Path(sys.executable).parent / "airpass"
        pipe = f"'{command}' methods --options | head -n 1"
        done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=True)
        assert done.stderr == ""


class TestNobodySelected:
    """The score that is shown is named after what it is."""

    FLAGS = ("--devices", 3, "--waveguides", 2, "--antennas", 2, "--snr-db", -60)

    def test_design_and_show(self, run: Any, tmp_path: Path) -> None:
        made = run("design", *self.FLAGS, "--method", "mimo-m", "--json", tmp_path / "d.json")
        assert made.code == 0
        for text in (made.out, run("show", tmp_path / "d.json").out, repr(airpass.load(tmp_path / "d.json"))):
            assert "strongest score" in text
            assert "weakest" not in text

    def test_trace(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[str] = []

        @contextmanager
        def progress(label: str) -> Iterator[Any]:
            yield shown.append

        monkeypatch.setattr("airpass.cli.designs.progress", progress)
        assert run("design", *self.FLAGS, "--method", "airpass").code == 0
        assert run("design", "--devices", 3, "--snr-db", 40, "--method", "airpass").code == 0
        steps = [text for text in shown if "selected" in text]
        assert any(" 0 selected, strongest score " in text for text in steps)
        assert any(" 3 selected, weakest score " in text for text in steps)
        assert not any("0 selected, weakest" in text for text in steps)

    def test_select_for_a_stack(self, run: Any, tmp_path: Path) -> None:
        stack = np.stack([np.eye(3, dtype=complex), 1e-3 * np.eye(3)])
        np.save(tmp_path / "g.npy", stack)
        done = run("select", "--channels", tmp_path / "g.npy", "--budget", 1.0)
        rows = [
            line.split() for line in done.out.splitlines() if line[:6].split() and line.split()[0] in "01"
        ]
        assert [(row[1], row[2] == "-") for row in rows] == [("1", False), ("0", True)]

    def test_rows_of_a_study(self) -> None:
        scenario = Scenario.paper(3, 2, 2, -60.0, 0).to_dict()
        trial = Trial("design", "f", "mimo-m", None, "", 0, 0, scenario, {"method": "mimo-m"})
        rows = {row.metric: row.value for row in run_trial(trial)}
        assert rows["selected_count"] == 0
        assert math.isnan(rows["weakest_score"])
