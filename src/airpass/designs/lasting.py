"""`airpass-lasting`: a layout for many draws of the devices, with a new beam for each.

`airpass-plus` places antennas to fractions of a wavelength for the devices at hand, and its gain is gone once
these have moved by a quarter of a wavelength. Here the layout is chosen for a distribution of devices: it
maximises the mean number of selected devices over D draws. The phases of other devices are other phases, so
that only what holds for all draws can help: where along the waveguides antennas are.

All draws are one problem with D beams, with the smooth count of `hrmc+` (`airpass.optim.objectives.Hill`,
floor 1). For every trial layout the beam of each draw is solved again by conjugate gradients at p = 1, 2, 4,
8, from the beam that the current layout has at p = 1. Moves, in this order:

    together    all waveguides get the same stretch, in which their antennas are evenly spaced
    waveguides  one waveguide gets another stretch
    antennas    one antenna goes elsewhere on its waveguide (left out by default: no gain on fresh draws)

A move is made if it raises the mean by at least `caution` standard errors of the mean difference over the
draws. After each phase, `hrmc+` counts devices on all draws, and the best layout so far is kept.

Measurements: docs/howto/lasting.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airpass import aircomp
from airpass.channel.field import Field
from airpass.channel.pass_uplink import element
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report
from airpass.core.types import Complex, Flag, Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Start, Step
from airpass.geometry.base import any_segment, anywhere
from airpass.kernels.clock import now
from airpass.kernels.interrupts import run
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim.objectives import Hill
from airpass.optim.ranking import rank
from airpass.scenario import Scenario
from airpass.scenario.channel import has_seed
from airpass.selection.base import SelectionMethod, dominant_eigenvector
from airpass.selection.hrmc_plus import HrmcPlus

SEARCH, FRESH = 0, 1  # first index of the draws that a search uses, and of those that check its result

# The powers are the first ones of `hrmc+`; the other values are coarse, so that a search takes seconds.
POWERS = (0, 1, 2, 3)  # log2 of the powers p of the smooth count
FIRST_STEP, ITERATIONS, TOLERANCE = 1.0, 20, 1e-3  # of the conjugate gradients, for each power
STRETCH_ENDS = 9  # evenly spaced ends of the stretches that antennas may occupy
PLACES = 16  # for a single antenna, over the whole waveguide


def drawn(scenario: Scenario, kind: int, draws: int, seed: int) -> list[Scenario]:
    """The scenario with other devices of the same distribution.

    Parameters
    ----------
    scenario
        Its devices must have been drawn. Their sample counts, and so the weights, are kept.
    kind
        `SEARCH` or `FRESH`; the draws of the two are independent.
    draws
        Number of draws.
    seed
        Seed of the draws.

    Returns
    -------
    list[Scenario]
        A scenario per draw.
    """
    distribution = scenario.devices.drawn_from
    if distribution is None:
        raise InvalidInput(
            "devices are given one by one: for a layout for many draws, give ranges to draw them from instead"
        )
    count, waveguides = scenario.devices.count, scenario.receiver.waveguides
    memory.require(draws * (count * (96.0 + 64.0 * waveguides) + 4096.0), "scenarios", "draws")
    samples = scenario.devices.samples
    source = replace(distribution, seed=seed)
    return [
        replace(scenario, devices=replace(source.draw(kind, index), samples=samples))
        for index in range(draws)
    ]


def selected_counts(
    scenarios: Sequence[Scenario], layout: Real, selection: SelectionMethod, seed: int, report: Report
) -> Real:
    """Number of selected devices of each draw, with a beam of its own.

    Parameters
    ----------
    scenarios
        The draws.
    layout
        Antenna positions, shape (M, N), metres.
    selection
        Finds the beams.
    seed
        Seed of the selection.
    report
        Callback for progress messages.

    Returns
    -------
    Real
        Counts, shape (D,).
    """
    counts = np.empty(len(scenarios))
    for index, scenario in enumerate(scenarios):
        effective = _effective(scenario, layout)
        beam = selection.search(effective, stream(seed, Purpose.SELECTION, index), report).beam
        counts[index] = aircomp.selected(aircomp.scores(beam, effective)).sum()
    return counts


def _effective(scenario: Scenario, layout: Real) -> Complex:
    return aircomp.effective_channels(scenario.uplink.channels(layout), scenario.weights, scenario.budget)


@kernel
def _respond(row: Real, waveguide: int, field: Field, out_re: Real, out_im: Real) -> None:
    """Channels of one waveguide with antennas at `row` to the devices of all draws."""
    count = field.device_x.size
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    out_re[:] = 0.0
    out_im[:] = 0.0
    for n in range(row.size):
        element(row[n], waveguide, n, field, distance, term_re, term_im)
        for k in range(count):
            out_re[k] += term_re[k]
            out_im[k] += term_im[k]


@kernel
def _solve(
    channel_re: Real, channel_im: Real, starts: Complex, beams: Complex, values: Real, stop: Flag
) -> None:
    """Solve for the beam of every draw.

    Parameters
    ----------
    channel_re, channel_im
        Channels to the devices of all draws, one draw after the other; shape (M, D K).
    starts
        Beams to start from, shape (D, M).
    beams
        Output: the beams at p = 1, shape (D, M).
    values
        Output: smooth number of selected devices at the last power, shape (D,).
    stop
        The loop ends early once the entry is not zero.
    """
    draws, waveguides = starts.shape
    count = channel_re.shape[1] // draws
    columns_re, columns_im = np.empty((waveguides, count)), np.empty((waveguides, count))
    equal = np.ones(count)
    limits = cg.Limits(FIRST_STEP, ITERATIONS, TOLERANCE)
    for d in range(draws):
        if stop[0] != 0:
            break
        for m in range(waveguides):
            for k in range(count):
                columns_re[m, k] = channel_re[m, d * count + k]
                columns_im[m, k] = channel_im[m, d * count + k]
        beam = starts[d].copy()
        value = 0.0
        for stage, doublings in enumerate(POWERS):
            found = cg.minimise(columns_re, columns_im, Hill(equal, doublings, 1.0), beam, limits, stop)
            beam = found.point
            value = found.value
            if stage == 0:
                beams[d] = beam
        values[d] = count - value


class _Draws:
    """A layout with the beams and smooth counts of all draws; changed by moves that raise their mean."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Real, caution: float) -> None:
        self.receiver = scenarios[0].receiver
        self.caution = caution
        self.field = _joined(scenarios)
        self.layout = layout.copy()
        self.beams = np.array([dominant_eigenvector(_effective(one, layout)) for one in scenarios])
        shape = (self.receiver.waveguides, self.field.device_x.size)
        self.channel_re, self.channel_im = np.empty(shape), np.empty(shape)
        self.tried = 0
        self.values = self.solved(layout, range(len(layout)))[0]

    def solved(self, layout: Real, changed: Sequence[int]) -> tuple[Real, Complex]:
        """Smooth counts and beams of a layout that differs on some waveguides; leaves its channels."""
        for m in changed:
            _respond(layout[m], m, self.field, self.channel_re[m], self.channel_im[m])
        values, beams = np.empty(len(self.beams)), np.empty_like(self.beams)
        run(
            _solve,
            self.channel_re,
            self.channel_im,
            self.beams,
            beams,
            values,
            work=len(POWERS) * ITERATIONS * cg.operations(*self.channel_re.shape),
        )
        self.tried += 1
        return values, beams

    def best_of(self, trials: Sequence[Real], changed: Sequence[int]) -> bool:
        """Move to the best of some layouts if it raises the mean by enough; whether it does."""
        kept = [(self.channel_re[m].copy(), self.channel_im[m].copy()) for m in changed]
        best: tuple[float, Real, Real, Complex] | None = None
        for layout in trials:
            values, beams = self.solved(layout, changed)
            mean = float(values.mean())
            if best is None or mean > best[0]:
                best = (mean, layout, values, beams)
        accepted = best is not None and self.is_better(best[2])
        if accepted:
            assert best is not None
            _, self.layout, self.values, self.beams = best
            for m in changed:
                _respond(self.layout[m], m, self.field, self.channel_re[m], self.channel_im[m])
        else:
            for m, (re, im) in zip(changed, kept, strict=True):
                self.channel_re[m], self.channel_im[m] = re, im
        return accepted

    def is_better(self, values: Real) -> bool:
        """Whether the mean is higher by some standard errors of the difference."""
        gain = values - self.values
        error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else 0.0
        return bool(gain.mean() > max(self.caution * error, 1e-9))

    def with_row(self, waveguide: int, row: Real) -> Real:
        """The layout with one row replaced."""
        layout = self.layout.copy()
        layout[waveguide] = row
        return layout

    # Moves ---------------------------------------------------------------------------

    def stretches(self, waveguide: int) -> Iterator[Real]:
        """Rows of antennas evenly spaced in a part of the waveguide."""
        free = self.receiver.free_length[waveguide]
        order = np.arange(self.receiver.antennas)
        ends = np.linspace(0.0, free, STRETCH_ENDS)
        for i, low in enumerate(ends):
            for high in ends[i:] if order.size > 1 else ends[i : i + 1]:
                yield np.linspace(low, high, order.size) + order * self.receiver.min_gap_m

    def move_together(self) -> bool:
        """The same stretch on all waveguides."""
        rows = [list(self.stretches(m)) for m in range(self.receiver.waveguides)]
        layouts = [np.array(same) for same in zip(*rows, strict=True)]
        return self.best_of(layouts, range(self.receiver.waveguides))

    def move_waveguides(self) -> bool:
        """Another stretch, one waveguide after the other."""
        moved = [
            self.best_of([self.with_row(m, row) for row in self.stretches(m)], [m])
            for m in range(self.receiver.waveguides)
        ]
        return any(moved)

    def move_antennas(self) -> bool:
        """Another place, one antenna after the other."""
        moved = False
        for m in range(self.receiver.waveguides):
            places = np.linspace(0.0, self.receiver.lengths[m], PLACES)
            for n in range(self.receiver.antennas):
                others = np.delete(self.layout[m], n)
                free = [x for x in places if (np.abs(others - x) >= self.receiver.min_gap_m).all()]
                rows = [np.sort(np.append(others, place)) for place in free]
                moved |= self.best_of([self.with_row(m, row) for row in rows], [m])
        return moved


def _joined(scenarios: Sequence[Scenario]) -> Field:
    """The field of the devices of all draws, one after the other, with amplitudes of effective channels."""
    receiver = scenarios[0].receiver
    for model in scenarios[0].channel.factors:
        if has_seed(model):
            raise InvalidInput(
                f"{model.label} is drawn for given devices: use another method, such as airpass-plus"
            )
    drawn = [scenario.devices for scenario in scenarios]
    x, y, z, gain = (
        np.concatenate([getattr(devices, name) for devices in drawn])
        for name in ("x_m", "y_m", "z_m", "gain")
    )
    field = scenarios[0].uplink.with_devices(x, y, z, gain).field(receiver.antennas)
    scale = np.sqrt(scenarios[0].budget) / scenarios[0].weights
    return field._replace(amplitude=np.tile(scale, len(scenarios)) * field.amplitude)


@dataclass(frozen=True)
class AirpassLasting(DesignMethod):
    """Layout for many draws of the devices; only the beam is for those at hand.

    Measurements behind the defaults are in docs/howto/lasting.md.
    """

    name = "airpass-lasting"

    draws: int = 32  # draws of the devices that the layout is searched for
    sweeps: int = 3  # largest number of sweeps over waveguides, and over antennas
    antennas: bool = False  # whether single antennas are moved, after whole waveguides
    caution: float = 1.0  # standard errors by which a move must raise the mean
    selection: SelectionMethod = HrmcPlus()  # of devices and beam

    def __post_init__(self) -> None:
        checks.whole("draws", self.draws, 1)
        checks.whole("sweeps", self.sweeps, 0)
        checks.at_least("caution", self.caution, 0.0)

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Search for the layout, then for the beam of the scenario's devices."""
        anywhere(scenario, self.name)
        any_segment(scenario, self.name)
        began = now()
        given = self.layout_of(start)
        layout = scenario.uniform_layout() if given is None else given
        scenarios = drawn(scenario, SEARCH, self.draws, seed)
        search = _Draws(scenarios, layout, self.caution)
        trace: list[Step] = []
        best = (-1.0, layout)

        def note(phase: str) -> None:
            """Count devices on all draws and keep the best layout; the trace has those of the scenario."""
            nonlocal best
            mean = float(selected_counts(scenarios, search.layout, self.selection, seed, report).mean())
            better = mean > best[0]
            if better:
                best = (mean, search.layout)
            count, weakest = rank(self._solved(scenario, search.layout, seed, report)[1])
            step = Step(len(trace), count, weakest, now() - began, better, phase)
            trace.append(step)
            on_step(step)
            report(f"{phase}: {mean:.2f} selected in the mean of {self.draws} draws")

        note("start")
        if self.sweeps and search.move_together():
            note("together")
        moves = [("waveguides", search.move_waveguides)]
        if self.antennas:
            moves.append(("antennas", search.move_antennas))
        for phase, move in moves:
            for sweep in range(self.sweeps):
                report(f"{phase}, sweep {sweep + 1}")
                if not move():
                    break
                note(phase)
        beam, _ = self._solved(scenario, best[1], seed, report)
        return DesignSearch(
            beam=beam,
            channels=scenario.uplink.channels(best[1]),
            layout=best[1],
            array=None,
            trace=tuple(trace),
            status="done",
            work={"layouts": search.tried},
        )

    def run_wideband(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Refuse subcarriers: draws of the devices are counted on one carrier."""
        scenario.require_one_carrier(self.name)
        return self.run(scenario, seed, on_step, report, start)

    def _solved(self, scenario: Scenario, layout: Real, seed: int, report: Report) -> tuple[Complex, Real]:
        """Beam and scores of the scenario's own devices."""
        effective = _effective(scenario, layout)
        beam = self.selection.search(effective, stream(seed, Purpose.SELECTION, 0), report).beam
        return beam, aircomp.scores(beam, effective)
