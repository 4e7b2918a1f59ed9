"""The pinching-antenna uplink: channels of every device to every waveguide, eqs. (9)-(12),
and their derivative in every antenna position, eqs. (63)-(68).

    D_{k,m}(l)  = sqrt((x_k - l)^2 + (y_k - y_m)^2 + a^2)                            (9)
    g_{k,m,n}   = xi gamma_k exp(-j kappa (D + i_ref l)) / (sqrt(N) D)              (64)
    g_{k,m}     = sum_n g_{k,m,n}                                               (10, 63)

The phase is counted in turns, (D + i_ref l)/lambda, because whole turns can then be
dropped exactly before the sine and cosine are taken.
"""

from dataclasses import dataclass

import numpy as np

from airpass.optim.jit import kernel
from airpass.optim.types import Complex, Real
from airpass.optim.vector_math import cos_sin_turns


@kernel
def element(
    position: float,
    device_x: Real,
    offset_square: Real,
    amplitude: Real,
    turns_per_m: float,
    refractive_index: float,
    distance: Real,
    term_re: Real,
    term_im: Real,
) -> None:
    """g_{k,m,n} of one antenna to every device k (eq. 64), and its distance D (eq. 9).

    `offset_square` is (y_k - y_m)^2 + a^2, `amplitude` xi gamma_k/sqrt(N).
    """
    guided = refractive_index * position
    for k in range(device_x.size):
        dx = position - device_x[k]
        distance[k] = np.sqrt(dx * dx + offset_square[k])
        cosine, sine = cos_sin_turns(turns_per_m * (distance[k] + guided))
        scale = amplitude[k] / distance[k]
        term_re[k] = scale * cosine
        term_im[k] = -scale * sine


@kernel
def _channels(
    layout: Real,
    device_x: Real,
    device_y: Real,
    amplitude: Real,
    waveguide_y: Real,
    height: float,
    turns_per_m: float,
    refractive_index: float,
) -> Complex:
    waveguides, antennas = layout.shape
    count = device_x.size
    result = np.zeros((waveguides, count), np.complex128)
    distance = np.empty(count)
    term_re = np.empty(count)
    term_im = np.empty(count)
    for m in range(waveguides):
        offset_square = (device_y - waveguide_y[m]) ** 2 + height**2
        for n in range(antennas):
            element(
                layout[m, n],
                device_x,
                offset_square,
                amplitude,
                turns_per_m,
                refractive_index,
                distance,
                term_re,
                term_im,
            )
            for k in range(count):
                result[m, k] += complex(term_re[k], term_im[k])
    return result


@kernel
def _derivative(
    layout: Real,
    device_x: Real,
    device_y: Real,
    amplitude: Real,
    waveguide_y: Real,
    height: float,
    turns_per_m: float,
    refractive_index: float,
) -> Complex:
    waveguides, antennas = layout.shape
    count = device_x.size
    result = np.empty((waveguides, antennas, count), np.complex128)
    distance = np.empty(count)
    term_re = np.empty(count)
    term_im = np.empty(count)
    wavenumber = 2.0 * np.pi * turns_per_m
    for m in range(waveguides):
        offset_square = (device_y - waveguide_y[m]) ** 2 + height**2
        for n in range(antennas):
            element(
                layout[m, n],
                device_x,
                offset_square,
                amplitude,
                turns_per_m,
                refractive_index,
                distance,
                term_re,
                term_im,
            )
            for k in range(count):
                stretch = (layout[m, n] - device_x[k]) / distance[k]  # dD/dl, eq. (66)
                factor = complex(-stretch / distance[k], -wavenumber * (stretch + refractive_index))
                result[m, n, k] = complex(term_re[k], term_im[k]) * factor  # eq. (67)
    return result


@dataclass(frozen=True, eq=False)
class PassUplink:
    """Everything that fixes the channel but the antenna positions. Lengths in metres."""

    device_x: Real  # x_k, shape (K,)
    device_y: Real  # y_k
    gain: Real  # gamma_k
    waveguide_y: Real  # (m-1) d, shape (M,)
    height: float  # a
    wavelength: float  # lambda
    refractive_index: float  # i_ref
    path_gain: float  # xi

    @property
    def wavenumber(self) -> float:
        """kappa = 2 pi/lambda, in rad/m."""
        return 2.0 * np.pi / self.wavelength

    def amplitude(self, antennas: int) -> Real:
        """xi gamma_k/sqrt(N): the size of one antenna's term at a distance of one metre."""
        scaled: Real = self.path_gain * self.gain / np.sqrt(antennas)
        return scaled

    def channels(self, layout: Real) -> Complex:
        """G(L), shape (M, K): eqs. (10)-(12)."""
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _channels(layout, *self._arguments(layout.shape[1]))

    def derivative(self, layout: Real) -> Complex:
        """d g_{k,m}/d l_{m,n}, shape (M, N, K): eqs. (66)-(68).

        Position l_{m,n} moves only waveguide m's channel, so this holds all that is not zero.
        """
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _derivative(layout, *self._arguments(layout.shape[1]))

    def _arguments(self, antennas: int) -> tuple[Real, Real, Real, Real, float, float, float]:
        return (
            self.device_x,
            self.device_y,
            self.amplitude(antennas),
            self.waveguide_y,
            self.height,
            1.0 / self.wavelength,
            self.refractive_index,
        )
