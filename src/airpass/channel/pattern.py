"""Radiation pattern of the antennas.

With the angle theta between the vertical below an antenna and the direction to a device, antennas have the
power gain cos(theta)^q, and zero upwards. As cos(theta) = (a_m - z_k)/D,

    f = ((a_m - z_k)/D)^(q/2),    df/dl = -(q/2) f (l - x_k)/D^2.

The gain straight down is one; multiply `radio.path_gain` by sqrt(2 (q + 1)) for an antenna without loss.
"""

from dataclasses import dataclass

import numpy as np

from airpass.channel.factor import ChannelFactor, Room
from airpass.core import checks
from airpass.core.types import Real

SHORTEST_M = 0.1  # over which the pattern is taken to vary at least


@dataclass(frozen=True)
class Pattern(ChannelFactor):
    """Antennas with the power gain cos^q of the angle from the vertical."""

    name = "pattern"
    passive = True

    exponent: float = 1.0  # q; 0 is the paper's model

    def __post_init__(self) -> None:
        checks.keep(self, exponent=checks.at_least("channel.exponent", self.exponent, 0.0))

    def factor(self, room: Room, places: Real) -> Real:
        """cos(theta)^(q/2), shape (M, P, K)."""
        _, dz = room.offsets()
        cosine = np.maximum(-dz / room.distance(places), 0.0)
        result: Real = cosine ** (0.5 * self.exponent)
        return result

    def factor_derivative(self, room: Room, places: Real) -> Real:
        """df/dl, shape (M, P, K)."""
        dx = places[:, :, None] - room.device_x
        slope: Real = -0.5 * self.exponent * self.factor(room, places) * dx / room.distance(places) ** 2
        return slope

    def varies_over_m(self, room: Room) -> float:
        """The smallest distance of a device to the line of a waveguide."""
        dy, dz = room.offsets()
        return max(SHORTEST_M, float(np.sqrt((dy**2 + dz**2).min())))
