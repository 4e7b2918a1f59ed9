"""Smooth minimum: -t log sum_k exp(-x_k/t), between min x - t log K and min x."""

import math

from airpass.core.types import Real
from airpass.kernels.jit import kernel
from airpass.kernels.math import exp
from airpass.kernels.sums import lane_min, lane_sum


@kernel
def softmin(values: Real, temperature: float, weights: Real) -> float:
    """Value of the soft minimum; `weights` receives its gradient, which sums to one."""
    lowest = lane_min(values)
    scale = -1.0 / temperature
    for k in range(values.size):
        weights[k] = exp(scale * (values[k] - lowest))
    total = lane_sum(weights)
    share = 1.0 / total
    for k in range(values.size):
        weights[k] *= share
    return lowest - temperature * math.log(total)
