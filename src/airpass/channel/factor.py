"""Channel models other than the paper's: eq. (64) times a factor f_{k,m}(l).

A model is a frozen dataclass in one file: its fields are its options, and `factor` gives f at any places.
With `factor_derivative` it works with HAGO too.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, RecordedMethod
from airpass.core.types import Real


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


@dataclass(frozen=True)
class ChannelFactor(Method, ABC):
    """A factor on the responses of eq. (64). Subclasses are frozen dataclasses whose fields are options."""

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

    @property
    def label(self) -> str:
        """Key and value of a scenario that stand for the model, for messages."""
        return f"channel.model = {self.name!r}"

    @property
    def differentiable(self) -> bool:
        """Whether the class defines `factor_derivative`."""
        return type(self).factor_derivative is not ChannelFactor.factor_derivative


def no_derivative(label: str) -> str:
    """The message that a model has no derivative."""
    return f"{label} has no derivative: use airpass-plus, elementwise or fixed"


@dataclass(frozen=True)
class RecordedFactor(RecordedMethod, ChannelFactor):
    """A model of a stored result that is not registered."""

    def factor(self, room: Room, places: Real) -> Any:
        """Refuse to run."""
        raise self.refuse()
