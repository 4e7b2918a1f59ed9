"""Rules of Armijo backtracking, independent of the objective.

A search evaluates a step and checks it by `sufficient_decrease`. If it is rejected, `next_trial` gives the
next step. `first_trial` gives the first step of the next search from the step taken.
"""

from airpass.kernels.jit import kernel

ARMIJO = 1e-4  # required fraction of the predicted decrease; Nocedal & Wright, sec. 3.1
SHORTEST_CUT = 0.1  # smallest factor by which a trial step is cut
LONGEST_CUT = 0.5  # largest factor by which a trial step is cut
GROWTH = 2.0  # first step of a search over the last step taken
MAX_TRIALS = 60  # 0.5**60 is below the spacing of floats: no descent along this direction


@kernel
def sufficient_decrease(old: float, new: float, step: float, slope: float) -> bool:
    """Armijo's condition for a minimisation; `slope` < 0 is the derivative along the step."""
    return new <= old + ARMIJO * step * slope


@kernel
def next_trial(old: float, new: float, step: float, slope: float) -> float:
    """The minimiser of the parabola through f(0), f'(0) and f(step), kept within bounds."""
    curvature = new - old - step * slope
    if not curvature > 0.0:  # also true for NaN, if the trial overflowed
        return LONGEST_CUT * step
    parabola = -0.5 * slope * step * step / curvature
    return min(max(parabola, SHORTEST_CUT * step), LONGEST_CUT * step)


@kernel
def first_trial(taken: float) -> float:
    """First step of the next search after a search that took the step `taken`."""
    return GROWTH * taken
