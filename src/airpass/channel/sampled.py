"""Responses on candidate places, from a ray tracer or from measurements.

    g_{k,m} = sum_n r_{k,m}(l_{m,n})/sqrt(N)

r_{k,m}(l) is the response of device k to a single antenna at place l on waveguide m. It takes the place of
xi gamma_k exp(-j kappa (D + i_ref s_m))/D in eq. (64), and is known only at candidate places. It is a field
amplitude: |r|^2 is the path gain, received power over transmitted power, and nothing is normalised.
P0/sigma^2 is given separately, as `snr_db` or by a link budget.

A ray tracer computes the propagation from the device to the antenna. The propagation from the antenna along
the waveguide to its feed,

    10^(-loss s_m(l)/20) exp(-j 2 pi i_ref s_m(l)/lambda),

is not part of it; `with_waveguides` adds it. Measurements at the feed include it.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from airpass.channel.segments import Segments, segment_feeds
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Index, Real

LIGHT_M_S = 299_792_458.0
ON_PLACE_M = 1e-6  # largest distance of an antenna from its place
AXES = "(waveguides M, places P, devices K)"


class Waveguides(Protocol):
    """What is needed of a receiver: `airpass.Receiver` has it."""

    @property
    def lengths(self) -> Real:
        """L_m in metres, shape (M,)."""

    @property
    def feed_x(self) -> Real:
        """f_m, the position of the feeds in metres, shape (M,)."""


@dataclass(frozen=True, eq=False)
class SampledResponse:
    """Responses of all devices to single antennas at candidate places.

    Parameters
    ----------
    response
        Complex field amplitudes, shape (M, P, K). The squared modulus is the path gain; zero if nothing is
        received.
    places_m
        Positions along the waveguides in metres, increasing; shape (M, P), or (P,) if all waveguides have
        the same.
    waveguide_included
        Whether the response includes the propagation from the antenna along the waveguide to its feed.
    device_xyz_m
        [x, y, z] of the devices in metres, shape (K, 3), or None if they are not known.
    carrier_ghz
        Carrier frequency in GHz, or None if it is not known.
    description
        Where the responses are from.
    normalisation_db
        Path gain in dB that was added by `with_unit_mean_power`; 0 if nothing was.
    """

    response: Complex
    places_m: Real
    waveguide_included: bool
    device_xyz_m: Real | None = None
    carrier_ghz: float | None = None
    description: str = ""
    normalisation_db: float = 0.0

    def __post_init__(self) -> None:
        response = _numbers("response", self.response, "iufc", np.complex128)
        if response.ndim != 3 or 0 in response.shape:
            raise InvalidInput(f"response has shape {response.shape}: must be {AXES}, none of them zero")
        _refuse_infinite("response", response)
        waveguides, count, devices = response.shape
        for k in np.flatnonzero(~response.any(axis=(0, 1)))[:1]:
            raise InvalidInput(
                f"response[:, :, {k}] is all zeros: remove the device, which no place receives"
            )
        places = _numbers("places_m", self.places_m, "iuf", np.float64)
        if places.shape not in ((count,), (1, count), (waveguides, count)):
            raise InvalidInput(
                f"places_m has shape {places.shape}: must be ({waveguides}, {count}) or ({count},), as "
                f"response has shape {response.shape}, {AXES}"
            )
        _refuse_infinite("places_m", places)
        places = np.broadcast_to(places, (waveguides, count)).copy()
        for m, p in np.argwhere(np.diff(places, axis=1) <= 0.0)[:1]:
            raise InvalidInput(
                f"places_m[{m}, {p + 1}] = {places[m, p + 1]:g}: must be above places_m[{m}, {p}] = "
                f"{places[m, p]:g}; sort the places of each waveguide"
            )
        if not isinstance(self.waveguide_included, bool | np.bool_):
            raise InvalidInput(f"waveguide_included = {self.waveguide_included!r}: must be true or false")
        if self.device_xyz_m is not None:
            positions = _numbers("device_xyz_m", self.device_xyz_m, "iuf", np.float64)
            if positions.shape != (devices, 3):
                raise InvalidInput(
                    f"device_xyz_m has shape {positions.shape}: must be ({devices}, 3), [x, y, z] per device"
                )
            _refuse_infinite("device_xyz_m", positions)
            checks.keep(self, device_xyz_m=_fixed(positions))
        if self.carrier_ghz is not None:
            checks.keep(self, carrier_ghz=checks.positive("carrier_ghz", self.carrier_ghz))
        if not isinstance(self.description, str):
            raise InvalidInput(f"description = {self.description!r}: must be a text")
        checks.keep(
            self,
            response=_fixed(response),
            places_m=_fixed(places),
            waveguide_included=bool(self.waveguide_included),
            normalisation_db=checks.decibels("normalisation_db", self.normalisation_db),
        )

    def __repr__(self) -> str:
        waveguides, places, devices = self.response.shape
        carrier = "" if self.carrier_ghz is None else f", {self.carrier_ghz:g} GHz"
        guide = "with" if self.waveguide_included else "without"
        return (
            f"SampledResponse({waveguides} waveguides, {places} places, {devices} devices{carrier}, "
            f"{guide} waveguides' propagation, mean path gain {self.mean_path_gain_db:.1f} dB)"
        )

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all that channels depend on; the same for `.npz` and `.mat`, in hexadecimal digits."""
        digest = hashlib.sha256(repr((self.response.shape, self.waveguide_included)).encode())
        digest.update(repr(self.carrier_ghz).encode())
        for values in (self.response, self.places_m):
            digest.update(values.tobytes())
        return digest.hexdigest()

    # Channels ------------------------------------------------------------------------

    def indices(self, layout: Real) -> Index:
        """Numbers of the places of a layout's antennas.

        Parameters
        ----------
        layout
            Antenna positions in metres, shape (M, N), each at a place of its waveguide, none at the same.

        Returns
        -------
        Index
            Numbers of the places, shape (M, N).
        """
        positions = np.asarray(layout, dtype=np.float64)
        waveguides, count = self.places_m.shape
        if positions.ndim != 2 or positions.shape[0] != waveguides or not 1 <= positions.shape[1] <= count:
            raise InvalidInput(
                f"layout has shape {positions.shape}: must be ({waveguides}, N) with N from 1 to {count}"
            )
        _refuse_infinite("layout", positions)
        chosen = np.empty(positions.shape, dtype=np.int64)
        for m, (row, places) in enumerate(zip(positions, self.places_m, strict=True)):
            right = (
                np.clip(np.searchsorted(places, row), 1, count - 1) if count > 1 else np.zeros(row.size, int)
            )
            left = np.maximum(right - 1, 0)
            chosen[m] = np.where(row - places[left] <= places[right] - row, left, right)
            for n in np.flatnonzero(np.abs(places[chosen[m]] - row) > ON_PLACE_M)[:1]:
                raise InvalidInput(
                    f"layout[{m}, {n}] = {row[n]:g}: not a place of the responses; the nearest is at "
                    f"{places[chosen[m, n]]:g} m"
                )
            if np.unique(chosen[m]).size < row.size:
                raise InvalidInput(
                    f"layout[{m}] has two antennas at the same place: give each a place of its own"
                )
        return chosen

    def terms(self, places: Real, antennas: int | None = None) -> Complex:
        """Responses to antennas at some of the places, with the factor 1/sqrt(N); shape (M, P', K).

        Parameters
        ----------
        places
            Positions in metres, shape (M, P'), each at a place of its waveguide.
        antennas
            N, the number of antennas on each waveguide that share its power. Default: P'.

        Returns
        -------
        Complex
            What takes the place of g_{k,m,n}, eq. (64).
        """
        chosen = self.indices(places)
        shared = chosen.shape[1] if antennas is None else checks.whole("antennas", antennas, 1)
        return self._at(chosen) / math.sqrt(shared)

    def channels(self, layout: Real) -> Complex:
        """G, shape (M, K): the sum over the antennas of each waveguide, eqs. (10)-(12).

        Parameters
        ----------
        layout
            Antenna positions in metres, shape (M, N), each at a place of its waveguide.

        Returns
        -------
        Complex
            Channels of the waveguides to the devices.
        """
        return self.channels_at(self.indices(layout))

    def channels_at(self, indices: Index) -> Complex:
        """G for antennas at places given by their numbers.

        Parameters
        ----------
        indices
            Numbers of the places, shape (M, N), from 0.

        Returns
        -------
        Complex
            Channels, shape (M, K).
        """
        result: Complex = self._at(indices).sum(axis=1) / math.sqrt(indices.shape[1])
        return result

    def _at(self, indices: Index) -> Complex:
        if not self.waveguide_included:
            raise InvalidInput(
                "the responses end at the antennas (waveguide_included is false): add the propagation along "
                "the waveguides with with_waveguides(receiver, refractive_index)"
            )
        result: Complex = np.take_along_axis(self.response, indices[:, :, None], axis=1)
        return result

    # Propagation along the waveguides ------------------------------------------------

    def with_waveguides(
        self, receiver: Waveguides, refractive_index: float, loss_db_per_m: float = 0.0, segments: int = 1
    ) -> "SampledResponse":
        """Add the propagation along the waveguides to the feeds, which a ray tracer leaves out.

        Parameters
        ----------
        receiver
            Lengths and feeds of the waveguides, for example an `airpass.Receiver` with `feed = "right"`.
        refractive_index
            i_ref, the effective refractive index of the waveguides.
        loss_db_per_m
            Loss along the waveguides in dB per metre.
        segments
            Q, segments of equal length that each waveguide is cut into, each with a feed.

        Returns
        -------
        SampledResponse
            Responses at the feeds.
        """
        if self.waveguide_included:
            raise InvalidInput("the responses already include the waveguides (waveguide_included is true)")
        if self.carrier_ghz is None:
            raise InvalidInput("carrier_ghz is not known: the phase along the waveguides depends on it")
        index = checks.at_least("refractive_index", refractive_index, 1.0)
        loss = checks.at_least("loss_db_per_m", loss_db_per_m, 0.0)
        count = checks.whole("segments", segments, 1)
        feeds, lengths = np.asarray(receiver.feed_x) / count, np.asarray(receiver.lengths)
        if feeds.size != len(self.response):
            raise InvalidInput(
                f"the receiver has {feeds.size} waveguides: must be {len(self.response)}, as many as the "
                "responses have"
            )
        outside = (self.places_m < -ON_PLACE_M) | (self.places_m > lengths[:, None] + ON_PLACE_M)
        for m, p in np.argwhere(outside)[:1]:
            raise InvalidInput(
                f"places_m[{m}, {p}] = {self.places_m[m, p]:g}: must be on the waveguide, from 0 to "
                f"{lengths[m]:g} m; change the receiver's length_m, or the origin of the places"
            )
        cut = Segments(lengths / count, float(count), False) if count > 1 else None
        guide = np.abs(self.places_m - segment_feeds(cut, self.places_m, feeds))
        turns = index * guide * (self.carrier_ghz * 1e9 / LIGHT_M_S)
        factor = 10.0 ** (-loss * guide / 20.0) * np.exp(-2j * np.pi * (turns - np.rint(turns)))
        return replace(self, response=self.response * factor[:, :, None], waveguide_included=True)

    # Scale ---------------------------------------------------------------------------

    @cached_property
    def mean_path_gain_db(self) -> float:
        """Mean of |r|^2 over all waveguides, places and devices, in dB."""
        return 10.0 * math.log10(float(np.mean(np.abs(self.response) ** 2)))

    def median_snr_db(self, snr_db: float) -> float:
        """SNR of a device at full power, received by one antenna: median over all places and devices.

        Parameters
        ----------
        snr_db
            P0/sigma^2 in dB.

        Returns
        -------
        float
            Median of P0 |r|^2/sigma^2 in dB; minus infinity if most places receive nothing.
        """
        median = float(np.median(np.abs(self.response) ** 2))
        gain_db = 10.0 * math.log10(median) if median > 0.0 else -math.inf
        return checks.decibels("snr_db", snr_db) + gain_db

    def with_unit_mean_power(self) -> "SampledResponse":
        """The responses scaled so that the mean of |r|^2 is one.

        P0/sigma^2 then is the mean SNR of one antenna. `normalisation_db` records the scaling, so that it can
        be undone.

        Returns
        -------
        SampledResponse
            The scaled responses.
        """
        gain_db = self.mean_path_gain_db
        scaled = self.response / 10.0 ** (gain_db / 20.0)
        return replace(self, response=scaled, normalisation_db=self.normalisation_db - gain_db)

    # Files ---------------------------------------------------------------------------

    def save(self, path: str | Path, single: bool = False) -> None:
        """Write the responses to a file that `load_responses` reads.

        Parameters
        ----------
        path
            `.npz`, or `.mat` for MATLAB.
        single
            Whether to store them in single precision, in half the space.
        """
        from airpass.channel.response_files import save_responses

        save_responses(path, self, single)


def _numbers(label: str, values: Any, kinds: str, dtype: Any) -> Any:
    """An array of numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidInput(f"{label}: rows differ in length; must be an array") from None
    if array.dtype.kind not in kinds:
        real = "" if "c" in kinds else "real "
        raise InvalidInput(f"{label} has entries of type {array.dtype}: must be {real}numbers")
    return array.astype(dtype)


def _refuse_infinite(label: str, values: Any) -> None:
    for place in np.argwhere(~np.isfinite(values))[:1]:
        where = ", ".join(map(str, place))
        raise InvalidInput(f"{label}[{where}] = {values[tuple(place)]}: all entries must be finite")


def _fixed(values: Any) -> Any:
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values
