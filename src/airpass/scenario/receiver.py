"""The waveguides and their antennas."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Index, Real

ROUNDING = 1e-9  # relative tolerance when lengths are compared
SHORTEST_STEP_M = 1e-4  # between places
# Side of its feed to which a waveguide extends: 1 right, -1 left, 0 both; and the feed's position over L_m.
FEEDS = {"left": (1.0, 0.0), "right": (-1.0, 1.0), "centre": (0.0, 0.5)}

T = TypeVar("T")


@dataclass(frozen=True)
class Receiver:
    """The waveguides and their antennas, eqs. (2)-(8)."""

    waveguides: int = 5  # M; figures 2, 3, 7, 8
    antennas: int = 5  # N per waveguide; figures 2, 3, 6, 8
    length_m: float | tuple[float, ...] = 40.0  # L_m, one value or one per waveguide; section VI-A
    spacing_m: float = 2.0  # d between waveguides; section VI-A
    height_m: float | tuple[float, ...] = 4.0  # a, one value or one per waveguide; section VI-A
    min_gap_m: float = 0.95  # smallest distance between neighbours on a waveguide; section VI-A
    waveguide_y_m: tuple[float, ...] | None = None  # y_m of every waveguide, instead of (m-1) d
    feed: str | tuple[str, ...] = "left"  # left, right or centre, one word or one per waveguide; section II
    loss_db_per_m: float = 0.0  # of power along a waveguide; the paper has none
    # delta, if each antenna couples delta^2 of the power that passes it; None for the paper's equal shares
    split_delta: float | None = None
    # Where antennas can be: a list for all waveguides or one for each, or a step from x = 0 on; anywhere if
    # neither is given, as in the paper.
    places_m: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None
    place_step_m: float | None = None

    def __post_init__(self) -> None:
        checks.keep(
            self,
            waveguides=checks.whole("receiver.waveguides", self.waveguides, 1),
            antennas=checks.whole("receiver.antennas", self.antennas, 1),
            spacing_m=checks.positive("receiver.spacing_m", self.spacing_m),
            min_gap_m=checks.at_least("receiver.min_gap_m", self.min_gap_m, 0.0),
            loss_db_per_m=checks.at_least("receiver.loss_db_per_m", self.loss_db_per_m, 0.0),
        )
        for name in ("length_m", "height_m"):
            checks.keep(self, **{name: self._each(name, checks.positive)})
        checks.keep(
            self, feed=self._each("feed", lambda label, value: checks.one_of(label, value, FEEDS), "word")
        )
        if self.waveguide_y_m is not None:
            if not isinstance(self.waveguide_y_m, tuple | list | np.ndarray):
                raise InvalidInput(
                    f"receiver.waveguide_y_m = {self.waveguide_y_m!r}: must be a list with one number "
                    f"per waveguide ({self.waveguides})"
                )
            checks.keep(self, waveguide_y_m=self._each("waveguide_y_m", checks.number))
        checks.decibels(
            "receiver.loss_db_per_m times length_m", self.loss_db_per_m * float(self.lengths.max())
        )
        shortest = float(self.lengths.min())
        needed = (self.antennas - 1) * self.min_gap_m
        if shortest < needed * (1.0 - ROUNDING):
            raise InvalidInput(
                f"receiver.length_m = {shortest:g}: {self.antennas} antennas {self.min_gap_m:g} m apart "
                f"need at least {needed:g} m (free length T_m = L_m - (N-1) min_gap_m must be >= 0)"
            )
        if self.split_delta is not None:
            if checks.positive("receiver.split_delta", self.split_delta) > 1.0:
                raise InvalidInput(f"receiver.split_delta = {self.split_delta}: must be <= 1")
            if (self.feed_side == 0.0).any():
                raise InvalidInput(
                    "receiver.split_delta: antennas are counted from the feed, which must be left or right"
                )
        self._check_places()

    def _check_places(self) -> None:
        """Check `places_m` and `place_step_m`, and that the places suffice for N antennas."""
        if self.place_step_m is not None:
            if self.places_m is not None:
                raise InvalidInput("receiver.place_step_m cannot be combined with receiver.places_m")
            step = checks.at_least("receiver.place_step_m", self.place_step_m, SHORTEST_STEP_M)
            checks.keep(self, place_step_m=step)
        if self.places_m is not None:
            checks.keep(self, places_m=self._given_places(self.places_m))
        if self.places is None:
            return
        label = "receiver.places_m" if self.place_step_m is None else "receiver.place_step_m"
        for m, (row, length) in enumerate(zip(self.places, self.lengths, strict=True)):
            if row.size and not (row[0] >= 0.0 and row[-1] <= length * (1.0 + ROUNDING)):
                raise InvalidInput(
                    f"{label}: waveguide {m} has places from {row[0]:g} to {row[-1]:g} m: must be within "
                    f"0 and {length:g} m"
                )
            chosen, last = 0, -np.inf
            for place in row:
                if place - last >= self.place_gap_m:
                    chosen, last = chosen + 1, place
            if chosen < self.antennas:
                raise InvalidInput(
                    f"{label}: waveguide {m} has places for {chosen} antennas {self.min_gap_m:g} m apart: "
                    f"must be at least receiver.antennas = {self.antennas}"
                )

    def _given_places(self, given: Any) -> Any:
        if not isinstance(given, tuple | list | np.ndarray) or not len(given):
            raise InvalidInput(
                f"receiver.places_m = {given!r}: must be a list of numbers, or one per waveguide"
            )
        nested = [isinstance(item, tuple | list | np.ndarray) for item in given]
        if not any(nested):
            return tuple(
                sorted({checks.number(f"receiver.places_m[{i}]", item) for i, item in enumerate(given)})
            )
        if not all(nested) or len(given) != self.waveguides:
            raise InvalidInput(
                f"receiver.places_m has {len(given)} entries: must be a list of numbers, or a list with one "
                f"list per waveguide (receiver.waveguides = {self.waveguides})"
            )
        return tuple(
            tuple(sorted({checks.number(f"receiver.places_m[{m}]", item) for item in row}))
            for m, row in enumerate(given)
        )

    @cached_property
    def places(self) -> tuple[Real, ...] | None:
        """Where antennas can be on every waveguide, in rising order, metres; None if anywhere."""
        if self.place_step_m is not None:
            counts = np.floor(self.lengths / self.place_step_m * (1.0 + ROUNDING)).astype(int) + 1
            return tuple(
                np.minimum(np.arange(n) * self.place_step_m, length)
                for n, length in zip(counts, self.lengths, strict=True)
            )
        if self.places_m is None:
            return None
        rows = self.places_m if isinstance(self.places_m[0], tuple) else (self.places_m,) * self.waveguides
        return tuple(np.array(row, dtype=np.float64) for row in rows)

    @cached_property
    def place_gap_m(self) -> float:
        """Smallest distance of antennas at `places`: the minimum gap less rounding, or half a step if that is
        more, so that no two antennas have the same place."""
        assert self.places is not None
        steps = [np.diff(row).min() for row in self.places if row.size > 1]
        half = 0.5 * float(min(steps, default=0.0))
        return max(self.min_gap_m - 0.5 * ROUNDING * float(self.lengths.min()), half)

    def nearest_places(self, layout: Real) -> Real:
        """The feasible choice of places with the smallest sum of distances to the antennas of a layout.

        Parameters
        ----------
        layout
            Positions in metres, in rising order, shape (M, N).

        Returns
        -------
        Real
            Places in metres, shape (M, N).
        """
        assert self.places is not None
        result = np.empty(layout.shape)
        for m, row in enumerate(self.places):
            # Last place before which the previous antenna may be, counted from 1.
            before = np.searchsorted(row, row - self.place_gap_m, side="right")
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

    def _each(self, name: str, check: Callable[[str, Any], T], noun: str = "number") -> T | tuple[T, ...]:
        """A checked value for all waveguides, or one for each."""
        label, given = f"receiver.{name}", getattr(self, name)
        if not isinstance(given, tuple | list | np.ndarray):
            return check(label, given)
        if len(given) != self.waveguides:
            raise InvalidInput(
                f"{label} has {len(given)} entries: must be "
                f"{'a list' if name == 'waveguide_y_m' else f'one {noun}, or a list'} "
                f"with one {noun} per waveguide (receiver.waveguides = {self.waveguides})"
            )
        return tuple(check(f"{label}[{m}]", value) for m, value in enumerate(given))

    def _spread(self, values: Any) -> Real:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), (self.waveguides,)).copy()

    @property
    def lengths(self) -> Real:
        """L_m of every waveguide, in metres."""
        return self._spread(self.length_m)

    @property
    def heights(self) -> Real:
        """a_m of every waveguide, in metres."""
        return self._spread(self.height_m)

    @property
    def free_length(self) -> Real:
        """T_m = L_m - (N-1) min_gap of every waveguide, eq. (70), in metres."""
        return np.maximum(self.lengths - (self.antennas - 1) * self.min_gap_m, 0.0)

    @property
    def waveguide_y(self) -> Real:
        """y_m in metres; (m-1) d, eq. (2), if not given."""
        if self.waveguide_y_m is not None:
            return self._spread(self.waveguide_y_m)
        return np.arange(self.waveguides, dtype=np.float64) * self.spacing_m

    @property
    def feed_side(self) -> Real:
        """1 for waveguides fed from the left, -1 from the right, 0 in the centre."""
        words = [self.feed] if isinstance(self.feed, str) else self.feed
        return self._spread([FEEDS[word][0] for word in words])

    @property
    def feed_x(self) -> Real:
        """f_m, the x of every waveguide's feed, in metres."""
        words = [self.feed] if isinstance(self.feed, str) else self.feed
        return self.lengths * [FEEDS[word][1] for word in words]

    @property
    def centre(self) -> Real:
        """Midpoint of the structure, [x, y, z] in metres."""
        return np.array(
            [self.lengths.max() / 2.0, float(self.waveguide_y.mean()), float(np.mean(self.height_m))]
        )


def candidate_places(receiver: Receiver) -> tuple[Real, Index]:
    """The places of a receiver as an array.

    Parameters
    ----------
    receiver
        The receiver.

    Returns
    -------
    places : Real
        Metres, shape (M, P), shorter rows filled up with their last place; P = 0 if antennas can be anywhere.
    counts : Index
        Number of places on every waveguide, shape (M,).
    """
    rows = receiver.places
    if rows is None:
        return np.empty((receiver.waveguides, 0)), np.zeros(receiver.waveguides, np.int64)
    longest = max(row.size for row in rows)
    places = np.array([np.pad(row, (0, longest - row.size), mode="edge") for row in rows])
    return places, np.array([row.size for row in rows], np.int64)
