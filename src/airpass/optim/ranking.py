"""Order of solutions: most scores of at least one, then the largest weakest score.

With priorities v_k, the sum of v_k over the scores of at least one takes the place of their number. Devices
of priority zero do not count. For v_k = 1 both orders are the same: sums of ones are exact.
"""

import numpy as np

from airpass.core.types import Real
from airpass.kernels.jit import kernel


@kernel
def rank(scores: Real) -> tuple[int, float]:
    """Number of selected devices and weakest score among them; larger is better.

    With no device selected, the second entry is the largest score of all.
    """
    count = 0
    weakest = np.inf
    strongest = 0.0
    for k in range(scores.size):
        strongest = max(strongest, scores[k])
        if scores[k] >= 1.0:
            count += 1
            weakest = min(weakest, scores[k])
    return count, weakest if count > 0 else strongest


@kernel
def value_rank(scores: Real, priorities: Real) -> tuple[float, float]:
    """Sum of the selected devices' priorities and weakest score among them; larger is better.

    With no device selected, the second entry is the largest score of those with a priority above zero.
    """
    value = 0.0
    weakest = np.inf
    strongest = 0.0
    for k in range(scores.size):
        if priorities[k] > 0.0:
            strongest = max(strongest, scores[k])
            if scores[k] >= 1.0:
                value += priorities[k]
                weakest = min(weakest, scores[k])
    return value, weakest if value > 0.0 else strongest
