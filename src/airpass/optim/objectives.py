"""Functions of scores z_k that conjugate gradients minimise. A kernel is compiled for each of them.

    Saturating   sum_k w_k (1 - exp(-v_k/level)),  v_k = log(1 + exp(sharpness (1 - z_k)))/sharpness
    Softmin      t log sum_k exp(-z_k/t), the negative soft minimum at temperature t
    Hill         sum_k c_k/(floor + z_k^p),  p = 2^doublings

`Saturating` is the surrogate of HRMC, eqs. (33)-(35). With floor = 1 each term of `Hill` falls
from 1 (z = 0) through 1/2 (z = 1) to 0: a smooth count of the scores below one, exact in the limit
of large p, without exponentials. With floor = 0 the weakest score dominates: F^(-1/p) tends to the
smallest z_k at any scale.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from airpass.core.types import Real
from airpass.kernels.blocks import BLOCK, part
from airpass.kernels.jit import kernel
from airpass.kernels.math import exp, log
from airpass.kernels.sums import lane_min, lane_sum


class Saturating(NamedTuple):
    """Smooth weighted count of the scores below one."""

    weights: Real  # w_k, shape (K,)
    sharpness: float  # beta
    level: float  # mu


class Softmin(NamedTuple):
    """Negative soft minimum of the scores."""

    temperature: float


class Hill(NamedTuple):
    """Sum of Hill functions of the scores."""

    counted: Real  # c_k, shape (K,)
    doublings: int  # log2 of the power p
    floor: float


Objective = Saturating | Softmin | Hill


@kernel
def softmin(values: Real, temperature: float, weights: Real) -> float:
    """Soft minimum -t log sum_k exp(-x_k/t), between min x - t log K and min x.

    Parameters
    ----------
    values
        x_k, shape (K,).
    temperature
        t > 0.
    weights
        Output: the gradient, which sums to one; shape (K,).

    Returns
    -------
    The soft minimum.
    """
    lowest = lane_min(values)
    scale = -1.0 / temperature
    for k in range(values.size):
        weights[k] = exp(scale * (values[k] - lowest))
    total = lane_sum(weights)
    share = 1.0 / total
    for k in range(values.size):
        weights[k] *= share
    return lowest - temperature * math.log(total)


@kernel
def _saturating(objective: Saturating, start: int, scores: Real, slopes: Real, terms: Real) -> float:
    # With p = 1/(1 + exp(sharpness (1 - z))), exp(-v/level) = p**(1/(sharpness level)) and the
    # derivative of v is -(1 - p), so one exponential and one power give both value and slope.
    # There is one loop per function: the coefficients of all of them together do not fit in the
    # registers, and a single loop takes twice as long.
    weights = part(objective.weights, start, start + scores.size)
    sharpness, level = objective.sharpness, objective.level
    for k in range(scores.size):
        # Beyond 700 the exponential would overflow, and log(1 + e^t) is t to the last digit.
        slopes[k] = exp(min(sharpness * (1.0 - scores[k]), 700.0))
    for k in range(scores.size):
        terms[k] = log(1.0 + slopes[k])
    power = -1.0 / (sharpness * level)
    for k in range(scores.size):
        t = sharpness * (1.0 - scores[k])
        terms[k] = exp(power * (terms[k] + (t - min(t, 700.0))))
    steepness = -1.0 / level
    for k in range(scores.size):
        slopes[k] = weights[k] * steepness * terms[k] * (slopes[k] / (1.0 + slopes[k]))
    for k in range(scores.size):
        terms[k] = weights[k] * (1.0 - terms[k])
    return lane_sum(terms)


@kernel
def _softmin(objective: Softmin, start: int, scores: Real, slopes: Real, terms: Real) -> float:
    value = softmin(scores, objective.temperature, slopes)
    for k in range(scores.size):
        slopes[k] = -slopes[k]
    return -value


@kernel
def _hill(objective: Hill, start: int, scores: Real, slopes: Real, terms: Real) -> float:
    # With h = 1/(floor + z^p), dh/dz = -p z^(p-1) h^2 = -p h (z^p h)/z, where z^p h is at most one.
    counted = part(objective.counted, start, start + scores.size)
    power = 2.0**objective.doublings
    for k in range(scores.size):
        terms[k] = max(scores[k], 1e-150)
    for _ in range(objective.doublings):
        for k in range(scores.size):
            terms[k] = min(max(terms[k] * terms[k], 1e-150), 1e150)
    for k in range(scores.size):
        h = 1.0 / (objective.floor + terms[k])
        slopes[k] = -counted[k] * power * h * (terms[k] * h) / max(scores[k], 1e-150)
        terms[k] = counted[k] * h
    return lane_sum(terms)


_KERNELS: dict[type, Callable[..., float]] = {Saturating: _saturating, Softmin: _softmin, Hill: _hill}


def evaluate(objective: Objective, start: int, scores: Real, slopes: Real, terms: Real) -> float:
    """Value and slopes of an objective over a block of the devices.

    Parameters
    ----------
    objective
        The function. Inside kernels the call is resolved by its type at compile time.
    start
        Index of the first device of the block; 0 for `Softmin`, which is not a sum.
    scores
        z_k of the block.
    slopes
        Output: the derivative with respect to every z_k; same shape.
    terms
        Scratch array of the same shape.

    Returns
    -------
    The value.
    """
    return _KERNELS[type(objective)](objective, start, scores, slopes, terms)


@overload(evaluate, strict=False, inline="always")
def _evaluate(objective: Any, start: Any, scores: Any, slopes: Any, terms: Any) -> Callable[..., float]:
    chosen = _KERNELS[objective.instance_class]
    return lambda objective, start, scores, slopes, terms: chosen(  # noqa: PLW0108
        objective, start, scores, slopes, terms
    )


def block_size(objective: Objective, count: int) -> int:
    """Devices that are evaluated at a time: a block, or all if the objective is not a sum."""
    return count if isinstance(objective, Softmin) else min(count, BLOCK)


@overload(block_size, strict=False, inline="always")
def _block_size(objective: Any, count: Any) -> Callable[..., int]:
    if objective.instance_class is Softmin:
        return lambda objective, count: count
    return lambda objective, count: min(count, BLOCK)
