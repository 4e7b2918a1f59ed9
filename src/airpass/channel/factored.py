"""The paper's channel times factors f_{k,m}(l).

`terms`, `channels` and `derivative` are exact. Compiled loops take the factor from a table of polynomials:

    with a derivative     Hermite cubics, sixteen cells per length over which the factor varies
    stepwise              constants, one cell per step
    else                  linear, 64 cells per such length
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from airpass.channel.factor import ChannelFactor, Room, checked_values, no_derivative, product
from airpass.channel.field import FactorTable, Field
from airpass.channel.model import ChannelModel
from airpass.channel.pass_uplink import PassUplink
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Mask, Real

CUBIC_CELLS, LINEAR_CELLS = 16, 64  # per length over which a factor varies
LARGEST_TABLE = 2**28  # bytes; cells are longer if the table would be larger
CELL_BYTES = 32  # of one device


@dataclass(frozen=True, eq=False)
class FactoredUplink(ChannelModel):
    """`PassUplink` times the product of some factors."""

    base: PassUplink
    factors: tuple[ChannelFactor, ...]  # at least one
    length: Real  # L_m in metres, shape (M,)

    @property
    def differentiable(self) -> bool:
        """Whether all factors have a derivative."""
        return all(one.differentiable for one in self.factors)

    @property
    def passive(self) -> bool:
        """Whether all factors are at most one in modulus."""
        return all(one.passive for one in self.factors)

    @property
    def closed_form(self) -> bool:
        """Always false."""
        return False

    @cached_property
    def room(self) -> Room:
        """What the factors are called with."""
        base, shape = self.base, self.base.waveguide_y.shape
        return Room(
            device_x=base.device_x,
            device_y=base.device_y,
            device_z=np.broadcast_to(np.asarray(base.device_z, dtype=np.float64), base.device_x.shape),
            waveguide_y=base.waveguide_y,
            height=np.broadcast_to(np.asarray(base.height, dtype=np.float64), shape),
            length=self.length,
            wavelength=base.wavelength,
        )

    def _checked(self, one: ChannelFactor, values: Any, what: str, places: Real) -> Complex:
        """What a model returned, as complex numbers of shape (M, P, K)."""
        return checked_values(one, values, what, (*places.shape, self.base.device_x.size))

    def _each(self, places: Real) -> list[Complex]:
        return [self._checked(one, one.factor(self.room, places), "factor", places) for one in self.factors]

    def factor(self, places: Real) -> Complex:
        """The product of all factors at `places`, shape (M, P); shape (M, P, K)."""
        return product(self._each(places))

    def factor_derivative(self, places: Real) -> Complex:
        """The derivative of `factor` with respect to the places; shape (M, P, K)."""
        values = self._each(places) if len(self.factors) > 1 else []
        total = np.zeros((*places.shape, self.base.device_x.size), np.complex128)
        for i, one in enumerate(self.factors):
            others = [value for j, value in enumerate(values) if j != i]
            slope = self._checked(one, one.factor_derivative(self.room, places), "factor_derivative", places)
            total += np.prod([slope, *others], axis=0)
        return total

    def terms(self, places: Real, antennas: int | None = None) -> Complex:
        """Eq. (64) times the factors; shape (M, P, K)."""
        places = np.ascontiguousarray(places, dtype=np.float64)
        return self.base.terms(places, antennas) * self.factor(places)

    def derivative(self, layout: Real) -> Complex:
        """d g_{k,m}/d l_{m,n}, shape (M, N, K), by the product rule."""
        self.require_derivative()
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        slope = self.base.derivative(layout) * self.factor(layout)
        return slope + self.base.terms(layout) * self.factor_derivative(layout)

    def require_derivative(self) -> None:
        """Raise `InvalidInput` if a factor has no derivative."""
        for one in self.factors:
            if not one.differentiable:
                raise InvalidInput(no_derivative(one.label))

    def mean_powers(self, layout: Real) -> Real:
        """Mean of |g_{k,m,n}|^2 over what is drawn at random; shape (M, N, K)."""
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        powers = np.abs(self.base.terms(layout)) ** 2
        for one in self.factors:
            mean = self._checked(one, one.mean_power(self.room, layout), "mean_power", layout)
            powers = powers * mean.real
        return powers

    def with_devices(self, x: Real, y: Real, z: Real | float, gain: Real) -> "FactoredUplink":
        """The same receiver and factors with other devices."""
        return replace(self, base=self.base.with_devices(x, y, z, gain))

    def field(self, antennas: int, devices: Mask | None = None) -> Field:
        """What compiled loops take: the closed form, and the table of the factor."""
        table = self._table
        if devices is not None:
            table = table._replace(
                coefficients=np.compress(devices, table.coefficients, axis=3),
                peak=np.compress(devices, table.peak, axis=1),
            )
        return self.base.field(antennas, devices)._replace(factor=table)

    @cached_property
    def _table(self) -> FactorTable:
        room = self.room
        lengths = [one.varies_over_m(room) for one in self.factors]
        for one, length in zip(self.factors, lengths, strict=True):
            if not (np.isfinite(length) and length > 0.0):
                raise InvalidInput(f"{one.label}: varies_over_m = {length}: must be > 0")
        stepwise = all(one.stepwise for one in self.factors) and len(set(lengths)) == 1
        per_length = 1 if stepwise else CUBIC_CELLS if self.differentiable else LINEAR_CELLS
        step = min(lengths) / per_length
        longest = float(room.length.max())
        most = max(1, LARGEST_TABLE // (CELL_BYTES * room.length.size * room.device_x.size))
        cells = int(np.ceil(longest / step)) + 1
        if cells > most:
            cells, step = most, longest / most
        nodes = np.tile(np.arange(cells + 1) * step, (room.length.size, 1))
        parts = np.zeros((4, room.length.size, cells, room.device_x.size), np.complex128)
        if stepwise:
            parts[0] = self.factor(nodes[:, :-1] + 0.5 * step)
        else:
            values = self.factor(nodes)
            left, right = values[:, :-1], values[:, 1:]
            parts[0], parts[1] = left, right - left
            if self.differentiable:
                slopes = step * self.factor_derivative(nodes)
                at_left, at_right = slopes[:, :-1], slopes[:, 1:]
                parts[1] = at_left
                parts[2] = 3.0 * (right - left) - 2.0 * at_left - at_right
                parts[3] = 2.0 * (left - right) + at_left + at_right
        coefficients = np.concatenate([parts.real, parts.imag]).transpose(1, 2, 0, 3)
        peak = np.abs(parts[0]).max(axis=1)
        return FactorTable(
            np.ascontiguousarray(coefficients, dtype=np.float32), peak.astype(np.float32), 1.0 / step
        )
