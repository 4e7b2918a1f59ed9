"""2 x 2 max-pooling and ReLU in one pass. Arrays are (image, row, column, channel)."""

from typing import Any, TypeAlias

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from airpass.core.types import Single
from airpass.kernels.jit import kernel
from airpass.kernels.simd import VectorCode

Places: TypeAlias = NDArray[np.int32]  # position of a maximum in its window: 0 to 3, or DEAD
DEAD = 4  # ReLU is zero; no gradient passes


@kernel
def _keep(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    """ReLU of the largest entry, and its position. Ties take the first; NaN propagates. As in PyTorch."""
    best, place = v0, np.int32(0)
    larger = (v1 > best) | np.isnan(v1)
    place = np.int32(1) if larger else place
    best = v1 if larger else best
    larger = (v2 > best) | np.isnan(v2)
    place = np.int32(2) if larger else place
    best = v2 if larger else best
    larger = (v3 > best) | np.isnan(v3)
    place = np.int32(3) if larger else place
    best = v3 if larger else best
    cut = best <= np.float32(0.0)
    return np.float32(0.0) if cut else best, np.int32(DEAD) if cut else place


@kernel
def pool(full: Single, pooled: Single, places: Places) -> None:
    """Max-pooling and ReLU."""
    images, rows, columns, channels = pooled.shape
    for n in range(images):
        for i in range(rows):
            for j in range(columns):
                y0, y1 = full[n, 2 * i, 2 * j], full[n, 2 * i, 2 * j + 1]
                y2, y3 = full[n, 2 * i + 1, 2 * j], full[n, 2 * i + 1, 2 * j + 1]
                out, place = pooled[n, i, j], places[n, i, j]
                for c in range(channels):
                    out[c], place[c] = _keep(y0[c], y1[c], y2[c], y3[c])


def emit_largest(context: Any, builder: Any, values: list[Any], pooled: Any, places: Any, at: Any) -> None:
    """Emit code that stores at `at` the result of `pool` for four vectors of floats."""
    lanes = values[0].type.count
    emit = VectorCode(context, builder, types.float32, lanes)
    whole = VectorCode(context, builder, types.int32, lanes)
    best, place = values[0], whole.spread(whole.scalar(0))
    for q in range(1, 4):
        larger = builder.or_(
            builder.fcmp_ordered(">", values[q], best), builder.fcmp_unordered("uno", values[q], values[q])
        )
        best = builder.select(larger, values[q], best)
        place = builder.select(larger, whole.spread(whole.scalar(q)), place)
    cut = builder.fcmp_ordered("<=", best, emit.zero())
    emit.store(builder.select(cut, emit.zero(), best), pooled, at)
    whole.store(builder.select(cut, whole.spread(whole.scalar(DEAD)), place), places, at)
