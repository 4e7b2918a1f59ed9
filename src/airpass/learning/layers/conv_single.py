"""Fused convolution and pooling of one-channel images, and the gradient with respect to weights and bias.

Libraries write the full convolution of a one-channel image to memory and read it back to pool it. In the
paper's MNIST network this takes longer than the much larger second convolution. Here a pooled entry is
computed from its 4 x 4 patch in registers; only the entry and the position of its maximum are stored.

Arrays are (image, row, column, channel), images padded by one on every side.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from airpass.core.types import Single
from airpass.kernels.jit import kernel
from airpass.kernels.simd import VectorCode, contiguous
from airpass.learning.layers.max_pool import DEAD, Places, emit_largest

# Entries per vector operation; filters must be a multiple of it. Nine weights, or ten sums, must fit in
# registers.
LANES = 8


def _pooled_row_typing(
    typingctx: Any, padded: Any, x: Any, width: Any, weights: Any, bias: Any, pooled: Any, places: Any, y: Any
) -> Any:
    contiguous(types.float32, padded, weights, bias, pooled)
    contiguous(types.int32, places)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        padded, weights, bias, pooled, places = (
            emit.data(args[k], signature.args[k]) for k in (0, 3, 4, 5, 6)
        )
        x, width, y = args[1], args[2], args[7]
        filters = context.make_array(signature.args[4])(context, builder, args[4]).nitems
        columns = builder.sdiv(builder.sub(width, width.type(2)), width.type(2))
        with (
            cgutils.for_range_slice(builder, width.type(0), columns, width.type(1)) as (j, _),
            cgutils.for_range_slice(builder, width.type(0), filters, width.type(LANES)) as (c, _),
        ):
            patch = _patch(emit, builder, padded, builder.add(x, builder.shl(j, j.type(1))), width)
            taps = [emit.load(weights, builder.add(c, builder.mul(filters, j.type(k)))) for k in range(9)]
            start = emit.load(bias, c)
            values = []
            for q in range(4):
                value = start
                for k in range(9):
                    value = emit.fma(patch[q // 2 + k // 3][q % 2 + k % 3], taps[k], value)
                values.append(value)
            at = builder.add(builder.add(y, builder.mul(j, filters)), c)
            emit_largest(context, builder, values, pooled, places, at)
        return context.get_dummy_value()

    n = types.intp
    return types.void(padded, n, n, weights, bias, pooled, places, n), codegen


def _gradient_row_typing(
    typingctx: Any,
    padded: Any,
    x: Any,
    width: Any,
    gradient: Any,
    places: Any,
    y: Any,
    filters: Any,
    sums: Any,
) -> Any:
    contiguous(types.float32, padded, gradient, sums)
    contiguous(types.int32, places)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        whole = VectorCode(context, builder, types.int32, LANES)
        padded, gradient, places, sums = (emit.data(args[k], signature.args[k]) for k in (0, 3, 4, 7))
        x, width, y, filters = args[1], args[2], args[5], args[6]
        columns = builder.sdiv(builder.sub(width, width.type(2)), width.type(2))
        totals = emit.variables(10)
        for k in range(10):
            builder.store(emit.load(sums, width.type(0), k), totals[k])
        with cgutils.for_range_slice(builder, width.type(0), columns, width.type(1)) as (j, _):
            patch = _patch(emit, builder, padded, builder.add(x, builder.shl(j, j.type(1))), width)
            at = builder.add(y, builder.mul(j, filters))
            entry, place = emit.load(gradient, at), whole.load(places, at)
            passed = [
                builder.select(
                    builder.icmp_signed("==", place, whole.spread(whole.scalar(q))), entry, emit.zero()
                )
                for q in range(4)
            ]
            for k in range(9):
                total = builder.load(totals[k])
                for q in range(4):
                    total = emit.fma(patch[q // 2 + k // 3][q % 2 + k % 3], passed[q], total)
                builder.store(total, totals[k])
            alive = builder.select(
                builder.icmp_signed("!=", place, whole.spread(whole.scalar(DEAD))), entry, emit.zero()
            )
            builder.store(builder.fadd(builder.load(totals[9]), alive), totals[9])
        for k in range(10):
            emit.store(builder.load(totals[k]), sums, width.type(0), k)
        return context.get_dummy_value()

    n = types.intp
    return types.void(padded, n, n, gradient, places, n, n, sums), codegen


def _patch(emit: VectorCode, builder: Any, padded: Any, corner: Any, width: Any) -> list[list[Any]]:
    """The 4 x 4 entries that a pooled entry depends on, each spread over a vector."""
    rows = []
    for _ in range(4):
        rows.append([emit.spread(emit.entry(padded, builder.add(corner, corner.type(k)))) for k in range(4)])
        corner = builder.add(corner, width)
    return rows


# A row of pooled entries at offset `y` from four rows of the padded images at offset `x`, `width` long.
_pooled_row = cast(
    Callable[[Single, int, int, Single, Single, Single, Places, int], None], intrinsic(_pooled_row_typing)
)
# Adds a row of the gradient at offset `y` to the ten sums: nine weights and the bias of LANES filters.
_gradient_row = cast(
    Callable[[Single, int, int, Single, Places, int, int, Single], None], intrinsic(_gradient_row_typing)
)


@kernel
def convolve_and_pool(padded: Single, weights: Single, bias: Single, pooled: Single, places: Places) -> None:
    """Convolution, pooling and ReLU of one-channel images.

    `weights` has shape (9, filters), with filters a multiple of LANES.
    """
    images, rows, columns, filters = pooled.shape
    flat, flat_weights = padded.reshape(-1), weights.reshape(-1)
    out, place = pooled.reshape(-1), places.reshape(-1)
    width = padded.shape[2]
    for n in range(images):
        for i in range(rows):
            x = (n * padded.shape[1] + 2 * i) * width
            y = (n * rows + i) * columns * filters
            _pooled_row(flat, x, width, flat_weights, bias, out, place, y)


@kernel
def convolve_and_pool_gradient(
    padded: Single, gradient: Single, places: Places, weights: Single, bias: Single
) -> None:
    """Gradient with respect to weights and bias for one-channel images."""
    images, rows, columns, filters = gradient.shape
    flat, entries, place = padded.reshape(-1), gradient.reshape(-1), places.reshape(-1)
    width = padded.shape[2]
    sums = np.empty(10 * LANES, np.float32)
    for c in range(0, filters, LANES):
        sums[:] = 0.0
        for n in range(images):
            for i in range(rows):
                x = (n * padded.shape[1] + 2 * i) * width
                y = (n * rows + i) * columns * filters + c
                _gradient_row(flat, x, width, entries, place, y, filters, sums)
        for t in range(LANES):
            for k in range(9):
                weights[k, c + t] = sums[k * LANES + t]
            bias[c + t] = sums[9 * LANES + t]
