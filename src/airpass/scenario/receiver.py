"""The waveguides and their antennas."""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Real

ROUNDING = 1e-9  # relative tolerance when lengths are compared


@dataclass(frozen=True)
class Receiver:
    """The waveguides and their antennas, eqs. (2)-(8)."""

    waveguides: int = 5  # M; figures 2, 3, 7, 8
    antennas: int = 5  # N per waveguide; figures 2, 3, 6, 8
    length_m: float | tuple[float, ...] = 40.0  # L_m, one value or one per waveguide; section VI-A
    spacing_m: float = 2.0  # d between waveguides; section VI-A
    height_m: float = 4.0  # a; section VI-A
    min_gap_m: float = 0.95  # smallest distance between neighbours on a waveguide; section VI-A

    def __post_init__(self) -> None:
        checks.keep(
            self,
            waveguides=checks.whole("receiver.waveguides", self.waveguides, 1),
            antennas=checks.whole("receiver.antennas", self.antennas, 1),
            spacing_m=checks.positive("receiver.spacing_m", self.spacing_m),
            height_m=checks.positive("receiver.height_m", self.height_m),
            min_gap_m=checks.at_least("receiver.min_gap_m", self.min_gap_m, 0.0),
        )
        if isinstance(self.length_m, tuple | list | np.ndarray):
            lengths = tuple(checks.positive("receiver.length_m", value) for value in self.length_m)
            if len(lengths) != self.waveguides:
                raise InvalidInput(
                    f"receiver.length_m has {len(lengths)} entries: must be one number, "
                    f"or one per waveguide ({self.waveguides})"
                )
            checks.keep(self, length_m=lengths)
        else:
            checks.keep(self, length_m=checks.positive("receiver.length_m", self.length_m))
        shortest = float(self.lengths.min())
        needed = (self.antennas - 1) * self.min_gap_m
        if shortest < needed * (1.0 - ROUNDING):
            raise InvalidInput(
                f"receiver.length_m = {shortest:g}: {self.antennas} antennas {self.min_gap_m:g} m apart "
                f"need at least {needed:g} m (free length T_m = L_m - (N-1) min_gap_m must be >= 0)"
            )

    @property
    def lengths(self) -> Real:
        """L_m of every waveguide, in metres."""
        return np.broadcast_to(np.asarray(self.length_m, dtype=np.float64), (self.waveguides,)).copy()

    @property
    def free_length(self) -> Real:
        """T_m = L_m - (N-1) min_gap of every waveguide, eq. (70), in metres."""
        return np.maximum(self.lengths - (self.antennas - 1) * self.min_gap_m, 0.0)

    @property
    def waveguide_y(self) -> Real:
        """(m-1) d, in metres, eq. (2)."""
        return np.arange(self.waveguides, dtype=np.float64) * self.spacing_m

    @property
    def centre(self) -> Real:
        """Midpoint of the structure, [x, y, z] in metres."""
        return np.array([self.lengths.max() / 2.0, float(self.waveguide_y.mean()), self.height_m])
