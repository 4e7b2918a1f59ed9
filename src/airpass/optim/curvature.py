"""Curvature of a function from the last steps of an ascent: step lengths and quasi-Newton directions.

A step s changes the gradient by -y, where y = H s for a quadratic function with Hessian -H. The
pairs (s, y) give

- a first trial step along the gradient (Barzilai and Borwein, IMA J. Numer. Anal. 8, 1988), which is
  the inverse of H's Rayleigh quotient, at s or at H^(1/2) s;
- the direction H^-1 g of the limited-memory BFGS method (Nocedal and Wright, Algorithm 7.4).
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Real
from airpass.kernels.jit import kernel

# A pair is used if the angle between s and y is well below 90 degrees, so that H is positive along s.
LEAST_CURVATURE = 1e-10


class Pairs(NamedTuple):
    """The last steps, in a ring."""

    steps: Real  # s, shape (memory, n)
    changes: Real  # y
    inverse: Real  # 1/(s.y), shape (memory,)
    scratch: Real
    stored: Real  # number of pairs ever stored, shape (1,)


@kernel
def new_pairs(memory: int, size: int) -> Pairs:
    """Allocate a ring for `memory` pairs of vectors with `size` entries."""
    return Pairs(
        np.zeros((memory, size)),
        np.zeros((memory, size)),
        np.zeros(memory),
        np.zeros(memory),
        np.zeros(1),
    )


@kernel
def forget(pairs: Pairs) -> None:
    """Remove all pairs."""
    pairs.stored[0] = 0.0


@kernel
def dot(a: Real, b: Real) -> float:
    """Inner product of two vectors, summed in order."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def remember(pairs: Pairs, old: Real, new: Real, old_gradient: Real, new_gradient: Real) -> None:
    """Store the step from `old` to `new`, unless the function is convex along it."""
    slot = int(pairs.stored[0]) % pairs.inverse.size
    step, change = pairs.steps[slot], pairs.changes[slot]
    for i in range(step.size):
        step[i] = new[i] - old[i]
        change[i] = old_gradient[i] - new_gradient[i]
    curvature = dot(step, change)
    if curvature > LEAST_CURVATURE * np.sqrt(dot(step, step) * dot(change, change)):
        pairs.inverse[slot] = 1.0 / curvature
        pairs.stored[0] += 1.0
    else:
        forget(pairs)


@kernel
def trial_step(pairs: Pairs, otherwise: float) -> float:
    """Barzilai and Borwein's step, alternately the short and the long one.

    Returns `otherwise` if no pair is stored.
    """
    count = int(pairs.stored[0])
    if count == 0:
        return otherwise
    slot = (count - 1) % pairs.inverse.size
    inverse: float = pairs.inverse[slot]
    if count % 2 == 1:
        return 1.0 / (inverse * dot(pairs.changes[slot], pairs.changes[slot]))
    return inverse * dot(pairs.steps[slot], pairs.steps[slot])


@kernel
def newton_direction(pairs: Pairs, vector: Real) -> None:
    """Replace a gradient by the limited-memory BFGS direction; at least one pair is stored."""
    count = int(pairs.stored[0])
    size = pairs.inverse.size
    used = min(count, size)
    for j in range(used):
        slot = (count - 1 - j) % size
        share = pairs.inverse[slot] * dot(pairs.steps[slot], vector)
        pairs.scratch[slot] = share
        for i in range(vector.size):
            vector[i] -= share * pairs.changes[slot, i]
    last = (count - 1) % size
    scale = 1.0 / (pairs.inverse[last] * dot(pairs.changes[last], pairs.changes[last]))
    for i in range(vector.size):
        vector[i] *= scale
    for j in range(used - 1, -1, -1):
        slot = (count - 1 - j) % size
        share = pairs.scratch[slot] - pairs.inverse[slot] * dot(pairs.changes[slot], vector)
        for i in range(vector.size):
            vector[i] += share * pairs.steps[slot, i]
