"""Armijo backtracking: the rules, apart from the function that is searched along.

A search tries a step, asks `sufficient_decrease`, and if refused tries `next_trial`. The
step that was taken seeds the next search through `first_trial`.
"""

from airpass.kernels.jit import kernel

ARMIJO = 1e-4  # fraction of the linear prediction that counts as enough; Nocedal & Wright, sec. 3.1
SHORTEST_CUT = 0.1  # a trial is cut to between a tenth ...
LONGEST_CUT = 0.5  # ... and a half of the one before
GROWTH = 2.0  # how much longer than the last step the next search may start
MAX_TRIALS = 60  # 0.5**60 is below the spacing of floats: the direction is hopeless


@kernel
def sufficient_decrease(old: float, new: float, step: float, slope: float) -> bool:
    """Armijo's condition for a minimisation; `slope` < 0 is the derivative along the step."""
    return new <= old + ARMIJO * step * slope


@kernel
def next_trial(old: float, new: float, step: float, slope: float) -> float:
    """The minimiser of the parabola through f(0), f'(0) and f(step), kept within bounds."""
    curvature = new - old - step * slope
    if not curvature > 0.0:  # not a number, too: the trial overflowed
        return LONGEST_CUT * step
    parabola = -0.5 * slope * step * step / curvature
    return min(max(parabola, SHORTEST_CUT * step), LONGEST_CUT * step)


@kernel
def first_trial(taken: float) -> float:
    """Where the next search starts after a search that took the step `taken`."""
    return GROWTH * taken
