"""Joint search over devices, beams of all subcarriers and antenna positions: `airpass-plus` with subcarriers.

The phases are those of the search for one carrier (`airpass.designs.joint.chain`), with scores that are
combined over the subcarriers:

    start    the layout that the search for one carrier finds at the centre frequency, and an even layout
    anneal   minimise the smooth count over all devices for p = 1, 2, 4
    grow     want one device more, and raise the weakest score of the set with p = 2, 8, 32
    refine   move antennas by fractions of the grid step, if a set nearly fits
    kick     redraw the positions on one waveguide at random, and anneal
    race     after a kick, want one device more at once, and drop the weakest if they do not fit
    polish   raise the weakest score of the devices selected in the end

Both starts are annealed and grown, and kicks improve the better one. The result is never worth less than the
layout of the centre frequency with beams for all subcarriers.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from airpass import wideband
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Complex, Index, Real, Single
from airpass.designs.joint.found import Found
from airpass.designs.wideband_sweep import Line, State, move_antenna, solve_beams, sweep
from airpass.kernels.clock import now
from airpass.optim.conjugate_gradient import Limits
from airpass.optim.subcarriers import Goal
from airpass.scenario import Scenario
from airpass.scenario.candidates import search_places
from airpass.selection.base import scaled_priorities
from airpass.selection.wideband import Problem, grown, wideband_beams
from airpass.wideband import MEAN

# log2 of the powers p of each phase, and the largest number of sweeps over all antennas for each.
ANNEAL, ANNEAL_SWEEPS = (0, 1, 2), 10
GROW, GROW_SWEEPS = (1, 3, 5), 2
POLISH, POLISH_SWEEPS = (3, 5), 3
SWEEP_TOLERANCE = 1e-2  # relative decrease of F in a sweep that ends a descent
BEAM_LIMITS = Limits(first_step=0.3, max_iterations=30, tolerance=1e-4)
NEAR = 0.9  # weakest score from which a set is refined
FINE = (1.0, 0.125)  # largest moves of an antenna in a refinement, in grid steps
FINE_POINTS = 17  # within such a move
GIVE_UP = 0.7  # weakest score below which a race skips its last power
ENTRY_BYTES = 8  # of a response in the table


class Stopped(Exception):
    """The time limit has passed."""


def _better(one: Found, other: Found) -> Found:
    return other if other.rank > one.rank else one


class Space:
    """What stays the same during a search: channels, places of antennas, and the responses there."""

    def __init__(self, scenario: Scenario, step_m: float, table_bytes: float, across: bool) -> None:
        self.scenario = scenario
        self.rule = scenario.channel.subcarrier_rule
        self.is_mean = self.rule == MEAN
        self.priorities = scaled_priorities(scenario.priorities)
        self.scale: Real = np.sqrt(scenario.budget) / scenario.weights
        self.across = across
        receiver = scenario.receiver
        places, counts, self.gap = search_places(receiver, scenario.candidates)
        self.is_free = places.shape[1] == 0
        longest = float(receiver.lengths.max())
        per_place = ENTRY_BYTES * scenario.channel.subcarriers * receiver.waveguides * scenario.devices.count
        self.step = max(step_m, longest * per_place / table_bytes)
        if self.is_free:
            grid = np.arange(int(longest / self.step) + 1) * self.step
            counts = np.array([int((grid <= length).sum()) for length in receiver.lengths])
            places = np.minimum(grid, receiver.lengths[:, None])
        self.places, self.counts = np.ascontiguousarray(places), counts
        self.table = self.responses(self.places)
        shares = scenario.centre.uplink.field(receiver.antennas).feed[2:]
        self.shares = np.ascontiguousarray(shares)

    @cached_property
    def devices(self) -> Index:
        """Numbers of the devices with a priority above zero."""
        return np.flatnonzero(self.priorities > 0.0)

    def responses(self, places: Real) -> Single:
        """Effective responses at places of shape (M, P), for an equal split; shape (M, K, S, 2, P)."""
        waveguides, count = places.shape
        shape = (waveguides, self.scale.size, len(self.scenario.subcarriers), 2, count)
        table = np.empty(shape, np.float32)
        antennas = self.scenario.receiver.antennas
        for s, one in enumerate(self.scenario.subcarriers):
            terms = (one.uplink.terms(places, antennas) * self.scale).transpose(0, 2, 1)
            table[:, :, s, 0], table[:, :, s, 1] = terms.real, terms.imag
        return table

    def channels(self, layout: Real) -> Complex:
        """Channels on all subcarriers, shape (S, M, K)."""
        return np.stack([one.uplink.channels(layout) for one in self.scenario.subcarriers])

    def problem(self, layout: Real) -> Problem:
        """The beams' problem for a layout."""
        scenario = self.scenario
        effective = wideband.effective_channels(self.channels(layout), scenario.weights, scenario.budget)
        return Problem(effective, self.rule, self.priorities)

    def at(self, layout: Real, beams: Complex) -> Found:
        """A layout with given beams."""
        return Found(layout, beams, self.problem(layout).scores(beams), self.priorities)

    def state(self, found: Found) -> State:
        """What sweeps change, at a design."""
        parts = [one.uplink.terms(found.layout) * self.scale for one in self.scenario.subcarriers]
        terms = np.ascontiguousarray(np.stack(parts, axis=2))
        sums = terms.sum(axis=1).transpose(1, 0, 2)
        re, im = np.ascontiguousarray(sums.real), np.ascontiguousarray(sums.imag)
        return State(found.layout.copy(), terms, re, im, found.beam.copy())


class Search:
    """A search from some starts, with the best design so far in `best`."""

    def __init__(self, space: Space, seed: int, note: Callable[[str, Found], None], deadline: float) -> None:
        self.space = space
        self.seed = seed
        self.note = note
        self.deadline = deadline
        self.work = {"sweeps": 0, "refinements": 0}
        self.best: Found | None = None

    def rng(self, trial: int) -> np.random.Generator:
        """Random numbers of one kick."""
        return stream(self.seed, Purpose.JOINT, trial)

    def keep(self, found: Found) -> Found:
        """Store `found` if it ranks above the best so far."""
        self.best = found if self.best is None else _better(self.best, found)
        return found

    def solved(self, layout: Real, beam: Complex | None) -> Found:
        """A layout with the best beams for it, as `DesignMethod.run_wideband` finds them."""
        space, problem = self.space, self.space.problem(layout)
        start = None if beam is None else np.tile(beam, (len(problem.effective), 1))
        rng = stream(self.seed, Purpose.SELECTION, 0)
        beams = wideband_beams(problem.effective, space.rule, space.priorities, rng, start)
        return self.keep(space.at(layout, beams))

    def run(self, starts: dict[str, tuple[Real, Complex | None]], kicks: int, grow: bool) -> None:
        """Improve the layouts of all starts, then the best by kicks.

        Parameters
        ----------
        starts
            Layouts to start from, by name, with a beam for one carrier if there is one.
        kicks
            Number of kicks.
        grow
            Whether to add devices one by one.
        """
        solved = {name: self.solved(layout, beam) for name, (layout, beam) in starts.items()}
        current: Found | None = None
        for name, found in solved.items():
            self.note(name, found)
            first = self.annealed(found)
            if grow:
                first = self.grown(first)
            self.note(f"{name}, improved", first)
            current = first if current is None else _better(current, first)
        assert current is not None
        assert self.best is not None
        current = _better(current, self.best)
        for number in range(kicks):
            if self.best.selected.size == self.space.devices.size:
                break
            before = self.best.value
            reached = self.annealed(self.kicked(current, number))
            if grow:
                reached = self.raced(reached, current.value)
            if reached.value >= current.value:
                current = reached
            if self.best.value > before:
                self.note(f"kick {number + 1}", self.best)

    def descend(
        self, found: Found, devices: Index, doublings: int, floor: float, sweeps: int, until: bool = False
    ) -> Found:
        """Sweep until F decreases little, or, with `until`, all wanted devices are selected; the end."""
        space = self.space
        counted = space.priorities[devices] if floor > 0.0 else np.ones(devices.size)
        goal = Goal(counted, doublings, floor, space.is_mean)
        for _ in range(sweeps):
            if now() > self.deadline:
                raise Stopped
            state = space.state(found)
            unit = 1.0 / max(found.weakest(devices), floor, 1e-100)
            before, after = sweep(
                state,
                space.places,
                space.counts,
                space.table,
                space.shares,
                space.gap,
                space.across,
                devices,
                unit,
                goal,
                BEAM_LIMITS,
            )
            self.work["sweeps"] += 1
            found = self.keep(space.at(state.layout, state.beams))
            if (until and found.weakest(devices) >= 1.0) or after > (1.0 - SWEEP_TOLERANCE) * before:
                break
        return found

    def refined(self, found: Found, devices: Index, doublings: int) -> Found:
        """Move antennas by fractions of the grid step; the better of before and after."""
        space = self.space
        if not space.is_free:
            return found
        goal = Goal(np.ones(devices.size), doublings, 0.0, space.is_mean)
        lengths = space.scenario.receiver.lengths[:, None]
        best = found
        for reach in FINE:
            if now() > self.deadline:
                raise Stopped
            state = space.state(found)
            unit = 1.0 / max(found.weakest(devices), 1e-100)
            offsets = reach * space.step * np.linspace(-1.0, 1.0, FINE_POINTS)
            for n in range(found.layout.shape[1]):
                places = np.clip(state.layout[:, n : n + 1] + offsets, 0.0, lengths)
                table = space.responses(places)
                for m in range(len(places)):
                    line = Line(places[m], table[m], space.gap, False)
                    move_antenna(state, m, n, space.shares[n, m], line, devices, unit, goal)
                solve_beams(state, devices, unit, goal, BEAM_LIMITS)
            self.work["refinements"] += 1
            found = self.keep(space.at(state.layout, state.beams))
            best = found if found.weakest(devices) > best.weakest(devices) else best
        return best

    def annealed(self, found: Found) -> Found:
        """Minimise the smooth count over all devices at increasing powers; the best of the ends."""
        best = found
        for doublings in ANNEAL:
            found = self.descend(found, self.space.devices, doublings, 1.0, ANNEAL_SWEEPS)
            best = _better(best, found)
        return self.regrown(best)

    def regrown(self, found: Found) -> Found:
        """The same layout with beams that add devices."""
        beams = grown(self.space.problem(found.layout), found.beam, False)
        return self.keep(self.space.at(found.layout, beams))

    def added(self, found: Found, devices: Index) -> Found:
        """Raise the weakest score of a set until all are selected."""
        for doublings in GROW:
            found = self.descend(found, devices, doublings, 0.0, GROW_SWEEPS, True)
            if found.weakest(devices) >= 1.0:
                return found
        if found.weakest(devices) >= NEAR:
            found = self.refined(found, devices, GROW[-1])
        return found

    def grown(self, found: Found) -> Found:
        """Add the best outsider, until none can be added."""
        while found.selected.size < self.space.devices.size:
            devices = np.sort(found.order[: found.selected.size + 1])
            trial = self.added(found, devices)
            if trial.value <= found.value:
                trial = self.regrown(trial)
            if trial.value <= found.value:
                return _better(found, trial)
            found = trial
        return found

    def kicked(self, found: Found, number: int) -> Found:
        """Redraw the positions on one waveguide at random; the beams stay."""
        random = self.rng(number)
        layout = found.layout.copy()
        picked = random.integers(len(layout))
        layout[picked] = self.space.scenario.random_layout(random)[picked]
        return self.space.at(layout, found.beam)

    def raced(self, found: Found, target: float) -> Found:
        """A value above `target`, or give up soon."""
        best = found
        worth = self.space.priorities
        number = int(np.searchsorted(np.cumsum(worth[found.order]), target, side="right")) + 1
        devices = np.sort(found.order[:number])
        while True:
            for doublings in GROW:
                weakest = found.weakest(devices)
                if weakest >= 1.0 or (doublings == GROW[-1] and weakest < GIVE_UP):
                    break
                found = self.descend(found, devices, doublings, 0.0, GROW_SWEEPS, True)
                best = _better(best, found)
            if NEAR <= found.weakest(devices) < 1.0:
                found = self.refined(found, devices, GROW[-1])
                best = _better(best, found)
            if best.value >= target:
                return self.grown(best)
            order = np.argsort(worth[devices] * found.scores[devices])
            left = worth[devices].sum() - np.cumsum(worth[devices][order])
            spare = int((left >= target).sum())  # devices that need not be in the set
            if spare == 0:
                return best
            devices = np.delete(devices, order[: (spare + 1) // 2])

    def polish(self) -> None:
        """Raise the weakest score of the devices selected in the end."""
        assert self.best is not None
        devices = self.best.selected if self.best.selected.size else self.best.order[:1]
        for doublings in POLISH:
            self.descend(self.best, devices, doublings, 0.0, POLISH_SWEEPS)
        self.refined(self.best, devices, POLISH[-1])
        beams = grown(self.space.problem(self.best.layout), self.best.beam)
        self.keep(self.space.at(self.best.layout, beams))
        self.note("polish", self.best)
