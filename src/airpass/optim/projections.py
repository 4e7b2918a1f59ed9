"""Projections a_k = h_k^H m of a point on the columns of a matrix, and gradients through them.

The columns are given by rows of their real and imaginary parts, contiguous in k.
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Real
from airpass.kernels.blocks import BLOCK, part
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma
from airpass.kernels.sums import add_lane_products


def split(columns: Complex) -> tuple[Real, Real]:
    """Real and imaginary parts of columns, contiguous, as the kernels take them."""
    return np.ascontiguousarray(columns.real), np.ascontiguousarray(columns.imag)


@kernel
def project_block(
    columns_re: Real, columns_im: Real, start: int, point: Complex, out_re: Real, out_im: Real
) -> None:
    """h_k^H m of the columns from `start` on, one per entry of `out_re` and `out_im`."""
    out_re[:] = 0.0
    out_im[:] = 0.0
    for i in range(point.size):
        row_re = columns_re[i, start : start + out_re.size]
        row_im = columns_im[i, start : start + out_re.size]
        x = point[i].real
        y = point[i].imag
        for k in range(out_re.size):
            out_re[k] = fma(row_re[k], x, fma(row_im[k], y, out_re[k]))
            out_im[k] = fma(row_re[k], y, fma(row_im[k], -x, out_im[k]))


@kernel
def projections(columns_re: Real, columns_im: Real, point: Complex, out_re: Real, out_im: Real) -> None:
    """h_k^H m for every k, into `out_re` and `out_im`."""
    for start in range(0, out_re.size, BLOCK):
        stop = min(start + BLOCK, out_re.size)
        project_block(
            columns_re, columns_im, start, point, part(out_re, start, stop), part(out_im, start, stop)
        )


@kernel
def squares(columns_re: Real, columns_im: Real, point: Complex) -> Real:
    """z_k = |h_k^H m|^2 for every k."""
    re = np.empty(columns_re.shape[1])
    im = np.empty(columns_re.shape[1])
    projections(columns_re, columns_im, point, re, im)
    return re * re + im * im


class Scratch(NamedTuple):
    """Scratch arrays of `gradient`."""

    pull_re: Real  # shape (min(K, BLOCK),)
    pull_im: Real


@kernel
def new_scratch(count: int) -> Scratch:
    """Scratch arrays for K = `count`."""
    size = min(count, BLOCK)
    return Scratch(np.empty(size), np.empty(size))


@kernel
def _pull_block(slopes: Real, part: Real, pull: Real) -> None:
    for k in range(slopes.size):
        pull[k] = slopes[k] * part[k]


@inlined
def gradient_block(
    columns_re: Real,
    columns_im: Real,
    start: int,
    slopes: Real,
    a_re: Real,
    a_im: Real,
    scratch: Scratch,
    out: Complex,
) -> None:
    """Add the terms of the columns from `start` on, one per slope, to the gradient `out`."""
    flat_re = columns_re.reshape(-1)
    flat_im = columns_im.reshape(-1)
    count = columns_re.shape[1]
    _pull_block(slopes, a_re, scratch.pull_re)
    _pull_block(slopes, a_im, scratch.pull_im)
    add_lane_products(flat_re, flat_im, start, count, scratch.pull_re, scratch.pull_im, slopes.size, out)


@kernel
def gradient(
    columns_re: Real, columns_im: Real, slopes: Real, a_re: Real, a_im: Real, scratch: Scratch, out: Complex
) -> None:
    """Wirtinger gradient sum_k (df/dz_k) h_k h_k^H m, from the projections a_k = h_k^H m."""
    out[:] = 0.0
    for start in range(0, slopes.size, BLOCK):
        stop = min(start + BLOCK, slopes.size)
        gradient_block(
            columns_re,
            columns_im,
            start,
            part(slopes, start, stop),
            part(a_re, start, stop),
            part(a_im, start, stop),
            scratch,
            out,
        )
