"""Convolution (3 x 3, same padding), 2 x 2 max-pooling and ReLU as one layer on the processor.

One-channel images are convolved and pooled in registers. Images with channels in multiples of 16 are
convolved by PyTorch; pooling and ReLU are one pass, and the backward pass processes only the positions of
the maxima. All other images use PyTorch's layers.
"""

from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from airpass.core.types import Single
from airpass.learning.layers import conv_single, conv_sparse
from airpass.learning.layers.max_pool import pool


def _array(tensor: torch.Tensor) -> Single:
    """A tensor as (image, row, column, channel), without a copy if it is channels-last."""
    return tensor.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _tensor(array: Single) -> torch.Tensor:
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def _padded(x: torch.Tensor) -> Single:
    """Images padded by one zero on every side, as (image, row, column, channel)."""
    images, channels, rows, columns = x.shape
    result = _zeros((images, rows + 2, columns + 2, channels))
    result[:, 1:-1, 1:-1] = x.detach().permute(0, 2, 3, 1).numpy()
    return result


def _zeros(shape: tuple[int, ...]) -> Single:
    # PyTorch aligns arrays to cache lines, NumPy does not: a sixth of the time of the sparse gradient.
    return torch.zeros(shape, dtype=torch.float32, device="cpu").numpy()


class _Fused(torch.autograd.Function):
    """The layer with its own backward pass, for images of one channel or of a multiple of LANES."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        images, channels, rows, columns = x.shape
        shape = (images, rows // 2, columns // 2, len(weight))
        pooled = torch.empty(shape, dtype=torch.float32, device="cpu").numpy()
        ctx.places = torch.empty(shape, dtype=torch.int32, device="cpu").numpy()
        ctx.save_for_backward(x, weight)
        if channels == 1:
            by_tap = np.ascontiguousarray(weight.detach().numpy().reshape(len(weight), 9).T)
            padded = _padded(x)[..., 0]
            conv_single.convolve_and_pool(padded, by_tap, bias.detach().numpy(), pooled, ctx.places)
        else:
            pool(_array(functional.conv2d(x, weight, bias, padding=1)), pooled, ctx.places)
        return _tensor(pooled)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        pooled, padded = _array(gradient), _padded(x)
        filters = pooled.shape[3]
        to_bias = np.zeros(filters, dtype=np.float32)
        if x.shape[1] == 1:
            by_tap = np.empty((9, filters), dtype=np.float32)
            conv_single.convolve_and_pool_gradient(padded[..., 0], pooled, ctx.places, by_tap, to_bias)
            shaped = torch.from_numpy(np.ascontiguousarray(by_tap.T).reshape(filters, 1, 3, 3))
            return None, shaped, torch.from_numpy(to_bias)
        by_filter = _array(weight)
        to_padded, to_weights = _zeros(padded.shape), _zeros(by_filter.shape)
        conv_sparse.sparse_gradient(
            padded.ravel(),
            pooled,
            ctx.places,
            by_filter.ravel(),
            to_padded.ravel(),
            to_weights.ravel(),
            to_bias,
        )
        return _tensor(to_padded[:, 1:-1, 1:-1]), _tensor(to_weights), torch.from_numpy(to_bias)


class ConvPoolReLU(nn.Conv2d):
    """The same as nn.Conv2d(channels, filters, 3, padding=1), MaxPool2d(2) and ReLU in sequence."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__(channels, filters, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pooled features. On GPUs, and for other shapes and precisions, by PyTorch's own layers."""
        assert self.bias is not None
        if x.device.type == "cpu" and x.dtype == self.weight.dtype == torch.float32 and self._fuses(x):
            with torch.autocast("cpu", enabled=False):  # its loops are in single precision
                return cast(torch.Tensor, _Fused.apply(x, self.weight, self.bias))  # type: ignore[no-untyped-call]
        return functional.relu(functional.max_pool2d(super().forward(x), 2))

    def _fuses(self, x: torch.Tensor) -> bool:
        if x.shape[2] % 2 or x.shape[3] % 2:
            return False
        if self.in_channels == 1:
            return self.out_channels % conv_single.LANES == 0 and not x.requires_grad
        return self.in_channels % conv_sparse.LANES == 0
