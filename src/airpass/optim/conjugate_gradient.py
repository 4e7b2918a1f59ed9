"""Riemannian conjugate gradient on the complex sphere for functions of squared projections.

It minimises f(z_1(m), ..., z_K(m)) over ||m|| = 1, where z_k = |h_k^H m|^2, the h_k are the
columns of an n x K matrix, and f is one of `airpass.optim.objectives`.

A direction d costs one product b = H^H d. Every trial step of the line search is then O(K), because
|h_k^H(m + t d)|^2 is a parabola in t, and the projections of the accepted point are a + t b. An
iteration is therefore one product with H^H, one with H, and O(K) per trial.
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Flag, Real
from airpass.kernels.blocks import BLOCK, borrowed, part
from airpass.kernels.jit import inlined, kernel
from airpass.optim import line_search, sphere
from airpass.optim.objectives import Objective, block_size, evaluate
from airpass.optim.projections import (
    Scratch,
    gradient,
    gradient_block,
    new_scratch,
    project_block,
    projections,
)

# Values of `Minimum.status`.
CONVERGED = 0
ITERATION_LIMIT = 1
NO_DESCENT = 2  # no step along the steepest descent decreases the objective: minimum up to rounding


class Limits(NamedTuple):
    """First step and stopping rule."""

    first_step: float  # first trial step, also after a restart
    max_iterations: int
    tolerance: float  # relative decrease; stop after two consecutive smaller decreases


class Minimum(NamedTuple):
    """Result of `minimise`."""

    point: Complex  # shape (n,), of norm one
    value: float
    iterations: int
    evaluations: int  # of the objective
    status: int  # CONVERGED, ITERATION_LIMIT or NO_DESCENT


class Workspace(NamedTuple):
    """Arrays over the devices, reused from one run to the next; shape (K,)."""

    a_re: Real  # projections of the current point on the columns
    a_im: Real
    b_re: Real  # projections of the direction
    b_im: Real
    scores: Real  # z at the current point
    linear: Real  # z(t) = (scores + t linear + t^2 square)/(1 + t^2 ||d||^2)
    square: Real
    trial: Real  # z(t) of a block
    slopes: Real
    terms: Real
    scratch: Scratch


def operations(size: int, count: int) -> float:
    """Operations of an iteration, about, of which each takes a nanosecond.

    Parameters
    ----------
    size, count
        n and K.

    Returns
    -------
    float
        Two products of four operations per entry in vectors of four, and the trials of the line search.
    """
    return count * (2.0 * size + 20.0)


@kernel
def new_workspace(count: int) -> Workspace:
    """Allocate a workspace for K = `count`."""
    return Workspace(
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        new_scratch(count),
    )


@kernel
def load_point(workspace: Workspace, columns_re: Real, columns_im: Real, point: Complex) -> None:
    """Compute the projections and scores of a point into the workspace."""
    projections(columns_re, columns_im, point, workspace.a_re, workspace.a_im)
    for k in range(workspace.scores.size):
        workspace.scores[k] = workspace.a_re[k] * workspace.a_re[k] + workspace.a_im[k] * workspace.a_im[k]


@kernel
def _parabolas(a_re: Real, a_im: Real, b_re: Real, b_im: Real, linear: Real, square: Real) -> None:
    """|a + t b|^2 = |a|^2 + t linear + t^2 square."""
    for k in range(linear.size):
        linear[k] = 2.0 * (a_re[k] * b_re[k] + a_im[k] * b_im[k])
        square[k] = b_re[k] * b_re[k] + b_im[k] * b_im[k]


@kernel
def _scores_at(scores: Real, linear: Real, square: Real, step: float, shrink: float, out: Real) -> None:
    for k in range(scores.size):
        out[k] = (scores[k] + step * (linear[k] + step * square[k])) * shrink


@kernel
def _move(a: Real, b: Real, step: float, shrink: float) -> None:
    for k in range(a.size):
        a[k] = (a[k] + step * b[k]) * shrink


@kernel
def _negative(vector: Complex, out: Complex) -> None:
    for i in range(vector.size):
        out[i] = -vector[i]


@kernel
def _shrink(step: float, length_square: float) -> float:
    """1/||m + t d||^2; exact because the direction is tangent."""
    return 1.0 / (1.0 + step * step * length_square)


@inlined
def _set_direction(workspace: Workspace, columns_re: Real, columns_im: Real, direction: Complex) -> None:
    """Projections of the direction, and the parabolas along it."""
    w = workspace
    for start in range(0, w.scores.size, BLOCK):
        stop = min(start + BLOCK, w.scores.size)
        b_re, b_im = part(w.b_re, start, stop), part(w.b_im, start, stop)
        project_block(columns_re, columns_im, start, direction, b_re, b_im)
        _parabolas(
            part(w.a_re, start, stop),
            part(w.a_im, start, stop),
            b_re,
            b_im,
            part(w.linear, start, stop),
            part(w.square, start, stop),
        )


@inlined
def _value_at(workspace: Workspace, objective: Objective, step: float, shrink: float) -> float:
    """The objective after a trial step; leaves its slopes in the workspace."""
    w = workspace
    value = 0.0
    size = block_size(objective, w.scores.size)
    for start in range(0, w.scores.size, size):
        stop = min(start + size, w.scores.size)
        # Scores and terms of a block are not needed later, so all blocks share the same entries.
        trial = part(w.trial, 0, stop - start)
        _scores_at(
            part(w.scores, start, stop),
            part(w.linear, start, stop),
            part(w.square, start, stop),
            step,
            shrink,
            trial,
        )
        value += evaluate(
            objective, start, trial, part(w.slopes, start, stop), part(w.terms, 0, stop - start)
        )
    return value


@inlined
def _search(
    workspace: Workspace,
    objective: Objective,
    value: float,
    rate: float,
    length_square: float,
    step: float,
) -> tuple[bool, float, float, int]:
    """Armijo backtracking: whether a step is accepted, the step, the value there, evaluations."""
    lower = value
    for trial in range(line_search.MAX_TRIALS):
        lower = _value_at(workspace, objective, step, _shrink(step, length_square))
        if line_search.sufficient_decrease(value, lower, step, rate):
            return True, step, lower, trial + 1
        step = line_search.next_trial(value, lower, step, rate)
    return False, step, lower, line_search.MAX_TRIALS


@inlined
def _advance(
    workspace: Workspace, columns_re: Real, columns_im: Real, step: float, shrink: float, grad: Complex
) -> None:
    """Move projections and scores by the step, and compute the gradient there."""
    w = workspace
    grad[:] = 0.0
    for start in range(0, w.scores.size, BLOCK):
        stop = min(start + BLOCK, w.scores.size)
        a_re, a_im = part(w.a_re, start, stop), part(w.a_im, start, stop)
        scores = part(w.scores, start, stop)
        _move(a_re, part(w.b_re, start, stop), step, np.sqrt(shrink))
        _move(a_im, part(w.b_im, start, stop), step, np.sqrt(shrink))
        _scores_at(scores, part(w.linear, start, stop), part(w.square, start, stop), step, shrink, scores)
        gradient_block(
            columns_re, columns_im, start, part(w.slopes, start, stop), a_re, a_im, w.scratch, grad
        )


@inlined
def _conjugate(
    point: Complex, grad: Complex, old_grad: Complex, old_square: float, direction: Complex
) -> float:
    """Turn `direction` into the Polak-Ribiere+ direction at `point`, where `grad` is tangent.

    Returns the share of the old direction; 0 means steepest descent. Overwrites `old_grad`.
    """
    sphere.transport(point, old_grad, old_grad)
    mix = 0.0
    if old_square > 0.0:
        mix = max(0.0, (sphere.inner(grad, grad) - sphere.inner(grad, old_grad)) / old_square)
    sphere.transport(point, direction, direction)
    for i in range(direction.size):
        direction[i] = direction[i] * mix - grad[i]
    return mix


@kernel
def minimise(
    columns_re: Real, columns_im: Real, objective: Objective, start: Complex, limits: Limits, stop: Flag
) -> Minimum:
    """Polak-Ribiere+ conjugate gradient with Armijo backtracking.

    Parameters
    ----------
    columns_re, columns_im
        Real and imaginary parts of the columns h_k, contiguous, shape (n, K).
    objective
        `Saturating`, `Softmin` or `Hill`.
    start
        First point, shape (n,), of norm one.
    limits
        First step and stopping rule.
    stop
        The descent ends early once the entry is not zero.

    Returns
    -------
    The point with the lowest value found. The value never exceeds that of `start`.
    """
    workspace = new_workspace(columns_re.shape[1])
    load_point(workspace, columns_re, columns_im, start)
    return minimise_in(workspace, columns_re, columns_im, objective, start, limits, stop)


@kernel
def minimise_in(
    workspace: Workspace,
    columns_re: Real,
    columns_im: Real,
    objective: Objective,
    start: Complex,
    limits: Limits,
    stop: Flag,
) -> Minimum:
    """`minimise` in a workspace into which `start` was loaded.

    The workspace is left at the result or one step before it.
    """
    w = borrowed(workspace)
    columns_re, columns_im, objective = borrowed(columns_re), borrowed(columns_im), borrowed(objective)
    point = start.copy()
    grad = np.empty_like(point)
    new_grad = np.empty_like(point)
    direction = np.empty_like(point)
    value = evaluate(objective, 0, w.scores, w.slopes, w.terms)
    evaluations = 1
    gradient(columns_re, columns_im, w.slopes, w.a_re, w.a_im, w.scratch, grad)
    sphere.project(point, grad, grad)
    _negative(grad, direction)
    steepest = True
    step = limits.first_step
    idle = 0

    for iteration in range(limits.max_iterations):
        if stop[0] != 0:
            return Minimum(point, value, iteration, evaluations, ITERATION_LIMIT)
        rate = sphere.slope(direction, grad)
        if not rate < 0.0:
            if steepest:
                return Minimum(point, value, iteration, evaluations, CONVERGED)
            _negative(grad, direction)
            steepest = True
            rate = sphere.slope(direction, grad)
        length_square = sphere.inner(direction, direction)
        _set_direction(w, columns_re, columns_im, direction)
        accepted, step, lower, tried = _search(w, objective, value, rate, length_square, step)
        evaluations += tried
        if not accepted:
            if steepest:
                return Minimum(point, value, iteration, evaluations, NO_DESCENT)
            # The trials have overwritten the slopes; the gradient is still that of the point.
            _negative(grad, direction)
            steepest = True
            step = limits.first_step
            continue

        sphere.retract(point, direction, step, point)
        gain = value - lower
        value = lower
        idle = idle + 1 if gain <= limits.tolerance * abs(value) else 0
        if idle >= 2:
            return Minimum(point, value, iteration + 1, evaluations, CONVERGED)
        _advance(w, columns_re, columns_im, step, _shrink(step, length_square), new_grad)
        sphere.project(point, new_grad, new_grad)
        steepest = _conjugate(point, new_grad, grad, sphere.inner(grad, grad), direction) == 0.0
        grad, new_grad = new_grad, grad
        step = line_search.first_trial(step)

    return Minimum(point, value, limits.max_iterations, evaluations, ITERATION_LIMIT)
