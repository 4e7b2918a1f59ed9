"""Ctrl-C ends compiled loops: kernels look at a flag, and run in another thread if they may take long."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import airpass
from airpass import Scenario, aircomp
from airpass.core.types import Flag
from airpass.geometry.elementwise import MOST_POINTS, Elementwise
from airpass.geometry.hago import Hago
from airpass.kernels import interrupts
from airpass.kernels.interrupts import Stopped, run_each, watching
from airpass.kernels.interrupts import run as run_kernel
from airpass.kernels.jit import kernel
from airpass.selection import exhaustive
from airpass.selection.hrmc import Hrmc
from airpass.selection.hrmc_plus import HrmcPlus, regrow
from airpass.selection.matching_pursuit import Mp, MpBackward


@kernel
def _until(sums: Any, stop: Flag) -> float:
    """Add numbers until the flag is set."""
    while stop[0] == 0 and sums[0] < 1e12:
        sums[0] += 1.0
    return float(sums[0])


@contextmanager
def _no_more_threads() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@contextmanager
def _signal_after(seconds: float) -> Iterator[None]:
    """SIGINT in the middle of what follows."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


class TestRun:
    def test_small_work_stays_in_the_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(interrupts, "_in_threads", None)
        stop = np.ones(1, np.uint8)
        assert run_kernel(lambda x, flag: x + flag[0], 2, work=1.0) == 2
        with watching(stop), pytest.raises(Stopped):
            run_kernel(lambda x, flag: x, 2, work=1e12)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_results_keep_their_order(self, threads: int) -> None:
        calls = [(np.full(1, 1e12 + i),) for i in range(7)]
        with _no_more_threads():
            assert run_each(_until, calls, work=1e12, threads=threads) == [1e12 + i for i in range(7)]

    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_signal_ends_the_kernels(self, threads: int) -> None:
        run_kernel(_until, np.full(1, 1e12), work=0.0)  # compile
        with _no_more_threads(), _signal_after(0.2), pytest.raises(KeyboardInterrupt):
            run_each(_until, [(np.zeros(1),) for _ in range(5)], work=1e12, threads=threads)

    def test_errors_are_passed_on(self) -> None:
        @kernel
        def fail(x: float, stop: Flag) -> float:
            if x > 0.0:
                raise ValueError("above zero")
            return x

        with _no_more_threads(), pytest.raises(ValueError, match="above zero"):
            run_each(fail, [(-1.0,), (1.0,)], work=1e12, threads=2)

    def test_an_interrupt_that_numba_overlooks(self) -> None:
        """Python handles a signal while the results of a kernel are converted."""

        def fail(cause: BaseException | None) -> None:
            raise SystemError("returned a result with an exception set") from cause

        with pytest.raises(KeyboardInterrupt):
            run_kernel(lambda stop: fail(KeyboardInterrupt()), work=0.0)
        again = SystemError("returned a result with an exception set")
        again.__cause__ = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            run_kernel(lambda stop: fail(again), work=0.0)
        with pytest.raises(SystemError):
            run_kernel(lambda stop: fail(None), work=0.0)

    def test_a_flag_of_an_outer_search_is_used(self) -> None:
        stop = np.zeros(1, np.uint8)
        timer = threading.Timer(0.2, stop.fill, (1,))
        run_kernel(_until, np.full(1, 1e12), work=0.0)
        timer.start()
        with watching(stop), pytest.raises(Stopped):
            run_kernel(_until, np.zeros(1), work=1e12)
        assert interrupts.current_flag()[0] == 0


SCENARIO = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=10.0, seed=2)
LAYOUT = SCENARIO.uniform_layout()
EFFECTIVE = aircomp.effective_channels(SCENARIO.channels(LAYOUT), SCENARIO.weights, SCENARIO.budget)
BEAM = np.ones(3, np.complex128) / np.sqrt(3.0)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


class TestKernelsLookAtTheFlag:
    """With options for which a search would take for ever, a flag that is set ends it at once."""

    @pytest.fixture(autouse=True)
    def _set(self) -> Iterator[None]:
        with watching(np.ones(1, np.uint8)):
            yield

    @pytest.mark.parametrize(
        "method",
        [
            Hrmc(max_stages=10**9, tolerance=1e-300, level_shrink=1.0 + 1e-12),
            Hrmc(stage_iterations=10**9, tolerance=1e-300),
            HrmcPlus(starts=3),
            exhaustive.Exhaustive(iterations=10**9),
            Mp(passes=1),
            MpBackward(),
        ],
        ids=lambda method: method.name,
    )
    def test_selections(self, method: Any) -> None:
        with pytest.raises(Stopped):
            method.search(EFFECTIVE, _rng(), lambda message: None)

    def test_growing(self) -> None:
        with pytest.raises(Stopped):
            regrow(EFFECTIVE, BEAM)

    @pytest.mark.parametrize("method", [Hago(max_iterations=10**9, tolerance=1e-300), Elementwise()])
    def test_geometry(self, method: Any) -> None:
        with pytest.raises(Stopped):
            method.move(SCENARIO, LAYOUT, BEAM, np.ones(8, np.bool_), _rng())


def test_the_grid_of_the_element_wise_search_is_limited() -> None:
    """At this wavelength a grid of a twentieth of it would have 8e8 points per waveguide."""
    radio = airpass.Radio(**{**SCENARIO.radio.__dict__, "wavelength_m": 1e-6})
    short = Scenario(
        radio=radio, receiver=airpass.Receiver(waveguides=1, antennas=1), devices=SCENARIO.devices
    )
    devices = np.zeros(8, np.bool_)
    devices[0] = True
    found = Elementwise(max_sweeps=1).move(
        short, short.uniform_layout(), np.ones(1, complex), devices, _rng()
    )
    assert MOST_POINTS <= found.work["positions"] <= MOST_POINTS + 64
    usual = Elementwise(max_sweeps=1).move(SCENARIO, LAYOUT, BEAM, np.ones(8, np.bool_), _rng())
    points = 2.0 * SCENARIO.receiver.lengths.sum() / (0.05 * SCENARIO.radio.wavelength_m)
    assert usual.work["positions"] < points, "not limited at the paper's wavelength"
    assert points < MOST_POINTS * SCENARIO.receiver.waveguides


PROGRAM = """
import signal, threading, airpass
signal.signal(signal.SIGINT, signal.default_int_handler)
from dataclasses import replace
scenario = airpass.Scenario.paper(8, 3, 3, 10.0, 1)
airpass.design(scenario, geometry="elementwise", options={"max_iterations": 1})
short = replace(scenario, radio=replace(scenario.radio, wavelength_m=1e-6))
print("begin", flush=True)
try:
    airpass.design(short, geometry="elementwise", options={"geometry": {"max_sweeps": 10**9}})
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


def test_the_command_says_interrupted(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("airpass.designs.api.design_method", fail)
    outcome = run("design", "--quiet")
    assert (outcome.code, outcome.err) == (130, "airpass: interrupted\n")


@pytest.mark.slow
def test_a_real_signal() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 1\n"
    assert process.returncode == 0
