"""`schedule`: a book of designs that serve the devices by turns.

One design serves a part of the devices. Those that are left out can be served by a second or a third design,
which has another layout and beam, or, if antennas stay, another beam on the same layout. In training, round
r = 1, 2, ... uses design (r - 1) mod T.

    greedy   the next design has priority 1 for devices that are not covered yet, and low ones for the others
    reduce   drop a design and let the others, continued from where they are, take over its devices
    balance  design by design, maximise the sum of priorities 1/(r (r + 1)) of a device that r other designs
             have, and 1 of a device that no other has. This descends on sum_k 1/r_k over the covered devices,
             the variance that a device's absence adds to the aggregate, and keeps the coverage.

Weights over a cycle. Device k is in r_k of T designs with the sets S_t. In turn t the link has the weights
phi_k/r_k, k in S_t, and the received sum is divided by Phi/T; Phi is the sum of phi_k over the covered
devices. For updates Delta_k that do not change during the cycle, the average over the cycle is

    1/T sum_t T/Phi sum_{k in S_t} phi_k/r_k Delta_k  =  1/Phi sum_k phi_k Delta_k #{t : k in S_t}/r_k
                                                      =  sum_k phi_k Delta_k/Phi,

FedAvg's aggregate over all covered devices, as noise has zero mean. Smaller weights only raise the scores,
z_k = Gamma |m^H g_k|^2 r_k^2/phi_k^2, so that the error e_t of the sum stays within eps, and b_k within the
power limit. The noise of the averaged aggregate has the variance sum_t e_t/Phi^2 <= T eps/Phi^2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.results import Result
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Index, Mask, Real
from airpass.designs.api import Design, design, design_method
from airpass.designs.base import DesignMethod, Step
from airpass.designs.bounds import score_bounds
from airpass.designs.plus import AirpassPlus
from airpass.designs.shared_layout import shared_layout
from airpass.kernels.clock import Stopwatch, now
from airpass.optim.ranking import value_rank
from airpass.scenario import Scenario
from airpass.selection.hrmc_plus import HrmcPlus, regrow

AUTO = "auto"
MOVES = ("antennas", "beams")
RESTARTS = 3  # greedy books, of which the best is kept
DROPPED = 3  # designs that are tried to be dropped, those with the fewest devices of their own first
PASSES = 2  # of balancing
TARGETS = (1.0, 1.5, 2.5, 4.0)  # strengths ||h_k||^2 that layouts aim at, if the layout stays
DEFAULT_METHOD = AirpassPlus(effort="fast")

Serve = Callable[
    [Real, Design | None, int], Design
]  # priorities, design to continue from, number of the trial


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TurnLink(Link):
    """The link of one turn of a book: the design's, with weights phi_k/r_k.

    Parameters
    ----------
    design
        The design. The same devices send as in it.
    turn
        Its number in the book, from 1.
    cycle_divisor
        What received sums are divided by, for an unbiased average over a cycle.
    """

    design: Design
    turn: int
    cycle_divisor: float

    @cached_property
    def selected(self) -> Mask:
        """The devices of the design, although smaller weights might let others send as well."""
        return self.design.selected

    @property
    def divisor(self) -> float:
        """Phi/T."""
        return self.cycle_divisor


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Book(Result):
    """Designs that serve the devices by turns.

    Parameters
    ----------
    scenario
        Input of all designs.
    designs
        The designs, in the order of the turns.
    move
        "antennas", or "beams" if all designs have the same antennas.
    unservable
        Devices that provably no design can serve, shape (K,): for every layout and beam, or for every beam on
        an array without waveguides.
    seconds
        Duration of the search, without the compilation of kernels.
    seed
        Seed of the search.
    """

    scenario: Scenario
    designs: tuple[Design, ...]
    move: str
    unservable: Mask
    seconds: float
    seed: int

    @property
    def method(self) -> DesignMethod:
        """The method that found the designs."""
        return self.designs[0].method

    @property
    def turns(self) -> int:
        """Number of designs T."""
        return len(self.designs)

    @cached_property
    def covered(self) -> Index:
        """r_k, the number of designs that select device k; shape (K,)."""
        return coverage(self.designs)

    @property
    def missing(self) -> Mask:
        """Devices that are not served, but not proven to be unservable; shape (K,)."""
        missing: Mask = (self.covered == 0) & ~self.unservable & (self.scenario.priorities > 0.0)
        return missing

    @cached_property
    def links(self) -> tuple[TurnLink, ...]:
        """The link of every turn, with weights that make the average over a cycle unbiased."""
        weights = self.scenario.weights
        served = self.covered > 0
        divisor = float(weights[served].sum()) / self.turns if served.any() else 1.0
        return tuple(
            TurnLink(
                channels=one.channels,
                weights=weights / np.maximum(self.covered, 1),
                beam=one.beam,
                budget=one.budget,
                power=one.power,
                mse_threshold=one.mse_threshold,
                design=one,
                turn=number,
                cycle_divisor=divisor,
            )
            for number, one in enumerate(self.designs, start=1)
        )

    def __repr__(self) -> str:
        served = int((self.covered > 0).sum())
        return (
            f"Book({self.method.name}: {self.turns} turn{'' if self.turns == 1 else 's'}, {self.move} move, "
            f"{served} of {self.covered.size} devices served, {int(self.unservable.sum())} unservable)"
        )


def coverage(designs: Sequence[Design]) -> Index:
    """Number of designs that select each device, shape (K,)."""
    counts: Index = np.sum([one.selected for one in designs], axis=0, dtype=np.intp)
    return counts


def schedule(
    scenario: Scenario,
    turns: int | str = AUTO,
    move: str = "antennas",
    method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    report: Report | None = None,
) -> Book:
    """Find designs that serve the devices by turns.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights. Devices of priority zero need not be served.
    turns
        Number of designs, or "auto": as few as are found that serve every device that can be served.
    move
        "antennas": every design has a layout and a beam. "beams": all have the same layout, or array, and
        only beams change.
    method
        Design method that can use priorities, as for `design`; default `airpass-plus` with effort "fast". An
        array without waveguides can only be used with `move="beams"`.
    options
        Changes of the method's options.
    seed
        Seed of everything random. Default: the seed that the scenario's devices were drawn with, or 0.
    report
        Callback for progress messages.

    Returns
    -------
    Book
        The designs, how many of them serve each device, and the devices that cannot be served.
    """
    limit = None if turns == AUTO else _checked_turns(turns)
    checks.one_of("move", move, MOVES)
    if method is None and options is None:
        chosen: DesignMethod = DEFAULT_METHOD
    else:
        chosen = design_method(method, options=options)
    if not chosen.uses_priorities:
        raise InvalidInput(f"method: {chosen.name} cannot use priorities, which turns need; airpass-plus can")
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    with one_blas_thread():
        watch = Stopwatch()
        search = _Search(scenario, chosen, seed, report or discard)
        found = search.antennas(limit) if move == "antennas" else search.beams(limit)
    return Book(
        scenario=scenario,
        designs=tuple(replace(one, scenario=scenario) for one in found),
        move=move,
        unservable=search.unservable,
        seconds=watch.seconds,
        seed=seed,
    )


def _checked_turns(turns: int | str) -> int:
    if isinstance(turns, str):
        raise InvalidInput(f"turns = {turns!r}: must be a whole number >= 1, or auto")
    return checks.whole("turns", turns, 1)


class _Search:
    """The search for a book."""

    def __init__(self, scenario: Scenario, method: DesignMethod, seed: int, report: Report) -> None:
        self.scenario = scenario
        self.method = method
        self.seed = seed
        self.report = report
        self.first = design(scenario, method, seed=seed, report=report)
        if self.first.layout is None:
            self.unservable = np.linalg.norm(self.first.effective, axis=0) ** 2 < 1.0 - 1e-9
            self.unservable &= ~self.first.selected
        else:
            self.unservable = score_bounds(scenario) < 1.0
        self.worth = np.where(self.unservable, 0.0, scenario.priorities)
        self.low = 0.5 / scenario.devices.count  # all devices of low priority count less than one other

    # Kinds of turns ----------------------------------------------------------------------

    def antennas(self, limit: int | None) -> list[Design]:
        """Layouts and beams."""
        if self.first.layout is None:
            raise InvalidInput(f'move: {self.method.name} has no antennas that move; use move="beams"')
        books = [self.greedy(self.serve, limit, 0)]
        if limit is None:
            for restart in range(1, RESTARTS):
                if self.is_least(books[0]):
                    break
                books.append(self.greedy(self.serve, limit, restart))
        return self.improved(min(books, key=self.cost), self.serve, limit)

    def beams(self, limit: int | None) -> list[Design]:
        """Beams on the layout, of several, on which the fewest of them serve the most devices."""
        bases = [self.first]
        if self.first.layout is not None:
            uniform = self.scenario.uniform_layout()
            layouts = [uniform]
            for start in (uniform, self.first.layout):
                for target in TARGETS if self.worth.any() else ():
                    self.report(f"layout for all devices, target {target:g}")
                    layouts.append(shared_layout(self.scenario, self.worth, target, start))
            for layout in layouts:
                channels = self.scenario.channels(layout)
                bases.append(replace(self.first, layout=layout, channels=channels))
        books = [self.greedy(self.on(base), limit, 0) for base in bases]
        best = min(range(len(bases)), key=lambda place: self.cost(books[place]))
        return self.improved(books[best], self.on(bases[best]), limit)

    def serve(self, priorities: Real, start: Design | None, trial: int) -> Design:
        """A design for given priorities, perhaps continued from another."""
        given: dict[str, Any] = {}
        if start is not None:
            given["start_layout"] = start.layout
            if self.method.uses_start_beam:
                given["start_beam"] = start.beam
        seed = self.seed if trial == 0 else int(stream(self.seed, Purpose.TURNS, trial).integers(10**9))
        return design(self.scenario.with_priorities(priorities), self.method, seed=seed, **given)

    def on(self, base: Design) -> Serve:
        """A function that finds beams for the antennas of a design."""

        def serve(priorities: Real, start: Design | None, trial: int) -> Design:
            began = now()
            effective = base.effective
            rng = stream(self.seed, Purpose.SELECTION, trial)
            found = HrmcPlus().find(effective, priorities, rng, discard)
            beams: list[Complex] = [found.beam]
            if start is not None:
                beams.append(regrow(effective, start.beam, priorities))
            scores = [aircomp.scores(beam, effective) for beam in beams]
            best = max(range(len(beams)), key=lambda place: value_rank(scores[place], priorities))
            count = int(aircomp.selected(scores[best]).sum())
            weakest, seconds = value_rank(scores[best], priorities)[1], now() - began
            return replace(
                base,
                beam=beams[best],
                trace=(Step(0, count, weakest, seconds, True, "beam"),),
                status=found.status,
                work=found.work,
                seconds=seconds,
            )

        return serve

    # Books -------------------------------------------------------------------------------

    def priorities(self, others: Index) -> Real:
        """Priorities of a design if `others` counts the other designs that select each device."""
        shares = self.low / np.maximum(others * (others + 1), 1)
        values: Real = self.worth * np.where(others == 0, 1.0, shares)
        return values

    def missing(self, covered: Index) -> Mask:
        """Devices that are to be covered and are not."""
        missing: Mask = (covered == 0) & (self.worth > 0.0)
        return missing

    def cost(self, book: Sequence[Design]) -> tuple[float, int, float]:
        """Priorities of the devices that are not covered, number of designs, and sum of 1/r_k."""
        covered = coverage(book)
        served = covered[(covered > 0) & (self.worth > 0.0)]
        return float(self.worth[self.missing(covered)].sum()), len(book), float(np.sum(1.0 / served))

    def is_least(self, book: Sequence[Design]) -> bool:
        """Whether fewer designs of the size of the largest could not cover the devices that it covers."""
        largest = max(one.selected_count for one in book)
        covered = int((coverage(book) > 0).sum())
        return not self.missing(coverage(book)).any() and covered > (len(book) - 1) * largest

    def greedy(self, serve: Serve, limit: int | None, restart: int) -> list[Design]:
        """Designs that each cover as much as possible of what is left."""
        book: list[Design] = []
        covered = np.zeros(self.worth.size, np.intp)
        while limit is None or len(book) < limit:
            missing = self.missing(covered)
            if limit is None and book and not missing.any():
                break
            self.report(f"turn {len(book) + 1}, {int(missing.sum())} devices are left")
            trial = restart * 10_000 + len(book)
            found = serve(self.priorities(covered), None, trial) if self.worth.any() else self.first
            if missing.any() and not (found.selected & missing).any():
                found = self.alone(serve, missing, covered, trial) or found
            if limit is None and book and not (found.selected & missing).any():
                break  # those that are left are not served
            book.append(found)
            covered = covered + found.selected
        return book

    def alone(self, serve: Serve, missing: Mask, covered: Index, trial: int) -> Design | None:
        """A design that serves one of the missing devices, tried one by one; None if none is found."""
        for k in np.flatnonzero(missing):
            only = np.where(missing, 0.0, self.low * self.priorities(covered))
            only[k] = 1.0
            found = serve(only, None, trial)
            if found.selected[k]:
                return found
        return None

    def improved(self, book: list[Design], serve: Serve, limit: int | None) -> list[Design]:
        """Fewer designs if the number is free, and better shares."""
        while limit is None and len(book) > 1 and not self.is_least(book):
            fewer = self.reduced(book, serve)
            if fewer is None:
                break
            book = fewer
        for _ in range(PASSES if len(book) > 1 else 0):
            before = self.cost(book)
            book = self.balanced(book, serve)
            if self.cost(book) >= before:
                break
        return book

    def reduced(self, book: list[Design], serve: Serve) -> list[Design] | None:
        """The book with one design less and the same coverage; None if it is not found."""
        covered = coverage(book)
        wanted = float(self.worth[self.missing(covered)].sum())
        own = [int((one.selected & (covered == 1)).sum()) for one in book]
        for dropped in np.argsort(own, kind="stable")[:DROPPED]:
            self.report(f"{len(book)} turns, trying without turn {dropped + 1}")
            fewer = self.balanced([one for t, one in enumerate(book) if t != dropped], serve)
            if self.cost(fewer)[0] <= wanted:
                return fewer
        return None

    def balanced(self, book: list[Design], serve: Serve) -> list[Design]:
        """Every design once more, for what the others do not do; changes that do not improve are not kept."""
        book = list(book)
        for t in range(len(book)):
            self.report(f"balancing turn {t + 1} of {len(book)}")
            others = coverage(book) - book[t].selected
            found = serve(self.priorities(others), book[t], 0)
            changed = [found if place == t else one for place, one in enumerate(book)]
            if self.cost(changed) < self.cost(book):
                book = changed
        return book
