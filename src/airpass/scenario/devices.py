"""Devices: positions, gains and sample counts, drawn at random or given."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.numbers import is_list, reals
from airpass.core.randomness import Purpose, stream
from airpass.core.text import shown
from airpass.core.types import Real

LISTS = ("x_m", "y_m", "gain", "samples")  # what devices that are not drawn must have
COLUMNS = ("x_m", "y_m", "z_m", "gain", "samples")  # one entry per device in each; always written
PRIORITY = "priority"  # a column as well, written only if it is not one for all
MNIST_TRAINING_IMAGES = 60_000  # split evenly among K devices if no sample counts are given


@dataclass(frozen=True)
class DeviceDraw:
    """Distribution of devices whose positions are not given."""

    count: int = 10  # K; figures 2, 3, 6-8
    seed: int = 0
    x_range_m: tuple[float, float] = (4.0, 40.0)  # section VI-A
    y_range_m: tuple[float, float] = (2.0, 10.0)  # section VI-A
    gain_range: tuple[float, float] = (0.8, 1.2)  # of gamma_k; section VI-A
    z_m: float | tuple[float, ...] = 0.0  # z_k, one height or one per device; on the floor in the paper

    def __post_init__(self) -> None:
        checks.keep(
            self,
            count=checks.whole("devices.count", self.count, 1),
            seed=checks.whole("devices.seed", self.seed, 0),
        )
        memory.require(160.0 * self.count, "devices", "devices.count")
        for name in ("x_range_m", "y_range_m", "gain_range"):
            given = getattr(self, name)
            label = f"devices.{name}"
            if not is_list(given) or len(given) != 2:
                raise InvalidInput(f"{label} = {shown(given)}: must be two numbers, low and high")
            low, high = (checks.number(label, value) for value in given)
            if low > high:
                raise InvalidInput(f"{label} = [{low:g}, {high:g}]: low must not exceed high")
            checks.keep(self, **{name: (low, high)})
        checks.positive("devices.gain_range", self.gain_range[0])
        heights: Any = self.z_m
        if is_list(heights):
            if len(heights) != self.count:
                raise InvalidInput(
                    f"devices.z_m has {len(heights)} entries: must be one number, or a list with one "
                    f"number per device ({self.count})"
                )
            each = (checks.number(f"devices.z_m[{k}]", value) for k, value in enumerate(heights))
            checks.keep(self, z_m=tuple(each))
        else:
            checks.keep(self, z_m=checks.number("devices.z_m", self.z_m))

    def draw(self, *indices: int) -> "Devices":
        """Draw devices: uniform positions and gains, the samples of MNIST split evenly.

        Parameters
        ----------
        indices
            Indices of the draw under the same seed; each gives an independent one.

        Returns
        -------
        Devices
            The devices.
        """
        rng = stream(self.seed, Purpose.DEVICES, *indices)
        return Devices(
            x_m=rng.uniform(*self.x_range_m, self.count),
            y_m=rng.uniform(*self.y_range_m, self.count),
            gain=rng.uniform(*self.gain_range, self.count),
            samples=even_samples(self.count),
            z_m=np.array(self.z_m),
            drawn_from=self,
        )


@dataclass(frozen=True, eq=False)
class Devices:
    """Positions, gains, sample counts and priorities. All but `x_m` may be one number for all devices."""

    x_m: Real  # x_k, shape (K,)
    y_m: Real  # y_k
    gain: Real  # gamma_k > 0
    samples: Real  # |D_k| > 0
    z_m: Real = field(default_factory=lambda: np.zeros(()))  # z_k
    drawn_from: DeviceDraw | None = None  # None if they were given
    priority: Real = field(default_factory=lambda: np.ones(()))  # v_k >= 0, of which one at least is > 0

    def __post_init__(self) -> None:
        for name in (*COLUMNS, PRIORITY):
            label = f"devices.{name}"
            given = getattr(self, name)
            if not is_list(given) and name != "x_m":
                number = given.item() if isinstance(given, np.ndarray) else given
                given = np.full(np.size(self.x_m), checks.number(label, number))
            values = reals(label, given)
            if values.ndim != 1 or values.size == 0:
                raise InvalidInput(f"{label}: must be a list with one number per device, at least one")
            if values.size != np.size(self.x_m):
                raise InvalidInput(
                    f"{label} has {values.size} entries but devices.x_m has {np.size(self.x_m)}: "
                    "must be one number, or a list with one entry per device"
                )
            for at in np.flatnonzero(~(np.abs(values) <= checks.LARGEST))[:1]:
                checks.number(f"{label}[{at}]", float(values[at]))
            if name in ("gain", "samples"):
                bad = np.flatnonzero(values <= 0)
                if bad.size:
                    raise InvalidInput(f"{label}[{bad[0]}] = {values[bad[0]]:g}: must be > 0")
            if name == PRIORITY:
                _check_priorities(values, label)
            values.flags.writeable = False
            checks.keep(self, **{name: values})

    @property
    def count(self) -> int:
        """K."""
        return int(self.x_m.size)

    @property
    def has_priorities(self) -> bool:
        """Whether priorities differ from one."""
        return bool((self.priority != 1.0).any())


def even_samples(count: int) -> Real:
    """The samples of MNIST split evenly among K devices, shape (K,)."""
    return np.full(count, max(1.0, round(MNIST_TRAINING_IMAGES / count)))


def sample_priorities(samples: Real) -> Real:
    """Priorities proportional to sample counts |D_k|, scaled to a mean of one.

    Parameters
    ----------
    samples
        |D_k|, shape (K,).

    Returns
    -------
    Real
        v_k, shape (K,).
    """
    priorities: Real = samples / samples.mean()
    return priorities


def _check_priorities(values: Real, label: str) -> None:
    """Refuse priorities that are negative, or all zero."""
    bad = np.flatnonzero(values < 0)
    if bad.size:
        raise InvalidInput(f"{label}[{bad[0]}] = {values[bad[0]]:g}: must be >= 0")
    if not values.any():
        raise InvalidInput(f"{label}: all are zero; at least one must be > 0")
