"""`airpass-plus`: devices, beam and antenna positions in one search.

The paper alternates: HRMC selects devices for fixed antennas; HAGO moves antennas for the selected
devices. Here both minimise one function that also includes unselected devices (see
`airpass.designs.joint` for the moves, `airpass.optim.objectives` for the function). The beam is updated
before each waveguide and once at the end of a sweep.

    anneal   minimise the smooth count over all devices for p = 1, 2, 4; larger p is closer to the count
    grow     add the best unselected device to the selected ones, and raise the weakest score of this
             set with p = 2, 8, 32; if all meet the threshold, repeat
    kick     redraw the positions on some waveguides at random, then anneal and grow again
    polish   raise the weakest score of the devices selected in the end

A chain is one start and its kicks. The first starts from the uniform layout, others from random
ones. Chains are independent, so that the result does not depend on the number of threads.
Background and measurements: docs/airpass-plus.md.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from airpass import aircomp
from airpass.channel.pass_uplink import Field
from airpass.core import checks
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, threads_field
from airpass.core.threads import processors
from airpass.core.types import Complex, Mask, Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Step, discard_step
from airpass.designs.joint import Track, response_table, sweep
from airpass.designs.margins import exact_margins, margins
from airpass.geometry.hago import Hago
from airpass.kernels.clock import now
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill, Softmin
from airpass.optim.ranking import rank
from airpass.scenario import Scenario, Weighting
from airpass.scenario.scenario import CLOSEST_M
from airpass.selection.base import dominant_eigenvector
from airpass.selection.hrmc_plus import HrmcPlus

# Chains, and kicks in each.
EFFORTS = {"fast": (1, 0), "default": (1, 5), "thorough": (4, 20)}

# log2 of the powers p of each phase, and the largest number of sweeps over all antennas for each.
ANNEAL = (0, 1, 2)
GROW = (1, 3, 5)
POLISH = (3, 5, 6)
SWEEPS = {"anneal": 10, "grow": 3, "polish": 10}
SWEEP_TOLERANCE = 1e-2  # relative decrease of the objective in a sweep that ends a descent
KICKED = 2  # number of waveguides on which a kick redraws the positions at random
# Beam updates, before each waveguide and once at the end of a sweep; and the final beam.
BEAM_LIMITS = cg.Limits(first_step=0.3, max_iterations=30, tolerance=1e-4)
CONSOLIDATION_LIMITS = cg.Limits(first_step=0.3, max_iterations=200, tolerance=1e-7)
CONSOLIDATION = (0.02, 0.005, 0.001)  # temperatures of the final beam, over the weakest score

ENTRIES_PER_CALL = 10**9  # positions times devices between checks of the time limit, about 0.3 s
TABLE_BYTES = 2**30  # a larger table of responses is not stored but computed on demand
MOST_POINTS = 2**16  # of a waveguide's grid; at shorter wavelengths the grid is coarser


@dataclass(frozen=True, eq=False)
class _Problem:
    """Kernel arguments for a scenario, shared by all chains."""

    scenario: Scenario  # weights scaled so that a score of 1 means the required margin
    margins: Real  # required score of each device
    scale: Real  # sqrt(Gamma)/phi_k of that scenario
    field: Field
    track: Track
    waveguide_count: int  # waveguides swept between checks of the time limit

    @classmethod
    def of(cls, scenario: Scenario, options: "AirpassPlus", aims: Real) -> "_Problem":
        scaled = replace(
            scenario,
            devices=replace(scenario.devices, samples=scenario.weights * np.sqrt(aims)),
            weighting=Weighting("count"),
        )
        receiver = scenario.receiver
        field = scenario.uplink.field(receiver.antennas)
        scale = np.sqrt(scenario.budget) / scaled.weights
        longest = float(receiver.lengths.max())
        step = max(options.grid_wavelengths * scenario.radio.wavelength_m, longest / (MOST_POINTS - 1))
        points = int(longest / step) + 1
        # A device beyond the end of a waveguide may be in line with it.
        nearest = np.sqrt(np.maximum(field.offset_square, CLOSEST_M**2))
        reference = float(np.max(scale * field.amplitude / nearest))
        kept = 8 * receiver.waveguides * scale.size * points <= TABLE_BYTES
        table = np.empty((0, 0, 2, 0), np.float32)
        if kept:
            table = response_table(field, scale / reference, step, points)
        track = Track(receiver.lengths, float(receiver.min_gap_m), step, points, reference, table)
        # Reading a table is about twenty times faster than computing its entries.
        entries = receiver.antennas * points * scale.size * (1 if kept else 20)
        waveguide_count = min(receiver.waveguides, max(1, ENTRIES_PER_CALL // entries))
        return cls(scaled, aims, scale, field, track, waveguide_count)


@dataclass(frozen=True, eq=False)
class _Found:
    """A layout, a beam, and the scores they give, in units of the margins."""

    layout: Real
    beam: Complex
    scores: Real

    @property
    def rank(self) -> tuple[int, float]:
        return rank(self.scores)


class _TimeUp(Exception):
    """The time limit has passed, or the search was stopped."""


class _Clock:
    """Time limit of a chain. A tenth of the time is reserved for the polish phase."""

    def __init__(self, limit_s: float | None, began: float, stop: threading.Event) -> None:
        self.limit = limit_s
        self.began = began
        self.stop = stop
        self.final_phase = False

    @property
    def seconds(self) -> float:
        return now() - self.began

    def look(self) -> None:
        """Raise if the time is up."""
        share = 1.0 if self.final_phase else 0.9
        if self.stop.is_set() or (self.limit is not None and self.seconds > share * self.limit):
            raise _TimeUp


class _Chain:
    """One start and its kicks."""

    def __init__(
        self,
        problem: _Problem,
        options: "AirpassPlus",
        seed: int,
        index: int,
        clock: _Clock,
        start: Real | None,
        watch: OnStep,
        report: Report,
    ) -> None:
        self.problem = problem
        self.options = options
        self.kicks = EFFORTS[options.effort][1] if options.kicks is None else options.kicks
        self.seed = seed
        self.index = index
        self.clock = clock
        self.given = start is not None
        self.watch = watch
        self.report = report
        self.trace: list[tuple[Step, tuple[int, float]]] = []  # steps, with their ranks
        self.work = {"sweeps": 0, "places": 0}
        self.timed_out = False
        layout = start
        if layout is None:
            scenario = problem.scenario
            layout = scenario.uniform_layout() if index == 0 else scenario.random_layout(self.rng(0))
        self.best = self.at(layout)

    def rng(self, trial: int) -> np.random.Generator:
        return stream(self.seed, Purpose.JOINT, self.index, trial)

    def effective(self, layout: Real) -> Complex:
        scenario = self.problem.scenario
        channels = scenario.uplink.channels(layout)
        return aircomp.effective_channels(channels, scenario.weights, scenario.budget)

    def at(self, layout: Real, beam: Complex | None = None) -> _Found:
        """A layout with a beam, or with the dominant eigenvector."""
        effective = self.effective(layout)
        if beam is None:
            beam = dominant_eigenvector(effective)
        return _Found(layout, beam, aircomp.scores(beam, effective))

    def note(self, phase: str, found: _Found) -> None:
        """Append a step to the trace, and pass it to the callbacks."""
        count, weakest = rank(found.scores * self.problem.margins)
        better = not self.trace or found.rank > max(reached for _, reached in self.trace)
        step = Step(len(self.trace), count, weakest, self.clock.seconds, better, phase)
        self.trace.append((step, found.rank))
        self.watch(step)
        self.report(f"start {self.index + 1}, {phase}: {count} selected, weakest {weakest:.3g}")

    def run(self) -> "_Chain":
        """Run all phases, or stop at the time limit."""
        found = self.best
        try:
            self.note("start", found)
            if self.given:
                # The given layout may be good already: keep its best beam.
                effective = self.effective(found.layout)
                picked = HrmcPlus().search(effective, self.rng(0), self.report)
                self.keep(self.at(found.layout, picked.beam))
                self.grow(self.best, " from the layout given")
            self.grow(self.annealed(found, ""), "")
            for kick in range(1, self.kicks + 1):
                if self.best.rank[0] == self.problem.scale.size:
                    break
                self.kick(kick)
        except _TimeUp:
            self.timed_out = True
        if self.options.polish:
            self.clock.final_phase = True
            with suppress(_TimeUp):
                self.polish()
        if self.timed_out or not self.options.polish:
            self.note("time limit" if self.timed_out else "end", self.best)
        return self

    def kick(self, number: int) -> None:
        """Redraw the positions on some waveguides at random, anneal and grow; keep the better result."""
        random = self.rng(number)
        layout = self.best.layout.copy()
        picked = random.permutation(len(layout))[:KICKED]
        layout[picked] = self.problem.scenario.random_layout(random)[picked]
        label = f" after kick {number}"
        self.grow(self.annealed(self.at(layout, self.best.beam), label), label)

    def keep(self, found: _Found) -> None:
        """Store `found` if it ranks above the best so far."""
        if found.rank > self.best.rank:
            self.best = found

    def annealed(self, found: _Found, label: str) -> _Found:
        """Minimise the smooth count over all devices at increasing powers; return the best on the way."""
        everyone = np.ones(found.scores.size, dtype=np.bool_)
        best = found
        for doublings in ANNEAL:
            found = self.descend(found, everyone, doublings, 1.0, "anneal")
            best = found if found.rank >= best.rank else best
            self.note(f"anneal p={2**doublings}{label}", found)
        return best

    def grow(self, found: _Found, label: str) -> None:
        """Add one device at a time, until no further device can be added."""
        growing = self.options.grow
        while growing and found.rank[0] < found.scores.size:
            wanted = found.scores >= 1.0
            wanted[np.argmax(np.where(wanted, -np.inf, found.scores))] = True
            trial = found
            growing = False
            for doublings in GROW:
                trial = self.descend(trial, wanted, doublings, 0.0, "grow")
                if trial.rank[0] > found.rank[0]:
                    found, growing = trial, True
                    break
        self.note(f"grow{label}", found)

    def polish(self) -> None:
        """Raise the weakest score of the devices selected."""
        found = self.best
        chosen = found.scores >= 1.0
        if not chosen.any():
            chosen = found.scores == found.scores.max()
        for doublings in POLISH:
            found = self.descend(found, chosen, doublings, 0.0, "polish")
        self.consolidate(chosen)
        self.note("polish", self.best)

    def consolidate(self, chosen: Mask) -> None:
        """Final refinement: HAGO, then a soft-minimum beam."""
        scenario = self.problem.scenario
        ascent = Hago(memory=8, max_iterations=100)
        moved = ascent.move(scenario, self.best.layout, self.best.beam, chosen, self.rng(0))
        self.keep(self.at(moved.layout, self.best.beam))
        columns = projections.split(self.effective(self.best.layout)[:, chosen])
        for temperature in CONSOLIDATION:
            objective = Softmin(temperature * float(self.best.scores[chosen].min()))
            found = cg.minimise(*columns, objective, self.best.beam, CONSOLIDATION_LIMITS)
            self.keep(self.at(self.best.layout, found.point))

    def descend(self, found: _Found, wanted: Mask, doublings: int, floor: float, phase: str) -> _Found:
        """Sweep until the decrease is small or, when growing, until all wanted devices are selected."""
        goal = Hill(wanted.astype(np.float64), doublings, floor)
        for number in range(SWEEPS[phase]):
            left = 1.0  # objective after the sweep over that before
            for first in range(0, len(found.layout), self.problem.waveguide_count):
                self.clock.look()
                layout, beam, scores, before, after, tried = sweep(
                    found.layout,
                    found.beam,
                    self.problem.field,
                    self.problem.scale,
                    self.problem.track,
                    goal,
                    self.options.across,
                    number + first,
                    min(self.problem.waveguide_count, len(found.layout) - first),
                    BEAM_LIMITS,
                )
                found = _Found(layout, beam, scores)
                self.keep(found)
                left *= after / before
                self.work["places"] += tried
            self.work["sweeps"] += 1
            if 1.0 - left <= SWEEP_TOLERANCE:
                break
            if phase == "grow" and (scores[wanted] >= 1.0).all():
                break
        return found


def _merged(chains: Sequence[_Chain]) -> tuple[Step, ...]:
    """The traces of all chains, one after the other."""
    if len(chains) == 1:
        return tuple(step for step, _ in chains[0].trace)
    steps: list[Step] = []
    best = (-1, 0.0)
    for chain in chains:
        for step, reached in chain.trace:
            phase = f"start {chain.index + 1}: {step.phase}"
            steps.append(replace(step, iteration=len(steps), best=reached > best, phase=phase))
            best = max(best, reached)
    return tuple(steps)


@dataclass(frozen=True)
class AirpassPlus(DesignMethod):
    """Joint search over devices, beam and layout; selects the most devices.

    Measurements behind the defaults are in docs/airpass-plus.md.
    """

    name = "airpass-plus"

    effort: str = "default"  # numbers of starts and kicks: fast, default or thorough
    starts: int | None = None  # number of chains; overrides the effort level
    kicks: int | None = None  # number of kicks in each chain; overrides the effort level
    time_limit_s: float | None = None  # return the best design found so far after this time
    threads: int | None = threads_field(None)  # for the chains; all processors if None
    grid_wavelengths: float = 0.05  # grid step over lambda
    across: bool = True  # whether antennas may pass their neighbours
    grow: bool = True
    polish: bool = True
    tolerance_mm: float = 0.0  # position error (standard deviation) the design must tolerate
    confidence: float = 0.95  # probability that a selected device tolerates it

    def __post_init__(self) -> None:
        checks.one_of("effort", self.effort, EFFORTS)
        for name in ("starts", "threads"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        if self.kicks is not None:
            checks.whole("kicks", self.kicks, 0)
        if self.time_limit_s is not None:
            checks.positive("time_limit_s", self.time_limit_s)
        checks.positive("grid_wavelengths", self.grid_wavelengths)
        checks.at_least("tolerance_mm", self.tolerance_mm, 0.0)
        checks.between("confidence", self.confidence, 0.5, 1.0)

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Real | None
    ) -> DesignSearch:
        """Run all chains and return the best."""
        began = now()
        aims = margins(scenario, self.tolerance_mm, self.confidence)
        problem = _Problem.of(scenario, self, aims)
        count = self.starts or EFFORTS[self.effort][0]
        stop = threading.Event()

        def chain(index: int, problem: _Problem, options: AirpassPlus, watch: OnStep) -> _Chain:
            clock = _Clock(self.time_limit_s, began, stop)
            given = start if index == 0 else None
            return _Chain(problem, options, seed, index, clock, given, watch, report).run()

        if self.tolerance_mm > 0.0:
            # So far the margins are averages; recompute them from a first design.
            first = chain(0, problem, replace(self, kicks=0, polish=False), discard_step)
            found = exact_margins(
                scenario, first.best.layout, first.best.beam, self.tolerance_mm, self.confidence
            )
            chosen = first.best.scores >= 1.0
            if chosen.any():
                # For unselected devices, scale the averaged margin by the median correction.
                typical = float(np.median(found[chosen] / aims[chosen]))
                problem = _Problem.of(
                    scenario, self, np.maximum(np.where(chosen, found, typical * aims), 1.0)
                )
        # Steps of several chains would arrive in arbitrary order.
        watch = on_step if count == 1 else discard_step
        threads = self.threads or processors()
        with ThreadPoolExecutor(min(threads, count)) as pool:
            try:
                done = list(pool.map(lambda index: chain(index, problem, self, watch), range(count)))
            except BaseException:  # Ctrl-C: do not wait for chains that may take minutes
                stop.set()
                raise
        best = max((one.best for one in done), key=lambda found: found.rank)
        trace = _merged(done)
        if count > 1:
            for step in trace:
                on_step(step)
        work = {name: sum(one.work[name] for one in done) for name in done[0].work}
        return DesignSearch(
            beam=best.beam,
            channels=scenario.uplink.channels(best.layout),
            layout=best.layout,
            array=None,
            trace=trace,
            status="time limit" if any(one.timed_out for one in done) else "done",
            work=work,
        )
