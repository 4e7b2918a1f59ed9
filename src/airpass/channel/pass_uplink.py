"""The pinching-antenna uplink: channels of every device to every waveguide, eqs. (9)-(12),
and their derivatives with respect to every antenna position, eqs. (63)-(68).

    D_{k,m}(l)  = sqrt((x_k - l)^2 + (y_k - y_m)^2 + a^2)                            (9)
    g_{k,m,n}   = xi gamma_k exp(-j kappa (D + i_ref l)) / (sqrt(N) D)              (64)
    g_{k,m}     = sum_n g_{k,m,n}                                               (10, 63)

The phase is in turns, (D + i_ref l)/lambda, because whole turns can be removed exactly
before the sine and cosine are computed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Mask, Real
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import cos_sin_turns


class Field(NamedTuple):
    """Arguments of the channel kernels, except antenna positions. Arrays are contiguous along devices."""

    device_x: Real  # x_k, shape (K,)
    offset_square: Real  # (y_k - y_m)^2 + a^2, shape (M, K)
    amplitude: Real  # xi gamma_k/sqrt(N), shape (K,)
    turns_per_m: float  # 1/lambda
    refractive_index: float  # i_ref


@inlined
def response(
    position: float,
    device_x: float,
    offset_square: float,
    amplitude: float,
    turns_per_m: float,
    refractive_index: float,
) -> tuple[float, float, float]:
    """Distance D (eq. 9) of one device to an antenna at `position`, and Re and Im of g_{k,m,n} (eq. 64)."""
    dx = position - device_x
    distance = math.sqrt(dx * dx + offset_square)
    cosine, sine = cos_sin_turns(turns_per_m * (distance + refractive_index * position))
    scale = amplitude / distance
    return distance, scale * cosine, -scale * sine


@inlined
def response_slope(
    position: float, device_x: float, distance: float, turns_per_m: float, refractive_index: float
) -> tuple[float, float]:
    """Re and Im of (dg/dl)/g for an antenna at `position`, eqs. (66), (67); `distance` is D."""
    stretch = (position - device_x) / distance  # dD/dl
    return -stretch / distance, -2.0 * np.pi * turns_per_m * (stretch + refractive_index)


@kernel
def element(
    position: float, waveguide: int, field: Field, distance: Real, term_re: Real, term_im: Real
) -> None:
    """`response` of every device to one antenna, into `distance`, `term_re` and `term_im`."""
    offset_square = field.offset_square[waveguide]
    for k in range(field.device_x.size):
        distance[k], term_re[k], term_im[k] = response(
            position,
            field.device_x[k],
            offset_square[k],
            field.amplitude[k],
            field.turns_per_m,
            field.refractive_index,
        )


@kernel
def _terms(layout: Real, field: Field) -> Complex:
    waveguides, antennas = layout.shape
    count = field.device_x.size
    result = np.empty((waveguides, antennas, count), np.complex128)
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    for m in range(waveguides):
        for n in range(antennas):
            element(layout[m, n], m, field, distance, term_re, term_im)
            for k in range(count):
                result[m, n, k] = complex(term_re[k], term_im[k])
    return result


@kernel
def _channels(layout: Real, field: Field) -> Complex:
    waveguides, antennas = layout.shape
    count = field.device_x.size
    result = np.zeros((waveguides, count), np.complex128)
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    for m in range(waveguides):
        for n in range(antennas):
            element(layout[m, n], m, field, distance, term_re, term_im)
            for k in range(count):
                result[m, k] += complex(term_re[k], term_im[k])
    return result


@kernel
def _derivative(layout: Real, field: Field) -> Complex:
    waveguides, antennas = layout.shape
    count = field.device_x.size
    result = np.empty((waveguides, antennas, count), np.complex128)
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    for m in range(waveguides):
        for n in range(antennas):
            element(layout[m, n], m, field, distance, term_re, term_im)
            for k in range(count):
                slope_re, slope_im = response_slope(
                    layout[m, n], field.device_x[k], distance[k], field.turns_per_m, field.refractive_index
                )
                result[m, n, k] = complex(term_re[k], term_im[k]) * complex(slope_re, slope_im)
    return result


@dataclass(frozen=True, eq=False)
class PassUplink:
    """Parameters of the channel, except antenna positions. Lengths in metres."""

    device_x: Real  # x_k, shape (K,)
    device_y: Real  # y_k
    gain: Real  # gamma_k
    waveguide_y: Real  # (m-1) d, shape (M,)
    height: float  # a
    wavelength: float  # lambda
    refractive_index: float  # i_ref
    path_gain: float  # xi

    def field(self, antennas: int, devices: Mask | None = None) -> Field:
        """Arguments of the kernels for `antennas` on each waveguide, for all or some devices."""
        chosen = slice(None) if devices is None else devices
        return Field(
            # Copied, because Numba compiles a separate version for read-only arrays.
            device_x=self.device_x[chosen].copy(),
            offset_square=(self.device_y[chosen] - self.waveguide_y[:, None]) ** 2 + self.height**2,
            amplitude=self.path_gain * self.gain[chosen] / np.sqrt(antennas),
            turns_per_m=1.0 / self.wavelength,
            refractive_index=self.refractive_index,
        )

    def channels(self, layout: Real) -> Complex:
        """G(L), shape (M, K): eqs. (10)-(12)."""
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _channels(layout, self.field(layout.shape[1]))

    def terms(self, layout: Real) -> Complex:
        """g_{k,m,n}, shape (M, N, K): eq. (64)."""
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _terms(layout, self.field(layout.shape[1]))

    def derivative(self, layout: Real) -> Complex:
        """d g_{k,m}/d l_{m,n}, shape (M, N, K): eqs. (66)-(68).

        Position l_{m,n} affects only waveguide m's channel, so these are all nonzero entries.
        """
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _derivative(layout, self.field(layout.shape[1]))
