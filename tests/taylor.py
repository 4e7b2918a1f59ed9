"""Derivative checks by the slope of the Taylor remainder.

|f(x + t d) - f(x) - t f'(x; d)| falls like t^2 if and only if the derivative is right; with a
wrong one it falls like t. Rounding spoils the smallest steps, so the steepest stretch counts.
"""

from collections.abc import Callable

import numpy as np


def remainder_slope(
    function: Callable[[float], complex], derivative: complex, largest: float = 1e-2, steps: int = 12
) -> float:
    """Median slope of log(remainder) over log(t) where the remainder stands clear of rounding."""
    start = function(0.0)
    t = largest * 0.5 ** np.arange(steps)
    remainder = np.array([abs(function(step) - start - step * derivative) for step in t])
    clear = remainder > 1e-12 * max(1.0, abs(start))
    assert clear.sum() >= 3, "the remainder is lost in rounding: choose a larger step"
    slopes = np.diff(np.log(remainder[clear])) / np.diff(np.log(t[clear]))
    return float(np.median(slopes))
