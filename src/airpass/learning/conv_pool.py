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

Places: TypeAlias = NDArray[np.int32]  # where in its window a maximum was: 0 to 3, or DEAD
DEAD = 4  # no gradient passes: ReLU cut it off
Flat: TypeAlias = NDArray[np.int32]
LANES = 16  # numbers to a vector operation: channels and filters must be multiples of it
NARROW = 8  # the same where nine weights, or ten sums, must stay in registers
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


def _pooled_row_typing(
    typingctx: Any, padded: Any, x: Any, width: Any, weights: Any, bias: Any, pooled: Any, places: Any, y: Any
) -> Any:
    contiguous(padded, weights, bias, pooled, places)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, NARROW)
        whole = VectorCode(context, builder, types.int32, NARROW)
        padded, weights, bias, pooled, places = (
            emit.data(args[k], signature.args[k]) for k in (0, 3, 4, 5, 6)
        )
        x, width, y = args[1], args[2], args[7]
        filters = context.make_array(signature.args[4])(context, builder, args[4]).nitems
        columns = builder.sdiv(builder.sub(width, width.type(2)), width.type(2))
        with (
            cgutils.for_range_slice(builder, width.type(0), columns, width.type(1)) as (j, _),
            cgutils.for_range_slice(builder, width.type(0), filters, width.type(NARROW)) as (c, _),
        ):
            patch = _patch(emit, builder, padded, builder.add(x, builder.shl(j, j.type(1))), width)
            taps = [emit.load(weights, builder.add(c, builder.mul(filters, j.type(k)))) for k in range(9)]
            start = emit.load(bias, c)
            best, place = None, whole.spread(whole.scalar(0))
            for q in range(4):
                value = start
                for k in range(9):
                    value = emit.fma(patch[q // 2 + k // 3][q % 2 + k % 3], taps[k], value)
                if best is None:
                    best = value
                    continue
                # What is not a number wins, as PyTorch has it.
                larger = builder.or_(
                    builder.fcmp_ordered(">", value, best), builder.fcmp_unordered("uno", value, value)
                )
                best = builder.select(larger, value, best)
                place = builder.select(larger, whole.spread(whole.scalar(q)), place)
            cut = builder.fcmp_ordered("<=", best, emit.zero())
            at = builder.add(builder.add(y, builder.mul(j, filters)), c)
            emit.store(builder.select(cut, emit.zero(), best), pooled, at)
            whole.store(builder.select(cut, whole.spread(whole.scalar(DEAD)), place), places, at)
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
    contiguous(padded, gradient, places, sums)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, NARROW)
        whole = VectorCode(context, builder, types.int32, NARROW)
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


# A row of pooled entries at `y` from the four rows of the padded images at `x`, `width` long.
_pooled_row = cast(
    Callable[[Single, int, int, Single, Single, Single, Flat, int], None], intrinsic(_pooled_row_typing)
)
# To the ten sums, of nine weights and the bias of NARROW filters, what a row of the gradient at `y` adds.
_gradient_row = cast(
    Callable[[Single, int, int, Single, Flat, int, int, Single], None], intrinsic(_gradient_row_typing)
)


@kernel
def convolve_and_pool(padded: Single, weights: Single, bias: Single, pooled: Single, places: Places) -> None:
    """All three steps for images of one channel; `weights` is (9, filters), filters a multiple of LANES."""
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
    """Gradient in weights and bias for images of one channel."""
    images, rows, columns, filters = gradient.shape
    flat, entries, place = padded.reshape(-1), gradient.reshape(-1), places.reshape(-1)
    width = padded.shape[2]
    sums = np.empty(10 * NARROW, np.float32)
    for c in range(0, filters, NARROW):
        sums[:] = 0.0
        for n in range(images):
            for i in range(rows):
                x = (n * padded.shape[1] + 2 * i) * width
                y = (n * rows + i) * columns * filters + c
                _gradient_row(flat, x, width, entries, place, y, filters, sums)
        for t in range(NARROW):
            for k in range(9):
                weights[k, c + t] = sums[k * NARROW + t]
            bias[c + t] = sums[9 * NARROW + t]


def _follow_typing(
    typingctx: Any,
    padded: Any,
    to_padded: Any,
    shift: Any,
    weights: Any,
    to_weights: Any,
    i: Any,
    offsets: Any,
    factors: Any,
    first: Any,
    last: Any,
) -> Any:
    contiguous(padded, to_padded, weights, to_weights, offsets, factors)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = VectorCode(context, builder, types.float32, LANES)
        padded, to_padded, weights, to_weights, offsets, factors = (
            emit.data(args[k], signature.args[k]) for k in (0, 1, 3, 4, 6, 7)
        )
        shift, i, first, last = args[2], args[5], args[8], args[9]
        kept = [emit.load(weights, i, v) for v in range(VECTORS)]
        sums = emit.variables(VECTORS)
        for v in range(VECTORS):
            builder.store(emit.load(to_weights, i, v), sums[v])
        with cgutils.for_range_slice(builder, first, last, first.type(1)) as (e, _):
            j = builder.add(shift, builder.sext(emit.entry(offsets, e), shift.type))
            factor = emit.spread(emit.entry(factors, e))
            for v in range(VECTORS):
                builder.store(emit.fma(factor, emit.load(padded, j, v), builder.load(sums[v])), sums[v])
            for v in range(VECTORS):
                emit.store(emit.fma(factor, kept[v], emit.load(to_padded, j, v)), to_padded, j, v)
        for v in range(VECTORS):
            emit.store(builder.load(sums[v]), to_weights, i, v)
        return context.get_dummy_value()

    n = types.intp
    return types.void(padded, to_padded, n, weights, to_weights, n, offsets, factors, n, n), codegen


# For e from first to last, with j = shift + offsets[e], along RUN entries:
# to_weights[i] += factors[e] padded[j] and to_padded[j] += factors[e] weights[i].
_follow = cast(
    Callable[[Single, Single, int, Single, Single, int, Flat, Single, int, int], None],
    intrinsic(_follow_typing),
)


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
                    _follow(
                        padded, to_padded, here, weights, to_weights, there, offsets, factors, first, last
                    )


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
        ctx.single = (
            channels == 1
            and len(weight) % LANES == 0
            and rows % 2 == columns % 2 == 0
            and not ctx.needs_input_grad[0]
        )
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
            weights = np.empty((9, channels), dtype=np.float32)
            bias = np.empty(channels, dtype=np.float32)
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
