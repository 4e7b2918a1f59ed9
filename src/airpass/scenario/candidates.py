"""Antennas at given places only, `channel.candidates_m`."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.numbers import is_list
from airpass.core.text import shown
from airpass.core.types import Index, Real
from airpass.scenario.receiver import ROUNDING, Receiver

KEY = "channel.candidates_m"
SHORTEST_STEP_M = 1e-4


@dataclass(frozen=True, eq=False)
class Candidates:
    """The places of a receiver, each for at most one antenna."""

    places: tuple[Real, ...]  # of every waveguide, in rising order, metres
    # Smallest distance of antennas: the minimum gap less rounding, or half a step if that is more, so that no
    # two antennas have the same place.
    gap_m: float
    key: str = KEY  # of a scenario, that gives the places

    def most(self, places: Real) -> int:
        """How many antennas some places suffice for.

        Parameters
        ----------
        places
            Metres, in rising order.

        Returns
        -------
        int
            The largest number with the minimum gap.
        """
        chosen, last = 0, -np.inf
        for place in places:
            if place - last >= self.gap_m:
                chosen, last = chosen + 1, place
        return chosen

    def nearest(self, layout: Real, low: Real | None = None, high: Real | None = None) -> Real:
        """The feasible choice of places with the smallest sum of distances to the antennas of a layout.

        Parameters
        ----------
        layout
            Positions in metres, in rising order, shape (M, N).
        low, high
            Where places must be, metres, shape (M,); anywhere if None.

        Returns
        -------
        Real
            Places in metres, shape (M, N).
        """
        result = np.empty(layout.shape)
        for m, given in enumerate(self.places):
            row = given
            if low is not None and high is not None:
                beyond = ROUNDING * (high[m] - low[m])
                row = given[(given >= low[m] - beyond) & (given <= high[m] + beyond)]
            # Last place before which the previous antenna may be, counted from 1.
            before = np.searchsorted(row, row - self.gap_m, side="right")
            best = np.zeros(row.size + 1)  # cost of the antennas so far, within the first places
            taken = np.empty((layout.shape[1], row.size + 1), np.int64)
            for n in range(layout.shape[1]):
                cost = np.abs(row - layout[m, n]) + (best[before] if n else 0.0)
                lowest = np.minimum.accumulate(cost)
                taken[n, 1:] = np.maximum.accumulate(np.where(cost == lowest, np.arange(row.size), 0))
                best = np.concatenate([[np.inf], lowest])
            end = row.size
            for n in range(layout.shape[1] - 1, -1, -1):
                chosen = taken[n, end]
                result[m, n] = row[chosen]
                end = before[chosen]
        return result

    def check(self, layout: Real, lengths: Real) -> None:
        """Refuse antennas that are not at the places, or at one together.

        Parameters
        ----------
        layout
            Positions in metres, in rising order, shape (M, N).
        lengths
            L_m in metres.
        """
        for m, (positions, places) in enumerate(zip(layout, self.places, strict=True)):
            nearest = places[np.abs(places[:, None] - positions).argmin(axis=0)]
            away = np.abs(nearest - positions) > ROUNDING * lengths[m]
            for n in np.flatnonzero(away)[:1]:
                raise InvalidInput(
                    f"layout[{m}][{n}] = {positions[n]:g}: is not a place of {self.key}; the nearest is "
                    f"{nearest[n]:g} m"
                )
            if (np.diff(nearest) <= 0.0).any():
                raise InvalidInput(f"layout[{m}] has two antennas at one place")


def checked_candidates(given: Any) -> Any:
    """Check a value of `candidates_m`, as far as it does not depend on the receiver.

    Parameters
    ----------
    given
        A step in metres, a list of places for all waveguides, a list of lists, one per waveguide, or None.

    Returns
    -------
    Any
        The step as a float, lists as sorted tuples.
    """
    if given is None:
        return None
    if isinstance(given, int | float | np.number) and given is not True and given is not False:
        return checks.at_least(KEY, given, SHORTEST_STEP_M)
    if not is_list(given) or not len(given):
        raise InvalidInput(
            f"{KEY} = {shown(given)}: must be a step in metres, a list of numbers, or a list of lists, one "
            "per waveguide"
        )
    nested = [is_list(item) for item in given]
    if not any(nested):
        return tuple(sorted({checks.number(f"{KEY}[{i}]", item) for i, item in enumerate(given)}))
    if not all(nested):
        raise InvalidInput(f"{KEY} has numbers and lists: must be either, with one list per waveguide")
    return tuple(
        tuple(sorted({checks.number(f"{KEY}[{m}]", item) for item in row})) for m, row in enumerate(given)
    )


@lru_cache(maxsize=16)
def candidates_on(receiver: Receiver, given: Any) -> Candidates | None:
    """The places of a receiver.

    Parameters
    ----------
    receiver
        The receiver.
    given
        A checked value of `candidates_m`.

    Returns
    -------
    Candidates | None
        The places; None if antennas can be anywhere. `InvalidInput` is raised if they do not suffice for N
        antennas.
    """
    return None if given is None else candidates_of(receiver, rows_on(receiver, given), KEY)


def candidates_of(receiver: Receiver, rows: tuple[Real, ...], key: str) -> Candidates:
    """The places of a receiver, given one by one.

    Parameters
    ----------
    receiver
        The receiver.
    rows
        Places of every waveguide in metres, in rising order.
    key
        Key of a scenario, that gives them, for messages.

    Returns
    -------
    Candidates
        The places. `InvalidInput` is raised if they do not suffice for N antennas.
    """
    steps = [np.diff(row).min() for row in rows if row.size > 1]
    half = 0.5 * float(min(steps, default=0.0))
    gap = max(receiver.min_gap_m - 0.5 * ROUNDING * float(receiver.lengths.min()), half)
    found = Candidates(rows, gap, key)
    for m, (row, length) in enumerate(zip(rows, receiver.lengths, strict=True)):
        if row.size and not (row[0] >= 0.0 and row[-1] <= length * (1.0 + ROUNDING)):
            raise InvalidInput(
                f"{key}: waveguide {m} has places from {row[0]:g} to {row[-1]:g} m: must be within 0 and "
                f"{length:g} m"
            )
        chosen = found.most(row)
        if chosen < receiver.antennas:
            raise InvalidInput(
                f"{key}: waveguide {m} has places for {chosen} antennas {receiver.min_gap_m:g} m apart: must "
                f"be at least receiver.antennas = {receiver.antennas}"
            )
    return found


def rows_on(receiver: Receiver, given: Any) -> tuple[Real, ...]:
    """The places of every waveguide.

    Parameters
    ----------
    receiver
        The receiver.
    given
        A checked value of `candidates_m`, not None.

    Returns
    -------
    tuple[Real, ...]
        Places in metres, in rising order.
    """
    if isinstance(given, float):
        counts = np.floor(receiver.lengths / given * (1.0 + ROUNDING)).astype(int) + 1
        return tuple(
            np.minimum(np.arange(n) * given, length)
            for n, length in zip(counts, receiver.lengths, strict=True)
        )
    if not isinstance(given[0], tuple):
        return tuple(np.array(given, dtype=np.float64) for _ in range(receiver.waveguides))
    if len(given) != receiver.waveguides:
        raise InvalidInput(
            f"{KEY} has {len(given)} entries: must be a list of numbers, or a list with one list per "
            f"waveguide (receiver.waveguides = {receiver.waveguides})"
        )
    return tuple(np.array(row, dtype=np.float64) for row in given)


def search_places(receiver: Receiver, candidates: Candidates | None) -> tuple[Real, Index, float]:
    """Places and gap as compiled searches take them.

    Parameters
    ----------
    receiver
        The receiver.
    candidates
        Its places; None if antennas can be anywhere.

    Returns
    -------
    places : Real
        Metres, shape (M, P), shorter rows filled up with their last place; P = 0 if antennas can be anywhere.
    counts : Index
        Number of places on every waveguide, shape (M,).
    gap_m : float
        Smallest distance of antennas on a waveguide, metres.
    """
    if candidates is None:
        empty = np.empty((receiver.waveguides, 0))
        return empty, np.zeros(receiver.waveguides, np.int64), float(receiver.min_gap_m)
    rows = candidates.places
    longest = max(row.size for row in rows)
    places = np.array([np.pad(row, (0, longest - row.size), mode="edge") for row in rows])
    return places, np.array([row.size for row in rows], np.int64), candidates.gap_m
