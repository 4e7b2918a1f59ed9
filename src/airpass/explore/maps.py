"""Maps of the mean receive gain: over the floor, or in a vertical cut."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.designs.api import Design

FLOOR, CUT = PLANES = ("floor", "cut")
MOST_POINTS = 60_000
SMALLEST = 1e-300  # gain, so that shadows have a level in dB


def gain_map(found: Design, request: Mapping[str, Any]) -> bytes:
    """The mean receive gain of a device with unit gain, in dB, on a grid.

    Parameters
    ----------
    found
        The design.
    request
        `plane`: "floor" for x and y at the height `at_m`, "cut" for x and z at y = `at_m`. `low_m` and
        `high_m`: [x, y] or [x, z] of opposite corners. `points`: numbers of points in both directions.

    Returns
    -------
    bytes
        Numbers of points, little-endian, 32 bits each, and the levels as 32-bit floats, row by row from
        `low_m` on.
    """
    plane = checks.one_of("plane", request.get("plane"), PLANES)
    at = checks.number("at_m", request.get("at_m"))
    columns, rows = (checks.whole("points", count, 1) for count in _pair(request, "points"))
    if columns * rows > MOST_POINTS:
        raise InvalidInput(f"points = {columns} x {rows}: must be at most {MOST_POINTS} together")
    low, high = (
        [checks.number(name, value) for value in _pair(request, name)] for name in ("low_m", "high_m")
    )
    first, second = (
        low[i] + (high[i] - low[i]) * (np.arange(count) + 0.5) / count
        for i, count in ((0, columns), (1, rows))
    )
    x, other = (part.ravel() for part in np.meshgrid(first, second))
    gain = found.mean_gain(x, other, at) if plane == FLOOR else found.mean_gain(x, np.full_like(x, at), other)
    level = 10.0 * np.log10(np.maximum(gain, SMALLEST))
    return np.array([columns, rows], "<u4").tobytes() + level.astype("<f4").tobytes()


def _pair(request: Mapping[str, Any], name: str) -> list[Any]:
    value = request.get(name)
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidInput(f"{name}: must be two numbers")
    return value
