"""Order of solutions: most scores of at least one, then the largest weakest score."""

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
