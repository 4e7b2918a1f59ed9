"""The study engine: trials, rows, workers that die, studies that are interrupted."""

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import airpass
from airpass import InvalidInput, Scenario, __version__, design
from airpass.core.display import LOOKS, looks
from airpass.designs.api import design_method
from airpass.figures.chart import Chart, Line, Panel
from airpass.figures.study import draw_chart
from airpass.figures.style import render
from airpass.figures.training import draw_training
from airpass.selection.hrmc import Hrmc
from airpass.study import added, charts, runner, store, summary, sweep, trial
from airpass.study import run as study_run
from airpass.study.claims import judge
from airpass.study.known import known_figures
from airpass.study.paper import curves, fig9, figures, plan, schemes, table1
from airpass.study.paper.base import SCALES
from airpass.study.provenance import read_provenance
from airpass.study.run import run_sweep
from airpass.study.runner import DaskCluster, LocalProcesses, run_trials
from airpass.study.store import Store, set_aside
from airpass.study.trial import Row, Trial, check, run
from command_line import assert_refused

RESULTS = Path(__file__).parents[1] / "results"
SWEEP = {
    "name": "small",
    "schemes": ["airpass", {"label": "plus", "method": "airpass-plus", "options": {"effort": "fast"}}],
    "trials": 2,
    "seed": 3,
    "axis": {"field": "radio.snr_db", "values": [3.0, 6.0]},
    "scenario": {"receiver": {"waveguides": 2, "antennas": 3}, "devices": {"count": 6}},
}


def trials() -> tuple[Trial, ...]:
    return sweep.from_dict(SWEEP).trials


def here(batch: Sequence[Trial]) -> runner.Results:
    """A backend that runs trials in this process."""
    return ((one, runner.attempt(one)) for one in batch)


def worker_environment(_: Trial) -> str:
    """What libraries in a worker see."""
    time.sleep(0.2)
    names = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
    return " ".join(os.environ[name] for name in names)


def killed_worker(_: Trial) -> None:
    """End a worker without a word, as the system does when memory is short."""
    os._exit(3)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """rows.parquet of the small sweep, computed in one go in this process."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_trials(trials(), Store(folder), here).failures == ()
    Store(folder).merge(trials())
    return (folder / "rows.parquet").read_bytes()


class TestTrial:
    def test_rows_are_those_of_the_design(self) -> None:
        one = trials()[0]
        rows = {row.metric: row.value for row in trial.run(one)}
        result = design(Scenario.from_dict(one.scenario), "airpass", seed=one.seed)
        assert rows["selected_count"] == result.selected_count
        weakest = result.weakest_score if result.selected_count else math.nan
        assert rows["weakest_score"] == pytest.approx(weakest, nan_ok=True)
        assert rows["mse"] == pytest.approx(result.mse, nan_ok=True)
        assert rows["sdr_db"] == pytest.approx(result.sdr_db, nan_ok=True)
        assert rows["seconds"] > 0.0

    def test_schemes_and_points_of_a_trial_see_the_same_devices(self) -> None:
        groups: dict[int, set[bytes]] = {}
        for one in trials():
            place = Scenario.from_dict(one.scenario).devices.x_m.tobytes()
            groups.setdefault(one.trial, set()).add(place)
        assert all(len(places) == 1 for places in groups.values())
        assert len(set.union(*groups.values())) == 2

    def test_the_key_depends_on_everything(self) -> None:
        one = trials()[0]
        changes: list[dict[str, Any]] = [
            {"seed": 99},
            {"scheme": "other"},
            {"x": 1.0},
            {"scenario": {}},
            {"method": {"method": "mimo-m"}},
            {"job": "train", "training": {}},
            {"job": "select", "repeats": 2},
        ]
        keys = {one.key, *(replace(one, **change).key for change in changes)}
        assert len(keys) == 1 + len(changes)
        assert replace(one).key == one.key

    def test_the_key_depends_on_what_is_in_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "own.npz"
        keys = set()
        for content in (b"one", b"two"):
            path.write_bytes(content)
            one = replace(trials()[0], job="train", training={"dataset": str(path)})
            keys |= {one.key, one.computation}
        assert len(keys) == 4

    @pytest.mark.parametrize("field", ["method", "selection"])
    def test_the_key_depends_on_the_code_of_a_method(self, field: str, tmp_path: Path) -> None:
        path = tmp_path / "own.py"
        keys = set()
        for content in ("a = 1", "a = 2"):
            path.write_text(content)
            one = replace(trials()[0], method={field: f"{path}:Name"})
            keys |= {one.key, one.computation}
        assert len(keys) == 4

    def test_the_key_depends_on_the_code_of_a_channel_model(self, tmp_path: Path) -> None:
        path = tmp_path / "own.py"
        keys = set()
        for content in ("a = 1", "a = 2"):
            path.write_text(content)
            one = replace(trials()[0], scenario={"channel": {"models": [{"model": f"{path}:Name"}]}})
            keys |= {one.key, one.computation}
        assert len(keys) == 4

    @pytest.mark.parametrize(
        "change", [{"training": {}}, {"repeats": 1}, {"job": "train"}, {"job": "select"}]
    )
    def test_the_job_says_what_is_needed(self, change: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match="job"):
            replace(trials()[0], **change)

    def test_the_repr_is_short(self) -> None:
        assert repr(trials()[0]) == "<Trial design small: airpass at 3.0, trial 0>"

    def test_stored_rows_of_the_paper_are_of_the_stated_version(self) -> None:
        """Folders are VERSION/scale/figure. There may be fewer trials than declared, but no others."""
        folders = [path.parent for path in RESULTS.glob("*/*/*/rows.parquet")]
        assert folders
        for folder in folders:
            version_, scale = folder.parts[-3:-1]
            made = json.loads((folder / "provenance.json").read_text())
            assert made["airpass"] == version_, folder
            if version_ == __version__:
                declared = {one.key for one in known_figures()[folder.name].trials(scale)}
                rows = store.decode(folder / "rows.parquet")
                assert {row.key for row in rows} <= declared, folder
                assert {row.version for row in rows} == {version_}, folder

    def test_training_rows(self) -> None:
        tables = {
            "schemes": ["fedavg", "mimo-m"],
            "scenario": {"devices": {"count": 3}, "receiver": {"waveguides": 2, "antennas": 2}},
            "train": {"dataset": "mnist-mini", "rounds": 2, "evaluate_every": 1, "local_steps": 1},
        }
        ideal, array = sweep.from_dict(tables).trials
        rows = trial.run(ideal)
        assert {row.round for row in rows if row.metric == "test_accuracy"} == {0, 1, 2}
        assert [row.value for row in rows if row.metric == "measured_mse"][1:] == [0.0, 0.0]
        assert {row.value for row in rows if row.metric == "measured_sdr_db" and row.round} == {np.inf}
        assert {"predicted_sdr_db", "largest_power"} <= {row.metric for row in rows}
        # The same initial model before the first round.
        first = [
            next(row.value for row in found if row.metric == "test_loss" and row.round == 0)
            for found in (rows, trial.run(array))
        ]
        assert first[0] == first[1]


class TestStore:
    def test_what_is_written_is_read_back(self, tmp_path: Path) -> None:
        one = trials()[0]
        rows = [one.row("a", 1.5), one.row("b", float("nan"), 3), replace(one.row("c", 2.0), x=None)]
        kept = Store(tmp_path)
        assert not kept.has(one)
        kept.write(one, rows)
        again = kept.read([one])
        assert sorted(row.metric for row in again) == ["a", "b", "c"]
        assert {row.x for row in again} == {3.0, None}
        assert np.isnan(next(row.value for row in again if row.metric == "b"))

    @pytest.mark.parametrize("content", [b"", b"nonsense"])
    def test_a_damaged_trial_is_computed_again(self, content: bytes, tmp_path: Path) -> None:
        one = trials()[0]
        path = Store(tmp_path).path(one)
        path.parent.mkdir()
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"not a Parquet file.*run the study again"):
            Store(tmp_path).read([one])
        notices: list[str] = []
        kept = Store(tmp_path, set_aside(notices.append))
        assert run_trials([one], kept, here).run == 1
        assert Store(tmp_path).read([one])
        (notice,) = notices
        assert f"{path}: not a Parquet file" in notice
        assert path.with_name(f"{path.name}.damaged").read_bytes() == content

    def test_damage_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "rows.parquet").write_bytes(b"nonsense")
        with pytest.raises(InvalidInput, match=r"not a Parquet file.*run the study again"):
            Store(tmp_path)

    def test_times_are_kept_apart(self, tmp_path: Path) -> None:
        one = trials()[0]
        kept = Store(tmp_path)
        kept.write(one, [one.row("mse", 1.0), one.row("seconds", 2.0)])
        assert [row.metric for row in kept.merge([one])] == ["mse", "seconds"]
        assert [row.metric for row in store.decode(tmp_path / "rows.parquet")] == ["mse"]
        assert [row.metric for row in store.decode(tmp_path / "timings.parquet")] == ["seconds"]

    def test_merged_rows_stand_for_their_trials(self, tmp_path: Path) -> None:
        first, second = trials()[:2]
        kept = Store(tmp_path)
        kept.write(first, [first.row("mse", 1.0), first.row("seconds", 2.0)])
        kept.merge([first, second])
        kept.path(first).unlink()
        again = Store(tmp_path)
        assert again.has(first)
        assert not again.has(second)
        assert {row.metric: row.value for row in again.read([first, second])} == {"mse": 1.0, "seconds": 2.0}

    def test_a_merge_that_was_cut_short_loses_nothing(self, tmp_path: Path) -> None:
        first, second = trials()[:2]
        kept = Store(tmp_path)
        for one in (first, second):
            kept.write(one, [one.row("mse", 1.0), one.row("seconds", 2.0)])
        kept.merge([first, second])
        (tmp_path / "timings.parquet").unlink()
        Store(tmp_path).merge([first, second])
        assert len(store.decode(tmp_path / "timings.parquet")) == 2

    def test_a_merge_keeps_what_it_is_not_asked_for(self, tmp_path: Path) -> None:
        first, second = trials()[:2]
        kept = Store(tmp_path)
        for one in (first, second):
            kept.write(one, [one.row("mse", 1.0)])
        kept.merge([first, second])
        for one in (first, second):
            kept.path(one).unlink()
        assert [row.key for row in Store(tmp_path).merge([second])] == [second.key]
        assert Store(tmp_path).has(first)


class TestRunner:
    @pytest.mark.parametrize("workers", [1, 2, 4])
    def test_rows_do_not_depend_on_workers(self, workers: int, expected: bytes, tmp_path: Path) -> None:
        done: list[Trial] = []
        outcome = run_trials(trials(), Store(tmp_path), LocalProcesses(workers), done.append)
        assert (outcome.run, outcome.reused, outcome.failures) == (8, 0, ())
        assert len(done) == 8
        Store(tmp_path).merge(trials())
        assert (tmp_path / "rows.parquet").read_bytes() == expected

    def test_what_is_done_is_not_done_again(self, expected: bytes, tmp_path: Path) -> None:
        run_trials(trials()[:5], Store(tmp_path), here)
        seen: list[Trial] = []

        def watched(batch: Sequence[Trial]) -> runner.Results:
            seen.extend(batch)
            return here(batch)

        outcome = run_trials(trials()[::-1], Store(tmp_path), watched)
        assert (outcome.run, outcome.reused) == (3, 5)
        assert len(seen) == 3
        Store(tmp_path).merge(trials()[::-1])
        assert (tmp_path / "rows.parquet").read_bytes() == expected

    @pytest.mark.slow
    def test_a_killed_worker_costs_its_trial_only(self, expected: bytes, tmp_path: Path) -> None:
        killed = threading.Event()

        def kill_one() -> None:
            while not killed.is_set():
                children = subprocess.run(
                    ["pgrep", "-P", str(os.getpid()), "-f", "popen_loky"],
                    capture_output=True, text=True, check=False,
                ).stdout.split()  # fmt: skip
                if len(children) >= 2:
                    time.sleep(0.3)
                    os.kill(int(children[-1]), signal.SIGKILL)
                    killed.set()
                time.sleep(0.02)

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        outcome = run_trials(trials(), Store(tmp_path), LocalProcesses(2))
        killer.join(10.0)
        assert killed.is_set()
        assert outcome.failures == ()
        Store(tmp_path).merge(trials())
        assert (tmp_path / "rows.parquet").read_bytes() == expected

    def test_a_trial_that_kills_its_workers_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "attempt", killed_worker)
        (found,) = LocalProcesses(1)(trials()[:1])
        assert "died 3 times" in str(found[1])

    def test_workers_have_one_thread_and_one_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "attempt", worker_environment)
        monkeypatch.delenv("MKL_NUM_THREADS")
        before = dict(os.environ)
        found = [result for _, result in LocalProcesses(2, ("7", "9"))(trials()[:6])]
        assert set(map(str, found)) == {"1 1 7", "1 1 9"}
        assert dict(os.environ) == before

    def test_closing_ends_the_workers(self) -> None:
        results = LocalProcesses(2)(trials())
        next(results)
        began = time.perf_counter()
        results.close()
        assert time.perf_counter() - began < 5.0
        listed = subprocess.run(
            ["pgrep", "-P", str(os.getpid()), "-f", "popen_loky"], capture_output=True, check=False
        )
        assert listed.stdout == b""

    def test_the_same_computation_is_done_once(self, tmp_path: Path) -> None:
        one = trials()[0]
        twin = replace(one, figure="other", x=None, x_label="there", trial=9)
        assert (one.key == twin.key, one.computation == twin.computation) == (False, True)
        asked: list[Trial] = []

        def counting(batch: Sequence[Trial]) -> runner.Results:
            asked.extend(batch)
            return here(batch)

        outcome = run_trials([one, twin], Store(tmp_path), counting)
        assert (outcome.run, asked) == (2, [one])
        reproducible = [row for row in trial.run(twin) if row.metric != "seconds"]
        found = [row for row in Store(tmp_path).read([twin]) if row.metric != "seconds"]
        assert sorted(map(str, found)) == sorted(map(str, reproducible))  # as text: nan is not nan

    def test_rows_of_another_figure_serve(self, tmp_path: Path) -> None:
        one = trials()[0]
        rows = trial.run(replace(one, figure="other"))

        def never(batch: Sequence[Trial]) -> runner.Results:
            raise AssertionError(batch)

        outcome = run_trials([one], Store(tmp_path), never, elsewhere=lambda asked: rows)
        assert (outcome.run, outcome.reused) == (0, 1)
        assert {row.figure for row in Store(tmp_path).read([one])} == {"small"}

    def test_ideal_averaging_has_no_use_for_a_receiver(self) -> None:
        table = figures()["fig4"].trials("smoke")
        computations: dict[str, set[str]] = {}
        for one in table:
            computations.setdefault(one.scheme, set()).add(one.computation)
        assert {scheme: len(found) for scheme, found in computations.items()} == {
            "fedavg": 1, "airpass-plus": 3, "airpass-plus-turns": 3, "airpass": 3, "airpass-sdr-dc": 3,
            "airpass-mp": 3, "mimo-mn-plus-xz": 3,
        }  # fmt: skip

    def test_turns_are_a_book(self) -> None:
        """A scheme with turns trains over what `schedule` finds."""
        training = {"dataset": "mnist-mini", "rounds": 3, "evaluate_every": 1}
        method = {"method": "airpass-plus", "options": {"effort": "fast"}, "turns": 2}
        one = replace(trials()[0], job="train", scheme="turns", method=method, training=training)
        check(one)
        found = {row.round: row.value for row in run(one) if row.metric == "test_loss"}
        scenario, data = airpass.prepare(Scenario.from_dict(one.scenario), "mnist-mini", seed=one.seed)
        book = airpass.schedule(scenario, 2, seed=one.seed)
        options = airpass.TrainOptions(rounds=3, evaluate_every=1)
        again = airpass.train(book, data, seed=one.seed, options=options, progress=False)
        assert found == {record.round: record.test_loss for record in again.history}
        with pytest.raises(InvalidInput, match="turns"):
            check(replace(one, job="design", training=None))
        for change, words in (
            ({"turns": "abc"}, "turns = 'abc'"),
            ({"turns": 0}, "turns = 0"),
            ({"turns": True}, "turns = True"),
            ({"turns": 2.5}, "turns = 2.5"),
            ({"method": "mimo-mn-plus", "options": {}}, "no antennas that move"),
            ({"method": "fedavg"}, "fedavg has no design"),
        ):
            with pytest.raises(InvalidInput, match=words):
                check(replace(one, method={**method, **change}))

    @pytest.mark.parametrize("name", sorted(added.figures()))
    @pytest.mark.parametrize("scale", ["smoke", "lite", "paper"])
    def test_added_figures(self, name: str, scale: str) -> None:
        """Every trial can run, trials differ, and the chart takes their rows."""
        figure = added.figures()[name]
        found = figure.trials(scale)
        for one in found:
            if one.trial == 0:
                check(one)
        assert len({one.key for one in found}) == len(found)
        assert {one.trial for one in found} == set(range(figure.plan(scale).trials))
        rows = [one.row(metric, 1.0 + one.trial) for one in found for metric in figure.metrics]
        chart = figure.chart(rows)
        assert [panel.ylabel for panel in chart.panels] == [
            charts.shown(name).label for name in figure.metrics
        ]
        assert all(panel.lines for panel in chart.panels)

    def test_the_best_array_of_each_point_is_one_line(self) -> None:
        """Means of 2 and 3 at the first point, and of 6 and 5 at the last; two points have one array only."""
        figure = added.figures()["tolerance"]
        first, second, *_ = figure.arrays
        found = {
            (first, "0"): [1.0, 3.0],
            (second, "0"): [3.0, 3.0],
            (first, "10"): [6.0, 6.0],
            (second, "10"): [5.0, 5.0],
            (first, "1"): [7.0],
            (second, "2"): [8.0],
            ("airpass-plus", "0"): [9.0],
        }
        rows = [
            replace(trials()[0], scheme=scheme, x=float(point), x_label=point, trial=number).row(
                metric, value
            )
            for (scheme, point), values in found.items()
            for number, value in enumerate(values)
            for metric in figure.metrics
        ]
        for panel in figure.chart(rows).panels:
            lines = {line.key: dict(zip(line.x, line.value, strict=True)) for line in panel.lines}
            assert lines == {
                "airpass-plus": {0.0: 9.0},
                "best-array": {0.0: 3.0, 1.0: 7.0, 2.0: 8.0, 10.0: 6.0},
            }

    def test_what_is_evaluated(self) -> None:
        base = replace(trials()[0], method={"method": "distributed-m"})
        moved = replace(base, job="evaluate", evaluation={"displacement_wavelengths": 0.25, "draws": 3})
        found = {row.metric: row.value for row in run(moved)}
        scenario = Scenario.from_dict(base.scenario)
        made = design(scenario, "distributed-m", seed=base.seed)
        lived = airpass.life(made, [scenario.radio.wavelength_m / 4], draws=3, seed=base.seed)
        assert found["aligned_re_solved"] == lived.mean("re-solved")[1]
        shaken = replace(base, job="evaluate", evaluation={"position_mm": 2.0, "draws": 3})
        found = {row.metric: row.value for row in run(shaken)}
        expected = airpass.tolerance(made, position_mm=2.0, draws=3, seed=base.seed)
        assert found["aligned_rescaled"] == expected.outcomes["rescaled"].mean
        assert moved.key != shaken.key != base.key
        with pytest.raises(InvalidInput, match="evaluation"):
            replace(moved, evaluation=None)

    def test_the_best_array_is_another_at_some_points(self) -> None:
        found = {
            (one.figure, one.x): one.method["options"]["axis"]
            for name in ("fig6", "fig7", "fig8")
            for one in figures()[name].trials("paper")
            if one.scheme == "best-array"
        }
        assert {key for key, axis in found.items() if axis != "xz"} == {
            ("fig6", 1.0),
            ("fig6", 2.0),
            ("fig7", 1.0),
        }

    def test_a_failure_is_reported_and_stops_nothing(self, tmp_path: Path) -> None:
        nowhere = {"dataset": "nowhere.npz", "model": "mnist-cnn", "rounds": 1}
        bad = replace(trials()[0], job="train", training=nowhere, scheme="bad")
        outcome = run_trials([bad, *trials()[:2]], Store(tmp_path), LocalProcesses(1))
        assert outcome.run == 2
        ((failed, why),) = outcome.failures
        assert failed == bad
        assert "nowhere.npz" in why

    def test_trials_in_threads_of_one_process_do_not_mix(self) -> None:
        """As a cluster's worker with two threads would run them."""
        training = {"dataset": "mnist-mini", "rounds": 2, "evaluate_every": 1, "batch": 8, "probe_images": 50}
        two = [replace(one, job="train", training=training) for one in (trials()[0], trials()[2])]
        assert two[0].seed != two[1].seed
        alone = [runner.attempt(one) for one in two]
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(runner.attempt, two))

        def text(results: list[Any]) -> list[str]:
            return [str(row) for rows in results for row in rows if row.metric != "seconds"]

        assert text(together) == text(alone)

    def test_training_that_was_cut_short_is_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from airpass.learning import training as learning

        whole = learning.train

        def cut(*arguments: Any, **options: Any) -> Any:
            return replace(whole(*arguments, **options), finished=False, status=status)

        monkeypatch.setattr(learning, "train", cut)
        training = {"dataset": "mnist-mini", "rounds": 1, "batch": 8, "probe_images": 50}
        trial = replace(trials()[0], job="train", training=training)
        status = "stopped in round 2: no workers"
        assert runner.attempt(trial) == f"RuntimeError: training was {status}"
        status = "interrupted in round 2"
        with pytest.raises(KeyboardInterrupt):
            runner.attempt(trial)

    def test_an_interrupted_run_keeps_rows_and_provenance(self, tmp_path: Path) -> None:
        planned = sweep.from_dict(SWEEP)
        most = len(planned.trials)
        done: list[Trial] = []

        def interrupt(trial: Trial) -> None:
            done.append(trial)
            if len(done) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_sweep(planned, tmp_path, LocalProcesses(1), "airpass sweep", interrupt)
        kept = Store(tmp_path).read(planned.trials)
        assert {row.key for row in kept} == {trial.key for trial in done}
        assert (tmp_path / "rows.parquet").is_file()
        assert sweep.load(tmp_path / "sweep.toml").trials == planned.trials
        found = read_provenance(tmp_path, complete=True)
        assert (found["trials"], found["failed"]) == (most, {})
        assert found["seconds"] > 0
        outcome, _, rows = run_sweep(planned, tmp_path, LocalProcesses(1), "airpass sweep", done.append)
        assert (outcome.run, outcome.reused, len({row.key for row in rows})) == (most - 3, 3, most)

    def test_an_interrupted_run_without_rows_leaves_no_files(self, tmp_path: Path) -> None:
        def interrupted(batch: Sequence[Trial]) -> Iterator[Any]:
            if batch:
                raise KeyboardInterrupt
            yield

        interrupted.about = "none"  # type: ignore[attr-defined]
        planned = sweep.from_dict(SWEEP)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(planned, tmp_path, interrupted, "airpass sweep", lambda _: None)  # type: ignore[arg-type]
        assert not list(tmp_path.iterdir())

    def test_figures_before_an_interrupted_one_have_reports(
        self, run: Any, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setitem(table1.SCALES, "smoke", (((5,), (2,)), ((5,), (2,))))
        monkeypatch.setitem(fig9.SCALES, "smoke", ((4, 2, 2), (0.0,), (20.0,)))

        def interrupt(trials: Sequence[Trial], *arguments: Any) -> Any:
            if trials[0].figure == "table1":
                raise KeyboardInterrupt
            return run_trials(trials, *arguments)

        monkeypatch.setattr(study_run, "run_trials", interrupt)
        assert run("reproduce", "fig9", "table1", "--out", tmp_path, "--workers", 1).code == 130
        assert (tmp_path / "fig9" / "report.html").is_file()

    def test_what_cannot_run_is_refused_at_once(self, tmp_path: Path) -> None:
        for change in (
            {"method": {"method": "magic"}},
            {"scenario": {"radio": {"volume": 11}}},
            {"method": {"method": "fedavg"}},
            {"job": "train", "training": {"rounds": 0}},
            {"method": {"method": "airpass", "options": {"patience": -1}}},
            {"method": {"method": "airpass-plus", "options": {"time_limit_s": 1.0}}},
        ):
            with pytest.raises(InvalidInput):
                run_trials([replace(trials()[0], **change)], Store(tmp_path), here)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker(expected: bytes, tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        backend = DaskCluster(cluster.scheduler_address)
        lost: list[int] = []

        def lose_one(_: Trial) -> None:
            if not lost:
                pids = list(backend.client.run(os.getpid).values())
                os.kill(pids[0], signal.SIGKILL)
                lost.append(pids[0])

        outcome = run_trials(trials(), Store(tmp_path), backend, lose_one)
        backend.client.close()
    assert lost
    assert outcome.failures == ()
    Store(tmp_path).merge(trials())
    assert (tmp_path / "rows.parquet").read_bytes() == expected


class TestSweep:
    @pytest.mark.parametrize(
        ("change", "word"),
        [
            ({"name": "a/b"}, "name"),
            ({"schemes": "airpass"}, "schemes"),
            ({"schemes": ["airpass", "airpass"]}, "duplicate scheme label 'airpass'"),
            ({"schemes": [{"colour": 3}]}, "colour"),
            ({"trials": 0}, "trials"),
            ({"axis": {"field": "radio.snr_db"}}, "values"),
            ({"axis": {"field": "train.rounds", "values": [1]}}, r"\[train\]"),
            ({"verbose": True}, "verbose"),
            ({"schemes": [3]}, "must be a table"),
            ({"schemes": [{"method": "airpass", "options": 3}]}, "must be a table"),
            ({"axis": {"field": 5, "values": [1]}}, "as text"),
            ({"axis": {"field": "radio.snr_db", "values": [1.0, 1.0]}}, "duplicate value 1.0"),
            ({"axis": {"field": "train", "values": [1]}, "train": {}}, "train.rounds"),
            (
                {
                    "axis": {"field": "train.partition.kind", "values": ["iid"]},
                    "train": {"partition": "iid"},
                },
                "train.partition",
            ),
            ({"scenario": 3}, "scenario"),
            ({"scenario": {"devices": 5}}, "scenario.devices"),
            ({"train": 3}, "train"),
        ],
    )
    def test_bad_files(self, change: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            sweep.from_dict(SWEEP | change)

    def test_blocks_with_options_and_a_label(self) -> None:
        block = {"label": "mine", "selection": "hrmc", "geometry": "hago", "options": {"patience": 2}}
        named = sweep.from_dict(SWEEP | {"schemes": [block, {"selection": "mp", "geometry": "hago"}]})
        assert [one.scheme for one in named.trials[:2]] == ["mine", "mp+hago"]
        trial.check(named.trials[0])

    def test_any_field_may_be_the_axis(self) -> None:
        lengths = sweep.from_dict(SWEEP | {"axis": {"field": "receiver.length_m", "values": [10, 20]}})
        assert {one.scenario["receiver"]["length_m"] for one in lengths.trials} == {10, 20}
        training = {"dataset": "mnist-mini", "rounds": 1}
        kinds = sweep.from_dict(
            SWEEP
            | {"train": training, "axis": {"field": "train.partition.kind", "values": ["iid", "classes"]}}
        )
        assert {one.x_label for one in kinds.trials} == {"iid", "classes"}
        assert {one.x for one in kinds.trials} == {None}
        for one in kinds.trials:
            trial.check(one)


class TestSummary:
    def test_mean_and_student_interval(self) -> None:
        # t(0.975, 2) = 4.3027; the deviation of 1, 2, 3 is 1.
        found = summary.mean([1.0, 2.0, 3.0, float("nan")])
        assert (found.value, found.count) == (2.0, 3)
        assert found.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
        assert np.isnan(summary.mean([5.0]).half_width)
        assert summary.mean([]).count == 0

    def test_the_last_round_counts(self) -> None:
        one = trials()[0]
        rows = [one.row("loss", 3.0, 0), one.row("loss", 1.0, 20), one.row("loss", 2.0, 10)]
        assert summary.means_by_point(rows, "loss")["airpass"]["3.0"].value == 1.0
        assert list(summary.means_by_round(rows, "loss")[("airpass", "3.0")]) == [0, 10, 20]


def test_a_row_has_what_the_file_has() -> None:
    assert list(Row.__dataclass_fields__) == store.SCHEMA.names


STUDY_FILE = """
name = "small"
schemes = ["airpass", {label = "plus", method = "airpass-plus", options = {effort = "fast"}}]
trials = 2
seed = 3
[axis]
field = "radio.snr_db"
values = [3.0, 6.0]
[scenario.receiver]
waveguides = 2
antennas = 3
[scenario.devices]
count = 6
"""


PROGRAM = str(Path(sys.executable).parent / "airpass")


def killed(command: list[str], out: Path, trials_: int) -> int:
    """Run a command until there are so many trials, then kill all its processes; how many there are."""
    program = subprocess.Popen([PROGRAM, *command], stdout=subprocess.DEVNULL, start_new_session=True)
    while program.poll() is None and len(list(out.glob("**/trials/*.parquet"))) < trials_:
        time.sleep(0.02)
    assert program.poll() is None
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    return len(list(out.glob("**/trials/[!.]*.parquet")))


class TestCommands:
    @pytest.mark.slow
    def test_a_killed_sweep_goes_on_to_the_same_rows(self, expected: bytes, tmp_path: Path) -> None:
        (tmp_path / "study.toml").write_text(STUDY_FILE)
        out = tmp_path / "out"
        command = ["sweep", str(tmp_path / "study.toml"), "--out", str(out), "--workers", "2"]
        before = killed(command, out, 2)
        again = subprocess.run([PROGRAM, *command], capture_output=True, text=True, check=True)
        assert f"{before} reused" in again.stdout
        assert (out / "rows.parquet").read_bytes() == expected
        for name in ("small.png", "small.pdf", "provenance.json", "timings.parquet"):
            assert (out / name).stat().st_size > 0

    @pytest.mark.slow
    def test_killed_figures_go_on_to_the_same_rows(self, tmp_path: Path) -> None:
        """One of designs, one of training, killed while the second is at it."""
        command = ["reproduce", "fig2", "fig9", "--scale", "smoke", "--out"]
        subprocess.run([PROGRAM, *command, str(tmp_path / "whole")], capture_output=True, check=True)
        out = tmp_path / "broken"
        before = killed([*command, str(out)], out, 20)
        again = subprocess.run([PROGRAM, *command, str(out)], capture_output=True, text=True, check=True)
        kept = [int(word) for word in re.findall(r"(\d+) reused", again.stdout)]
        assert sum(kept) == before
        assert 0 < kept[1] < len(figures()["fig9"].trials("smoke"))
        for name in ("fig2", "fig9"):
            rows = (out / name / "rows.parquet").read_bytes()
            assert rows == (tmp_path / "whole" / name / "rows.parquet").read_bytes()
        page = (out / "report.html").read_text()
        assert page.count("data:image/png;base64,") == 2
        assert "best known of each" in page
        assert "1 of 1 trial" in page

    @pytest.mark.slow
    def test_a_table_of_a_paper(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes = (((5, 10), (2, 4, 8)), ((5,), (2, 8)))
        monkeypatch.setitem(table1.SCALES, "smoke", sizes)
        outcome = run("reproduce", "table1", "--out", tmp_path / "t", "--workers", 1)
        assert outcome.code == 0
        assert "C9" in outcome.out
        page = (tmp_path / "t" / "report.html").read_text()
        assert "://" not in page
        assert page.count("data:image/png;base64,") == 1
        assert "exponent in K" in page
        text = run("reproduce", "table1", "--out", tmp_path / "t", "--claims").out
        assert text.startswith("C9")

    @pytest.mark.slow
    def test_rows_of_one_figure_serve_among_several(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes = (((5,), (2, 8)), ((5,), (2, 8)))
        monkeypatch.setitem(table1.SCALES, "smoke", sizes)
        monkeypatch.setitem(fig9.SCALES, "smoke", ((4, 2, 2), (0.0, 20.0), (20.0,)))
        assert run("reproduce", "fig9", "--out", tmp_path, "--workers", 1).code == 0
        assert "C8" in run("reproduce", "--claims", "--out", tmp_path).out
        again = run("reproduce", "fig9", "table1", "--out", tmp_path, "--workers", 1, "--json", "-")
        document = json.loads(again.out)
        assert set(document["claims"]) == {"C8", "C9"}
        assert document["trials"]["fig9"] == {"done": 2, "declared": 2}
        assert json.loads((tmp_path / "fig9" / "provenance.json").read_text())["seconds"] < 5.0
        assert (tmp_path / "report.html").exists()

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
    @pytest.mark.slow
    def test_workers_end_with_the_program(self, tmp_path: Path) -> None:
        (tmp_path / "study.toml").write_text(STUDY_FILE.replace("trials = 2", "trials = 200"))
        command = [PROGRAM, "sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]
        program = subprocess.Popen([*command, "--workers", "2"], start_new_session=True)

        def members() -> list[int]:
            found = []
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (
                        os.getsid(int(entry.name)) == program.pid
                        and "Z (zombie)" not in (entry / "status").read_text()
                    ):
                        found.append(int(entry.name))
            return found

        while program.poll() is None and not list(tmp_path.glob("out/trials/*.parquet")):
            time.sleep(0.02)
        assert len(members()) > 2
        program.kill()
        program.wait()
        deadline = time.monotonic() + 30.0
        while members() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert members() == []

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["reproduce"], ["fig2", "table1", "all"]),
            (["reproduce", "fig1"], ["fig1", "fig2"]),
            (["reproduce", "fig9", "--workers", "0"], ["workers", ">= 1"]),
            (
                ["reproduce", "fig9", "--workers", "2", "--dask", "tcp://127.0.0.1:1"],
                ["--workers cannot be combined with dask"],
            ),
            (["sweep", "nowhere.toml"], ["nowhere.toml", "cannot be read"]),
        ],
    )
    def test_refusals(self, run: Any, arguments: list[str], words: list[str]) -> None:
        assert_refused(run(*arguments), *words)

    def test_claims_need_rows(self, run: Any, tmp_path: Path) -> None:
        assert_refused(run("reproduce", "--claims", "--out", tmp_path), "no rows")

    def test_claims_say_how_many_trials_are_stored(self, run: Any, tmp_path: Path) -> None:
        declared = figures()["fig2"].trials("lite")
        kept = Store(tmp_path)
        for one in declared[:-1]:  # three trials of all schemes but one
            kept.write(one, [one.row("test_accuracy", 0.9, 10)])
        outcome = run("reproduce", "fig2", "--scale", "lite", "--claims", "--out", tmp_path)
        assert "fig2: 2 of 3 trials; interim" in outcome.out
        assert "(2 of 3 trials; interim)" in outcome.out
        document = json.loads(
            run("reproduce", "fig2", "--scale", "lite", "--claims", "--out", tmp_path, "--json", "-").out
        )
        assert document["trials"] == {"fig2": {"done": 2, "declared": 3}}
        assert document["claims"]["C1"]["comparisons"]["as printed"] == "MNIST: tie; CIFAR-10: no rows"

    def test_a_folder_holds_one_study(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "provenance.json").write_text('{"study": "fig3", "scale": "lite", "seconds": 9.0}')
        for figure, scale in (("fig9", "lite"), ("fig3", "smoke")):
            outcome = run("reproduce", figure, "--scale", scale, "--out", tmp_path)
            assert_refused(outcome, "holds fig3 at scale lite", f"not {figure} at scale {scale}", "--out")
        assert_refused(run("train", "--out", tmp_path), "holds a study, not training runs", "--out")
        trained = tmp_path / "trained"
        trained.mkdir()
        (trained / "history.json").write_text("{}")
        assert_refused(run("reproduce", "fig3", "--out", trained), "holds training runs, not fig3", "--out")
        (tmp_path / "provenance.json").write_text("{")
        assert_refused(
            run("reproduce", "fig3", "--out", tmp_path), "provenance.json", "not JSON", "delete it"
        )


class TestFigures:
    def test_the_number_of_trials_is_declared(self) -> None:
        expected = {
            "fig2": (20, 20), "fig3": (3, 3), "fig4": (10, 10), "fig5": (3, 3), "fig6": (20, 20),
            "fig7": (20, 20), "fig8": (20, 20), "fig9": (50, 10), "table1": (50, 10),
        }  # fmt: skip
        for name, (most, slow) in expected.items():
            numbers: dict[str, set[int]] = {}
            for one in figures()[name].trials("paper"):
                assert one.seed == 6000 + one.trial
                assert one.scenario["devices"]["seed"] == one.seed
                numbers.setdefault(one.scheme, set()).add(one.trial)
            for scheme, found in numbers.items():
                assert found == set(range(slow if scheme in plan.SLOW else most)), (name, scheme)

    def test_the_documentation_has_the_same_numbers(self) -> None:
        text = (RESULTS.parent / "docs" / "howto" / "studies.md").read_text()
        for name, figure in figures().items():
            durations = " | ".join(figure.duration[scale] for scale in SCALES)
            assert f"| {name} | {durations} |" in text
            plans = [plan.PLANS[scale][name] for scale in SCALES]
            numbers = " | ".join(
                f"{one.trials}" + (f" ({one.slow_trials})" if one.slow_trials else "") for one in plans
            )
            number = name.removeprefix("fig").replace("table1", "table I")
            assert re.search(rf"^\| [^|]*\b{number}\b[^|]*\| {re.escape(numbers)} \|$", text, re.MULTILINE), (
                name
            )

    def test_a_number_counts_when_every_scheme_and_point_has_it(self) -> None:
        declared = figures()["fig9"].trials("smoke")  # two trials, one of the slow scheme
        assert str(plan.progress(declared, [one.key for one in declared])) == "2 of 2 trials"
        found = plan.progress(declared, [one.key for one in declared[:-1]])
        assert (str(found), found.interim) == ("1 of 2 trials; interim", True)
        assert str(plan.progress(declared, [])) == "0 of 2 trials; interim"

    def test_an_interrupted_run_has_whole_trials(self) -> None:
        for figure in figures().values():
            numbers = [one.trial for one in figure.trials("lite")]
            assert numbers == sorted(numbers)

    def test_schemes_of_the_three_comparisons(self) -> None:
        starts = {
            schemes.AS_PRINTED: {"airpass": 1, "mimo-m-1-start": 1, "mimo-mn-1-start": 1},
            schemes.EQUAL_EFFORT: dict.fromkeys(
                ("airpass-16-starts", "mimo-m-16-starts", "mimo-mn-16-starts"), 16
            ),
        }
        for name, expected in starts.items():
            (comparison,) = (one for one in schemes.COMPARISONS if one.name == name)
            assert set(expected) == set(comparison.schemes) - set(comparison.variants)
            for scheme, count in expected.items():
                method: Any = design_method(**schemes.METHODS[scheme])
                assert method.selection == Hrmc(starts=count)
                assert getattr(method, "axis", "x") == "x"
        shapes = [arguments.get("options", {}).get("axis") for arguments in schemes.ARRAYS.values()]
        assert shapes == ["x", "y", "z", "xy", "xz", "yz", None]
        assert schemes.TRAINED_ARRAY in schemes.ARRAYS
        assert len(figures()["fig2"].trials("smoke")) <= 7

    def test_the_added_rule_of_weights(self) -> None:
        for name in ("fig4", "fig5", "fig9"):
            found = {one.x_label: one for one in figures()[name].trials("paper") if one.scheme == "airpass"}
            for label, one in found.items():
                rule = Scenario.from_dict(one.scenario).weighting.normalisation
                assert rule == ("energy" if label.endswith(", energy") else "share")
                assert one.scenario["radio"]["snr_db"] == one.x == float(label.removesuffix(", energy"))
        energies = [label for label in found if label.endswith(", energy")]
        assert energies == [f"{snr_db}, energy" for snr_db in (-5, 0, 5, 10, 15, 20)]
        assert [point.label for point in curves.PANELS] == ["10", "10, energy", "-4"]

    def test_figure_9_has_a_row_of_panels_per_comparison(self) -> None:
        figure = figures()["fig9"]
        rows = [one.row("selected_count", one.seed + 1.0) for one in figure.trials("smoke")]
        chart = figure.chart(rows)
        assert chart.columns == 2
        shown = [{line.key for line in panel.lines} for panel in chart.panels]
        assert shown == [set(one.schemes) for one in schemes.COMPARISONS for _ in range(2)]
        assert next(line.x for line in chart.panels[0].lines) == [0.0, 5.0, 10.0, 15.0]
        assert next(line.x for line in chart.panels[1].lines) == [10.0, 20.0]
        heads, _ = figure.table(rows)
        assert heads == ["scheme", "0 dB", "5 dB", "10 dB", "15 dB", "10 dB, energy", "20 dB, energy"]

    def test_every_figure_of_the_paper_is_there_at_every_scale(self) -> None:
        found = figures()
        assert list(found) == [*(f"fig{number}" for number in range(2, 10)), "table1"]
        for figure in found.values():
            for scale in SCALES:
                declared = figure.trials(scale)
                assert len({one.key for one in declared}) == len(declared)
                assert figure.duration[scale]
            for one in figure.trials("smoke")[:3]:
                trial.check(one)

    @pytest.mark.parametrize("name", ["fig2", "fig4", "fig6", "fig9"])
    def test_pictures_and_tables_of_made_up_rows(self, name: str) -> None:
        figure = figures()[name]
        rng = np.random.default_rng(0)
        rows = [
            one.row(metric, float(rng.random()), number)
            for one in figure.trials("smoke")
            for metric in ("test_accuracy", "train_loss", "selected_count")
            for number in (0, 5)
        ]
        heads, cells = figure.table(rows)
        assert heads[0] == "scheme"
        assert {line[0] for line in cells} == {one.scheme for one in figure.trials("smoke")}
        assert render(draw_chart(figure.chart(rows)), "png").startswith(b"\x89PNG")

    @pytest.mark.parametrize("name", ["fig2", "fig4", "fig6", "fig9", "table1"])
    @pytest.mark.parametrize("part", [0.1, 0.5])
    def test_a_report_of_what_there_is(self, name: str, part: float) -> None:
        """Trials may have failed, or be still to come."""
        figure = figures()[name]
        rng = np.random.default_rng(5)
        metrics = ("test_accuracy", "train_loss", "selected_count", "seconds")
        for _ in range(10):
            rows = [
                one.row(metric, float(rng.random()), 0)
                for one in figure.trials("smoke")
                if rng.random() < part
                for metric in metrics
            ]
            if rows:
                _, cells = figure.table(rows)
                assert {row.scheme for row in rows} <= {line[0] for line in cells}
                draw_chart(figure.chart(rows))
                verdicts = judge({name: rows})
                assert verdicts
                # One trial a scheme and point is too few for anything; smoke has two of figure 9 and table I.
                found = {part.verdict for verdict in verdicts for part in verdict.parts}
                assert found <= {"not decided", "no rows"}


class TestLooks:
    def test_known_looks_differ_without_colour(self) -> None:
        assert len({(look.dash, look.marker, look.filled) for look in LOOKS.values()}) == len(LOOKS)
        assert len({look.name for look in LOOKS.values()}) == len(LOOKS)

    def test_every_method_has_one(self) -> None:
        from airpass import designs, selection

        assert set(LOOKS) <= {*designs.METHODS.methods(), *selection.METHODS.methods(), *schemes.METHODS}
        assert set(schemes.METHODS) <= set(LOOKS)

    def test_labels_of_the_user_look_like_nothing_else(self) -> None:
        labels = ["array", "airpass-plus", *(f"own {i}" for i in range(19)), "fedavg"]
        found = looks(labels)
        assert list(found)[:3] == ["fedavg", "airpass-plus", "array"]
        own = [look for label, look in found.items() if label not in LOOKS]
        everything = {(look.dash, look.marker, look.filled) for look in (*own, *LOOKS.values())}
        assert len(everything) == len(own) + len(LOOKS)
        assert found["array"].colour != found["airpass-plus"].colour

    def test_a_scheme_looks_the_same_in_every_figure(self) -> None:
        record = SimpleNamespace(round=1, selected_count=3, test_accuracy=0.5, train_loss=1.0)
        scenario = Scenario.paper()
        runs: Any = [
            SimpleNamespace(
                scheme=scheme,
                dataset="mnist-mini",
                scenario=scenario,
                devices=10,
                history=[record],
                diverged=False,
            )
            for scheme in ("mimo-mn", "fedavg", "airpass")
        ]
        line = partial(Line, x=[1.0], value=[0.5], half_width=[0.1], count=[3])
        panel = Panel("", "", [line(run.scheme, LOOKS[run.scheme].name) for run in runs])
        for figure in (draw_training(runs), draw_chart(Chart([panel]))):
            for drawn, scheme in zip(figure.axes[0].lines, ("fedavg", "airpass", "mimo-mn"), strict=True):
                look = LOOKS[scheme]
                assert str(drawn.get_label()).startswith(look.name)
                style = (drawn.get_color(), drawn.get_linestyle(), drawn.get_marker())
                assert style == (look.colour, look.dash, look.marker)

    @pytest.mark.parametrize("percent", [False, True])
    def test_intervals_of_few_trials_stay_within_the_axes(self, percent: bool) -> None:
        line = Line("airpass", "AirPASS", [0.0, 10.0], [9.0, 4.0], [1.0, 90.0], [3, 3])
        chart = Chart([Panel("", "round", [line], percent=percent)], over_rounds=True)
        (axes,) = draw_chart(chart).axes
        low, high = axes.get_ylim()
        heights = [float(y) for drawn in axes.lines for y in np.ravel(drawn.get_ydata())]
        assert low <= min(heights) <= max(heights) <= high

    def test_claims_are_judged_without_matplotlib(self) -> None:
        code = (
            "import sys; from pathlib import Path\n"
            "from airpass.study.claims import judge; from airpass.study.paper import figures\n"
            "from airpass.study.run import stored\n"
            f"assert not stored(list(figures().values()), 'lite', Path({str(RESULTS)!r}).joinpath)\n"
            "rows = [one.row('test_accuracy', 0.5, 1) for one in figures()['fig2'].trials('smoke')]\n"
            "assert judge({'fig2': rows}, 'smoke')\n"
            "assert not {'matplotlib', 'torch'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
