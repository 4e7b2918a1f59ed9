"""Where the time of a sweep of `airpass-plus` goes, and what the machine can do."""

import time
from collections.abc import Callable

import numpy as np

from airpass import Scenario
from airpass.core.types import Complex, Flag, Real, Short, Single
from airpass.designs.joint.chain import BEAM_LIMITS, Chain
from airpass.designs.joint.found import Found
from airpass.designs.joint.scan import candidates, scan
from airpass.designs.joint.space import Space
from airpass.designs.joint.sweep import Goal, hill_value, sum_waveguide, sweep
from airpass.designs.joint.wanted import LANES, Wanted, responses, wanted_of
from airpass.designs.plus import AirpassPlus, problem_of
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim.objectives import Hill

GOAL = Goal(3, 0.0)
REPEATS = 200
TRIALS = 7  # evaluations per antenna: the old position, three candidates, three of the parabola


@kernel
def _scans(
    space: Space,
    wanted: Wanted,
    beam: Complex,
    sums: Complex,
    slopes: Real,
    along: Single,
    beside: Single,
    rows: Short,
    total: Single,
    stop: Flag,
) -> None:
    for m in range(beam.size):
        scan(space, wanted, m, beam[m], sums, slopes, along, beside, rows, total, stop)


@kernel
def _minima(space: Space, layout: Real, total: Single, places: Real, values: Single) -> int:
    found = 0
    for m in range(layout.shape[0]):
        found += candidates(total, m, layout[m], space, places, values)
    return found


@kernel
def _trials(space: Space, wanted: Wanted, count: int, terms: Single) -> np.float32:
    size = wanted.device.size
    re, im = np.empty(size, np.float32), np.empty(size, np.float32)
    rest = np.ones(size, np.float32)
    field = space.field
    total = np.float32(0.0)
    for i in range(count):
        place = 10.0 + 1e-3 * i
        responses(
            place,
            place,
            np.float32(1.0),
            wanted.device_x,
            wanted.offset_square[0],
            wanted.amplitude,
            field.turns_per_m,
            field.refractive_index,
            re,
            im,
        )
        total += hill_value(
            rest,
            rest,
            re,
            im,
            np.float32(0.3),
            np.float32(0.1),
            wanted.counted_single,
            np.float32(1.0),
            3,
            np.float32(0.0),
            np.float32(1e-4),
            terms,
        )
    return total


@kernel
def _beams(
    re: Real, im: Real, counted: Real, beam: Complex, limits: cg.Limits, count: int, stop: Flag
) -> int:
    iterations = 0
    for _ in range(count):
        iterations += cg.minimise(re, im, Hill(counted, 3, 0.0), beam, limits, stop).iterations
    return iterations


def best_us(function: Callable[[], object]) -> float:
    """Fastest of several runs, in microseconds of processor time."""
    function()
    best = np.inf
    for _ in range(REPEATS):
        began = time.thread_time()
        function()
        best = min(best, time.thread_time() - began)
    return 1e6 * float(best)


def _state(scenario: Scenario) -> tuple[Space, Wanted, Found]:
    """A design after a kick, and the devices that it had selected."""
    problem = problem_of(scenario, AirpassPlus(), np.ones(scenario.devices.count))
    chain = Chain(problem, 0, 0, np.zeros(1, np.uint8), lambda phase, found: None)
    chain.run(0, True)
    devices = np.flatnonzero(chain.best.scores >= 1.0)
    wanted = wanted_of(problem.space, devices, np.ones(devices.size))
    return problem.space, wanted, chain.kicked(chain.best, 1)


def report(devices: int = 50, waveguides: int = 10, antennas: int = 10, snr_db: float = -10.0) -> None:
    """Print the parts of a sweep as a Markdown table."""
    scenario = Scenario.paper(devices, waveguides, antennas, snr_db, 1000)
    space, wanted, kicked = _state(scenario)
    problem = problem_of(scenario, AirpassPlus(), np.ones(devices))
    size, stop = wanted.device.size, np.zeros(1, np.uint8)
    re, im = np.empty((waveguides, size)), np.empty((waveguides, size))
    for m in range(waveguides):
        sum_waveguide(kicked.layout, m, space, wanted, re, im)
    root = 1.0 / np.sqrt(np.min(np.abs(np.conj(kicked.beam) @ (re + 1j * im)) ** 2))
    scratch = [np.empty(size, np.float32) for _ in range(2)]
    total = np.empty(space.points, np.float32)
    rows = np.empty((LANES, 2, 1), np.int16)
    sums, slopes = np.full(size, 1.0 + 1.0j), -np.ones(size)
    places, values = np.empty(32), np.empty(32, np.float32)
    count = TRIALS * waveguides * antennas
    whole = best_us(lambda: sweep(kicked.layout, kicked.beam, space, wanted, GOAL, problem.moves, 0, stop))
    along, beside = scratch
    parts = {
        "linear scan": best_us(
            lambda: _scans(space, wanted, kicked.beam, sums, slopes, along, beside, rows, total, stop)
        ),
        "minima of the scan": best_us(lambda: _minima(space, kicked.layout, total, places, values)),
        f"{count} exact evaluations": best_us(lambda: _trials(space, wanted, count, along)),
        f"beam, {waveguides + 1} times": best_us(
            lambda: _beams(
                re * root, im * root, wanted.counted, kicked.beam, BEAM_LIMITS, waveguides + 1, stop
            )
        ),
    }
    print(f"\n| K={devices}, {size} packed devices | microseconds | share |")
    print("|---|---|---|")
    for name, part in parts.items():
        print(f"| {name} | {part:.0f} | {100 * part / whole:.0f} % |")
    print(f"| sweep | {whole:.0f} | 100 % |")
    entries = waveguides * size * space.points
    array = np.ones(64 * 2**20 // 4, np.float32)
    bandwidth = array.nbytes / best_us(lambda: float(array.max())) / 1e3
    print(
        f"\nscan: {4 * entries / parts['linear scan'] / 1e3:.1f} GB/s of table entries, "
        f"{4 * entries / parts['linear scan'] / 1e3:.1f} G multiply-adds/s; "
        f"reading memory: {bandwidth:.1f} GB/s; table {space.table.nbytes / 1e6:.0f} MB"
    )
