"""Smooth minimum: -t log sum_k exp(-x_k/t), between min x - t log K and min x."""

import math

import numpy as np

from airpass.optim.jit import kernel
from airpass.optim.types import Real
from airpass.optim.vector_math import exp


@kernel
def softmin(values: Real, temperature: float, weights: Real) -> float:
    """Value of the soft minimum; `weights` receives its gradient, which sums to one."""
    lowest = np.inf
    for k in range(values.size):
        lowest = min(lowest, values[k])
    scale = -1.0 / temperature
    total = 0.0
    for k in range(values.size):
        weights[k] = exp(scale * (values[k] - lowest))
        total += weights[k]
    share = 1.0 / total
    for k in range(values.size):
        weights[k] *= share
    return lowest - temperature * math.log(total)
