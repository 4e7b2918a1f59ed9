"""Scaling of run times with devices, waveguides and antennas, compared with the paper's complexities.

Exponents are fitted to all sizes; HRMC's in K also to the sizes at which fixed costs are negligible.
"""

from collections.abc import Callable, Sequence

import numpy as np

from airpass import Scenario, select
from airpass.geometry.hago import Hago
from airpass.optim.conic import LiftedProgram
from suite.measure import Section, Table, duration, exponent, timed

REPEATS = 5
# Under any fixed beam |h^H m|^2 of these channels has the median 2 ln 2: half of the devices are feasible.
BUDGET = 0.5 / np.log(2.0)


def _fastest(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Minimum of several times, to exclude other load on the machine."""
    call()
    return min(timed(call) for _ in range(repeats))


def hrmc(waveguides: int, count: int) -> tuple[float, float]:
    """Seconds per iteration of HRMC on random channels, and per evaluation of its objective."""
    rng = np.random.default_rng(0)
    channels = rng.standard_normal((waveguides, count)) + 1j * rng.standard_normal((waveguides, count))
    weights = np.ones(count)
    work = select(channels, weights, BUDGET).work
    seconds = _fastest(lambda: select(channels, weights, BUDGET), 3 if count > 10_000 else REPEATS)
    return seconds / work["iterations"], seconds / work["evaluations"]


def pursuit(waveguides: int, count: int) -> float:
    """Seconds of matching pursuit on random channels, with a budget at which all devices are feasible."""
    rng = np.random.default_rng(0)
    channels = rng.standard_normal((waveguides, count)) + 1j * rng.standard_normal((waveguides, count))
    return _fastest(lambda: select(channels, np.ones(count), 1e9, "mp"), 2)


def lifted(waveguides: int, count: int) -> float:
    """Seconds of one semidefinite program of SDR-DC from a cold start."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((waveguides, count)) + 1j * rng.standard_normal((waveguides, count))
    columns *= np.sqrt(BUDGET)
    cost = np.eye(waveguides, dtype=np.complex128)
    return _fastest(lambda: LiftedProgram(columns).solve(cost, np.ones(count)), 2)


def ascent(waveguides: int, antennas: int, count: int) -> float:
    """Seconds per channel evaluation of HAGO."""
    scenario = Scenario.paper(count, waveguides, antennas, 0.0, 0)
    layout = scenario.uniform_layout()
    beam = np.full(waveguides, waveguides**-0.5, dtype=np.complex128)
    everyone = np.ones(count, dtype=bool)
    rng = np.random.default_rng(0)

    def call() -> object:
        return Hago().move(scenario, layout, beam, everyone, rng)

    evaluations = Hago().move(scenario, layout, beam, everyone, rng).work["evaluations"]
    return _fastest(call) / evaluations


def _row(
    what: str, symbol: str, sizes: Sequence[int], seconds: Sequence[float], paper: str
) -> tuple[str, ...]:
    return (
        what,
        f"{symbol} = {sizes[0]:,} ... {sizes[-1]:,}",
        duration(seconds[0]),
        duration(seconds[-1]),
        f"**{exponent(sizes, seconds):.2f}**",
        paper,
    )


def run() -> Section:
    """Measure all sizes."""
    counts = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
    thousand = counts.index(1_000)
    waveguides = (8, 16, 32, 64, 128)
    antennas = (2, 4, 8, 16, 32)  # more antennas exceed the waveguide length
    few = (100, 300, 1_000, 3_000, 10_000)
    crowds = (50, 100, 200, 400)
    widths = (8, 16, 32)
    in_k, in_m = [hrmc(16, k) for k in counts], [hrmc(m, 1_000) for m in waveguides]
    rows = [
        _row("HRMC, per iteration, M = 16", "K", counts, [one for one, _ in in_k], "K M², or K M"),
        _row("HRMC, per iteration, M = 16", "K", counts[thousand:], [one for one, _ in in_k[thousand:]], ""),
        _row("HRMC, per evaluation, M = 16", "K", counts, [one for _, one in in_k], ""),
        _row("HRMC, per iteration, K = 1,000", "M", waveguides, [one for one, _ in in_m], ""),
        _row("HAGO, per evaluation, M = N = 10", "K", few, [ascent(10, 10, k) for k in few], "K M N"),
        _row(
            "HAGO, per evaluation, N = 10, K = 50",
            "M",
            waveguides,
            [ascent(m, 10, 50) for m in waveguides],
            "",
        ),
        _row(
            "HAGO, per evaluation, M = 10, K = 50", "N", antennas, [ascent(10, n, 50) for n in antennas], ""
        ),
        _row("MP, M = 16", "K", crowds, [pursuit(16, k) for k in crowds], "K² M²"),
        _row("MP, K = 100", "M", waveguides, [pursuit(m, 100) for m in waveguides], ""),
        _row("SDR-DC, one program, K = 50", "M", widths, [lifted(m, 50) for m in widths], "(M² + K)³ + M⁶"),
    ]
    return Section(
        "Scaling",
        "Exponents are fitted to all sizes of a row. The last column is the complexity of the timed work "
        "in the paper's table I. Channels are random; half of the devices are feasible, and all of them "
        "for MP, which stops at the first infeasible device. HAGO runs in the paper's room. An iteration "
        "of HRMC is two products with the columns and a line search. The columns take 7.7 MB at K = "
        "30,000 and 26 MB at 100,000; if the cache is smaller, they are read from memory twice per "
        "iteration. With more devices, the fixed cost of a stage is shared by fewer iterations and the "
        "line search takes slightly more trials: the objective is evaluated "
        f"{in_k[thousand][0] / in_k[thousand][1]:.1f} times per iteration at K = 1,000 and "
        f"{in_k[-1][0] / in_k[-1][1]:.1f} times at 100,000.",
        tables=[
            Table(
                "Time against size", ("operation", "sizes", "smallest", "largest", "exponent", "paper"), rows
            )
        ],
    )
