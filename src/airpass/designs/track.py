"""Track devices that move: the beam is re-solved at every step, the layout every so often.

At every step the channels are known exactly, and the beam grows from the last one, which takes about a
millisecond. At every layout step new positions of the antennas are found, in one of two ways:

    redesign   the design method again, started from the last layout and beam, without kicks and polish;
               antennas may go anywhere
    follow     small moves of all antennas and the beam together (`airpass.designs.follow`)

Without a limit on their speed, antennas are at their new positions at once, or after `layout_delay_s`, which
stands for the time of computing. Positions can be found for where devices will be (`lead_s`). With a limit,
each antenna moves towards its target by at most speed times step, and the beam is re-solved for the positions
on the way, which are feasible (`airpass.designs.follow`). The targets of `follow` can be reached before the
next layout step.

Antennas of arrays do not move. Their beam is re-solved at every step, and searched for anew by their method
at every layout step; the better one counts.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard, with_options
from airpass.core.results import Result
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Mask, Real
from airpass.designs.api import design, design_method
from airpass.designs.base import DesignMethod
from airpass.designs.follow import follow, towards
from airpass.designs.plus import AirpassPlus
from airpass.geometry.base import any_segment, anywhere
from airpass.kernels.clock import now
from airpass.optim.ranking import rank, value_rank
from airpass.scenario import Motion, Scenario
from airpass.scenario.motion import displaced
from airpass.selection.hrmc_plus import HrmcPlus, regrow

UPDATES = ("redesign", "follow")
ROUNDING = 1e-9  # relative tolerance when times are compared


@dataclass(frozen=True)
class TrackRow:
    """One step in time."""

    time_s: float
    selected_count: int
    weakest_score: float  # among the selected devices; the largest of all if none is selected
    beam_seconds: float  # time of re-solving the beam
    layout_seconds: float  # time of finding new positions; NaN if it was no layout step
    layout_age_s: float  # time since devices were, or will be, where antennas' targets were found for
    travel_m: float  # largest move of an antenna since the last step
    to_go_m: float  # largest distance of an antenna from its target


@dataclass(frozen=True, eq=False)
class Track(Result):
    """A receiver over time.

    Parameters
    ----------
    scenario
        The scenario at the start.
    method
        The design method.
    update
        "redesign" or "follow".
    beam_every_s, layout_every_s
        Time between steps, and between layout steps.
    layout_delay_s
        Time until antennas are told new positions.
    lead_s
        How far ahead devices' places are extrapolated for new positions.
    antenna_speed_m_s
        Largest speed of an antenna; None if there is no limit.
    time_limit_s
        Time limit of a redesign; None if there is none.
    seed
        Seed of the searches.
    rows
        One entry per step.
    places_m
        [x, y] or [x, y, z] of the devices, shape (steps, K, 2) or (steps, K, 3).
    layouts_m
        Antenna positions, shape (steps, M, N); None for an array.
    array_m
        [x, y, z] of an array's antennas; None for a layout.
    beams
        Beams, shape (steps, M).
    selected
        Selected devices, shape (steps, K).
    """

    scenario: Scenario
    method: DesignMethod
    update: str
    beam_every_s: float
    layout_every_s: float
    layout_delay_s: float
    lead_s: float
    antenna_speed_m_s: float | None
    time_limit_s: float | None
    seed: int
    rows: tuple[TrackRow, ...]
    places_m: Real
    layouts_m: Real | None
    array_m: Real | None
    beams: Complex
    selected: Mask

    @property
    def times_s(self) -> Real:
        """Times of the steps, seconds."""
        return np.array([row.time_s for row in self.rows])

    @property
    def counts(self) -> Real:
        """Number of selected devices at every step."""
        return np.array([row.selected_count for row in self.rows], dtype=np.float64)

    @property
    def mean_count(self) -> float:
        """Mean number of selected devices over time, without the first step, at which all is as designed."""
        counts = self.counts
        return float(counts[1:].mean() if counts.size > 1 else counts[0])

    def scenario_at(self, step: int) -> Scenario:
        """The scenario with the devices where they are at a step."""
        return displaced(self.scenario, self.places_m[step])

    def link(self, step: int) -> Link:
        """The link at a step.

        Parameters
        ----------
        step
            Number of the step.

        Returns
        -------
        Link
            Channels and beam at that time.
        """
        scenario = self.scenario_at(step)
        layout = None if self.layouts_m is None else self.layouts_m[step]
        return _link(scenario, _channels(scenario, layout, self.array_m), self.beams[step])

    def links(self, round_s: float | None = None) -> list[Link]:
        """Links for `airpass.train`, one per communication round.

        Parameters
        ----------
        round_s
            Duration of a round, seconds; that of a step if nothing is given.

        Returns
        -------
        list of Link
            The links at 0, `round_s`, 2 `round_s` and so on, each that of the last step before. In training
            with more rounds they are repeated.
        """
        every = self.beam_every_s if round_s is None else checks.positive("round_s", round_s)
        last = self.rows[-1].time_s
        rounds = int(np.floor(last / every * (1.0 + ROUNDING) + ROUNDING)) + 1
        steps = np.floor(np.arange(rounds) * every / self.beam_every_s * (1.0 + ROUNDING) + ROUNDING)
        return [self.link(min(int(step), len(self.rows) - 1)) for step in steps]

    def __repr__(self) -> str:
        return (
            f"Track({self.method.name}: {self.mean_count:.1f} of {self.scenario.devices.count} devices "
            f"over {self.rows[-1].time_s:g} s)"
        )


OnRow = Callable[[TrackRow], None]


class _Target(NamedTuple):
    """Positions that antennas are told to take, with their beam."""

    found_s: float  # time at which devices were where it was found for
    due_s: float
    layout: Real | None
    beam: Complex
    devices: Mask  # selected with it


def track(
    scenario: Scenario,
    motion: Motion,
    *,
    seconds: float,
    beam_every_s: float = 0.01,
    layout_every_s: float = 0.1,
    layout_delay_s: float = 0.0,
    lead_s: float = 0.0,
    antenna_speed_m_s: float | None = None,
    time_limit_s: float | None = None,
    method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    update: str = "redesign",
    seed: int | None = None,
    on_row: OnRow | None = None,
    report: Report | None = None,
) -> Track:
    """Track devices that move.

    Parameters
    ----------
    scenario
        Receiver, radio, devices at the start, and weights.
    motion
        Model of motion such as `RandomWaypoint(speed_m_s=1.0)`, or paths from `read_paths`.
    seconds
        Duration.
    beam_every_s
        Time between steps, at which the beam is re-solved.
    layout_every_s
        Time between layout steps; rounded to a whole number of steps.
    layout_delay_s
        Time from a layout step until antennas are told their new positions, such as that of computing them.
    lead_s
        New positions are found for where devices will be after this time, extrapolated from the last two
        steps.
    antenna_speed_m_s
        Largest speed of an antenna; no limit if nothing is given.
    time_limit_s
        Time limit of a redesign, for methods with this option. Results then depend on the machine.
    method, options
        Design method and its options, as for `design`; "airpass-plus" if nothing is given. The first design
        is made with it as it is. Later ones start from the last layout and beam, without kicks and polish.
    update
        "redesign": antennas may go anywhere; "follow": small moves only, for layouts.
    seed
        Seed of the searches. Default: that of the scenario.
    on_row
        Callback after every step.
    report
        Callback for progress messages.

    Returns
    -------
    Track
        Selected devices, computing time and antenna moves over time.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    scenario.require_one_carrier("track")
    checks.at_least("seconds", seconds, 0.0)
    checks.positive("beam_every_s", beam_every_s)
    checks.at_least("layout_every_s", layout_every_s, beam_every_s)
    checks.at_least("layout_delay_s", layout_delay_s, 0.0)
    checks.at_least("lead_s", lead_s, 0.0)
    checks.one_of("update", update, UPDATES)
    if antenna_speed_m_s is not None:
        checks.positive("antenna_speed_m_s", antenna_speed_m_s)
        anywhere(scenario, "tracking with antenna_speed_m_s")
        any_segment(scenario, "tracking with antenna_speed_m_s")
    if update == "follow":
        anywhere(scenario, "tracking with update = 'follow'")
    chosen = design_method(method, None, None, options)
    if time_limit_s is not None:
        checks.positive("time_limit_s", time_limit_s)
        if not hasattr(chosen, "time_limit_s"):
            raise InvalidInput(f"time_limit_s: {chosen.name} has no such option; airpass-plus has")
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    steps = int(np.floor(seconds / beam_every_s * (1.0 + ROUNDING) + ROUNDING))
    numbers = 4 * scenario.devices.count + scenario.receiver.waveguides * (scenario.receiver.antennas + 2)
    memory.require((steps + 1) * (8.0 * numbers + 1024.0), "steps", "seconds over beam_every_s")
    times = [beam_every_s * step for step in range(steps + 1)]
    places = motion.paths(scenario, seconds).positions(times)
    report = discard if report is None else report
    receiver = Receiver(
        scenario=scenario,
        method=chosen,
        update=update,
        every=max(1, round(layout_every_s / beam_every_s)),
        delay_s=layout_delay_s,
        lead_s=lead_s,
        step_s=beam_every_s,
        speed_m_s=antenna_speed_m_s,
        time_limit_s=time_limit_s,
        seed=seed,
    )
    rows = []
    layouts: list[Real] = []
    beams, selected = [], []
    with one_blas_thread():
        for there in places:
            row = receiver.advance(there)
            rows.append(row)
            if receiver.layout is not None:
                layouts.append(receiver.layout)
            beams.append(receiver.beam)
            selected.append(receiver.devices)
            if on_row is not None:
                on_row(row)
            report(f"{row.time_s:.2f} of {seconds:g} s: {row.selected_count} selected")
    return Track(
        scenario=scenario,
        method=chosen,
        update=update,
        beam_every_s=beam_every_s,
        layout_every_s=receiver.every * beam_every_s,
        layout_delay_s=layout_delay_s,
        lead_s=lead_s,
        antenna_speed_m_s=antenna_speed_m_s,
        time_limit_s=time_limit_s,
        seed=seed,
        rows=tuple(rows),
        places_m=places,
        layouts_m=np.stack(layouts) if layouts else None,
        array_m=receiver.array,
        beams=np.stack(beams),
        selected=np.stack(selected),
    )


def _channels(scenario: Scenario, layout: Real | None, array: Real | None) -> Complex:
    if layout is not None:
        return scenario.uplink.channels(layout)
    assert array is not None
    return scenario.array_at(array).channels()


def _link(scenario: Scenario, channels: Complex, beam: Complex) -> Link:
    radio = scenario.radio
    return Link(channels, scenario.weights, beam, scenario.budget, radio.power, radio.mse_threshold)


@dataclass(eq=False)
class Receiver:
    """The state of a receiver over time.

    Between two steps, `scenario` may be replaced by one with other priorities.
    """

    scenario: Scenario
    method: DesignMethod
    update: str
    every: int  # steps between layout steps
    delay_s: float
    lead_s: float
    step_s: float
    speed_m_s: float | None
    time_limit_s: float | None
    seed: int
    anew: bool = False  # also search beams and layouts from the start, as priorities change
    step: int = field(default=-1, init=False)
    places: Real = field(init=False)  # of the devices
    array: Real | None = field(default=None, init=False)

    def advance(self, places: Real) -> TrackRow:
        """One step in time.

        Parameters
        ----------
        places
            Where devices are now, shape (K, 2) or (K, 3).

        Returns
        -------
        TrackRow
            What changed. Layout, beam and selected devices are attributes.
        """
        self.step += 1
        moved: Real = places - self.places if self.step else np.zeros_like(places)
        self.places = places
        here = displaced(self.scenario, places)
        row = self._continue(here, moved) if self.step else self._begin(here)
        self.link = _link(here, self.channels, self.beam)
        return row

    def _begin(self, scenario: Scenario) -> TrackRow:
        """The first step: a design."""
        began = now()
        first = design(scenario, self.method, seed=self.seed)
        if first.layout is None and first.array is None:
            raise InvalidInput(f"method {self.method.name}: has neither a layout nor an array")
        if first.layout is None and self.update == "follow":
            raise InvalidInput(f"update = 'follow': {self.method.name} has no antennas that move")
        self.array = first.array
        self.layout = first.layout
        self.beam = first.beam
        self.channels = first.channels
        self.devices = first.selected
        self.target = self.latest = _Target(0.0, 0.0, first.layout, first.beam, first.selected)
        self.pending: deque[_Target] = deque()
        spent = now() - began
        return TrackRow(0.0, first.selected_count, first.weakest_score, 0.0, spent, 0.0, 0.0, 0.0)

    def _continue(self, scenario: Scenario, moved: Real) -> TrackRow:
        """A later step: the scenario now, and the moves of the devices since the last step."""
        time = self.step * self.step_s
        before = self.layout
        if self.speed_m_s is not None and self.layout is not None and self.target.layout is not None:
            self.layout = towards(self.layout, self.target.layout, self.speed_m_s * self.step_s)
        layout_seconds = float("nan")
        if self.step % self.every == 0:
            began = now()
            ahead = self.places + self.lead_s / self.step_s * moved
            self.latest = self.updated(displaced(self.scenario, ahead), time)
            self.pending.append(self.latest)
            layout_seconds = now() - began
        while self.pending and self.pending[0].due_s <= time * (1.0 + ROUNDING):
            self.target = self.pending.popleft()
        if self.speed_m_s is None:
            self.layout = self.target.layout
        began = now()
        self.channels = _channels(scenario, self.layout, self.array)
        effective = aircomp.effective_channels(self.channels, scenario.weights, scenario.budget)
        values = scenario.priorities
        beams = [regrow(effective, self.beam, values), regrow(effective, self.target.beam, values)]
        if self.anew:
            rng = stream(self.seed, Purpose.SELECTION, self.step)
            beams.append(HrmcPlus().find(effective, values, rng, discard).beam)
        self.beam = max(beams, key=lambda one: value_rank(aircomp.scores(one, effective), values))
        scores = aircomp.scores(self.beam, effective)
        self.devices = scores >= 1.0
        count, weakest = rank(scores)
        return TrackRow(
            time_s=time,
            selected_count=count,
            weakest_score=weakest,
            beam_seconds=now() - began,
            layout_seconds=layout_seconds,
            layout_age_s=time - self.target.found_s,
            travel_m=_largest(self.layout, before),
            to_go_m=_largest(self.layout, self.target.layout),
        )

    def updated(self, scenario: Scenario, time: float) -> _Target:
        """New positions for the devices as they are in a scenario."""
        last, due, found_s = self.latest, time + self.delay_s, time + self.lead_s
        beam = self.beam if last is self.target else last.beam
        if self.update == "follow":
            start = last.layout if self.speed_m_s is None else self.layout
            assert start is not None
            reach = None if self.speed_m_s is None else self.speed_m_s * self.step_s * self.every
            layout, beam = follow(scenario, start, beam, last.devices, reach)
            effective = aircomp.effective_channels(
                scenario.uplink.channels(layout), scenario.weights, scenario.budget
            )
            return _Target(found_s, due, layout, beam, aircomp.scores(beam, effective) >= 1.0)
        start_with: dict[str, Any] = {}
        if last.layout is not None:
            start_with["start_layout"] = last.layout
            if self.method.uses_start_beam:
                start_with["start_beam"] = beam
        method = quick(self.method, self.time_limit_s)
        found = design(scenario, method, seed=self.seed, **start_with)
        if self.anew and start_with:
            fresh = design(scenario, method, seed=self.seed)
            found = max(found, fresh, key=lambda one: value_rank(one.scores, scenario.priorities))
        return _Target(found_s, due, found.layout, found.beam, found.selected)


def quick(method: DesignMethod, time_limit_s: float | None = None) -> DesignMethod:
    """The method of redesigns.

    Parameters
    ----------
    method
        The method of the first design.
    time_limit_s
        Time limit of a redesign; None if there is none.

    Returns
    -------
    DesignMethod
        The same method; `airpass-plus` without kicks and polish.
    """
    if isinstance(method, AirpassPlus):
        method = replace(method, starts=1, kicks=0, polish=False)
    limit = {} if time_limit_s is None else {"time_limit_s": time_limit_s}
    changed: DesignMethod = with_options(method, limit)
    return changed


def _largest(one: Real | None, other: Real | None) -> float:
    return 0.0 if one is None or other is None else float(np.abs(one - other).max())
