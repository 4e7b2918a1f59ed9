"""Convolution of images of many channels by Winograd's F(2 x 2, 3 x 3), pooled at once.

The four outputs that a pooled entry is the largest of come from one 4 x 4 patch d of the input. With
transforms of additions only, they are A^T [(G g G^T) * (B^T d B)] A, where * is entry by entry: 16 products
for each pair of channel and filter instead of 36 (A. Lavin and S. Gray, "Fast algorithms for convolutional
neural networks", CVPR 2016). The products of a group of patches are 16 products of matrices. An infinite
input gives what is not a number, as differences of inputs are formed.

Arrays are flat, of shape (image, row, column, channel), images padded by one on every side.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from airpass.core.types import Single
from airpass.kernels.jit import kernel
from airpass.kernels.simd import VectorCode, contiguous
from airpass.learning.max_pool import Places, emit_largest

LANES = 8  # numbers to a vector operation: channels must be a multiple of it
# What a product of matrices holds in registers: so many patches by so many vectors of filters.
PATCHES = 6
VECTORS = 2
FILTERS = VECTORS * LANES  # filters must be a multiple of it
GROUP = 2 * PATCHES  # patches whose transforms stay in the nearest cache


def _transform_typing(
    typingctx: Any, padded: Any, x: Any, width: Any, channels: Any, out: Any, y: Any, stride: Any
) -> Any:
    contiguous(types.float32, padded, out)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        padded, out = emit.data(args[0], signature.args[0]), emit.data(args[4], signature.args[4])
        x, width, channels, y, stride = args[1], args[2], args[3], args[5], args[6]
        add, subtract = builder.fadd, builder.fsub

        def apply(d: list[Any]) -> list[Any]:
            """B^T d."""
            return [subtract(d[0], d[2]), add(d[1], d[2]), subtract(d[2], d[1]), subtract(d[1], d[3])]

        with cgutils.for_range_slice(builder, x.type(0), channels, x.type(LANES)) as (c, _):
            at, columns = builder.add(x, c), []
            for _i in range(4):
                here, row = at, []
                for _j in range(4):
                    row.append(emit.load(padded, here))
                    here = builder.add(here, channels)
                columns.append(apply(row))  # along the row: d B
                at = builder.add(at, width)
            to = builder.add(y, c)
            halves = [apply([columns[i][j] for i in range(4)]) for j in range(4)]
            for i in range(4):
                for j in range(4):
                    emit.store(halves[j][i], out, to)
                    to = builder.add(to, stride)
        return context.get_dummy_value()

    n = types.intp
    return types.void(padded, n, n, n, out, n, n), codegen


def _multiply_typing(
    typingctx: Any, patches: Any, weights: Any, channels: Any, filters: Any, out: Any
) -> Any:
    contiguous(types.float32, patches, weights, out)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        patches, weights, out = (emit.data(args[k], signature.args[k]) for k in (0, 1, 4))
        channels, filters = args[2], args[3]
        n = channels.type
        sums = emit.variables(PATCHES * VECTORS)
        with (
            cgutils.for_range_slice(builder, n(0), n(16), n(1)) as (t, _),
            cgutils.for_range_slice(builder, n(0), filters, n(FILTERS)) as (f, _),
            cgutils.for_range_slice(builder, n(0), n(GROUP), n(PATCHES)) as (p, _),
        ):
            for one in sums:
                builder.store(emit.zero(), one)
            first = builder.add(builder.mul(t, n(GROUP)), p)
            rows = [builder.mul(builder.add(first, n(k)), channels) for k in range(PATCHES)]
            from_weights = builder.add(builder.mul(builder.mul(t, channels), filters), f)
            with cgutils.for_range_slice(builder, n(0), channels, n(1)) as (c, _):
                here = builder.add(from_weights, builder.mul(c, filters))
                columns = [emit.load(weights, here, v) for v in range(VECTORS)]
                for k in range(PATCHES):
                    entry = emit.spread(emit.entry(patches, builder.add(rows[k], c)))
                    for v in range(VECTORS):
                        one = sums[k * VECTORS + v]
                        builder.store(emit.fma(entry, columns[v], builder.load(one)), one)
            for k in range(PATCHES):
                to = builder.add(builder.mul(builder.add(first, n(k)), filters), f)
                for v in range(VECTORS):
                    emit.store(builder.load(sums[k * VECTORS + v]), out, to, v)
        return context.get_dummy_value()

    n = types.intp
    return types.void(patches, weights, n, n, out), codegen


def _pool_typing(
    typingctx: Any, products: Any, x: Any, stride: Any, bias: Any, pooled: Any, places: Any, y: Any
) -> Any:
    contiguous(types.float32, products, bias, pooled)
    contiguous(types.int32, places)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        products, bias, pooled, places = (emit.data(args[k], signature.args[k]) for k in (0, 3, 4, 5))
        x, stride, y = args[1], args[2], args[6]
        filters = context.make_array(signature.args[3])(context, builder, args[3]).nitems
        add, subtract = builder.fadd, builder.fsub

        def apply(m: list[Any]) -> list[Any]:
            """A^T m."""
            return [add(add(m[0], m[1]), m[2]), subtract(subtract(m[1], m[2]), m[3])]

        with cgutils.for_range_slice(builder, x.type(0), filters, x.type(LANES)) as (f, _):
            at, halves = builder.add(x, f), []
            for _i in range(4):
                row = []
                for _j in range(4):
                    row.append(emit.load(products, at))
                    at = builder.add(at, stride)
                halves.append(apply(row))
            columns = [apply([halves[i][j] for i in range(4)]) for j in range(2)]
            start = emit.load(bias, f)
            values = [add(columns[q % 2][q // 2], start) for q in range(4)]
            emit_largest(context, builder, values, pooled, places, builder.add(y, f))
        return context.get_dummy_value()

    n = types.intp
    return types.void(products, n, n, bias, pooled, places, n), codegen


# B^T d B of the patch at `x`, its rows `width` apart, to the 16 places from `y` on, `stride` apart.
_transform = cast(Callable[[Single, int, int, int, Single, int, int], None], intrinsic(_transform_typing))
# out[t, p, f] = sum over c of patches[t, p, c] weights[t, c, f], for 16 t and a group of patches.
_multiply = cast(Callable[[Single, Single, int, int, Single], None], intrinsic(_multiply_typing))
# ReLU of the largest of A^T m A + bias, and its place, of the 16 products from `x` on, `stride` apart.
_pool = cast(Callable[[Single, int, int, Single, Single, Places, int], None], intrinsic(_pool_typing))


@kernel
def transform_weights(weights: Single) -> Single:
    """G g G^T of every 3 x 3 kernel: from (filter, row, column, channel) to flat (16, channel, filter)."""
    filters, _, _, channels = weights.shape
    half = np.float32(0.5)
    out = np.empty((16, channels, filters), np.float32)
    rows = np.empty((4, 3), np.float32)
    for f in range(filters):
        for c in range(channels):
            for j in range(3):
                a, b, d = weights[f, 0, j, c], weights[f, 1, j, c], weights[f, 2, j, c]
                rows[0, j] = a
                rows[1, j] = half * ((a + d) + b)
                rows[2, j] = half * ((a + d) - b)
                rows[3, j] = d
            for i in range(4):
                a, b, d = rows[i, 0], rows[i, 1], rows[i, 2]
                out[4 * i, c, f] = a
                out[4 * i + 1, c, f] = half * ((a + d) + b)
                out[4 * i + 2, c, f] = half * ((a + d) - b)
                out[4 * i + 3, c, f] = d
    return out.reshape(-1)


@kernel
def convolve_and_pool(
    padded: Single, weights: Single, bias: Single, pooled: Single, places: Places, rows: int, columns: int
) -> None:
    """Convolution, pooling and ReLU; `weights` as `transform_weights` gives them, rows and columns pooled."""
    filters = bias.size
    channels = weights.size // (16 * filters)
    width = (2 * columns + 2) * channels
    count = pooled.size // filters
    patches = np.zeros(16 * GROUP * channels, np.float32)
    products = np.empty(16 * GROUP * filters, np.float32)
    for first in range(0, count, GROUP):
        size = min(GROUP, count - first)
        for g in range(size):
            image, rest = divmod(first + g, rows * columns)
            row, column = divmod(rest, columns)
            x = (image * (2 * rows + 2) + 2 * row) * width + 2 * column * channels
            _transform(padded, x, width, channels, patches, g * channels, GROUP * channels)
        _multiply(
            patches, weights, channels, filters, products
        )  # what is left of the last group does no harm
        for g in range(size):
            _pool(products, g * filters, GROUP * filters, bias, pooled, places, (first + g) * filters)
