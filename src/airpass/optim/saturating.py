"""The smooth count of devices below one that HRMC lowers, eqs. (33)-(35): sum_k w_k (1 - exp(-v_k/level))."""

from airpass.core.types import Real
from airpass.kernels.jit import kernel
from airpass.kernels.math import exp, log
from airpass.kernels.sums import BLOCK, lane_sum


@kernel
def _saturating_block(
    scores: Real, weights: Real, sharpness: float, level: float, slopes: Real, terms: Real
) -> None:
    # A loop for each function: in one loop together their coefficients do not fit in the registers, and
    # it takes twice as long.
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


@kernel
def saturating(
    scores: Real, weights: Real, sharpness: float, level: float, slopes: Real, terms: Real
) -> float:
    """Value of SATURATING; `slopes` receives df/dz_k, `terms` what it sums.

    With p = 1/(1 + exp(sharpness (1 - z))), exp(-v/level) = p**(1/(sharpness level)) and
    the derivative of v is -(1 - p), so that one exponential and one power serve for all.
    """
    if scores.size <= BLOCK:
        _saturating_block(scores, weights, sharpness, level, slopes, terms)
    else:
        for start in range(0, scores.size, BLOCK):
            b = slice(start, min(start + BLOCK, scores.size))
            _saturating_block(scores[b], weights[b], sharpness, level, slopes[b], terms[b])
    return lane_sum(terms)
