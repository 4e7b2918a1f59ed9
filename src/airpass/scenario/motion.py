"""Devices that move: models of motion, and paths from files.

All paths are piecewise linear, so that one class, `Paths`, holds those of every model and those of a file. A
model makes paths for the devices of a scenario. They start at the devices' positions and stay in a
rectangle, the room: the region that the devices were drawn from, or, for given devices, the floor below the
waveguides, extended to all devices. Heights do not change, unless a file has them.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Real
from airpass.scenario.scenario import Scenario

COLUMNS = ("time_s", "device", "x_m", "y_m")  # of a file of paths; z_m may follow
HEIGHT = "z_m"
Room = tuple[tuple[float, float], tuple[float, float]]


def room_of(scenario: Scenario) -> Room:
    """The rectangle in which devices move: [low, high] in x and in y, metres.

    Parameters
    ----------
    scenario
        Receiver and devices.

    Returns
    -------
    Room
        The region that the devices were drawn from; for given devices, the floor below the waveguides,
        extended to all devices.
    """
    devices, receiver = scenario.devices, scenario.receiver
    drawn = devices.drawn_from
    if drawn is not None:
        return drawn.x_range_m, drawn.y_range_m
    y = np.concatenate([devices.y_m, receiver.waveguide_y])
    x = np.concatenate([devices.x_m, [0.0], receiver.lengths])
    return (float(x.min()), float(x.max())), (float(y.min()), float(y.max()))


def displaced(scenario: Scenario, places: Real) -> Scenario:
    """The same scenario with the devices at other places.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.
    places
        [x, y] or [x, y, z] of every device in metres, shape (K, 2) or (K, 3).

    Returns
    -------
    Scenario
        A new scenario, with given devices.
    """
    if scenario.channel.responses is not None:
        raise InvalidInput(
            f"{scenario.channel.label}: are known for devices at their positions; they cannot move"
        )
    axes = dict(zip(("x_m", "y_m", "z_m"), np.asarray(places).T, strict=False))
    return replace(scenario, devices=replace(scenario.devices, **axes, drawn_from=None))


class Motion(ABC):
    """A model of motion."""

    @abstractmethod
    def paths(self, scenario: Scenario, seconds: float) -> "Paths":
        """Paths of a scenario's devices.

        Parameters
        ----------
        scenario
            The devices and their room.
        seconds
            Duration.

        Returns
        -------
        Paths
            A path per device. Those for a shorter duration are the first parts of those for a longer one.
        """


@dataclass(frozen=True, eq=False)
class Paths(Motion):
    """Piecewise linear paths. A device does not move before its first time and after its last.

    Parameters
    ----------
    times_s
        Increasing times of each device, seconds.
    points_m
        Its places at these times, shape (times, 2) or (times, 3), metres.
    name
        Where the paths are from, for messages.
    """

    times_s: Sequence[Real]
    points_m: Sequence[Real]
    name: str = "paths"

    @property
    def count(self) -> int:
        """Number of devices."""
        return len(self.times_s)

    @property
    def seconds(self) -> float:
        """The last time of all devices."""
        return max(float(times[-1]) for times in self.times_s)

    def positions(self, times: Sequence[float] | Real) -> Real:
        """Places of all devices.

        Parameters
        ----------
        times
            Times in seconds, shape (T,).

        Returns
        -------
        Real
            [x, y] or [x, y, z] in metres, shape (T, K, 2) or (T, K, 3).
        """
        moments = np.asarray(times, dtype=np.float64)
        return np.stack(
            [
                np.column_stack([np.interp(moments, own, column) for column in points.T])
                for own, points in zip(self.times_s, self.points_m, strict=True)
            ],
            axis=1,
        )

    def paths(self, scenario: Scenario, seconds: float) -> "Paths":
        """These paths; `InvalidInput` is raised if they are for another number of devices."""
        if self.count != scenario.devices.count:
            raise InvalidInput(
                f"{self.name} has paths of {self.count} devices but the scenario has "
                f"{scenario.devices.count}: change devices.count, or the file"
            )
        return self


@dataclass(frozen=True)
class RandomWaypoint(Motion):
    """Every device goes to a random point of the room, rests, and goes on to the next.

    Parameters
    ----------
    speed_m_s
        Speed while moving.
    pause_s
        Rest at each point.
    seed
        Seed of the points.
    """

    speed_m_s: float = 1.0
    pause_s: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        checks.at_least("speed_m_s", self.speed_m_s, 0.0)
        checks.at_least("pause_s", self.pause_s, 0.0)
        checks.whole("seed", self.seed, 0)

    def paths(self, scenario: Scenario, seconds: float) -> Paths:
        """Draw the points of every device until the time has passed."""
        room = np.array(room_of(scenario))
        starts = np.column_stack([scenario.devices.x_m, scenario.devices.y_m])
        moving = self.speed_m_s > 0.0 and np.ptp(room, axis=1).max() > 0.0
        all_times, all_points = [], []
        for k, start in enumerate(starts):
            rng = stream(self.seed, Purpose.MOTION, k)
            times, points = [0.0], [start]
            while moving and times[-1] < seconds:
                point = rng.uniform(room[:, 0], room[:, 1])
                distance = float(np.linalg.norm(point - points[-1]))
                times.append(times[-1] + distance / self.speed_m_s)
                points.append(point)
                if self.pause_s > 0.0:
                    times.append(times[-1] + self.pause_s)
                    points.append(point)
            all_times.append(np.array(times))
            all_points.append(np.array(points))
        return Paths(all_times, all_points, "random waypoints")


@dataclass(frozen=True)
class StraightLines(Motion):
    """Every device moves in a random direction and is reflected at the walls.

    Parameters
    ----------
    speed_m_s
        Speed.
    seed
        Seed of the directions.
    """

    speed_m_s: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        checks.at_least("speed_m_s", self.speed_m_s, 0.0)
        checks.whole("seed", self.seed, 0)

    def paths(self, scenario: Scenario, seconds: float) -> Paths:
        """Lines from wall to wall."""
        room = np.array(room_of(scenario))
        starts = np.column_stack([scenario.devices.x_m, scenario.devices.y_m])
        all_times, all_points = [], []
        for k, start in enumerate(starts):
            angle = stream(self.seed, Purpose.MOTION, k).uniform(0.0, 2.0 * np.pi)
            velocity = self.speed_m_s * np.array([np.cos(angle), np.sin(angle)])
            hits = [_hits(room[axis], start[axis], velocity[axis], seconds) for axis in (0, 1)]
            times = np.unique(np.concatenate([[0.0], *hits]))
            times = times[: np.searchsorted(times, seconds) + 1]  # up to the first that is not before the end
            unfolded = start + velocity * times[:, None]
            points = np.column_stack([_folded(room[axis], unfolded[:, axis]) for axis in (0, 1)])
            points[0] = start
            all_times.append(times)
            all_points.append(points)
        return Paths(all_times, all_points, "straight lines")


def _hits(walls_at: Real, start: float, velocity: float, seconds: float) -> Real:
    """Times at which a coordinate reaches a wall, until the first that is not before `seconds`."""
    low, high = walls_at
    width = high - low
    if width == 0.0 or velocity == 0.0:
        return np.empty(0)
    ends = sorted(((start - low) / width, (start + velocity * seconds - low) / width))
    walls = low + width * np.arange(np.ceil(ends[0]) - 1.0, np.floor(ends[1]) + 2.0)
    times: Real = np.sort((walls - start) / velocity)
    times = times[times > 0.0]
    return times[: np.searchsorted(times, seconds) + 1]


def _folded(walls_at: Real, unfolded: Real) -> Real:
    """A coordinate reflected at both walls."""
    low, high = walls_at
    width = high - low
    if width == 0.0:
        return np.full(unfolded.shape, low)
    beyond = np.mod(unfolded - low, 2.0 * width)
    folded: Real = np.clip(low + width - np.abs(beyond - width), low, high)
    return folded


def read_paths(path: str | Path) -> Paths:
    """Paths from a CSV file.

    Parameters
    ----------
    path
        File with a line of names, `time_s, device, x_m, y_m`, and `z_m` if heights change, and a line per
        time and device. Devices are numbered from 0. Times of a device increase. Between them it moves
        in a straight line.

    Returns
    -------
    Paths
        The paths. `InvalidInput` is raised in one line for a file that is wrong.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path}: not a CSV file ({error})") from None
    names = [name.strip() for name in lines[0]] if lines else []
    columns = COLUMNS if HEIGHT not in names else (*COLUMNS, HEIGHT)
    if sorted(names) != sorted(columns):
        raise InvalidInput(
            f"{path}: has the columns {', '.join(names) or 'none'}; must be {', '.join(COLUMNS)}, and z_m "
            "if heights change"
        )
    places = [names.index(name) for name in columns]
    found: dict[int, list[list[float]]] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        where = f"{path}, line {number}"
        if len(cells) != len(names):
            raise InvalidInput(f"{where}: has {len(cells)} cells; must be {len(names)}")
        time, device, *point = (_number(cells[at], where, names[at]) for at in places)
        if device < 0.0 or device != int(device):
            raise InvalidInput(f"{where}: device = {device:g}: must be a whole number >= 0")
        own = found.setdefault(int(device), [])
        if own and time <= own[-1][0]:
            raise InvalidInput(
                f"{where}: time_s = {time:g} of device {device:g} is not after {own[-1][0]:g}: times of a "
                "device must increase"
            )
        own.append([time, *point])
    if not found:
        raise InvalidInput(f"{path}: has no line with a place; must have at least one per device")
    for k in range(max(found) + 1):
        if k not in found:
            raise InvalidInput(f"{path}: device {k} is missing; devices are numbered from 0 without gaps")
    tables = [np.array(found[k]) for k in range(len(found))]
    return Paths([table[:, 0] for table in tables], [table[:, 1:] for table in tables], str(path))


def _number(cell: str, where: str, name: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise InvalidInput(f"{where}: {name} = {cell.strip()!r}: must be a number") from None
    return checks.number(f"{where}: {name}", value)
