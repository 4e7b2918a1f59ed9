"""`schedule`: a book of designs that serve the devices by turns.

One design serves a part of the devices. Amplitudes add up over turns (`airpass.designs.book`), so that the
others can be served over several turns, with a part of their weight in each. In training, round r = 1, 2, ...
uses design (r - 1) mod T. The search for a book of T turns:

    together  one design for all devices with a part of their weights, the same for all and as large as is
              found (`airpass.designs.together`). In T >= 1/part turns it serves all of them.
    fill      turn t = 1, ..., T is designed for the weights phi_k (1 - A_k)/(T - t + 1), what device k still
              lacks, spread evenly over this turn and those to come
    improve   turn by turn, the design is continued for the weights phi_k (c - A_k + a_{k,t}): what the other
              turns leave for device k up to the level c. While devices are missing c = 1; then c is a little
              above the smallest A_k, so that the weakest device gets stronger and the error smaller.

Without a given number, T is decreased from that of `together` as long as a book that serves all is found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Index, Mask, Real
from airpass.designs.api import Design, design, design_method
from airpass.designs.base import DesignMethod, Step
from airpass.designs.book import Book, amplitudes, shared
from airpass.designs.bounds import score_bounds
from airpass.designs.colocated import ArrayDesign
from airpass.designs.plus import AirpassPlus
from airpass.designs.together import strongest, weakest_amplitude, with_scenario
from airpass.kernels.clock import Stopwatch, now
from airpass.optim.ranking import value_rank
from airpass.scenario import Scenario
from airpass.selection.hrmc_plus import HrmcPlus, regrow

AUTO = "auto"
MOVES = ("antennas", "beams")
MOST_TURNS = 32  # that are tried without a given number
RAISE = 1.02  # of the smallest A_k, which the next pass aims at
PASSES = 10  # of improvement
LEAST_NEED = 0.02  # part of its weight for which a device is designed at least
DEFAULT_METHOD = AirpassPlus(effort="fast")

# What devices need (part of their weights), design to continue from, number of the trial.
Serve = Callable[[Real, Design | None, int], Design]


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
        Number of designs, or "auto": as few as are found that serve all devices, up to 32.
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
        The designs, the devices that they serve, and the shares of the weights in every turn.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    scenario.require_one_carrier("schedule")
    checks.one_of("move", move, MOVES)
    if method is None and options is None:
        chosen: DesignMethod = DEFAULT_METHOD
    else:
        chosen = design_method(method, options=options)
    limit = checked_turns(turns, chosen, move)
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    with one_blas_thread():
        watch = Stopwatch()
        search = _Search(scenario, chosen, seed, report or discard)
        found = search.antennas(limit) if move == "antennas" else search.beams(limit)
    return Book(
        scenario=scenario,
        designs=shared(found, scenario.weights),
        move=move,
        least_turns=search.least_turns,
        seconds=watch.seconds,
        seed=seed,
    )


def checked_turns(turns: Any, method: DesignMethod, move: str = "antennas") -> int | None:
    """Refuse what `schedule` cannot do, before anything is computed.

    Parameters
    ----------
    turns
        Number of designs, or "auto".
    method
        Design method.
    move
        One of `MOVES`.

    Returns
    -------
    int or None
        Number of designs; None for "auto".
    """
    if isinstance(turns, str) and turns != AUTO:
        raise InvalidInput(f"turns = {turns!r}: must be a whole number >= 1, or auto")
    limit = None if turns == AUTO else checks.whole("turns", turns, 1)
    if not method.uses_priorities:
        raise InvalidInput(f"method: {method.name} cannot use priorities, which turns need; airpass-plus can")
    if move == "antennas" and isinstance(method, ArrayDesign):
        raise _nothing_moves(method)
    return limit


def _nothing_moves(method: DesignMethod) -> InvalidInput:
    return InvalidInput(f'move: {method.name} has no antennas that move; use move="beams"')


def least_turns(best_scores: Real) -> Index:
    """Turns without which devices cannot be served, as A_k <= T sqrt(z) for an upper bound z on the score.

    Parameters
    ----------
    best_scores
        Upper bounds on the scores, shape (K,).

    Returns
    -------
    Index
        Numbers of turns, shape (K,).
    """
    with np.errstate(divide="ignore"):
        number = np.ceil((1.0 - 1e-9) / np.sqrt(best_scores))
    return np.minimum(number, np.iinfo(np.int32).max).astype(np.intp)


class _Search:
    """The search for a book."""

    def __init__(self, scenario: Scenario, method: DesignMethod, seed: int, report: Report) -> None:
        self.scenario = scenario
        self.method = method
        self.seed = seed
        self.report = report
        self.first = design(scenario, method, seed=seed, report=report)
        if self.first.layout is None:
            bounds = np.linalg.norm(self.first.effective, axis=0) ** 2
        else:
            bounds = score_bounds(scenario)
        self.least_turns = least_turns(bounds)
        self.priorities: Real = np.where(self.least_turns > MOST_TURNS, 0.0, scenario.priorities)
        self.wanted: Mask = self.priorities > 0.0

    # Kinds of turns ----------------------------------------------------------------------

    def antennas(self, limit: int | None) -> list[Design]:
        """Layouts and beams."""
        if self.first.layout is None:
            raise _nothing_moves(self.method)
        return self.book(limit, self.serve, self.first)

    def beams(self, limit: int | None) -> list[Design]:
        """Beams on the layout, of several, on which the fewest of them serve the most devices."""
        bases = [self.first]
        if self.first.layout is not None and not self.is_whole([self.first]):
            together = self.together(self.serve, self.first)
            bases = [together, self.first, self.placed(self.scenario.uniform_layout())]
            if limit is not None:
                bases.append(self.part(1.0 / limit, self.serve))
        return min((self.book(limit, self.on(base), base) for base in bases), key=self.cost)

    def placed(self, layout: Real) -> Design:
        """The first design with other antennas."""
        return replace(self.first, layout=layout, channels=self.scenario.channels(layout))

    # Designs for a part of the weights -----------------------------------------------------

    def serve(self, needs: Real, start: Design | None, trial: int) -> Design:
        """A design for a part of the weights, perhaps continued from another."""
        given: dict[str, Any] = {}
        if start is not None:
            given["start_layout"] = start.layout
            if self.method.uses_start_beam:
                given["start_beam"] = start.beam
        seed = self.seed if trial == 0 else int(stream(self.seed, Purpose.TURNS, trial).integers(10**9))
        found = design(self.scaled(needs), self.method, seed=seed, **given)
        return with_scenario(found, self.scenario)

    def on(self, base: Design) -> Serve:
        """A function that finds beams for the antennas of a design."""

        def serve(needs: Real, start: Design | None, trial: int) -> Design:
            began = now()
            part, priorities = self.parts(needs)
            effective = base.effective / part
            rng = stream(self.seed, Purpose.SELECTION, trial)
            found = HrmcPlus().find(effective, priorities, rng, discard)
            beams = [found.beam]
            if start is not None:
                beams.append(regrow(effective, start.beam, priorities))
            scores = [aircomp.scores(beam, effective) for beam in beams]
            best = max(range(len(beams)), key=lambda place: value_rank(scores[place], priorities))
            seconds = now() - began
            changed = replace(base, beam=beams[best], status=found.status, work=found.work, seconds=seconds)
            step = Step(0, changed.selected_count, changed.weakest_score, seconds, True, "beam")
            return replace(changed, trace=(step,))

        return serve

    # Books -------------------------------------------------------------------------------

    def cost(self, book: Sequence[Design]) -> tuple[float, int, float]:
        """Priorities of the devices that are not served, number of designs, and the largest T/A_k."""
        total = amplitudes(book, self.scenario.weights).sum(axis=0)
        lost = float(self.priorities[total < 1.0].sum())
        served = total[(total >= 1.0) & self.wanted]
        return lost, len(book), len(book) / float(served.min()) if served.size else np.inf

    def is_whole(self, book: Sequence[Design]) -> bool:
        """Whether all devices are served that are wanted."""
        return self.cost(book)[0] == 0.0

    def part(self, part: float, serve: Serve, start: Design | None = None, trial: int = 0) -> Design:
        """A design for the same part of all weights."""
        return serve(np.full(self.wanted.size, part), start, trial)

    def together(self, serve: Serve, first: Design) -> Design:
        """One design in which the smallest amplitude of all wanted devices is as large as is found."""

        def serve_part(part: float, start: Design | None, trial: int) -> Design:
            return self.part(part, serve, start, trial)

        return strongest(serve_part, first, self.wanted, 1.0 / MOST_TURNS, self.report, enough=1.0)

    def book(self, limit: int | None, serve: Serve, first: Design) -> list[Design]:
        """A book with a given number of turns, or with as few as are found that serve all devices."""
        if not self.wanted.any() or (limit is None and self.is_whole([first])):
            return [first] * (limit or 1)
        one = self.together(serve, first)
        if limit is not None:
            equal = [[one] * limit, [self.part(1.0 / limit, serve)] * limit]
            return self.improved(min(*equal, self.filled(limit, serve), key=self.cost), serve)
        book = [one] * min(
            MOST_TURNS, ceil((1.0 - 1e-12) / max(weakest_amplitude(one, self.wanted), 1.0 / MOST_TURNS))
        )
        floor = max(1, int(self.least_turns[self.wanted].max()))
        while self.is_whole(book) and len(book) > floor:
            fewer = self.improved(self.filled(len(book) - 1, serve), serve)
            if not self.is_whole(fewer):
                break
            book = fewer
        return self.improved(book, serve)

    def filled(self, turns: int, serve: Serve) -> list[Design]:
        """Designs of which each is for an even part of what the devices still lack."""
        book: list[Design] = []
        total = np.zeros(self.wanted.size)
        for t in range(turns):
            self.report(f"turn {t + 1} of {turns}")
            found = serve((1.0 - total) / (turns - t), None, t)
            book.append(found)
            total = total + np.sqrt(found.scores)
        return book

    def improved(self, book: list[Design], serve: Serve) -> list[Design]:
        """The book after passes in which every turn is designed anew for what the others leave."""
        for _ in range(PASSES if len(book) > 1 else 0):
            before = self.cost(book)
            for t in range(len(book)):
                self.report(f"improving turn {t + 1} of {len(book)}")
                roots = amplitudes(book, self.scenario.weights)
                total = roots.sum(axis=0)
                level = 1.0 if not self.is_whole(book) else RAISE * float(total[self.wanted].min())
                found = serve(level - total + roots[t], book[t], 0)
                changed = [found if place == t else one for place, one in enumerate(book)]
                if self.cost(changed) < self.cost(book):
                    book = changed
            if self.cost(book) >= before:
                break
        return book

    def parts(self, needs: Real) -> tuple[Real, Real]:
        """Part of its weight that a device is designed for, and its priority: zero if it needs nothing."""
        priorities = np.where(needs > 0.0, self.priorities, 0.0)
        return np.maximum(needs, LEAST_NEED), priorities if priorities.any() else self.priorities

    def scaled(self, needs: Real) -> Scenario:
        """The scenario with a part of every weight. The threshold makes up for their normalisation."""
        part, priorities = self.parts(needs)
        changed = self.scenario.with_samples(self.scenario.devices.samples * part)
        scale = float(np.mean(self.scenario.weights * part / changed.weights))
        threshold = self.scenario.radio.mse_threshold / scale**2
        return changed.with_priorities(priorities).with_radio(mse_threshold=threshold)
