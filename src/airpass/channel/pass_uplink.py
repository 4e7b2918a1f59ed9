"""The pinching-antenna uplink: channels of every device to every waveguide, eqs. (9)-(12),
and their derivatives with respect to every antenna position, eqs. (63)-(68).

    D_{k,m}(l)  = sqrt((x_k - l)^2 + (y_k - y_m)^2 + (z_k - a_m)^2)                  (9)
    g_{k,m,n}   = xi gamma_k exp(-j kappa (D + i_ref s_m(l))) / (sqrt(N) D)         (64)
    g_{k,m}     = sum_n g_{k,m,n}                                               (10, 63)

s_m(l) is the distance along the waveguide from its feed at f_m: l if it is fed from the left, as in the
paper (f_m = 0), L_m - l from the right (f_m = L_m), and |l - L_m/2| if it is fed in the centre. Only
s_m depends on the feed, so that eq. (67) has i_ref ds_m/dl, with ds_m/dl = 1 right of the feed and -1 left
of it. Exactly at a centre feed the channel has a kink, and the right-hand derivative is used. In the
paper a_m = a and z_k = 0.

With a loss of A dB per metre along the waveguide, g_{k,m,n} is multiplied by 10^(-A s/20) = exp(-alpha s),
which adds -alpha ds_m/dl to (66). The paper has A = 0.

The paper splits power equally, 1/sqrt(N) in (64). With a proportional split each antenna couples the share
delta^2 of the power that passes it: 1/sqrt(N) becomes delta (1 - delta^2)^((n-1)/2) for the n-th antenna from
the feed. Its derivative is that of (64): antennas do not pass each other.

Waveguides may be cut into segments with a feed each (`segments`): then s_m is the distance to the feed of the
segment.

The phase is in turns, (D + i_ref s)/lambda, because whole turns can be removed exactly
before the sine and cosine are computed.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airpass.channel.field import Field, modulate, segment_feed
from airpass.channel.model import ChannelModel
from airpass.channel.segments import Segments
from airpass.core import memory
from airpass.core.types import Complex, Mask, Real
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import cos_sin_turns, cos_sin_turns_single

NEPERS_PER_DB = math.log(10.0) / 20.0


@inlined
def guide_length(position: float, feed: float, side: float) -> float:
    """s_m(l): distance along the waveguide from its feed; beyond an end with the feed it is negative."""
    return abs(position - feed) if side == 0.0 else side * (position - feed)


@inlined
def guide_slope(position: float, feed: float, side: float) -> float:
    """ds_m/dl: 1 or -1; the right-hand derivative at a centre feed."""
    return side if side != 0.0 else (1.0 if position >= feed else -1.0)


@inlined
def guide_decay(guide: float, loss_per_m: float) -> float:
    """exp(-alpha s): what is left of an amplitude after s metres of waveguide; exactly 1 without loss."""
    return 1.0 if loss_per_m == 0.0 else math.exp(-loss_per_m * guide)


@inlined
def response(
    position: float,
    guide: float,
    device_x: float,
    offset_square: float,
    amplitude: float,
    turns_per_m: float,
    refractive_index: float,
) -> tuple[float, float, float]:
    """Distance D (eq. 9) of one device to an antenna at `position`, and Re and Im of g_{k,m,n} (eq. 64).

    `guide` is s_m(position).
    """
    dx = position - device_x
    distance = math.sqrt(dx * dx + offset_square)
    cosine, sine = cos_sin_turns(turns_per_m * (distance + refractive_index * guide))
    scale = amplitude / distance
    return distance, scale * cosine, -scale * sine


@inlined
def response_single(
    position: float,
    guide: float,
    device_x: float,
    offset_square: float,
    amplitude: np.float32,
    turns_per_m: float,
    refractive_index: float,
) -> tuple[float, np.float32, np.float32]:
    """`response` with distance and phase in double precision, the rest in single precision."""
    dx = position - device_x
    distance = math.sqrt(dx * dx + offset_square)
    cosine, sine = cos_sin_turns_single(turns_per_m * (distance + refractive_index * guide))
    scale = amplitude / np.float32(distance)
    return distance, scale * cosine, -(scale * sine)


@inlined
def response_slope(
    position: float,
    device_x: float,
    distance: float,
    turns_per_m: float,
    guide_rate: float,
    loss_rate: float,
) -> tuple[float, float]:
    """Re and Im of (dg/dl)/g for an antenna at `position`, eqs. (66), (67).

    `distance` is D, `guide_rate` is i_ref ds_m/dl, `loss_rate` is alpha ds_m/dl.
    """
    stretch = (position - device_x) / distance  # dD/dl
    return -stretch / distance - loss_rate, -2.0 * np.pi * turns_per_m * (stretch + guide_rate)


@kernel
def element(
    position: float,
    waveguide: int,
    antenna: int,
    field: Field,
    distance: Real,
    term_re: Real,
    term_im: Real,
) -> None:
    """Responses of all devices to one antenna, into `distance`, `term_re` and `term_im`."""
    offset_square = field.offset_square[waveguide]
    feed = segment_feed(field.segments, position, waveguide, field.feed[0, waveguide])
    guide = guide_length(position, feed, field.feed[1, waveguide])
    decay = guide_decay(guide, field.loss_per_m) * field.feed[2 + antenna, waveguide]
    for k in range(field.device_x.size):
        distance[k], term_re[k], term_im[k] = response(
            position,
            guide,
            field.device_x[k],
            offset_square[k],
            decay * field.amplitude[k],
            field.turns_per_m,
            field.refractive_index,
        )
    modulate(field.factor, position, waveguide, term_re, term_im)


@kernel
def _terms(layout: Real, field: Field) -> Complex:
    waveguides, antennas = layout.shape
    count = field.device_x.size
    result = np.empty((waveguides, antennas, count), np.complex128)
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    for m in range(waveguides):
        for n in range(antennas):
            element(layout[m, n], m, n, field, distance, term_re, term_im)
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
            element(layout[m, n], m, n, field, distance, term_re, term_im)
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
            element(layout[m, n], m, n, field, distance, term_re, term_im)
            feed = segment_feed(field.segments, layout[m, n], m, field.feed[0, m])
            side = guide_slope(layout[m, n], feed, field.feed[1, m])
            for k in range(count):
                slope_re, slope_im = response_slope(
                    layout[m, n],
                    field.device_x[k],
                    distance[k],
                    field.turns_per_m,
                    field.refractive_index * side,
                    field.loss_per_m * side,
                )
                result[m, n, k] = complex(term_re[k], term_im[k]) * complex(slope_re, slope_im)
    return result


@dataclass(frozen=True, eq=False)
class PassUplink(ChannelModel):
    """The paper's channel, as a function of the antenna positions. Lengths in metres."""

    device_x: Real  # x_k, shape (K,)
    device_y: Real  # y_k
    gain: Real  # gamma_k
    waveguide_y: Real  # y_m, shape (M,)
    height: Real | float  # a_m, shape (M,) or one number
    wavelength: float  # lambda
    refractive_index: float  # i_ref
    path_gain: float  # xi
    device_z: Real | float = 0.0  # z_k, shape (K,) or one number
    feed: Real | float = 0.0  # f_m, shape (M,) or one number
    side: Real | float = 1.0  # of the feed to which a waveguide extends; see `Field.feed`
    loss_db_per_m: float = 0.0  # along the waveguide
    split_delta: float | None = None  # delta; None for an equal split
    segments: Segments | None = None  # `feed` is that of the first; None for whole waveguides

    @property
    def differentiable(self) -> bool:
        """Always true."""
        return True

    def require_derivative(self) -> None:
        """Do nothing."""

    @property
    def passive(self) -> bool:
        """Always true."""
        return True

    @property
    def closed_form(self) -> bool:
        """Always true."""
        return True

    @cached_property
    def _offset_square(self) -> Real:
        dy = self.device_y - self.waveguide_y[:, None]
        dz = np.atleast_1d(self.height)[:, None] - self.device_z
        offset_square: Real = dy**2 + dz**2
        return offset_square

    def _feed(self, antennas: int) -> Real:
        """`Field.feed`. Antennas are counted from the feed, and numbered from the left."""
        waveguides = self.waveguide_y.size
        result = np.ones((2 + antennas, waveguides))
        result[0], result[1] = self.feed, self.side
        if self.split_delta is not None:
            order = np.arange(antennas)[:, None]
            passed = np.where(result[1] < 0.0, antennas - 1 - order, order)
            left = 1.0 - self.split_delta**2
            result[2:] = np.sqrt(antennas) * self.split_delta * left ** (0.5 * passed)
        return result

    def field(self, antennas: int, devices: Mask | None = None) -> Field:
        """Arguments of the kernels for `antennas` on each waveguide, for all or some devices."""
        chosen = slice(None) if devices is None else devices
        offset_square = self._offset_square
        return Field(
            # Copied, because Numba compiles a separate version for read-only arrays.
            device_x=self.device_x[chosen].copy(),
            offset_square=offset_square if devices is None else offset_square.compress(devices, axis=1),
            amplitude=self.path_gain * self.gain[chosen] / np.sqrt(antennas),
            turns_per_m=1.0 / self.wavelength,
            refractive_index=self.refractive_index,
            feed=self._feed(antennas),
            loss_per_m=self.loss_db_per_m * NEPERS_PER_DB,
            segments=self.segments,
        )

    def channels(self, layout: Real) -> Complex:
        """G(L), shape (M, K): eqs. (10)-(12)."""
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        return _channels(layout, self.field(layout.shape[1]))

    def terms(self, places: Real, antennas: int | None = None) -> Complex:
        """g_{k,m,n}, shape (M, P, K): eq. (64)."""
        places = np.ascontiguousarray(places, dtype=np.float64)
        self._require_memory(places)
        count = places.shape[1]
        field = self.field(count if antennas is None else antennas)
        if antennas not in (None, count):  # places that are not those of all antennas: an equal split
            equal = np.ones((2 + count, places.shape[0]))
            equal[:2] = field.feed[:2]
            field = field._replace(feed=equal)
        return _terms(places, field)

    def derivative(self, layout: Real) -> Complex:
        """d g_{k,m}/d l_{m,n}, shape (M, N, K): eqs. (66)-(68).

        Position l_{m,n} affects only waveguide m's channel, so these are all nonzero entries.
        """
        layout = np.ascontiguousarray(layout, dtype=np.float64)
        self._require_memory(layout)
        return _derivative(layout, self.field(layout.shape[1]))

    def _require_memory(self, places: Real) -> None:
        needed = 64.0 * places.size * self.device_x.size
        memory.require(needed, "channels of single antennas", "devices.count or receiver.antennas")

    def with_devices(self, x: Real, y: Real, z: Real | float, gain: Real) -> "PassUplink":
        """The same receiver with other devices."""
        return replace(self, device_x=x, device_y=y, device_z=z, gain=gain)
