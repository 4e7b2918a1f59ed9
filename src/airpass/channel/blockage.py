"""Blocked lines of sight, drawn at random or by cylinders in the room.

`Blockage`: every waveguide is cut into stretches of equal length. The line of sight of device k to a stretch
is free with probability exp(-beta d), where d is the distance to its middle. For each device and stretch a
number u between 0 and 1 is drawn, and the line is free if u < exp(-beta d): a device that moves a little
keeps most of its lines. Blocked links have the amplitude times `residual`.

Antennas without waveguides are blocked by the cell they are in, all antennas of a cell together. Let s be the
length of a stretch. An antenna within s/2 of a waveguide in y and in z belongs to the stretch of this
waveguide (the nearest one) at its x, with the same u and the same middle as antennas on the waveguide. The
rest of the space is cut into cubes

    [i s, (i+1) s) x [(j - 1/2) s, (j + 1/2) s) x [(l - 1/2) s, (l + 1/2) s)

with a number u of their own for each device; d is the distance to the middle of the cube. So the share of
free lines of an antenna at distance d is exp(-beta d) in both cases, up to the size of a cell, and different
cells are independent.

`Cylinders`: upright cylinders on the floor, z = 0. A link is blocked if the straight line from the antenna to
the device passes through one.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from airpass.channel.factor import ChannelFactor, Room
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Index, Mask, Real


@lru_cache(maxsize=8)
def _drawn(seed: int, waveguides: int, stretches: int, devices: int) -> Real:
    shape = (waveguides, stretches)
    return np.stack([stream(seed, Purpose.BLOCKAGE, k).random(shape) for k in range(devices)], axis=-1)


@lru_cache(maxsize=256)
def _drawn_in(seed: int, cube: tuple[int, int, int], devices: int) -> Real:
    """u of a cube for every device, from the stream (seed, i, j, l); negative numbers are folded in."""
    key = [2 * i if i >= 0 else -2 * i - 1 for i in cube]
    return stream(seed, Purpose.BLOCKAGE, *key).random(devices)


def _residual(label: str, value: float) -> float:
    if checks.at_least(label, value, 0.0) > 1.0:
        raise InvalidInput(f"{label} = {value}: must be <= 1")
    return float(value)


@dataclass(frozen=True)
class Blockage(ChannelFactor):
    """Lines of sight that are free with probability exp(-beta distance), `channel.blockage_per_m`."""

    passive = True
    stepwise = True

    per_m: float = 0.1  # beta; usual in work on pinching antennas
    stretch_m: float = 1.0  # length of waveguide that is blocked or free as a whole
    residual: float = 0.0  # amplitude of a blocked link over that of a free one
    seed: int | None = None  # that of the scenario if not given

    def __post_init__(self) -> None:
        checks.keep(
            self,
            per_m=checks.at_least("channel.blockage_per_m", self.per_m, 0.0),
            stretch_m=checks.at_least("channel.blockage_stretch_m", self.stretch_m, 1e-3),
            residual=_residual("channel.blockage_residual", self.residual),
        )
        if self.seed is not None:
            checks.whole("channel.seed", self.seed, 0)

    @property
    def label(self) -> str:
        """The key of the scenario."""
        return f"channel.blockage_per_m = {self.per_m:g}"

    def factor(self, room: Room, places: Real) -> Real:
        """1 for free links, `residual` for blocked ones; shape (M, P, K)."""
        stretch = self._stretch(room, places)
        draws = self._draws(room, int(np.ceil(room.length.max() / self.stretch_m)) + 1)
        waveguides = np.arange(places.shape[0])[:, None]
        free = draws[waveguides, stretch] < self._probability(room, stretch)
        return np.where(free, 1.0, self.residual)

    def varies_over_m(self, room: Room) -> float:
        """The length of a stretch."""
        return self.stretch_m

    def mean_power(self, room: Room, places: Real) -> Real:
        """p + (1 - p) residual^2, shape (M, P, K)."""
        free = self._probability(room, self._stretch(room, places))
        power: Real = free + (1.0 - free) * self.residual**2
        return power

    def point_factor(self, room: Room, points: Real) -> Real:
        """1 for free links, `residual` for blocked ones; shape (antennas, K)."""
        cells = self._cells(room, points)
        on_waveguides = self._draws(room, int(np.ceil(room.length.max() / self.stretch_m)) + 1)
        draws = np.empty((len(points), room.device_x.size))
        for i, (m, x, y, z) in enumerate(cells.tolist()):
            draws[i] = on_waveguides[m, x] if m >= 0 else _drawn_in(self._seed, (x, y, z), draws.shape[1])
        return np.where(draws < self._cell_probability(room, cells), 1.0, self.residual)

    def point_mean_power(self, room: Room, points: Real) -> Real:
        """p + (1 - p) residual^2, shape (antennas, K)."""
        free = self._cell_probability(room, self._cells(room, points))
        power: Real = free + (1.0 - free) * self.residual**2
        return power

    def _cells(self, room: Room, points: Real) -> Index:
        """Waveguide and stretch, 0, 0 of every point; -1, i, j, l in cubes. Shape (antennas, 4)."""
        x, y, z = points.T
        off_y, off_z = np.abs(y[:, None] - room.waveguide_y), np.abs(z[:, None] - room.height)
        outside = np.maximum(off_y, off_z) > self.stretch_m / 2.0
        waveguide = np.where(outside, np.inf, off_y**2 + off_z**2).argmin(axis=1)
        cube = np.all(outside, axis=1)
        along = np.where(cube, np.floor(x / self.stretch_m), self._stretch(room, x))
        across = np.where(cube, np.floor(points[:, 1:].T / self.stretch_m + 0.5), 0.0)
        return np.column_stack([np.where(cube, -1, waveguide), along, *across]).astype(np.int64)

    def _cell_probability(self, room: Room, cells: Index) -> Real:
        """exp(-beta d) for the middles of cells, shape (antennas, K)."""
        m, x, y, z = cells.T
        middle = np.column_stack(
            [
                (x + 0.5) * self.stretch_m,
                np.where(m < 0, y * self.stretch_m, room.waveguide_y[m]),
                np.where(m < 0, z * self.stretch_m, room.height[m]),
            ]
        )
        free: Real = np.exp(-self.per_m * room.along(middle).distance(middle[:, :1])[:, 0])
        return free

    def _stretch(self, room: Room, places: Real) -> Index:
        """Number of the stretch of every place; places beyond the ends belong to the outermost."""
        last = int(np.ceil(room.length.max() / self.stretch_m))
        return np.clip(np.floor(places / self.stretch_m).astype(np.int64), 0, last)

    def _probability(self, room: Room, stretch: Index) -> Real:
        middle: Real = (stretch + 0.5) * np.float64(self.stretch_m)
        free: Real = np.exp(-self.per_m * room.distance(middle))
        return free

    def _draws(self, room: Room, count: int) -> Real:
        """u of every waveguide, stretch and device, each device with a stream of its own; shape (M, S, K)."""
        return _drawn(self._seed, room.length.size, count, room.device_x.size)

    @property
    def _seed(self) -> int:
        if self.seed is None:
            raise InvalidInput("channel.seed: must be a whole number outside of a scenario")
        return self.seed


@dataclass(frozen=True)
class Cylinders(ChannelFactor):
    """Upright cylinders in the room that block lines of sight."""

    name = "cylinders"
    passive = True

    x_m: tuple[float, ...] = ()  # axes of the cylinders
    y_m: tuple[float, ...] = ()  # axes of the cylinders
    radius_m: float | tuple[float, ...] = 0.3  # one number, or one per cylinder
    height_m: float | tuple[float, ...] = 1.8  # one number, or one per cylinder
    residual: float = 0.0  # amplitude of a blocked link over that of a free one

    def __post_init__(self) -> None:
        for name in ("x_m", "y_m"):
            given = getattr(self, name)
            if not isinstance(given, tuple | list):
                raise InvalidInput(f"channel.{name} = {given!r}: must be a list with one number per cylinder")
            checked = (checks.number(f"channel.{name}[{i}]", value) for i, value in enumerate(given))
            checks.keep(self, **{name: tuple(checked)})
        if len(self.x_m) != len(self.y_m):
            raise InvalidInput(
                f"channel.y_m has {len(self.y_m)} entries: must be as many as x_m, {len(self.x_m)}"
            )
        for name in ("radius_m", "height_m"):
            given = getattr(self, name)
            values = given if isinstance(given, tuple | list) else (given,) * len(self.x_m)
            if len(values) != len(self.x_m):
                raise InvalidInput(
                    f"channel.{name} has {len(values)} entries: must be one number, or a list with one per "
                    f"cylinder ({len(self.x_m)})"
                )
            kept = tuple(checks.positive(f"channel.{name}", value) for value in values)
            checks.keep(self, **{name: kept if isinstance(given, tuple | list) else given})
        checks.keep(self, residual=_residual("channel.residual", self.residual))

    def factor(self, room: Room, places: Real) -> Real:
        """1 for free links, `residual` for blocked ones; shape (M, P, K)."""
        blocked = np.zeros((*places.shape, room.device_x.size), dtype=bool)
        for x, y, radius, height in zip(self.x_m, self.y_m, self.radii, self.heights, strict=True):
            blocked |= self._crosses(room, places, x, y, radius, height)
        return np.where(blocked, self.residual, 1.0)

    @property
    def radii(self) -> tuple[float, ...]:
        """Radius of every cylinder in metres."""
        return self._each(self.radius_m)

    @property
    def heights(self) -> tuple[float, ...]:
        """Height of every cylinder in metres."""
        return self._each(self.height_m)

    def _each(self, value: float | tuple[float, ...]) -> tuple[float, ...]:
        return tuple(value) if isinstance(value, tuple | list) else (value,) * len(self.x_m)

    def varies_over_m(self, room: Room) -> float:
        """Searches see the edges of shadows within a 64th of this."""
        return 1.0

    @staticmethod
    def _crosses(room: Room, places: Real, x: float, y: float, radius: float, height: float) -> Mask:
        """Whether lines pass through a cylinder, shape (M, P, K).

        At share t of the way from the antenna to the device, the squared distance to the axis is
        c + 2 b t + a t^2, and z = a_m + t dz. The line passes if for some t in [0, 1] both are within.
        """
        dy, dz = room.offsets()
        to_x, to_y = room.device_x - places[:, :, None], dy
        from_x = places[:, :, None] - x
        from_y = (room.waveguide_y - y)[:, None, None]
        a = np.maximum(to_x**2 + to_y**2, 1e-300)
        b = from_x * to_x + from_y * to_y
        c = from_x**2 + from_y**2 - radius**2
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        first, last = np.maximum((-b - root) / a, 0.0), np.minimum((-b + root) / a, 1.0)
        above = (room.height - height)[:, None, None]  # of the antenna over the top of the cylinder
        low = np.minimum(above + first * dz, above + last * dz)
        return (b * b > a * c) & (first < last) & (low < 0.0)
