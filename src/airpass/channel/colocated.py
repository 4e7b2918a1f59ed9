"""Co-located baselines: uniform lines and near-square planes with one receive chain per antenna.

    g_{k,i} = xi gamma_k exp(-j kappa D_{k,i})/D_{k,i}

This is the pinching-antenna term, eq. (64), with N = 1 and no propagation in a waveguide. Factors of channel
models multiply it, see `ChannelFactor.point_factor`. The paper gives the spacing (lambda/2) and the centre
(the midpoint of the structure) but not the axis. The default is x, the direction of the waveguides. A long
upright line through the midpoint reaches through ceiling or floor; an upright plane hangs below the ceiling.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airpass.channel.factor import ChannelFactor, Room, checked_values, product
from airpass.core import memory
from airpass.core.types import Complex, Real

AXES = ("x", "y", "z")
SHAPES = (*AXES, "xy", "xz", "yz")  # lines along an axis, and near-square planes


def line_array(centre: Real, antennas: int, spacing: float, axis: str = "x") -> Real:
    """Positions, shape (antennas, 3), of a uniform line of antennas centred at `centre`."""
    offsets = (np.arange(antennas) - (antennas - 1) / 2.0) * spacing
    positions = np.tile(np.asarray(centre, dtype=np.float64), (antennas, 1))
    positions[:, AXES.index(axis)] += offsets
    return positions


def plane_array(centre: Real, antennas: int, spacing: float, plane: str) -> Real:
    """Positions, shape (antennas, 3), of a near-square grid in a plane.

    Parameters
    ----------
    centre
        Centre of the array, [x, y, z] in metres. An upright array hangs below it: its top row is there.
    antennas
        Number of antennas. The grid has ceil(sqrt(antennas)) columns; the last row may be shorter.
    spacing
        Distance of neighbours in metres.
    plane
        "xy", "xz" or "yz".

    Returns
    -------
    Real
        [x, y, z] of every antenna in metres.
    """
    columns = int(np.ceil(np.sqrt(antennas)))
    places = np.arange(antennas)
    across, down = places % columns, places // columns
    first, second = (AXES.index(axis) for axis in plane)
    positions = np.tile(np.asarray(centre, dtype=np.float64), (antennas, 1))
    positions[:, first] += (across - (columns - 1) / 2.0) * spacing
    if plane[1] == "z":
        positions[:, second] -= down * spacing
    else:
        positions[:, second] += (down - down.max() / 2.0) * spacing
    return positions


@dataclass(frozen=True, eq=False)
class ColocatedArray:
    """Antennas at fixed points. Lengths in metres."""

    positions: Real  # [x, y, z] of every antenna, shape (antennas, 3)
    device_x: Real  # x_k, shape (K,)
    device_y: Real  # y_k
    gain: Real  # gamma_k
    wavelength: float  # lambda
    path_gain: float  # xi
    device_z: Real | float = 0.0  # z_k, shape (K,) or one number
    factors: tuple[ChannelFactor, ...] = ()  # on the channels
    waveguides: Room | None = None  # the room whose waveguides the factors refer to; its devices are not used

    def channels(self) -> Complex:
        """G, shape (antennas, K)."""
        result = self._line_of_sight()
        if self.factors:
            room, points = self._room, self.positions
            each = [
                self._checked(one, one.point_factor(room, points), "point_factor") for one in self.factors
            ]
            result = result * product(each)
        return result

    def mean_powers(self) -> Real:
        """Mean of |g_{k,i}|^2 over what is drawn at random; shape (antennas, K)."""
        powers: Real = np.abs(self._line_of_sight()) ** 2
        for one in self.factors:
            mean = one.point_mean_power(self._room, self.positions)
            powers = powers * self._checked(one, mean, "point_mean_power").real
        return powers

    @property
    def _room(self) -> Room:
        """What the factors are called with."""
        assert self.waveguides is not None
        z = np.broadcast_to(np.asarray(self.device_z, dtype=np.float64), self.device_x.shape)
        return replace(self.waveguides, device_x=self.device_x, device_y=self.device_y, device_z=z)

    def _checked(self, one: ChannelFactor, values: Any, what: str) -> Complex:
        """What a model returned, as complex numbers of shape (antennas, K)."""
        return checked_values(one, values, what, (len(self.positions), self.device_x.size))

    def _line_of_sight(self) -> Complex:
        """G without factors."""
        needed = 80.0 * len(self.positions) * self.device_x.size
        memory.require(needed, "channels", "devices.count or receiver.antennas")
        # `response` is not used here: its sine and cosine differ from NumPy's in the last bit, and stored
        # results of array designs would change.
        dx = self.positions[:, 0:1] - self.device_x
        dy = self.positions[:, 1:2] - self.device_y
        dz = self.positions[:, 2:3] - self.device_z
        distance = np.sqrt(dx**2 + dy**2 + dz**2)
        turns = distance / self.wavelength
        phase = -2.0 * np.pi * (turns - np.rint(turns))
        result: Complex = self.path_gain * self.gain * np.exp(1j * phase) / distance
        return result
