"""Sums of Hill functions: how many scores are below one, smoothly, without exponentials.

    F(z) = sum_k c_k/(floor + z_k^p),    p = 2^doublings

With floor = 1 every term falls from 1 (z = 0) through 1/2 (z = 1) to 0, as steeply as p
says: a smooth count of the scores below one, which is exact in the limit of large p. With
floor = 0 the weakest score rules: F^(-1/p) tends to the least z_k, whatever their scale.
"""

from airpass.core.types import Real
from airpass.kernels.jit import kernel
from airpass.kernels.sums import lane_sum

MOST_DOUBLINGS = 6


@kernel
def hill(scores: Real, counted: Real, doublings: int, floor: float, slopes: Real, terms: Real) -> float:
    """F of the scores, c_k in `counted`; `slopes` receives dF/dz_k, `terms` what F sums.

    With h = 1/(floor + z^p), dh/dz = -p z^(p-1) h^2 = -p h (z^p h)/z, where z^p h is at most one.
    """
    power = 2.0**doublings
    for k in range(scores.size):
        terms[k] = max(scores[k], 1e-150)
    for _ in range(doublings):
        for k in range(scores.size):
            terms[k] = min(max(terms[k] * terms[k], 1e-150), 1e150)
    for k in range(scores.size):
        h = 1.0 / (floor + terms[k])
        slopes[k] = -counted[k] * power * h * (terms[k] * h) / max(scores[k], 1e-150)
        terms[k] = counted[k] * h
    return lane_sum(terms)
