"""The co-located baseline: a uniform linear array with one receive chain per antenna.

    g_{k,i} = xi gamma_k exp(-j kappa D_{k,i})/D_{k,i}

This is the pinching-antenna term, eq. (64), with N = 1 and no propagation in a
waveguide. The paper gives the spacing (lambda/2) and the centre (the midpoint of the
structure) but not the axis. The default is x, the direction of the waveguides.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core.types import Complex, Real

AXES = ("x", "y", "z")


def line_array(centre: Real, antennas: int, spacing: float, axis: str = "x") -> Real:
    """Positions, shape (antennas, 3), of a uniform line of antennas centred at `centre`."""
    offsets = (np.arange(antennas) - (antennas - 1) / 2.0) * spacing
    positions = np.tile(np.asarray(centre, dtype=np.float64), (antennas, 1))
    positions[:, AXES.index(axis)] += offsets
    return positions


@dataclass(frozen=True, eq=False)
class ColocatedArray:
    """Antennas at fixed points, devices on the floor. Lengths in metres."""

    positions: Real  # [x, y, z] of every antenna, shape (antennas, 3)
    device_x: Real  # x_k, shape (K,)
    device_y: Real  # y_k
    gain: Real  # gamma_k
    wavelength: float  # lambda
    path_gain: float  # xi

    def channels(self) -> Complex:
        """G, shape (antennas, K)."""
        # `response` is not used here: its sine and cosine differ from NumPy's in the last bit, and stored
        # results of array designs would change.
        dx = self.positions[:, 0:1] - self.device_x
        dy = self.positions[:, 1:2] - self.device_y
        distance = np.sqrt(dx**2 + dy**2 + self.positions[:, 2:3] ** 2)
        turns = distance / self.wavelength
        phase = -2.0 * np.pi * (turns - np.rint(turns))
        result: Complex = self.path_gain * self.gain * np.exp(1j * phase) / distance
        return result
