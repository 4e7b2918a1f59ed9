"""Sums and minima in eight interleaved lanes.

Strict arithmetic makes a plain sum wait for each addition before the next; eight partial sums
keep the processor busy, in an order that is the same on every machine. Their rounding error is
also smaller than a plain sum's.
"""

import numpy as np

from airpass.optim.jit import kernel
from airpass.optim.types import Real


@kernel
def lane_sum(values: Real) -> float:
    """Sum of all entries."""
    a = b = c = d = e = f = g = h = 0.0
    whole = values.size - values.size % 8
    for k in range(0, whole, 8):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
        e += values[k + 4]
        f += values[k + 5]
        g += values[k + 6]
        h += values[k + 7]
    rest = 0.0
    for k in range(whole, values.size):
        rest += values[k]
    return (((a + e) + (b + f)) + ((c + g) + (d + h))) + rest


@kernel
def lane_min(values: Real) -> float:
    """Least of all entries; infinity if there are none."""
    a = b = c = d = np.inf
    whole = values.size - values.size % 4
    for k in range(0, whole, 4):
        a = min(a, values[k])
        b = min(b, values[k + 1])
        c = min(c, values[k + 2])
        d = min(d, values[k + 3])
    for k in range(whole, values.size):
        a = min(a, values[k])
    return min(a, b, c, d)
