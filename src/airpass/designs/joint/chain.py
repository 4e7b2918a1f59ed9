"""One chain of `airpass-plus`: a first design, and kicks that improve it.

    anneal   minimise the smooth count over all devices for p = 1, 2, 4; larger p is closer to the count
    grow     add the best unselected device to the selected ones, and raise the weakest score of this set with
             p = 2, 8, 32; if all meet the threshold, repeat
    finish   if a set nearly fits, raise its weakest score in all positions and the beam together
    kick     redraw the positions on one waveguide at random, and anneal
    race     after a kick, want one device more than the chain has at once, and drop the weakest if they do
             not fit; give up as soon as fewer than the chain has are left
    polish   raise the weakest score of the devices selected in the end

A result of a race with as many devices as before replaces the current design, so that the chain moves on
among designs with equally many devices.
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
from airpass.designs.joint.space import Space, Wanted, scores_at, wanted_of
from airpass.designs.joint.sweep import Goal, Moves, descend
from airpass.optim import conjugate_gradient as cg
from airpass.optim.ranking import rank
from airpass.scenario import Scenario
from airpass.selection.base import dominant_eigenvector
from airpass.selection.hrmc_plus import HrmcPlus, regrow

# log2 of the powers p of each phase, and the largest number of sweeps over all antennas for each.
ANNEAL, ANNEAL_SWEEPS = (0, 1, 2), 10
GROW, GROW_SWEEPS = (1, 3, 5), 2
POLISH, POLISH_SWEEPS = (3, 5), 3
SWEEP_TOLERANCE = 1e-2  # relative decrease of F in a sweep that ends a descent
BEAM_LIMITS = cg.Limits(first_step=0.3, max_iterations=30, tolerance=1e-4)

NEAR = 0.95  # weakest score from which a set is finished by `ascend`
FINISH = (5, 7)  # log2 of the powers p
FINISH_LIMITS = AscentLimits(max_iterations=40, tolerance=1e-4, enough=1.0 + 1e-5, memory=8)
LAST = (5, 7, 8)  # log2 of the powers p of the last ascents of the polish
LAST_LIMITS = AscentLimits(max_iterations=100, tolerance=1e-5, enough=np.inf, memory=10)

KICKED = 1  # waveguides that a kick redraws
AHEAD = 50  # K over the number of devices that growing and racing add at a time; at least one is added
ACCEPT = 0  # devices that a kick must gain for its result to replace the current design
GIVE_UP = 0.7  # weakest score below which a race skips its last power


@dataclass(frozen=True, eq=False)
class Problem:
    """What all chains of a search share."""

    scenario: Scenario  # weights scaled so that a score of 1 means the required margin
    margins: Real  # required score of each device
    space: Space
    across: bool

    @property
    def count(self) -> int:
        """K."""
        return self.margins.size

    @property
    def ahead(self) -> int:
        """Number of devices to add at a time."""
        return max(1, self.count // AHEAD)

    @property
    def moves(self) -> Moves:
        """How antennas and beam are moved."""
        return Moves(self.across, BEAM_LIMITS, SWEEP_TOLERANCE)

    def effective(self, layout: Real) -> Complex:
        """sqrt(Gamma)/phi_k g_k, shape (M, K)."""
        channels = self.scenario.uplink.channels(layout)
        return aircomp.effective_channels(channels, self.scenario.weights, self.scenario.budget)

    def at(self, layout: Real, beam: Complex | None = None) -> "Found":
        """A layout with a beam, or with the dominant eigenvector."""
        if beam is None:
            beam = dominant_eigenvector(self.effective(layout))
        return Found(layout, beam, scores_at(self.space, layout, beam))


@dataclass(frozen=True, eq=False)
class Found:
    """A layout, a beam, and the scores they give, in units of the margins."""

    layout: Real
    beam: Complex
    scores: Real

    @cached_property
    def rank(self) -> tuple[int, float]:
        """Number of selected devices, and the weakest score among them."""
        return rank(self.scores)

    @property
    def selected(self) -> int:
        """Number of selected devices."""
        return self.rank[0]

    def strongest(self, count: int) -> Index:
        """The devices with the largest scores, by number."""
        return np.sort(np.argsort(-self.scores, kind="stable")[:count])

    def weakest(self, devices: Index) -> float:
        """The smallest score of some devices."""
        return float(self.scores[devices].min())


class Stopped(Exception):
    """The time limit has passed, or the search was cancelled."""


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
        if self.start is not None:
            current = max(self.resumed(self.start), current, key=lambda one: one.rank)
        if grow:
            current = self.grown(current)
        self.note("first design", current)
        for number in range(1, kicks + 1):
            if self.best.selected == self.problem.count:
                break
            before = self.best.selected
            reached = self.annealed(self.kicked(current, number))
            if grow:
                reached = self.raced(reached, max(1, current.selected))
            if reached.selected >= current.selected + ACCEPT:
                current = reached
            if self.best.selected > before:
                self.note(f"kick {number}", self.best)

    def resumed(self, start: Start) -> Found:
        """The given layout with the best beam for it, found from the given beam if there is one."""
        effective = self.problem.effective(start.layout)
        if start.beam is None:
            beam = HrmcPlus().search(effective, self.rng(0), discard).beam
        else:
            beam = regrow(effective, start.beam)
        found = self.problem.at(start.layout, beam)
        self.keep(found)
        return found

    def descend(
        self, found: Found, wanted: Wanted, goal: Goal, sweeps: int, until: bool
    ) -> tuple[Found, Found]:
        """Sweep; the end, and the best on the way."""
        problem = self.problem
        result = descend(
            found.layout, found.beam, problem.space, wanted, goal, problem.moves, sweeps, until, self.stop
        )
        self.work["sweeps"] += result.sweeps
        self.work["places"] += result.tried
        best = Found(result.best_layout, result.best_beam, result.best_scores)
        self.keep(best)
        if self.stop[0] != 0:
            raise Stopped
        return Found(result.layout, result.beam, result.scores), best

    def ascend(self, found: Found, wanted: Wanted, doublings: int, limits: AscentLimits) -> Found:
        """Raise the weakest score in all positions and the beam together."""
        result = ascend(found.layout, found.beam, self.problem.space, wanted, doublings, limits, self.stop)
        self.work["ascent evaluations"] += result.evaluations
        reached = self.problem.at(result.layout, result.beam)
        self.keep(reached)
        if self.stop[0] != 0:
            raise Stopped
        return reached

    def annealed(self, found: Found) -> Found:
        """Minimise the smooth count over all devices at increasing powers; the best of the ends."""
        everyone = self.wanted(np.arange(self.problem.count))
        best = found
        for doublings in ANNEAL:
            found, _ = self.descend(found, everyone, Goal(doublings, 1.0), ANNEAL_SWEEPS, False)
            best = found if found.rank >= best.rank else best
        return best

    def grown(self, found: Found) -> Found:
        """Add the best outsiders, until not even one can be added."""
        best = found
        ahead = self.problem.ahead
        while found.selected < self.problem.count:
            devices = found.strongest(found.selected + ahead)
            wanted = self.wanted(devices)
            trial = found
            for doublings in GROW:
                trial, seen = self.descend(trial, wanted, Goal(doublings, 0.0), GROW_SWEEPS, True)
                best = max(best, seen, key=lambda one: one.rank)
                if trial.selected > found.selected:
                    break
            if trial.selected <= found.selected:
                trial = self.finished(trial, devices, wanted)
            if trial.selected > found.selected:
                found = trial
            elif ahead == 1:
                break
            else:
                ahead //= 2
        return max(best, found, key=lambda one: one.rank)

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

    def raced(self, found: Found, target: int) -> Found:
        """At least `target` devices, or give up soon."""
        best = found
        devices = found.strongest(target + self.problem.ahead)
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
            if best.selected >= target:
                return self.grown(best)
            if devices.size <= target:
                return best
            dropped = (devices.size - target + 1) // 2
            devices = np.delete(devices, np.argsort(found.scores[devices])[:dropped])
            sweeps = 1  # after devices were dropped

    def polish(self) -> None:
        """Raise the weakest score of the devices selected in the end."""
        found = self.best
        devices = np.flatnonzero(found.scores >= 1.0)
        if devices.size == 0:
            devices = np.array([np.argmax(found.scores)])
        wanted = self.wanted(devices)
        for doublings in POLISH:
            found, _ = self.descend(found, wanted, Goal(doublings, 0.0), POLISH_SWEEPS, False)
        found = self.best
        for doublings in LAST:
            found = self.ascend(found, wanted, doublings, LAST_LIMITS)
        self.note("polish", self.best)
