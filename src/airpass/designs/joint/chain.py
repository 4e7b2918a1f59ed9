"""One chain of `airpass-plus`: a first design, and kicks that improve it.

    anneal   minimise the smooth count over all devices for p = 1, 2, 4; larger p is closer to the count
    exchange if one segment of each waveguide is selected: try the antennas of one waveguide on each other
             segment, with a short descent, and keep the segment if the smooth count decreases
    grow     add the best unselected device to the selected ones, and raise the weakest score of this set with
             p = 2, 8, 32; if all meet the threshold, repeat
    finish   if a set nearly fits, raise its weakest score in all positions and the beam together
    kick     redraw the positions on one waveguide at random, and its segment if one is selected, and anneal
    race     after a kick, want one device more than the chain has at once, and drop the weakest if they do
             not fit; give up as soon as fewer than the chain has are left
    polish   raise the weakest score of the devices selected in the end

A result of a race with as many devices as before replaces the current design, so that the chain moves on
among designs with equally many devices.

With priorities v_k, the terms of the smooth count are multiplied by v_k, and designs are judged by their
value, the sum of v_k over the selected devices, in place of the number of these. Devices of priority zero are
not wanted. Growing tries devices in the order of v_k z_k. If one does not fit, it is tried again without the
selected devices of lowest priority, as many as together count less than it; then the outsider of the largest
score is tried. With v_k = 1 nothing of this differs from the search without priorities.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airpass import aircomp
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import discard
from airpass.core.types import Complex, Flag, Index, Real
from airpass.designs.base import Start
from airpass.designs.joint.ascent import AscentLimits, ascend
from airpass.designs.joint.descent import descend
from airpass.designs.joint.found import Found
from airpass.designs.joint.space import Space, exact_scores
from airpass.designs.joint.sweep import Goal, Moves
from airpass.designs.joint.wanted import Wanted, wanted_of
from airpass.kernels.interrupts import Stopped
from airpass.optim import conjugate_gradient as cg
from airpass.scenario import Scenario
from airpass.scenario.segments import moved_to, segments_at
from airpass.selection.base import dominant_eigenvector, scaled_priorities
from airpass.selection.hrmc_plus import HrmcPlus, regrow

# log2 of the powers p of each phase, and the largest number of sweeps over all antennas for each.
ANNEAL, ANNEAL_SWEEPS = (0, 1, 2), 10
GROW, GROW_SWEEPS = (1, 3, 5), 2
POLISH, POLISH_SWEEPS = (3, 5), 3
SWEEP_TOLERANCE = 1e-2  # relative decrease of F in a sweep that ends a descent
EXCHANGE, EXCHANGE_SWEEPS = 1, 2
EXCHANGE_ROUNDS = 3  # over all waveguides, at most
EXCHANGE_GAIN = 1e-3  # relative decrease of the smooth count for which a segment is exchanged
BEAM_LIMITS = cg.Limits(first_step=0.3, max_iterations=30, tolerance=1e-4)

NEAR = 0.95  # weakest score from which a set is finished by `ascend`
FINISH = (5, 7)  # log2 of the powers p
FINISH_LIMITS = AscentLimits(max_iterations=40, tolerance=1e-4, enough=1.0 + 1e-5, memory=8)
LAST = (5, 7, 8)  # log2 of the powers p of the last ascents of the polish
LAST_LIMITS = AscentLimits(max_iterations=100, tolerance=1e-5, enough=np.inf, memory=10)

KICKED = 1  # waveguides that a kick redraws
AHEAD = 50  # K over the number of devices that growing and racing add at a time; at least one is added
ACCEPT = 0  # value that a kick must gain for its result to replace the current design
GIVE_UP = 0.7  # weakest score below which a race skips its last power


@dataclass(frozen=True, eq=False)
class Problem:
    """What all chains of a search share."""

    scenario: Scenario  # weights scaled so that a score of 1 means the required margin
    margins: Real  # required score of each device
    space: Space
    across: bool

    @cached_property
    def priorities(self) -> Real:
        """v_k, scaled such that the largest is one."""
        return scaled_priorities(self.scenario.priorities)

    @cached_property
    def devices(self) -> Index:
        """Numbers of the devices with a priority above zero."""
        return np.flatnonzero(self.priorities > 0.0)

    @property
    def ahead(self) -> int:
        """Number of devices to add at a time."""
        return max(1, self.devices.size // AHEAD)

    @property
    def moves(self) -> Moves:
        """How antennas and beam are moved."""
        return Moves(self.across, BEAM_LIMITS, SWEEP_TOLERANCE)

    def effective(self, layout: Real) -> Complex:
        """sqrt(Gamma)/phi_k g_k, shape (M, K)."""
        channels = self.scenario.uplink.channels(layout)
        return aircomp.effective_channels(channels, self.scenario.weights, self.scenario.budget)

    def at(self, layout: Real, beam: Complex | None = None) -> Found:
        """A layout with a beam, or with the dominant eigenvector."""
        if beam is None:
            beam = dominant_eigenvector(self.effective(layout))
        return Found(layout, beam, exact_scores(self.scenario, self.space, layout, beam), self.priorities)


class Chain:
    """One start and its kicks."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        index: int,
        stop: Flag,
        note: Callable[[str, Found], None],
        start: Start | None = None,
    ) -> None:
        self.problem = problem
        self.seed = seed
        self.index = index
        self.stop = stop
        self.note = note
        self.start = start
        self.work = {"sweeps": 0, "places": 0, "ascent evaluations": 0}
        scenario = problem.scenario
        if start is not None:
            self.best = problem.at(start.layout, start.beam)
        elif index == 0:
            self.best = problem.at(scenario.uniform_layout())
        else:
            self.best = problem.at(scenario.random_layout(self.rng(0)))

    def rng(self, trial: int) -> np.random.Generator:
        """Random numbers of one kick, or of the start."""
        return stream(self.seed, Purpose.JOINT, self.index, trial)

    def keep(self, found: Found) -> None:
        """Store `found` if it ranks above the best so far."""
        if found.rank > self.best.rank:
            self.best = found

    def wanted(self, devices: Index) -> Wanted:
        """Pack some devices."""
        return wanted_of(self.problem.space, devices, np.ones(devices.size))

    def run(self, kicks: int, grow: bool) -> None:
        """Run all phases; `Stopped` is raised at the time limit, with the result so far in `best`."""
        self.note("start", self.best)
        current = self.annealed(self.best)
        if self.problem.scenario.selects_segments:
            current = self.annealed(self.exchanged(current))
        if self.start is not None:
            current = max(self.resumed(self.start), current, key=lambda one: one.rank)
        if grow:
            current = self.grown(current)
        self.note("first design", current)
        for number in range(1, kicks + 1):
            if self.best.selected.size == self.problem.devices.size:
                break
            before = self.best.value
            reached = self.annealed(self.kicked(current, number))
            if grow:
                reached = self.raced(reached, max(self.least, current.value))
            if reached.value >= current.value + ACCEPT:
                current = reached
            if self.best.value > before:
                self.note(f"kick {number}", self.best)

    def resumed(self, start: Start) -> Found:
        """The given layout with the best beam for it, found from the given beam if there is one."""
        effective = self.problem.effective(start.layout)
        if start.beam is None:
            beam = HrmcPlus().find(effective, self.problem.priorities, self.rng(0), discard).beam
        else:
            beam = regrow(effective, start.beam, self.problem.priorities)
        found = self.problem.at(start.layout, beam)
        self.keep(found)
        return found

    def descend(
        self, found: Found, wanted: Wanted, goal: Goal, sweeps: int, until: bool
    ) -> tuple[Found, Found]:
        """Sweep; the end, and the best on the way."""
        problem = self.problem
        result = descend(
            found.layout,
            found.beam,
            problem.space,
            wanted,
            goal,
            problem.moves,
            sweeps,
            until,
            problem.priorities,
            self.stop,
        )
        self.work["sweeps"] += result.sweeps
        self.work["places"] += result.tried
        if problem.space.field.factor is None:
            best = Found(result.best_layout, result.best_beam, result.best_scores, problem.priorities)
            end = Found(result.layout, result.beam, result.scores, problem.priorities)
        else:  # the scores of the descent are interpolated
            best = problem.at(result.best_layout, result.best_beam)
            end = problem.at(result.layout, result.beam)
        self.keep(best)
        if self.stop[0] != 0:
            raise Stopped
        return end, best

    def ascend(self, found: Found, wanted: Wanted, doublings: int, limits: AscentLimits) -> Found:
        """Raise the weakest score in all positions and the beam together; by sweeps if places are given."""
        if self.problem.space.places.shape[1] > 0:
            power = min(doublings, GROW[-1])
            return self.descend(found, wanted, Goal(power, 0.0), GROW_SWEEPS, False)[1]
        result = ascend(found.layout, found.beam, self.problem.space, wanted, doublings, limits, self.stop)
        self.work["ascent evaluations"] += result.evaluations
        reached = self.problem.at(result.layout, result.beam)
        self.keep(reached)
        if self.stop[0] != 0:
            raise Stopped
        return reached

    def annealed(self, found: Found) -> Found:
        """Minimise the smooth count over all devices at increasing powers; the best of the ends."""
        devices = self.problem.devices
        everyone = wanted_of(self.problem.space, devices, self.problem.priorities[devices])
        best = found
        for doublings in ANNEAL:
            found, _ = self.descend(found, everyone, Goal(doublings, 1.0), ANNEAL_SWEEPS, False)
            best = found if found.rank >= best.rank else best
        return best

    def exchanged(self, found: Found) -> Found:
        """Try other segments on one waveguide after the other, until the smooth count no longer decreases."""
        scenario, devices = self.problem.scenario, self.problem.devices
        segments = scenario.segments
        assert segments is not None
        everyone = wanted_of(self.problem.space, devices, self.problem.priorities[devices])
        lowest = found.smooth_count(2.0**EXCHANGE)
        for _ in range(EXCHANGE_ROUNDS):
            before = lowest
            for m, q in np.ndindex(len(found.layout), int(segments.parts)):
                if segments_at(segments, found.layout)[m, 0] == q:
                    continue
                layout = found.layout.copy()
                layout[m] = moved_to(scenario.receiver, segments, layout[m], m, q)
                if scenario.candidates is not None:
                    layout = scenario.candidates.nearest(layout, *scenario.spans(layout))
                trial = self.problem.at(layout, found.beam)
                trial, _ = self.descend(trial, everyone, Goal(EXCHANGE, 1.0), EXCHANGE_SWEEPS, False)
                value = trial.smooth_count(2.0**EXCHANGE)
                if value < lowest * (1.0 - EXCHANGE_GAIN):
                    found, lowest = trial, value
            if lowest == before:
                break
        return found

    def grown(self, found: Found) -> Found:
        """Add the best outsiders, until not even one can be added."""
        best = found
        ahead = self.problem.ahead
        while found.selected.size < self.problem.devices.size:
            devices = found.first(found.selected.size + ahead)
            trial, seen = self.added(found, devices)
            best = max(best, seen, key=lambda one: one.rank)
            for other in self.others(found, devices) if ahead == 1 else ():
                if trial.value > found.value:
                    break
                trial, seen = self.added(found, other)
                best = max(best, seen, key=lambda one: one.rank)
            if trial.value > found.value:
                found = trial
            elif ahead == 1:
                break
            else:
                ahead //= 2
        return max(best, found, key=lambda one: one.rank)

    def added(self, found: Found, devices: Index) -> tuple[Found, Found]:
        """Raise the weakest score of a set until the value grows; the end, and the best on the way."""
        wanted = self.wanted(devices)
        trial = best = found
        for doublings in GROW:
            trial, seen = self.descend(trial, wanted, Goal(doublings, 0.0), GROW_SWEEPS, True)
            best = max(best, seen, key=lambda one: one.rank)
            if trial.value > found.value:
                break
        if trial.value <= found.value:
            trial = self.finished(trial, devices, wanted)
        return trial, best

    def others(self, found: Found, devices: Index) -> list[Index]:
        """Sets to try if the selected devices and one outsider do not fit; none if priorities are equal.

        The set without the selected devices of lowest priority that together count less than the outsider,
        and the selected devices with the outsider of the largest score.
        """
        worth = self.problem.priorities
        inside = found.scores[devices] >= 1.0
        outsider = devices[~inside]
        order = devices[inside][np.argsort(worth[devices[inside]], kind="stable")]
        dropped = int((np.cumsum(worth[order]) < worth[outsider].sum()).sum())
        sets = [np.setdiff1d(devices, order[:dropped])] if dropped else []
        outside = found.order[found.selected.size :]
        nearest = outside[np.argsort(-found.scores[outside], kind="stable")[:1]]
        if not np.array_equal(nearest, outsider):
            sets.append(np.sort(np.concatenate([found.selected, nearest])))
        return sets

    @property
    def least(self) -> float:
        """The lowest priority above zero."""
        return float(self.problem.priorities[self.problem.devices].min())

    def finished(self, found: Found, devices: Index, wanted: Wanted) -> Found:
        """If a set nearly fits, raise its weakest score in all positions and the beam together."""
        for doublings in FINISH if found.weakest(devices) >= NEAR else ():
            found = self.ascend(found, wanted, doublings, FINISH_LIMITS)
            weakest = found.weakest(devices)
            if weakest >= 1.0 or weakest < NEAR + 0.01:
                break
        return found

    def kicked(self, found: Found, number: int) -> Found:
        """Redraw the positions on some waveguides at random; the beam stays."""
        random = self.rng(number)
        layout = found.layout.copy()
        picked = random.permutation(len(layout))[:KICKED]
        layout[picked] = self.problem.scenario.random_layout(random)[picked]
        return self.problem.at(layout, found.beam)

    def raced(self, found: Found, target: float) -> Found:
        """A value of at least `target`, or give up soon."""
        best = found
        worth = self.problem.priorities
        devices = found.first(found.number_above(target) + self.problem.ahead - 1)
        sweeps = GROW_SWEEPS
        while True:
            wanted = self.wanted(devices)
            for doublings in GROW:
                if doublings != GROW[0]:
                    weakest = found.weakest(devices)
                    if weakest >= 1.0 or (doublings == GROW[-1] and weakest < GIVE_UP):
                        break
                found, seen = self.descend(found, wanted, Goal(doublings, 0.0), sweeps, True)
                best = max(best, seen, key=lambda one: one.rank)
                sweeps = GROW_SWEEPS
            if found.weakest(devices) < 1.0:
                found = self.finished(found, devices, wanted)
                best = max(best, found, key=lambda one: one.rank)
            if best.value >= target:
                return self.grown(best)
            order = np.argsort(worth[devices] * found.scores[devices])
            left = worth[devices].sum() - np.cumsum(worth[devices][order])
            spare = int((left >= target).sum())  # devices that need not be in the set
            if spare == 0:
                return best
            devices = np.delete(devices, order[: (spare + 1) // 2])
            sweeps = 1  # after devices were dropped

    def polish(self) -> None:
        """Raise the weakest score of the devices selected in the end."""
        found = self.best
        devices = found.selected
        if devices.size == 0:
            devices = found.order[:1]
        wanted = self.wanted(devices)
        for doublings in POLISH:
            found, _ = self.descend(found, wanted, Goal(doublings, 0.0), POLISH_SWEEPS, False)
        found = self.best
        for doublings in LAST:
            found = self.ascend(found, wanted, doublings, LAST_LIMITS)
        if self.problem.space.field.factor is not None:
            # So far beams were found with interpolated factors.
            effective = self.problem.effective(self.best.layout)
            beam = regrow(effective, self.best.beam, self.problem.priorities)
            self.keep(self.problem.at(self.best.layout, beam))
        self.note("polish", self.best)
