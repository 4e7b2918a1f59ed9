"""Durations: the compilation of kernels is not part of them, and is reported apart."""

import math
import os
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numba
import pytest

from airpass import Scenario, design, select
from airpass.cli import progress
from airpass.designs.colocated import MimoM
from airpass.kernels import clock
from airpass.study import trial
from airpass.study.trial import Trial


def compiled(value: float) -> float:
    """Compile a function of its own, and call it."""

    function: Any = numba.njit(lambda x: math.exp(x) + 1.0)  # not cached
    return float(function(value))


def test_the_clock_stands_still_while_a_kernel_is_compiled() -> None:
    watch, began = clock.Stopwatch(), time.perf_counter()
    assert compiled(0.0) == 2.0
    elapsed = time.perf_counter() - began
    assert watch.compile_seconds > 0.5 * elapsed
    assert watch.seconds + watch.compile_seconds == pytest.approx(elapsed, abs=5e-3)


def test_a_failed_compilation_does_not_stop_the_clock_for_ever() -> None:
    wrong: Any = numba.njit(lambda x: x.nothing)

    with pytest.raises(numba.TypingError):
        wrong(1.0)
    before = clock.now()
    time.sleep(0.01)
    assert clock.now() - before >= 0.009


def test_threads_that_compile_at_the_same_time_count_once() -> None:
    watch, began = clock.Stopwatch(), time.perf_counter()
    threads = [threading.Thread(target=compiled, args=(float(i),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    assert 0.0 < watch.compile_seconds <= elapsed
    before = clock.now()
    time.sleep(0.01)
    assert clock.now() - before >= 0.009


def test_reading_the_clock_costs_microseconds() -> None:
    assert min(timeit.repeat(clock.now, number=1000, repeat=5)) / 1000 < 1e-4


def test_results_report_compilation_apart() -> None:
    scenario = Scenario.paper(6, 3, 2, 10.0, 1)
    channels = scenario.channels(scenario.uniform_layout())
    for _ in range(2):  # the second time everything is compiled
        picked = select(channels, scenario.weights, scenario.budget)
        found = design(scenario, "airpass", options={"max_iterations": 1})
    assert picked.compile_seconds == 0.0
    assert found.compile_seconds == 0.0
    assert 0.0 < picked.seconds < 1.0
    assert 0.0 < found.trace[-1].seconds <= found.seconds


FIRST_CALL = """
import time
import airpass
from airpass.study import trial
channels = [[1.0, 0.5j, 0.2], [0.1, 1.0, 0.7j]]
airpass.selection.api.METHODS.resolve("hrmc")
began = time.perf_counter()
first = airpass.select(channels, budget=1.0)
elapsed = time.perf_counter() - began
again = airpass.select(channels, budget=1.0)
assert first.beam.tobytes() == again.beam.tobytes()
assert again.compile_seconds == 0.0
assert first.compile_seconds > 0.8 * elapsed, (first.compile_seconds, elapsed)
print(first.seconds, first.compile_seconds)
"""


@pytest.mark.slow
def test_the_first_selection_on_a_machine(tmp_path: Path) -> None:
    """Compiling takes seconds, and the search milliseconds."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, compile_seconds = map(float, done.stdout.split())
    assert compile_seconds > 1.0
    assert seconds < 0.2


def test_rows_of_a_study_have_times_without_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled within a design do not show in its row."""
    one = Trial("design", "f", "mimo-m", None, "", 0, 0, {"devices": {"count": 4}}, {"method": "mimo-m"})
    trial.run(one)
    run = MimoM.run

    def compiling(*arguments: Any) -> Any:
        for _ in range(10):  # one alone takes less than the design on a fast machine
            compiled(1.0)
        return run(*arguments)

    monkeypatch.setattr(MimoM, "run", compiling)
    before = clock.compile_seconds()
    rows = {row.metric: row.value for row in trial.run(one)}
    spent = clock.compile_seconds() - before
    assert spent > 0.03
    assert rows["seconds"] < 0.7 * spent


def test_commands_mention_compilation_only_if_there_is_any(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Recorder(progress.Silence):
        def show(self, task: str, text: str, done: int | None = None) -> None:
            shown.append(text)

    @contextmanager
    def display(counted: bool) -> Iterator[progress.Display]:
        yield Recorder()

    monkeypatch.setattr(progress, "display", display)

    fresh: Any = numba.njit(lambda value: value + 3)
    fresh(1.0)  # compiled before
    with click.Context(click.Command("design")) as ctx:
        with progress.progress("Designing") as report:
            fresh(2.0)
            report("step 1")
        assert shown == ["step 1"]
        assert not ctx.meta.get(progress.COMPILED)
        with progress.progress("Designing"):
            fresh(1)  # of another type, so that it is compiled
        assert len(shown) == 2
        assert shown[1].startswith("compiling kernels")
        assert ctx.meta[progress.COMPILED]
    with progress.progress("Designing"):
        fresh(1j)
    assert len(shown) == 3
