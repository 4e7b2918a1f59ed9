"""Candidate places among the points of a ray tracer: rows of points along x are waveguides."""

from typing import Any, NamedTuple

import numpy as np

from airpass.channel.sampled import SampledResponse
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Index, Real

SAME_M = 1e-3  # points of one waveguide agree this well in y and z; ray tracers have single precision


class Rows(NamedTuple):
    """Waveguides found among points."""

    indices: Index  # numbers of the points, shape (M, P)
    places_m: Real  # positions along x from the origin, shape (M, P)
    waveguide_y_m: Real  # y from the origin, shape (M,)
    height_m: Real  # z from the origin, shape (M,)


def rows_of(points: Any, origin_m: Any = (0.0, 0.0, 0.0), indices: Any = None) -> Rows:
    """Sort points into waveguides.

    Parameters
    ----------
    points
        [x, y, z] in metres, shape (points, 3).
    origin_m
        [x, y, z] of the origin of the receiver's coordinates: waveguides begin at its x.
    indices
        Numbers of the points to use, in any order. Default: all.

    Returns
    -------
    Rows
        Waveguides in order of y, then z, with their points in order of x. Points with equal y and z are one
        waveguide; all must have the same number of points.
    """
    positions = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    chosen = chosen_of(indices, len(positions), "places")
    shifted = positions[chosen] - checked_origin(origin_m)
    keys = np.rint(shifted[:, 1:] / SAME_M).astype(np.int64)
    lines: list[tuple[Real, Index]] = []
    for n in np.lexsort((keys[:, 1], keys[:, 0])):
        for line, members in lines:
            if np.abs(shifted[n, 1:] - line).max() <= SAME_M:
                members.resize(members.size + 1, refcheck=False)
                members[-1] = n
                break
        else:
            lines.append((shifted[n, 1:], np.array([n], dtype=np.int64)))
    counts = [members.size for _, members in lines]
    if len(set(counts)) > 1:
        shown = ", ".join(map(str, counts[:8])) + (", ..." if len(counts) > 8 else "")
        raise InvalidInput(
            f"places: the points form {len(counts)} rows along x with {shown} points; all waveguides must "
            "have the same number: choose points with place_indices"
        )
    ordered = [members[np.argsort(shifted[members, 0], kind="stable")] for _, members in lines]
    return Rows(
        indices=np.stack([chosen[members] for members in ordered]),
        places_m=np.stack([shifted[members, 0] for members in ordered]),
        waveguide_y_m=np.array([line[0] for line, _ in lines]),
        height_m=np.array([line[1] for line, _ in lines]),
    )


def checked_origin(origin_m: Any) -> Real:
    """[x, y, z] of an origin."""
    values = np.asarray(origin_m, dtype=np.float64)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise InvalidInput(f"origin_m = {origin_m!r}: must be [x, y, z] in metres")
    return values


def chosen_of(indices: Any, count: int, what: str) -> Index:
    """Numbers of points, all if none are given."""
    if indices is None:
        return np.arange(count)
    values = np.asarray(indices)
    if values.dtype.kind not in "iu" or values.ndim != 1 or not values.size:
        raise InvalidInput(f"{what}: indices must be a list of whole numbers")
    if values.min() < 0 or values.max() >= count:
        raise InvalidInput(f"{what}: indices must be from 0 to {count - 1}")
    if np.unique(values).size < values.size:
        raise InvalidInput(f"{what}: indices must differ from each other")
    return values.astype(np.int64)


def responses_between(
    gains: Complex,
    points: Real,
    devices: Real,
    origin_m: Any,
    place_indices: Any,
    device_indices: Any,
    carrier_hz: float,
    description: str,
) -> SampledResponse:
    """Responses at points that are places of devices at other points, without the waveguides.

    Parameters
    ----------
    gains
        Responses of single antennas, shape (points, devices).
    points, devices
        [x, y, z] in metres, shapes (points, 3) and (devices, 3).
    origin_m, place_indices
        As for `rows_of`.
    device_indices
        Numbers of the devices to use, in their order; None for all.
    carrier_hz, description
        Carrier frequency, and text to keep with the responses.

    Returns
    -------
    SampledResponse
        Responses at the antennas.
    """
    rows = rows_of(points, origin_m, place_indices)
    chosen = chosen_of(device_indices, len(devices), "devices")
    return SampledResponse(
        response=gains[rows.indices][:, :, chosen],
        places_m=rows.places_m,
        waveguide_included=False,
        device_xyz_m=devices[chosen] - checked_origin(origin_m),
        carrier_ghz=carrier_hz / 1e9,
        description=description,
    )


def sum_paths(amplitude: Any, delay_s: Any, carrier_hz: float | None) -> Complex:
    """Sum of paths at the carrier, over the last axis.

    Parameters
    ----------
    amplitude
        Complex amplitude of the paths, zero where there is none.
    delay_s
        Delays in seconds, of a shape that fits that of `amplitude`.
    carrier_hz
        Carrier frequency, to turn each path by exp(-j 2 pi f tau); None if amplitudes include this.

    Returns
    -------
    Complex
        sum_i a_i exp(-j 2 pi f tau_i).
    """
    total = np.asarray(amplitude, dtype=np.complex128)
    if carrier_hz is not None:
        turns = np.where(total == 0.0, 0.0, np.asarray(delay_s, dtype=np.float64) * carrier_hz)
        total = total * np.exp(-2j * np.pi * (turns - np.rint(turns)))
    result: Complex = total.sum(axis=-1)
    return result
