"""Antenna positions from unconstrained parameters, eqs. (69)-(75).

Waveguide m has N+1 unconstrained parameters u_{m,0..N}. Their softplus shares q_{m,i} divide the free
length T_m = L_m - (N-1) gap among the N+1 spaces before, between and after the antennas, so
order, range and minimum gap hold for any input. The map reaches the interior of the feasible
set, and approaches the boundary only in the limit.
"""

import math

import numpy as np

from airpass.core.types import Real
from airpass.kernels.jit import kernel

# Shares below this are raised to it when a layout is inverted: softplus cannot reach zero.
# The layout moves by no more than this share of the free length.
SMALLEST_SHARE = 1e-9
# Softplus underflows to zero below this, and a waveguide whose shares are all zero has no layout.
LOWEST_RAW = -700.0


@kernel
def layout_from_raw(raw: Real, free_length: Real, min_gap: float, layout: Real) -> None:
    """l_{m,n} = T_m sum_{i<n} q_{m,i} + (n-1) gap, eq. (72), with q from eqs. (69), (71)."""
    for m in range(raw.shape[0]):
        total = 0.0
        for i in range(raw.shape[1]):
            total += _softplus(raw[m, i])
        passed = 0.0
        for n in range(layout.shape[1]):
            passed += _softplus(raw[m, n])
            layout[m, n] = free_length[m] * (passed / total) + n * min_gap


@kernel
def raw_gradient(raw: Real, free_length: Real, layout_gradient: Real, gradient: Real) -> None:
    """Chain rule of eq. (75): from df/dl, shape (M, N), to df/du, shape (M, N+1).

    dl_n/du_j = T sigmoid(u_j)/R (1[j < n] - C_n), R = sum_i r_i, C_n = sum_{i<n} q_i,
    with antennas n = 1..N as in the paper.
    """
    antennas = layout_gradient.shape[1]
    for m in range(raw.shape[0]):
        total = 0.0
        for i in range(antennas + 1):
            total += _softplus(raw[m, i])
        passed = 0.0
        common = 0.0
        after = 0.0
        for n in range(antennas):
            passed += _softplus(raw[m, n])
            common += layout_gradient[m, n] * (passed / total)
            after += layout_gradient[m, n]
        for j in range(antennas + 1):
            gradient[m, j] = free_length[m] * _sigmoid(raw[m, j]) / total * (after - common)
            if j < antennas:
                after -= layout_gradient[m, j]


@kernel
def _softplus(u: float) -> float:
    u = max(u, LOWEST_RAW)
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


@kernel
def _sigmoid(u: float) -> float:
    e = math.exp(-abs(u))
    return 1.0 / (1.0 + e) if u >= 0.0 else e / (1.0 + e)


def positions(raw: Real, free_length: Real, min_gap: float) -> Real:
    """Positions of the antennas.

    Parameters
    ----------
    raw
        Unconstrained parameters, shape (M, N+1).
    free_length
        T_m in metres, shape (M,).
    min_gap
        Minimum distance between neighbours in metres.

    Returns
    -------
    The layout in metres, shape (M, N).
    """
    layout = np.empty((raw.shape[0], raw.shape[1] - 1))
    layout_from_raw(np.ascontiguousarray(raw, dtype=np.float64), free_length, float(min_gap), layout)
    return layout


def invert(layout: Real, free_length: Real, min_gap: float) -> Real:
    """Inverse of `positions`, up to `SMALLEST_SHARE` at the boundary.

    The scale of r does not affect the layout; it is chosen so that equal shares give u = 0.

    Parameters
    ----------
    layout
        Positions in metres, shape (M, N).
    free_length
        T_m in metres, shape (M,).
    min_gap
        Minimum distance between neighbours in metres.

    Returns
    -------
    Unconstrained parameters, shape (M, N+1).
    """
    waveguides, antennas = layout.shape
    spread = layout - np.arange(antennas) * min_gap
    edges = np.concatenate([np.zeros((waveguides, 1)), spread, free_length[:, None]], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.diff(edges, axis=1) / free_length[:, None]
    shares[free_length == 0.0] = 1.0  # no free length: all shares give the same layout
    shares = np.maximum(shares, SMALLEST_SHARE)
    shares /= shares.sum(axis=1, keepdims=True)
    r = shares * ((antennas + 1) * np.log(2.0))
    raw: Real = np.where(r > 30.0, r, np.log(np.expm1(np.minimum(r, 30.0))))
    return raw
