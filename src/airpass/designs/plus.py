"""`airpass-plus`: devices, beam and antenna positions in one search.

The paper alternates: HRMC selects devices for fixed antennas; HAGO moves antennas for the selected
devices. Here all three minimise one function, which also includes unselected devices. The search consists of
chains (`airpass.designs.joint.chain`): a first design and kicks that improve it. Chains are independent, so
that the result does not depend on the number of threads.

Background and measurements: docs/science/airpass-plus.md.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue

import numpy as np

from airpass.aircomp import named_score
from airpass.core import checks, memory
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, threads_field
from airpass.core.threads import processors
from airpass.core.types import Complex, Flag, Real
from airpass.designs import wideband
from airpass.designs.base import CentreSteps, DesignMethod, DesignSearch, OnStep, Start, Step
from airpass.designs.joint.chain import Chain, Problem
from airpass.designs.joint.found import Found
from airpass.designs.joint.space import ENTRY_BYTES, space_of
from airpass.designs.margins import exact_margins, margins
from airpass.kernels.clock import now
from airpass.kernels.interrupts import Stopped, watching
from airpass.optim.ranking import rank
from airpass.scenario import Scenario, Weighting

# Chains, and kicks in each for problems of up to `USUAL_ENTRIES` table entries. Larger ones have fewer kicks
# in proportion, because each takes longer, but at least a tenth.
EFFORTS = {"fast": (1, 5), "default": (2, 50), "thorough": (4, 800)}
# With subcarriers there is one chain, from as many layouts as there would be chains, and that of the centre.
WIDEBAND_KICKS = {"fast": 3, "default": 20, "thorough": 200}
USUAL_ENTRIES = 1_300_000  # K=50, M=10, 40 m at the paper's wavelength
MOST_POINTS = 2**18  # of a waveguide's grid; at shorter wavelengths the grid is coarser
POLISH_SHARE = 0.1  # of the time limit, reserved for the polish unless the first design took less
CENTRE_SHARE = 0.25  # of the time limit, for the layout of the centre frequency if there are subcarriers
TICK_S = 0.01  # between looks at the clock


def problem_of(scenario: Scenario, options: "AirpassPlus", aims: Real) -> Problem:
    """What all chains share.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.
    options
        The method.
    aims
        Required score of each device.

    Returns
    -------
    Problem
        The scenario with a score of 1 at the required one, and its tabulated responses.
    """
    scaled = replace(
        scenario,
        devices=replace(scenario.devices, samples=scenario.weights * np.sqrt(aims)),
        weighting=Weighting("count"),
    )
    receiver, count = scenario.receiver, scenario.devices.count
    longest = float(receiver.lengths.max())
    step = max(options.grid_wavelengths * scenario.radio.wavelength_m, longest / (MOST_POINTS - 1))
    entries = receiver.waveguides * count * (longest / step + 1.0)
    memory.require(
        min(2.0**20 * options.memory_mb, ENTRY_BYTES * entries), "tabulated responses", "memory_mb"
    )
    memory.require(
        32.0 * receiver.waveguides * receiver.antennas * count,
        "channels of single antennas",
        "devices.count or receiver.antennas",
    )
    space = space_of(scaled, np.sqrt(scaled.budget) / scaled.weights, step, 2.0**20 * options.memory_mb)
    # Antennas that pass each other would exchange their shares of power.
    across = options.across and scenario.split_delta is None
    return Problem(scaled, aims, space, across)


class _Trace:
    """The steps of one chain; those after all chains are `final`."""

    def __init__(self, index: int, search: "_Search", margins: Real, final: bool = False) -> None:
        self.index = index
        self.search = search
        self.margins = margins
        self.final = final
        self.steps: list[tuple[Step, tuple[float, float]]] = []  # steps, with their ranks
        self.best = (-1.0, 0.0)

    def __call__(self, phase: str, found: Found) -> None:
        """Append a step, and pass it to the caller's thread."""
        count, weakest = rank(found.scores * self.margins)
        seconds = now() - self.search.began
        step = Step(
            len(self.steps), count, weakest, seconds, found.rank > self.best, phase, layout=found.layout
        )
        self.best = max(self.best, found.rank)
        self.steps.append((step, found.rank))
        self.search.news.put((self, step, found.rank))
        if phase == "first design":
            self.search.reserve = min(self.search.reserve, seconds)


class _Search:
    """Runs chains in threads, watches the time, and calls the caller's callbacks in the caller's thread."""

    def __init__(self, options: "AirpassPlus", alone: bool, on_step: OnStep, report: Report) -> None:
        self.began = now()
        self.limit = options.time_limit_s
        self.threads = options.threads or processors()
        self.alone = alone  # whether there is one chain only; steps of several come in any order
        self.delivered = 0
        self.best = (-1.0, 0.0)  # rank of the best step that was passed on
        self.on_step = on_step
        self.report = report
        self.news: SimpleQueue[tuple[_Trace, Step, tuple[float, float]]] = SimpleQueue()
        self.message = "start"
        self.stop: Flag = np.zeros(1, np.uint8)
        self.out_of_time = False
        self.reserve = np.inf  # time of the first design, which the polish hardly exceeds

    def run(self, tasks: Sequence[Callable[[], None]], reserved: float = 0.0) -> None:
        """Run tasks until they end or the time is up, except for a reserved share of the limit."""
        with ThreadPoolExecutor(min(self.threads, len(tasks))) as pool:
            try:
                pending = {pool.submit(self.watched, task) for task in tasks}
                while pending:
                    done, pending = wait(pending, min(TICK_S, max(0.0, self.left(reserved))), FIRST_COMPLETED)
                    self.deliver()
                    for one in done:
                        with suppress(Stopped):
                            one.result()
                    if pending and self.left(reserved) <= 0.0:
                        self.out_of_time = True
                        self.stop[0] = 1
            except BaseException:  # also Ctrl-C; the kernels look at the flag
                self.stop[0] = 1
                raise
        self.stop[0] = 0

    def watched(self, task: Callable[[], None]) -> None:
        """Run a task of which all kernels look at the flag."""
        with watching(self.stop):
            task()

    def left(self, reserved: float) -> float:
        """Seconds until the time is up; infinite without a limit, and once the search is to stop."""
        if self.limit is None or self.stop[0] != 0:
            return np.inf
        return self.began + self.limit - min(reserved * self.limit, self.reserve) - now()

    def deliver(self) -> None:
        """Call the callbacks, which may raise to cancel the search."""
        while not self.news.empty():
            trace, step, reached = self.news.get()
            self.message = (
                f"chain {trace.index + 1}, {step.phase}: {step.selected_count} selected, "
                f"{named_score(step.selected_count, step.weakest_score, '.3g')}"
            )
            if not self.alone:
                phase = step.phase if trace.final else f"chain {trace.index + 1}: {step.phase}"
                step = replace(step, iteration=self.delivered, best=reached > self.best, phase=phase)
            self.delivered += 1
            self.best = max(self.best, reached)
            self.on_step(step)
        self.report(self.message)


def _merged(traces: Sequence[_Trace]) -> tuple[Step, ...]:
    """The traces of all chains, one after the other; that of the polish is the last."""
    if len(traces) == 2:
        return tuple(
            replace(step, iteration=number)
            for number, (step, _) in enumerate([*traces[0].steps, *traces[1].steps])
        )
    steps: list[Step] = []
    best = (-1.0, 0.0)
    for trace in traces:
        for step, reached in trace.steps:
            phase = step.phase if trace.final else f"chain {trace.index + 1}: {step.phase}"
            steps.append(replace(step, iteration=len(steps), best=reached > best, phase=phase))
            best = max(best, reached)
    return tuple(steps)


@dataclass(frozen=True)
class AirpassPlus(DesignMethod):
    """Joint search over devices, beam and layout; the default.

    Measurements behind the defaults are in docs/science/airpass-plus.md.
    """

    name = "airpass-plus"
    uses_start_beam = True
    uses_priorities = True

    effort: str = "default"  # numbers of chains and kicks: fast, default or thorough
    starts: int | None = None  # number of chains; overrides the effort level
    kicks: int | None = None  # number of kicks in each chain; overrides the effort level
    time_limit_s: float | None = None  # return the best design found so far after this time
    threads: int | None = threads_field(None)  # for the chains; all processors if None
    grid_wavelengths: float = 0.125  # grid step over lambda
    memory_mb: float = 1024.0  # a larger table of responses is not stored but computed on demand, more slowly
    across: bool = True  # whether antennas may pass their neighbours
    grow: bool = True  # whether to add unselected devices to the selected ones, one by one
    polish: bool = True  # whether to raise the weakest score of the best design at the end
    tolerance_mm: float = 0.0  # position error (standard deviation) the design must tolerate
    confidence: float = 0.95  # probability that a selected device tolerates the errors
    displacement_mm: float = 0.0  # of devices, per coordinate (standard deviation), that must be tolerated

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
        checks.at_least("memory_mb", self.memory_mb, 0.0)
        checks.at_least("tolerance_mm", self.tolerance_mm, 0.0)
        checks.at_least("displacement_mm", self.displacement_mm, 0.0)
        checks.between("confidence", self.confidence, 0.5, 1.0)

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Run all chains and return the best."""
        count = self.starts or EFFORTS[self.effort][0]
        receiver = scenario.receiver
        numbers = receiver.waveguides * (receiver.antennas + 2) + 2 * scenario.devices.count
        memory.require(count * (8.0 * numbers + 4096.0), "chains", "starts")
        search = _Search(self, count == 1, on_step, report)
        averaged = margins(scenario, self.tolerance_mm, self.confidence, self.displacement_mm)
        problem = problem_of(scenario, self, averaged)
        if self.tolerance_mm > 0.0 or self.displacement_mm > 0.0:
            problem = self._with_exact_margins(scenario, problem, search, seed)
        kicks = self._kicks(problem) if self.kicks is None else self.kicks
        traces = [_Trace(index, search, problem.margins) for index in range(count)]
        chains = [Chain(problem, seed, trace.index, search.stop, trace, start) for trace in traces]
        search.run([partial(chain.run, kicks, self.grow) for chain in chains], POLISH_SHARE)
        chosen = max(chains, key=lambda chain: chain.best.rank)
        last = _Trace(chosen.index, search, problem.margins, final=True)
        last.best = chosen.best.rank
        chosen.note = last
        if self.polish:
            search.run([chosen.polish])
        if search.out_of_time or not self.polish:
            last("time limit" if search.out_of_time else "end", chosen.best)
        search.deliver()
        trace = _merged([*traces, last])
        return DesignSearch(
            beam=chosen.best.beam,
            channels=scenario.uplink.channels(chosen.best.layout),
            layout=chosen.best.layout,
            array=None,
            trace=trace,
            status="time limit" if search.out_of_time else "done",
            work={name: sum(chain.work[name] for chain in chains) for name in chosen.work},
        )

    def run_wideband(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Search with the scores of all subcarriers, from the layout of the centre frequency and others."""
        for name in ("tolerance_mm", "displacement_mm"):
            if getattr(self, name) > 0.0:
                scenario.require_one_carrier(f"option {name}")
        if start is not None and start.beam is not None:
            scenario.require_one_carrier("start_beam")
        began = now()
        named = CentreSteps(on_step)
        limit = np.inf if self.time_limit_s is None else self.time_limit_s
        first = replace(self, time_limit_s=None if self.time_limit_s is None else CENTRE_SHARE * limit)
        centre = first.run(scenario.centre, seed, named, report, start)
        steps = named.steps

        def note(phase: str, found: Found) -> None:
            best = best_rank[0] < found.rank
            best_rank[0] = max(best_rank[0], found.rank)
            step = Step(len(steps), *rank(found.scores), now() - began, best, phase, found.layout)
            steps.append(step)
            on_step(step)
            score = named_score(step.selected_count, step.weakest_score)
            report(f"{phase}: {step.selected_count} selected, {score}")

        best_rank = [(-1.0, 0.0)]
        longest = float(scenario.receiver.lengths.max())
        grid = max(self.grid_wavelengths * scenario.radio.wavelength_m, longest / (MOST_POINTS - 1))
        # Antennas that pass each other would exchange their shares of power.
        across = self.across and scenario.split_delta is None
        space = wideband.Space(scenario, grid, 2.0**20 * self.memory_mb, across)
        search = wideband.Search(space, seed, note, began + limit)
        assert centre.layout is not None
        starts: dict[str, tuple[Real, Complex | None]] = {"centre layout": (centre.layout, centre.beam)}
        if start is None:
            starts["even layout"] = scenario.uniform_layout(), None
        else:
            starts["given layout"] = start.layout, None
        for number in range(1, self.starts or EFFORTS[self.effort][0]):
            drawn = scenario.random_layout(stream(seed, Purpose.GEOMETRY, number))
            starts[f"random layout {number}"] = drawn, None
        status = "done"
        try:
            search.run(starts, WIDEBAND_KICKS[self.effort] if self.kicks is None else self.kicks, self.grow)
            if self.polish:
                search.polish()
        except wideband.Stopped:
            status = "time limit"
        best = search.best
        assert best is not None
        if not self.polish or status != "done":
            note("end" if status == "done" else status, best)
        return DesignSearch(
            best.beam, space.channels(best.layout), best.layout, None, tuple(steps), status, search.work
        )

    def _kicks(self, problem: Problem) -> int:
        """Number of kicks of each chain at this effort level."""
        usual = EFFORTS[self.effort][1]
        entries = problem.space.row_scale.size * problem.space.points
        return max(usual // 10, 1, round(usual * min(1.0, USUAL_ENTRIES / entries)))

    def _with_exact_margins(
        self, scenario: Scenario, problem: Problem, search: _Search, seed: int
    ) -> Problem:
        """The problem with the margins of a first design; so far they are averages."""
        first = Chain(problem, seed, 0, search.stop, lambda phase, found: None)
        search.run([partial(first.run, 0, self.grow)], 0.5)
        chosen = first.best.scores >= 1.0
        if not chosen.any():
            return problem
        exact = exact_margins(
            scenario,
            first.best.layout,
            first.best.beam,
            self.tolerance_mm,
            self.confidence,
            self.displacement_mm,
        )
        # For unselected devices, scale the averaged margin by the median correction. For displacements do so
        # for all: how much a device suffers then depends on layout and beam, which the search will change.
        typical = float(np.median(exact[chosen] / problem.margins[chosen]))
        own = chosen & (self.displacement_mm == 0.0)
        aims = np.maximum(np.where(own, exact, typical * problem.margins), 1.0)
        return problem_of(scenario, self, aims)
