"""Convolution (3 x 3, same padding), 2 x 2 max-pooling and ReLU as one layer on the processor.

One-channel images are convolved and pooled in registers. With channels and filters in multiples of 16,
products are saved by Winograd's algorithm, and backward only places that pass a gradient are followed.
Everything else goes by the library's convolutions; only pooling and ReLU are fused.
"""

from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from airpass.core.types import Single
from airpass.learning import conv_single, conv_sparse, conv_winograd
from airpass.learning.max_pool import pool, unpool


def _array(tensor: torch.Tensor) -> Single:
    """A tensor as (image, row, column, channel), without a copy if it is channels-last."""
    return tensor.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _tensor(array: Single) -> torch.Tensor:
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def _padded(x: torch.Tensor) -> Single:
    """Images with zeros around them, as (image, row, column, channel)."""
    images, channels, rows, columns = x.shape
    result = _zeros((images, rows + 2, columns + 2, channels))
    result[:, 1:-1, 1:-1] = x.detach().permute(0, 2, 3, 1).numpy()
    return result


def _zeros(shape: tuple[int, ...]) -> Single:
    # PyTorch begins arrays with a cache line, NumPy does not: a sixth of the time of the sparse gradient.
    return torch.zeros(shape, dtype=torch.float32, device="cpu").numpy()


class _Fused(torch.autograd.Function):
    """The layer, with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        images, channels, rows, columns = x.shape
        shape = (images, rows // 2, columns // 2, len(weight))
        pooled = torch.empty(shape, dtype=torch.float32, device="cpu").numpy()
        ctx.places = torch.empty(shape, dtype=torch.int32, device="cpu").numpy()
        even = rows % 2 == columns % 2 == 0
        ctx.single = (
            even and channels == 1 and len(weight) % conv_single.LANES == 0 and not ctx.needs_input_grad[0]
        )
        ctx.many = even and channels % conv_sparse.LANES == len(weight) % conv_winograd.FILTERS == 0
        if ctx.single:
            ctx.padded = _padded(x)
            by_tap = np.ascontiguousarray(weight.detach().numpy().reshape(len(weight), 9).T)
            conv_single.convolve_and_pool(
                ctx.padded[..., 0], by_tap, bias.detach().numpy(), pooled, ctx.places
            )
        elif ctx.many:
            ctx.save_for_backward(weight)  # which looks out for changes before the backward pass
            ctx.padded = _padded(x)
            conv_winograd.convolve_and_pool(
                ctx.padded.ravel(),
                conv_winograd.transform_weights(_array(weight)),
                bias.detach().numpy(),
                pooled.ravel(),
                ctx.places.ravel(),
                rows // 2,
                columns // 2,
            )
        else:
            ctx.save_for_backward(x, weight)
            pool(_array(functional.conv2d(x, weight, bias, padding=1)), pooled, ctx.places)
        return _tensor(pooled)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        pooled = _array(gradient)
        channels = pooled.shape[3]
        if ctx.single:
            weights = np.empty((9, channels), dtype=np.float32)
            bias = np.empty(channels, dtype=np.float32)
            conv_single.convolve_and_pool_gradient(ctx.padded[..., 0], pooled, ctx.places, weights, bias)
            shaped = torch.from_numpy(np.ascontiguousarray(weights.T).reshape(channels, 1, 3, 3))
            return None, shaped, torch.from_numpy(bias)
        if ctx.many:
            by_filter = _array(ctx.saved_tensors[0])
            to_padded, to_weights = _zeros(ctx.padded.shape), _zeros(by_filter.shape)
            to_bias = np.zeros(channels, dtype=np.float32)
            conv_sparse.sparse_gradient(
                ctx.padded.ravel(),
                pooled,
                ctx.places,
                by_filter.ravel(),
                to_padded.ravel(),
                to_weights.ravel(),
                to_bias,
            )
            return _tensor(to_padded[:, 1:-1, 1:-1]), _tensor(to_weights), torch.from_numpy(to_bias)
        x, weight = ctx.saved_tensors
        images, _, rows, columns = x.shape
        full = np.zeros((images, rows, columns, channels), dtype=np.float32)
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
