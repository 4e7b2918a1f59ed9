"""Channels from responses on candidate places, as a channel model.

Searches take the responses from a table in single precision (`field.SampledTable`), which replaces eq. (64).
`terms` and `channels` have the values of `SampledResponse`.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airpass.channel.factor import SMALLEST_FACTOR
from airpass.channel.field import Field, SampledTable
from airpass.channel.model import ChannelModel
from airpass.channel.sampled import SampledResponse
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Mask, Real

LABEL = "channel.responses"


@dataclass(frozen=True, eq=False)
class SampledUplink(ChannelModel):
    """Responses at the feeds, with the waveguides included.

    A zero response is replaced by 10^-9 (-180 dB) of the device's largest one: selection methods need
    channels that are not zero.
    """

    sampled: SampledResponse

    def __post_init__(self) -> None:
        response = self.sampled.response
        if not response.all():
            least = SMALLEST_FACTOR * np.abs(response).max(axis=(0, 1))
            filled = np.where(response == 0.0, least, response)
            checks.keep(self, sampled=replace(self.sampled, response=filled))

    @property
    def differentiable(self) -> bool:
        """Always false."""
        return False

    @property
    def passive(self) -> bool:
        """Always true: all responses are known."""
        return True

    @property
    def closed_form(self) -> bool:
        """Always false."""
        return False

    def terms(self, places: Real, antennas: int | None = None) -> Complex:
        """Responses to antennas at some of the places, over sqrt(N); shape (M, P, K)."""
        return self.sampled.terms(places, antennas)

    def derivative(self, layout: Real) -> Complex:
        """Refuse."""
        raise InvalidInput(
            f"{LABEL}: are known at places only, without a derivative: use airpass-plus, elementwise or fixed"
        )

    def require_derivative(self) -> None:
        """Refuse."""
        self.derivative(self.sampled.places_m)

    def with_devices(self, x: Real, y: Real, z: Real | float, gain: Real) -> "SampledUplink":
        """Refuse."""
        raise InvalidInput(f"{LABEL}: are known for their own devices only, not for devices elsewhere")

    def field(self, antennas: int, devices: Mask | None = None) -> Field:
        """The table. All else concerns the closed form, which the table replaces."""
        table = self._table
        if devices is not None:
            table = table._replace(
                values=np.compress(devices, table.values, axis=3),
                peak=np.compress(devices, table.peak, axis=1),
            )
        waveguides, count = table.peak.shape
        share = np.full(count, 1.0 / math.sqrt(antennas))
        feed = np.ones((2 + antennas, waveguides))
        feed[0] = 0.0
        return Field(
            device_x=np.zeros(count),
            offset_square=np.ones((waveguides, count)),
            amplitude=share,
            turns_per_m=1.0,
            refractive_index=1.0,
            feed=feed,
            loss_per_m=0.0,
            factor=table.scaled(share),
        )

    @cached_property
    def _table(self) -> SampledTable:
        response = self.sampled.response
        values = np.stack([response.real, response.imag], axis=2)
        return SampledTable(
            self.sampled.places_m.copy(),  # Numba compiles a separate version for read-only arrays
            np.ascontiguousarray(values, dtype=np.float32),
            np.abs(response).max(axis=1).astype(np.float32),
        )
