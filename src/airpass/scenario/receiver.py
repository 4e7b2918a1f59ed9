"""The waveguides and their antennas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.numbers import is_list
from airpass.core.text import shown
from airpass.core.types import Real

ROUNDING = 1e-9  # relative tolerance when lengths are compared
# Side of its feed to which a waveguide extends: 1 right, -1 left, 0 both; and the feed's position over L_m.
FEEDS = {"left": (1.0, 0.0), "right": (-1.0, 1.0), "centre": (0.0, 0.5)}

T = TypeVar("T")


@dataclass(frozen=True)
class Receiver:
    """The waveguides and their antennas: equations (2) to (8)."""

    waveguides: int = 5  # M; figures 2, 3, 7, 8
    antennas: int = 5  # N per waveguide; figures 2, 3, 6, 8
    length_m: float | tuple[float, ...] = 40.0  # L_m, one value or one per waveguide; section VI-A
    spacing_m: float = 2.0  # d between waveguides; section VI-A
    height_m: float | tuple[float, ...] = 4.0  # a, one value or one per waveguide; section VI-A
    min_gap_m: float = 0.95  # smallest distance between neighbours on a waveguide; section VI-A
    waveguide_y_m: tuple[float, ...] | None = None  # y_m of every waveguide, instead of (m-1) d
    feed: str | tuple[str, ...] = "left"  # left, right or centre, one word or one per waveguide; section II

    def __post_init__(self) -> None:
        checks.keep(
            self,
            waveguides=checks.whole("receiver.waveguides", self.waveguides, 1),
            antennas=checks.whole("receiver.antennas", self.antennas, 1),
            spacing_m=checks.positive("receiver.spacing_m", self.spacing_m),
            min_gap_m=checks.at_least("receiver.min_gap_m", self.min_gap_m, 0.0),
        )
        memory.require(
            64.0 * self.waveguides * (1 + self.antennas),
            "layouts",
            "receiver.waveguides or receiver.antennas",
        )
        for name in ("length_m", "height_m"):
            checks.keep(self, **{name: self._each(name, checks.positive)})
        checks.keep(
            self, feed=self._each("feed", lambda label, value: checks.one_of(label, value, FEEDS), "word")
        )
        if self.waveguide_y_m is not None:
            if not is_list(self.waveguide_y_m):
                raise InvalidInput(
                    f"receiver.waveguide_y_m = {shown(self.waveguide_y_m)}: must be a list with one number "
                    f"per waveguide ({self.waveguides})"
                )
            checks.keep(self, waveguide_y_m=self._each("waveguide_y_m", checks.number))
        shortest = float(self.lengths.min())
        needed = (self.antennas - 1) * self.min_gap_m
        if shortest < needed * (1.0 - ROUNDING):
            raise InvalidInput(
                f"receiver.length_m = {shortest:g}: {self.antennas} antennas {self.min_gap_m:g} m apart "
                f"need at least {needed:g} m (free length T_m = L_m - (N-1) min_gap_m must be >= 0)"
            )

    def _each(self, name: str, check: Callable[[str, Any], T], noun: str = "number") -> T | tuple[T, ...]:
        """A checked value for all waveguides, or one for each."""
        label, given = f"receiver.{name}", getattr(self, name)
        if not is_list(given):
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
        return self.free_within(self.lengths)

    def free_within(self, lengths: Real) -> Real:
        """T_m if antennas have a part of every waveguide only.

        Parameters
        ----------
        lengths
            Lengths of the parts, metres, shape (M,).

        Returns
        -------
        Real
            Metres, shape (M,).
        """
        return np.maximum(lengths - (self.antennas - 1) * self.min_gap_m, 0.0)

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
