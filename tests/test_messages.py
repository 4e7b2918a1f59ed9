"""What commands print besides results: progress, waiting, and errors in the words of the command line."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from airpass import Scenario
from airpass.cli import cli, progress, root
from airpass.cli.learning import run_folder
from airpass.cli.progress import (
    Bars,
    Lines,
    Silence,
    display,
)
from airpass.study import runner
from command_line import assert_refused

SMALL = ("design", "--devices", 4, "--waveguides", 3, "--antennas", 2, "--method", "distributed-m")


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command, with the groups it is in."""
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
        else:
            found.append((*path, name))
    return found


class TestFlags:
    @pytest.mark.parametrize(
        ("arguments", "start"),
        [
            (["design", "--tolerance-mm", "-1"], "--tolerance-mm = -1.0: must be >= 0"),
            (["design", "--time-limit-s", "0"], "--time-limit-s = 0.0: must be > 0"),
            (["design", "--tolerance-mm", "1", "--draws", "0"], "--draws = 0: must be >= 1"),
            (["design", "--tolerance-mm", "1", "--channel-error", "-1"], "--channel-error = -1.0"),
            (["design", "--devices", "0"], "--devices (devices.count) = 0: must be >= 1"),
            (["design", "--snr-db", "nan"], "--snr-db (radio.snr_db) = nan"),
            (["design", "--seed", "-1"], "--seed (devices.seed) = -1"),
            (["design", "--method", "magic"], "--method = 'magic'"),
            (["design", "--selection", "magic"], "--selection = 'magic'"),
            (
                ["design", "--method", "airpass", "--geometry", "hago"],
                "--method cannot be combined with --sel",
            ),
            (["train", "--local-steps", "0"], "--local-steps = 0: must be >= 1"),
            (["train", "--phase-error-deg", "-1"], "--phase-error-deg = -1.0"),
            (["train", "--classes-per-device", "0"], "--classes-per-device = 0"),
            (["train", "--scheme", "airpass,airpass"], "--scheme: a scheme is named twice"),
            (["train", "--workers", "0"], "--workers = 0"),
            (["reproduce", "fig9", "--workers", "0"], "--workers = 0"),
            (["demo", "--rounds", "0"], "--rounds = 0"),
            # Values that are not from a flag keep their names.
            (["design", "--option", "tolerance_mm=-1"], "tolerance_mm = -1.0: must be >= 0"),
            (["design", "--set", "radio.snr_db=nan"], "radio.snr_db = nan"),
            (["design", "--set", "devices.count=0"], "devices.count = 0"),
            (
                ["design", "--method", "airpass", "--effort", "fast"],
                "--effort: airpass has no option effort;",
            ),
            (
                ["design", "--time-limit-s", "1", "--option", "time_limit_s=2"],
                "--time-limit-s cannot be combined with --option time_limit_s=...",
            ),
        ],
    )
    def test_messages_use_the_names_of_flags(self, run: Any, arguments: list[str], start: str) -> None:
        outcome = run(*arguments)
        assert_refused(outcome)
        assert outcome.err.removeprefix("airpass: ").startswith(start)

    def test_sets_of_devices(self, run: Any, tmp_path: Path) -> None:
        np.save(tmp_path / "G.npy", np.eye(3))
        arguments = ["select", "--channels", tmp_path / "G.npy", "--budget", 1, "--check-set"]
        assert_refused(run(*arguments, "9"), "--check-set = '9'")

    @pytest.mark.parametrize("path", commands())
    def test_every_command_is_of_one_kind(self, path: tuple[str, ...]) -> None:
        command: Any = cli
        for name in path:
            command = command.commands[name]
        assert isinstance(command, root.Command)
        assert "--quiet" in {option for parameter in command.params for option in parameter.opts}


class TestQuiet:
    def test_only_the_json_is_written(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "result.json"
        outcome = run(*SMALL, "--quiet", "--json", path)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
        assert json.loads(path.read_text())["method"]["name"] == "distributed-m"
        assert json.loads(run(*SMALL, "--quiet", "--json", "-").out)["selected_count"] >= 0

    def test_errors_are_shown(self, run: Any) -> None:
        assert_refused(run("design", "--quiet", "--devices", 0), ">= 1")

    @pytest.mark.parametrize("command", [["methods"], ["data", "list"], ["data", "verify", "mnist-mini"]])
    def test_tables_are_not(self, run: Any, command: list[str]) -> None:
        assert run(*command).out != ""
        assert run(*command, "--quiet").out == ""

    def test_sweep(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "FIRST_LINE_S", 0.01)
        study = tmp_path / "tiny.toml"
        study.write_text(
            'name = "tiny"\nschemes = ["distributed-m"]\ntrials = 2\nseed = 0\n'
            "[scenario.receiver]\nwaveguides = 2\nantennas = 2\n[scenario.devices]\ncount = 3\n"
        )
        loud = run("sweep", study, "--out", tmp_path / "a", "--workers", 1)
        assert loud.code == 0
        lines = loud.err.splitlines()
        assert lines[0] == "airpass: trials: started"
        assert lines[-2].startswith("airpass: trials: 2 of 2, tiny: distributed-m")
        assert lines[-1].startswith("airpass: done in ")
        quiet = run("sweep", study, "--out", tmp_path / "b", "--workers", 1, "--quiet")
        assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


class TestLines:
    def test_now_and_then(self, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "FIRST_LINE_S", 0.05)
        monkeypatch.setattr(progress, "LINE_EVERY_S", 0.3)
        with display(counted=True) as shown:
            assert isinstance(shown, Lines)
            shown.add("trials", 500)
            for done in range(1, 101):
                time.sleep(0.01)
                shown.show("trials", "x", done)
        lines = capfd.readouterr().err.splitlines()
        assert 3 <= len(lines) <= 8  # a hundred messages
        assert lines[-2] == "airpass: trials: 100 of 500, x"
        assert lines[-1].startswith("airpass: done in ")

    def test_nothing_new_no_line(self, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "FIRST_LINE_S", 0.01)
        monkeypatch.setattr(progress, "LINE_EVERY_S", 0.01)
        with display(counted=False) as shown:
            shown.add("Designing", None)
            time.sleep(0.2)
            shown.notice("waiting")
        lines = capfd.readouterr().err.splitlines()
        assert lines == ["airpass: Designing: started", "airpass: waiting", "airpass: done in 0 s"]

    def test_short_commands_print_none(self, capfd: Any) -> None:
        with display(counted=False) as shown:
            shown.add("Designing", None)
        assert capfd.readouterr().err == ""

    def test_after_an_error_there_is_no_last_line(self, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "FIRST_LINE_S", 0.01)

        def fail() -> None:
            with display(counted=False) as shown:
                shown.add("Designing", None)
                time.sleep(0.2)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert capfd.readouterr().err == "airpass: Designing: started\n"

    def test_bars_on_a_terminal(self, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        for counted in (False, True):
            with display(counted) as shown:
                assert isinstance(shown, Bars)
                shown.add("trials", 3 if counted else None)
                shown.show("trials", "first", 1)
                shown.notice("waiting for workers")
            assert "waiting for workers" in capfd.readouterr().err

    def test_quiet_is_silent(self) -> None:
        with click.Context(cli.commands["design"]) as ctx:
            ctx.meta[root.QUIET] = True
            with display(counted=True) as shown:
                assert isinstance(shown, Silence)


class TestRows:
    def test_at_most_twenty_devices_selected_first(self, run: Any) -> None:
        arguments = [*SMALL[:1], "--devices", 30, "--method", "distributed-m", "--snr-db", 20]
        short = run(*arguments).out.splitlines()
        table = [line.split() for line in short if line.split()[-1:] in (["yes"], ["-"])]
        assert len(table) == 20
        scores = [float(row[4]) for row in table]
        assert scores == sorted(scores, reverse=True)
        marks = [row[-1] for row in table]
        assert marks == sorted(marks, reverse=True)  # "yes" before "-"
        assert "strongest 20 of 30" in short[-1]
        assert "--all" in short[-1]
        assert short[1].startswith("selected ")  # the summary comes before all rows
        every = [line.split() for line in run(*arguments, "--all").out.splitlines()]
        table = [row for row in every if row[-1:] in (["yes"], ["-"])]
        assert [int(row[0]) for row in table] == list(range(30))

    def test_many_waveguides(self, run: Any) -> None:
        arguments = ["design", "--waveguides", 25, "--antennas", 1, "--method", "distributed-m"]
        assert "5 more waveguides" in run(*arguments).out
        assert "more waveguides" not in run(*arguments, "--all").out

    def test_select_too(self, run: Any, tmp_path: Path) -> None:
        scenario = Scenario.paper(devices=25)
        np.save(tmp_path / "G.npy", scenario.channels(scenario.uniform_layout()))
        arguments = ["select", "--channels", tmp_path / "G.npy", "--budget", 0.3]
        assert "strongest 20 of 25" in run(*arguments).out
        assert "strongest" not in run(*arguments, "--all").out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_cluster_without_workers_says_so(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster, default_client

    monkeypatch.setattr(runner, "FIRST_NOTICE_S", 0.5)
    study = tmp_path / "tiny.toml"
    study.write_text('name = "tiny"\nschemes = ["distributed-m"]\ntrials = 2\nseed = 0\n')
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=0, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        genuine = Lines.notice

        def notice(shown: Lines, text: str) -> None:
            genuine(shown, text)
            if "waiting" in text:
                cluster.scale(1)

        monkeypatch.setattr(Lines, "notice", notice)
        outcome = run("sweep", study, "--dask", address, "--out", tmp_path / "out")
        default_client().close()  # type: ignore[no-untyped-call]
    assert outcome.code == 0
    waiting = f"airpass: waiting for workers at {address}: none so far; start one with: dask worker {address}"
    (line,) = (line for line in outcome.err.splitlines() if "waiting" in line)
    assert line.startswith(waiting)
    assert f"airpass: 1 worker at {address}" in outcome.err
    assert "2 trials run" in outcome.out


def test_an_error_in_the_users_own_code_is_one_line(run: Any, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def broken(effective, rng):\n    return effective[:, 99999]\n")
    channels = tmp_path / "g.npy"
    np.save(channels, np.ones((2, 3), dtype=complex))
    outcome = run("select", "--channels", channels, "--budget", 1, "--method", f"{own}:broken")
    assert outcome.code == 2
    assert (
        outcome.err.strip()
        .splitlines()[-1]
        .startswith("airpass: own.py, line 2, in broken: IndexError: index 99999")
    )
    assert "Traceback" not in outcome.err


def test_an_interrupt_that_python_ignores_is_repeated(tmp_path: Path) -> None:
    """Python goes on after an exception in a finaliser, also after Ctrl-C."""
    own = tmp_path / "own.py"
    own.write_text(
        "import time\n\n\nclass Interrupted:\n    def __del__(self):\n        raise KeyboardInterrupt\n\n\n"
        "def slow(effective, rng):\n    Interrupted()\n    time.sleep(30)\n    return effective[:, 0]\n"
    )
    channels = tmp_path / "g.npy"
    np.save(channels, np.ones((2, 3), dtype=complex))
    # The background of a shell ignores SIGINT, and so do its children.
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import airpass.cli as cli; "
    )
    command = [sys.executable, "-c", f"{start}cli.main()", "select", "--channels", str(channels)]
    done = subprocess.run(
        [*command, "--budget", "1", "--method", f"{own}:slow"],
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "airpass: interrupted\n"


def test_a_run_without_a_folder_replaces_no_other(tmp_path: Path) -> None:
    base = tmp_path / "train-own"
    assert run_folder(base, resume=False) == run_folder(base, resume=True) == base
    base.mkdir()
    assert run_folder(base, resume=False) == tmp_path / "train-own-2"
    assert run_folder(base, resume=True) == base
    (tmp_path / "train-own-2").mkdir()
    assert run_folder(base, resume=False) == tmp_path / "train-own-3"
    assert run_folder(base, resume=True) == tmp_path / "train-own-2"
