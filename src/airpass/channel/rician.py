"""Rician fading: the line of sight and scattered waves.

Each device sends S plane waves to each waveguide over the scatterers of the room, with phases phi and
direction cosines u along the waveguide, drawn uniformly from the seed. With the Rice factor K,

    f    = sqrt(K/(K+1)) + sqrt(1/(K+1)) w(l) exp(j kappa D),
    w(l) = sum_s exp(j (phi_s + kappa u_s l))/sqrt(S).

exp(j kappa D) removes the phase of the free path, which scattered waves do not have. The mean of |w|^2 is
one, so that the mean power is that of the line of sight, and the scatter has 1/(K+1) of it. The derivative of
the second term is j kappa (dD/dl + u_s) times its summands.

Antennas without waveguides, at points r, receive S plane waves of each device with unit vectors n_s that are
uniform on the sphere,

    w(r) = sum_s exp(j (phi_s + kappa n_s . r))/sqrt(S),

the same waves for all antennas, so that they are coherent over an array. A component of n_s is uniform
in [-1, 1]: along any line the waves are distributed as those of a waveguide. Their phases are
uniform and independent, so that the mean of |w|^2 is one at every point, and the correlation of w at two
points is the mean of exp(j kappa n . (r - r')), sin(kappa d)/(kappa d) at distance d: zero for neighbours
that are half a wavelength apart.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from airpass.channel.factor import ChannelFactor, Room
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel
from airpass.kernels.math import cos_sin_turns

IN_SPACE = 0  # last index of the streams of waves to antennas without waveguides


@dataclass(frozen=True)
class Rician(ChannelFactor):
    """Line of sight and plane waves from scatterers, `channel.rician_k_db`."""

    k_db: float = 10.0  # K, power of the line of sight over that of the scatter, dB
    waves: int = 16  # S, per device and waveguide
    seed: int | None = None  # that of the scenario if not given

    def __post_init__(self) -> None:
        checks.keep(
            self,
            k_db=checks.decibels("channel.rician_k_db", self.k_db),
            waves=checks.whole("channel.rician_waves", self.waves, 1),
        )
        if self.seed is not None:
            checks.whole("channel.seed", self.seed, 0)

    @property
    def label(self) -> str:
        """The key of the scenario."""
        return f"channel.rician_k_db = {self.k_db:g}"

    def factor(self, room: Room, places: Real) -> Complex:
        """f, shape (M, P, K)."""
        scattered, _ = self._scatter(room, places)
        return self._shares[0] + self._shares[1] * scattered

    def factor_derivative(self, room: Room, places: Real) -> Complex:
        """df/dl, shape (M, P, K)."""
        return self._shares[1] * self._scatter(room, places)[1]

    def mean_power(self, room: Room, places: Real) -> Real:
        """One."""
        return np.ones((*places.shape, room.device_x.size))

    def point_factor(self, room: Room, points: Real) -> Complex:
        """f of antennas without waveguides, shape (antennas, K)."""
        turns, directions = _drawn_in_space(self._seed, room.device_x.size, self.waves)
        total = np.zeros((len(points), room.device_x.size), np.complex128)
        for s in range(self.waves):
            phase = turns[:, s] + points @ directions[:, :, s] / room.wavelength
            total += np.exp(2j * np.pi * (phase - np.rint(phase)))
        distance = room.along(points).distance(points[:, :1])[:, 0] / room.wavelength
        turned = np.exp(2j * np.pi * (distance - np.rint(distance))) / np.sqrt(self.waves)
        factor: Complex = self._shares[0] + self._shares[1] * turned * total
        return factor

    @property
    def _seed(self) -> int:
        if self.seed is None:
            raise InvalidInput("channel.seed: must be a whole number outside of a scenario")
        return self.seed

    @property
    def _shares(self) -> tuple[float, float]:
        ratio = 10.0 ** (self.k_db / 10.0)
        return float(np.sqrt(ratio / (ratio + 1.0))), float(np.sqrt(1.0 / (ratio + 1.0)))

    def _scatter(self, room: Room, places: Real) -> tuple[Complex, Complex]:
        """w exp(j kappa D) and its derivative, shape (M, P, K)."""
        kappa = 2.0 * np.pi / room.wavelength
        distance = room.distance(places)
        stretch = (places[:, :, None] - room.device_x) / distance  # dD/dl
        drawn = _drawn(self._seed, room.length.size, room.device_x.size, self.waves)
        total, along = _waves(np.ascontiguousarray(places), 1.0 / room.wavelength, drawn)
        turned = np.exp(1j * kappa * distance) / np.sqrt(self.waves)
        return turned * total, 1j * kappa * turned * (stretch * total + along)


@lru_cache(maxsize=8)
def _drawn(seed: int, waveguides: int, devices: int, waves: int) -> Real:
    """phi/(2 pi) and u, shape (2, M, K, S); each device has a stream of its own."""
    shape = (2, waveguides, waves)
    memory.require(32.0 * waveguides * waves * devices, "scattered waves", "channel.rician_waves")
    drawn = np.stack([stream(seed, Purpose.SCATTER, k).random(shape) for k in range(devices)], axis=2)
    drawn[1] = 2.0 * drawn[1] - 1.0
    return drawn


@lru_cache(maxsize=8)
def _drawn_in_space(seed: int, devices: int, waves: int) -> tuple[Real, Real]:
    """phi/(2 pi), shape (K, S), and n_s, shape (3, K, S); each device has a stream of its own."""
    numbers = [stream(seed, Purpose.SCATTER, k, IN_SPACE).random((3, waves)) for k in range(devices)]
    turns, along, around = np.stack(numbers, axis=1)
    along = 2.0 * along - 1.0
    across = np.sqrt(1.0 - along**2)
    around = 2.0 * np.pi * around
    return turns, np.stack([along, across * np.cos(around), across * np.sin(around)])


@kernel
def _waves(places: Real, turns_per_m: float, drawn: Real) -> tuple[Complex, Complex]:
    """sum_s exp(j (phi_s + kappa u_s l)), and the same sum with the factors u_s; shape (M, P, K)."""
    waveguides, points = places.shape
    devices, waves = drawn.shape[2:]
    total = np.empty((waveguides, points, devices), np.complex128)
    along = np.empty((waveguides, points, devices), np.complex128)
    re, im, by_re, by_im = np.empty(points), np.empty(points), np.empty(points), np.empty(points)
    for m in range(waveguides):
        row = places[m]
        for k in range(devices):
            re[:] = 0.0
            im[:] = 0.0
            by_re[:] = 0.0
            by_im[:] = 0.0
            for s in range(waves):
                turns, cosine = drawn[0, m, k, s], drawn[1, m, k, s]
                for p in range(points):
                    x, y = cos_sin_turns(turns + turns_per_m * cosine * row[p])
                    re[p] += x
                    im[p] += y
                    by_re[p] += cosine * x
                    by_im[p] += cosine * y
            for p in range(points):
                total[m, p, k] = complex(re[p], im[p])
                along[m, p, k] = complex(by_re[p], by_im[p])
    return total, along
