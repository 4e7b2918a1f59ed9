"""Channel models other than the paper's: eq. (64) times a factor f_{k,m}(l).

A model is a frozen dataclass in one file: its fields are its options, and `factor` gives f at any places.
With `factor_derivative` it works with HAGO too. `point_factor` gives f for antennas without waveguides.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, RecordedMethod
from airpass.core.types import Complex, Real

# In place of zero (-180 dB): selection methods scale channels to length one, and a device whose links are all
# blocked would have none.
SMALLEST_FACTOR = 1e-9


@dataclass(frozen=True, eq=False)
class Room:
    """What a factor may depend on. Lengths in metres."""

    device_x: Real  # shape (K,)
    device_y: Real
    device_z: Real
    waveguide_y: Real  # shape (M,)
    height: Real  # of the waveguides
    length: Real  # of the waveguides, which begin at x = 0
    wavelength: float

    def offsets(self) -> tuple[Real, Real]:
        """y_k - y_m and z_k - a_m, both of shape (M, 1, K)."""
        dy = self.device_y - self.waveguide_y[:, None]
        dz = self.device_z - self.height[:, None]
        return dy[:, None, :], dz[:, None, :]

    def distance(self, places: Real) -> Real:
        """D of eq. (9) for antennas at `places`, shape (M, P); shape (M, P, K)."""
        dy, dz = self.offsets()
        distance: Real = np.sqrt((self.device_x - places[:, :, None]) ** 2 + (dy**2 + dz**2))
        return distance

    def along(self, points: Real) -> "Room":
        """The same room with a waveguide along x through each of some points, shape (antennas, 3)."""
        length = np.full(len(points), self.length.max())
        return replace(self, waveguide_y=points[:, 1], height=points[:, 2], length=length)


@dataclass(frozen=True)
class ChannelFactor(Method, ABC):
    """A factor on the responses of equation (64).

    Subclasses are frozen dataclasses whose fields are options.
    """

    # Whether |f| <= 1 everywhere. If so, upper bounds over all layouts hold.
    passive: ClassVar[bool] = False
    # Whether f is constant in every stretch of length `varies_over_m`, counted from x = 0.
    stepwise: ClassVar[bool] = False

    @abstractmethod
    def factor(self, room: Room, places: Real) -> Any:
        """f_{k,m}(l) for antennas at given places.

        Parameters
        ----------
        room
            Devices and waveguides.
        places
            Positions in metres, shape (M, P). They may lie beyond the ends of a waveguide, by some
            centimetres.

        Returns
        -------
        Any
            Real or complex numbers, shape (M, P, K).
        """

    def factor_derivative(self, room: Room, places: Real) -> Any:
        """df/dl, shape (M, P, K). Optional: without it, HAGO is refused.

        Parameters
        ----------
        room, places
            As for `factor`.

        Returns
        -------
        Any
            Real or complex numbers, shape (M, P, K).
        """
        raise InvalidInput(no_derivative(self.label))

    def varies_over_m(self, room: Room) -> float:
        """Length over which f changes much, in metres; searches tabulate f with steps of a fraction of it.

        Parameters
        ----------
        room
            Devices and waveguides.

        Returns
        -------
        float
            The length; by default the wavelength.
        """
        return room.wavelength

    def mean_power(self, room: Room, places: Real) -> Any:
        """Mean of |f|^2 over what is drawn at random, shape (M, P, K), for maps of the room.

        Parameters
        ----------
        room, places
            As for `factor`.

        Returns
        -------
        Any
            |f|^2 unless a model says otherwise.
        """
        return np.abs(self.factor(room, places)) ** 2

    def point_factor(self, room: Room, points: Real) -> Any:
        """f of antennas without waveguides, at given points.

        By default each antenna is taken for one on a waveguide of its own. This is right for models that
        depend on the positions of antenna and device only. A model that draws numbers for each
        waveguide would draw them for each antenna; it has to define this function, and
        `point_mean_power`, if antennas that are close to each other should have similar factors.

        Parameters
        ----------
        room
            Devices and the waveguides of the scenario.
        points
            [x, y, z] of every antenna in metres, shape (antennas, 3).

        Returns
        -------
        Any
            Real or complex numbers, shape (antennas, K).
        """
        return _only_place(self.factor(room.along(points), points[:, :1]))

    def point_mean_power(self, room: Room, points: Real) -> Any:
        """Mean of |f|^2 of antennas at points over what is drawn at random, for maps of the room.

        Parameters
        ----------
        room, points
            As for `point_factor`.

        Returns
        -------
        Any
            Real numbers, shape (antennas, K); by default `mean_power` of antennas on waveguides of their own.
        """
        return _only_place(self.mean_power(room.along(points), points[:, :1]))

    @property
    def label(self) -> str:
        """Key and value of a scenario that stand for the model, for messages."""
        return f"channel.model = {self.name!r}"

    @property
    def differentiable(self) -> bool:
        """Whether the class defines `factor_derivative`."""
        return type(self).factor_derivative is not ChannelFactor.factor_derivative


def _only_place(values: Any) -> Any:
    """Values of shape (antennas, 1, K) with shape (antennas, K); others are left to `checked_values`."""
    array = np.asarray(values)
    return array[:, 0] if array.ndim == 3 else array


def checked_values(one: ChannelFactor, values: Any, what: str, shape: tuple[int, ...]) -> Complex:
    """What a function of a model returned, as complex numbers.

    Parameters
    ----------
    one
        The model.
    values
        What it returned.
    what
        Name of the function.
    shape
        (M, P, K), or (antennas, K) for antennas at points.

    Returns
    -------
    Complex
        The values. `InvalidInput` is raised if they are not finite numbers of that shape.
    """
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "biufc" or not np.isfinite(array).all():
        axes = "waveguides x places x devices" if len(shape) == 3 else "antennas x devices"
        raise InvalidInput(
            f"{one.label}: {what} returned an array of shape {array.shape} and type "
            f"{array.dtype}: must be finite numbers of shape {shape}, {axes}"
        )
    return array.astype(np.complex128)


def product(factors: Sequence[Complex]) -> Complex:
    """The product of factors, with `SMALLEST_FACTOR` in place of zero."""
    result: Complex = np.prod(factors, axis=0)
    result[result == 0.0] = SMALLEST_FACTOR
    return result


def no_derivative(label: str) -> str:
    """The message that a model has no derivative."""
    return f"{label} has no derivative: use airpass-plus, elementwise or fixed"


@dataclass(frozen=True)
class RecordedFactor(RecordedMethod, ChannelFactor):
    """A model of a stored result that is not registered."""

    def factor(self, room: Room, places: Real) -> Any:
        """Refuse to run."""
        raise self.refuse()
