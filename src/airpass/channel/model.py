"""The interface of channel models: responses of all devices to antennas at given places.

Everything outside this package uses a model through these functions only.
"""

from abc import ABC, abstractmethod

import numpy as np

from airpass.channel.field import Field
from airpass.core.types import Complex, Mask, Real


class ChannelModel(ABC):
    """Channels of a receiver and its devices as functions of the antenna positions."""

    @property
    @abstractmethod
    def differentiable(self) -> bool:
        """Whether `derivative` is defined."""

    @property
    @abstractmethod
    def passive(self) -> bool:
        """Whether bounds on |g_{k,m,n}| over all places are known, those of eq. (64) or the responses."""

    @property
    @abstractmethod
    def closed_form(self) -> bool:
        """Whether responses are those of eq. (64), except for loss and power split in the waveguide."""

    @abstractmethod
    def terms(self, places: Real, antennas: int | None = None) -> Complex:
        """g_{k,m,n}, the responses to antennas at given places; shape (M, P, K).

        Parameters
        ----------
        places
            Positions in metres, shape (M, P).
        antennas
            N, the number of antennas on each waveguide that share its power, if it is not P. Then the power
            is split equally.

        Returns
        -------
        Complex
            Responses, with the factor 1/sqrt(N).
        """

    def channels(self, layout: Real) -> Complex:
        """G(L), shape (M, K): the sum of `terms` over the antennas of each waveguide.

        Parameters
        ----------
        layout
            Antenna positions in metres, shape (M, N).

        Returns
        -------
        Complex
            Channels of the waveguides to the devices.
        """
        result: Complex = self.terms(layout).sum(axis=1)
        return result

    @abstractmethod
    def derivative(self, layout: Real) -> Complex:
        """d g_{k,m}/d l_{m,n}, shape (M, N, K).

        Position l_{m,n} affects only waveguide m's channel, so these are all nonzero entries.

        Parameters
        ----------
        layout
            Antenna positions in metres, shape (M, N).

        Returns
        -------
        Complex
            Derivatives. `InvalidInput` is raised if the model has none.
        """

    @abstractmethod
    def require_derivative(self) -> None:
        """Raise `InvalidInput` if there is no derivative."""

    @abstractmethod
    def field(self, antennas: int, devices: Mask | None = None) -> Field:
        """What compiled loops take, for `antennas` on each waveguide, for all or some devices."""

    @abstractmethod
    def with_devices(self, x: Real, y: Real, z: Real | float, gain: Real) -> "ChannelModel":
        """The same model with other devices."""

    def mean_powers(self, layout: Real) -> Real:
        """Mean of |g_{k,m,n}|^2 over what is drawn at random; shape (M, N, K)."""
        powers: Real = np.abs(self.terms(layout)) ** 2
        return powers
