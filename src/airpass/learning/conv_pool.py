"""Convolution (3 x 3, same padding), 2 x 2 max-pooling and ReLU as one layer on the processor.

Libraries write the full convolution of a one-channel image to memory and read it back to pool it:
on the paper's MNIST network that takes longer than the much larger second convolution. Here a pooled
entry is made from its 4 x 4 patch in registers, and only it and the place of its maximum are kept.

With more input channels the library's convolution is near the peak of the machine, so forward only pooling
and ReLU are fused. Backward, the gradient is zero but for the places of the maxima, a quarter of all and
less where ReLU cuts off, and these alone are followed: half the time of the library's backward pass.

Arrays are (image, row, column, channel).
"""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from airpass.optim.jit import kernel
from airpass.optim.types import Single
from airpass.optim.vector_code import VectorCode, contiguous
from airpass.optim.vector_math import fma_single as fma

Places: TypeAlias = NDArray[np.int32]  # where in its window a maximum was: 0 to 3, or DEAD
DEAD = 4  # no gradient passes: ReLU cut it off
LANES = 16  # floats to a vector operation; input channels must be a multiple of it for the sparse backward
VECTORS = 3  # vectors held in registers at a time: with 16 channels, a row of a 3 x 3 window
RUN = VECTORS * LANES


@kernel
def _keep(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    """ReLU of the largest, and its place: the first one of equals, and what is not a number wins, as
    PyTorch has it."""
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
def _route(gradient: Any, place: Any) -> Any:
    """A pooled entry's gradient at each of the four places."""
    zero = np.float32(0.0)
    return (
        gradient if place == 0 else zero,
        gradient if place == 1 else zero,
        gradient if place == 2 else zero,
        gradient if place == 3 else zero,
    )


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


@kernel
def unpool(gradient: Single, places: Places, full: Single) -> None:
    """The gradient before max-pooling and ReLU."""
    images, rows, columns, channels = gradient.shape
    for n in range(images):
        for i in range(rows):
            for j in range(columns):
                g, place = gradient[n, i, j], places[n, i, j]
                for k in range(4):  # a loop over channels for each, as LLVM vectorises loops of one store
                    y = full[n, 2 * i + k // 2, 2 * j + k % 2]
                    for c in range(channels):
                        y[c] = g[c] if place[c] == k else np.float32(0.0)


@kernel
def _patch(image: Single, i: int, j: int) -> Any:
    """The 4 x 4 entries of a padded image that a pooled entry depends on, row by row."""
    r0, r1, r2, r3 = image[2 * i], image[2 * i + 1], image[2 * i + 2], image[2 * i + 3]
    s = 2 * j
    return (
        (r0[s], r0[s + 1], r0[s + 2], r0[s + 3]),
        (r1[s], r1[s + 1], r1[s + 2], r1[s + 3]),
        (r2[s], r2[s + 1], r2[s + 2], r2[s + 3]),
        (r3[s], r3[s + 1], r3[s + 2], r3[s + 3]),
    )


@kernel
def _row(x: Any, start: Any, w0: Any, w1: Any, w2: Any) -> Any:
    """One row of a 3 x 3 window at two places side by side, added to what there is."""
    return (
        fma(x[2], w2, fma(x[1], w1, fma(x[0], w0, start[0]))),
        fma(x[3], w2, fma(x[2], w1, fma(x[1], w0, start[1]))),
    )


@kernel
def convolve_and_pool(padded: Single, weights: Single, bias: Single, pooled: Single, places: Places) -> None:
    """All three steps for images of one channel; `weights` is (9, channels)."""
    images, rows, columns, channels = pooled.shape
    for n in range(images):
        for i in range(rows):
            for j in range(columns):
                x0, x1, x2, x3 = _patch(padded[n], i, j)
                out, place = pooled[n, i, j], places[n, i, j]
                for c in range(channels):
                    a0, a1, a2 = weights[0, c], weights[1, c], weights[2, c]
                    b0, b1, b2 = weights[3, c], weights[4, c], weights[5, c]
                    c0, c1, c2 = weights[6, c], weights[7, c], weights[8, c]
                    start = (bias[c], bias[c])
                    upper = _row(x2, _row(x1, _row(x0, start, a0, a1, a2), b0, b1, b2), c0, c1, c2)
                    lower = _row(x3, _row(x2, _row(x1, start, a0, a1, a2), b0, b1, b2), c0, c1, c2)
                    out[c], place[c] = _keep(upper[0], upper[1], lower[0], lower[1])


@kernel
def _tap(x0: Any, x1: Any, x2: Any, x3: Any, g: Any) -> Any:
    """A weight's gradient from the entries that it met at the four places."""
    return (x0 * g[0] + x1 * g[1]) + (x2 * g[2] + x3 * g[3])  # fma would keep LLVM from vectorising


@kernel
def convolve_and_pool_gradient(
    padded: Single, gradient: Single, places: Places, weights: Single, bias: Single
) -> None:
    """Gradient in weights and bias for images of one channel, added to what there is."""
    images, rows, columns, _ = gradient.shape
    channels = weights.shape[1]  # from here, so that the compiler knows its rows to be apart
    for n in range(images):
        for i in range(rows):
            for j in range(columns):
                x0, x1, x2, x3 = _patch(padded[n], i, j)
                entry, place = gradient[n, i, j], places[n, i, j]
                for c in range(channels):
                    g = _route(entry[c], place[c])
                    weights[0, c] += _tap(x0[0], x0[1], x1[0], x1[1], g)
                    weights[1, c] += _tap(x0[1], x0[2], x1[1], x1[2], g)
                    weights[2, c] += _tap(x0[2], x0[3], x1[2], x1[3], g)
                    weights[3, c] += _tap(x1[0], x1[1], x2[0], x2[1], g)
                    weights[4, c] += _tap(x1[1], x1[2], x2[1], x2[2], g)
                    weights[5, c] += _tap(x1[2], x1[3], x2[2], x2[3], g)
                    weights[6, c] += _tap(x2[0], x2[1], x3[0], x3[1], g)
                    weights[7, c] += _tap(x2[1], x2[2], x3[1], x3[2], g)
                    weights[8, c] += _tap(x2[2], x2[3], x3[2], x3[3], g)
                    bias[c] += (g[0] + g[1]) + (g[2] + g[3])


def _gather_typing(
    typingctx: Any, y: Any, i: Any, x: Any, shift: Any, offsets: Any, factors: Any, first: Any, last: Any
) -> Any:
    contiguous(y, x, offsets, factors)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        y, x, offsets, factors = (emit.data(args[k], signature.args[k]) for k in (0, 2, 4, 5))
        i, shift, first, last = args[1], args[3], args[6], args[7]
        sums = emit.variables(VECTORS)
        for v in range(VECTORS):
            builder.store(emit.load(y, i, v), sums[v])
        with cgutils.for_range_slice(builder, first, last, first.type(1)) as (e, _):
            j = builder.add(shift, builder.sext(emit.entry(offsets, e), shift.type))
            factor = emit.spread(emit.entry(factors, e))
            for v in range(VECTORS):
                builder.store(emit.fma(factor, emit.load(x, j, v), builder.load(sums[v])), sums[v])
        for v in range(VECTORS):
            emit.store(builder.load(sums[v]), y, i, v)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(y, whole, x, whole, offsets, factors, whole, whole), codegen


def _scatter_typing(
    typingctx: Any, y: Any, shift: Any, x: Any, i: Any, offsets: Any, factors: Any, first: Any, last: Any
) -> Any:
    contiguous(y, x, offsets, factors)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        y, x, offsets, factors = (emit.data(args[k], signature.args[k]) for k in (0, 2, 4, 5))
        shift, i, first, last = args[1], args[3], args[6], args[7]
        kept = [emit.load(x, i, v) for v in range(VECTORS)]
        with cgutils.for_range_slice(builder, first, last, first.type(1)) as (e, _):
            j = builder.add(shift, builder.sext(emit.entry(offsets, e), shift.type))
            factor = emit.spread(emit.entry(factors, e))
            for v in range(VECTORS):
                emit.store(emit.fma(factor, kept[v], emit.load(y, j, v)), y, j, v)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(y, whole, x, whole, offsets, factors, whole, whole), codegen


_Along: TypeAlias = Callable[
    [Single, int, Single, int, NDArray[np.int32], Single, int, int],
    None,
]
# For e from first to last, with j = shift + offsets[e]:
# y[i : i + RUN] += factors[e] x[j : j + RUN]          (y, i, x, shift, offsets, factors, first, last)
_gather = cast(_Along, intrinsic(_gather_typing))
# y[j : j + RUN] += factors[e] x[i : i + RUN]          (y, shift, x, i, offsets, factors, first, last)
_scatter = cast(_Along, intrinsic(_scatter_typing))


@kernel
def _list_alive(
    gradient: Single, places: Places, width: int, channels: int, offsets: Any, factors: Single, ends: Any
) -> None:
    """For each filter of one image, where a gradient passes and how much.

    Filter c's are at c*rows*columns to ends[c], as offsets of the 3 x 3 window into the padded image.
    """
    rows, columns, filters = gradient.shape
    for c in range(filters):
        ends[c] = c * rows * columns
    for i in range(rows):
        for j in range(columns):
            corner = 2 * i * width + 2 * j * channels
            entry, place = gradient[i, j], places[i, j]
            for c in range(filters):
                # Written in any case and kept or not, as a branch would be guessed wrong too often.
                e = ends[c]
                offsets[e] = corner + (place[c] >> 1) * width + (place[c] & 1) * channels
                factors[e] = entry[c]
                ends[c] = e + (1 if place[c] != DEAD else 0)


@kernel
def sparse_gradient(
    padded: Single,
    gradient: Single,
    places: Places,
    weights: Single,
    to_padded: Single,
    to_weights: Single,
    to_bias: Single,
) -> None:
    """Gradient of convolution, pooling and ReLU in input, weights and bias, added to what there is.

    Flat arrays: `padded` is (image, row, column, channel) and `weights` (filter, row, column, channel), so
    that the three columns of a window are one run of memory.
    """
    images, rows, columns, filters = gradient.shape
    row = weights.size // (3 * filters)
    channels = row // 3
    width = (2 * columns + 2) * channels
    size = (2 * rows + 2) * width
    room = rows * columns
    offsets = np.empty(filters * room + 1, np.int32)
    factors = np.empty(filters * room + 1, np.float32)
    ends = np.empty(filters, np.int64)
    for n in range(images):
        _list_alive(gradient[n], places[n], width, channels, offsets, factors, ends)
        for c in range(filters):
            first, last = c * room, ends[c]
            for e in range(first, last):
                to_bias[c] += factors[e]
            for r in range(3):
                for t in range(0, row, RUN):
                    here = n * size + r * width + t
                    there = (3 * c + r) * row + t
                    _gather(to_weights, there, padded, here, offsets, factors, first, last)
                    _scatter(to_padded, here, weights, there, offsets, factors, first, last)


def _array(tensor: torch.Tensor) -> Single:
    """A tensor as (image, row, column, channel), without a copy if it is channels-last."""
    return tensor.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _tensor(array: Single) -> torch.Tensor:
    return torch.from_numpy(array).permute(0, 3, 1, 2)


class _Fused(torch.autograd.Function):
    """The layer, with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        images, channels, rows, columns = x.shape
        pooled = np.empty((images, rows // 2, columns // 2, len(weight)), dtype=np.float32)
        places = np.empty(pooled.shape, dtype=np.int32)
        ctx.places = places
        ctx.single = channels == 1 and not ctx.needs_input_grad[0]
        if ctx.single:
            ctx.padded = functional.pad(x.detach()[:, 0], (1, 1, 1, 1)).contiguous().numpy()
            by_tap = np.ascontiguousarray(weight.detach().numpy().reshape(len(weight), 9).T)
            convolve_and_pool(ctx.padded, by_tap, bias.detach().numpy(), pooled, places)
        else:
            ctx.save_for_backward(x, weight)
            pool(_array(functional.conv2d(x, weight, bias, padding=1)), pooled, places)
        return _tensor(pooled)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        pooled = _array(gradient)
        channels = pooled.shape[3]
        if ctx.single:
            weights = np.zeros((9, channels), dtype=np.float32)
            bias = np.zeros(channels, dtype=np.float32)
            convolve_and_pool_gradient(ctx.padded, pooled, ctx.places, weights, bias)
            shaped = torch.from_numpy(np.ascontiguousarray(weights.T).reshape(channels, 1, 3, 3))
            return None, shaped, torch.from_numpy(bias)
        x, weight = ctx.saved_tensors
        images, inputs, rows, columns = x.shape
        even = rows % 2 == 0 and columns % 2 == 0
        if even and inputs % LANES == 0:
            last = x.detach().permute(0, 2, 3, 1)
            padded = functional.pad(last, (0, 0, 1, 1, 1, 1)).contiguous().numpy()
            by_filter = _array(weight)
            to_padded, to_weights = np.zeros_like(padded), np.zeros_like(by_filter)
            to_bias = np.zeros(channels, dtype=np.float32)
            sparse_gradient(
                padded.ravel(),
                pooled,
                ctx.places,
                by_filter.ravel(),
                to_padded.ravel(),
                to_weights.ravel(),
                to_bias,
            )
            return _tensor(to_padded[:, 1:-1, 1:-1]), _tensor(to_weights), torch.from_numpy(to_bias)
        full = (np.empty if even else np.zeros)((images, rows, columns, channels), dtype=np.float32)
        unpool(pooled, ctx.places, full)
        return torch.ops.aten.convolution_backward(
            _tensor(full),
            x,
            weight,
            [channels],
            [1, 1],
            [1, 1],
            [1, 1],
            False,
            [0, 0],
            1,
            list(ctx.needs_input_grad),
        )


class ConvPoolReLU(nn.Conv2d):
    """What nn.Conv2d(channels, filters, 3, padding=1), MaxPool2d(2) and ReLU compute, with their weights."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__(channels, filters, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pooled features; elsewhere than on the processor by the library's own layers."""
        assert self.bias is not None
        if x.device.type == "cpu" and x.dtype == self.weight.dtype == torch.float32:
            return cast(torch.Tensor, _Fused.apply(x, self.weight, self.bias))  # type: ignore[no-untyped-call]
        return functional.relu(functional.max_pool2d(super().forward(x), 2))
