"""Riemannian conjugate gradient on the complex sphere for functions of squared projections.

It minimises f(z_1(m), ..., z_K(m)) over ||m|| = 1, where z_k = |h_k^H m|^2 and the h_k are
the columns of an n x K matrix. Three such functions are known here, by `kind`:

    SATURATING   sum_k w_k (1 - exp(-v_k/level)),  v_k = log(1 + exp(sharpness (1 - z_k)))/sharpness
    SOFTMIN      -(soft minimum of the z_k at temperature `level`)
    HILL         sum_k w_k/(level + z_k^p), p = 2^sharpness

A direction d costs one product b = H^H d; after that every trial step of the line search is
O(K), as |h_k^H(m + t d)|^2 is a parabola in t, and the projections of the accepted point
are a + t b. So an iteration is one product with H^H, one with H, and O(K) per trial.
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel
from airpass.kernels.sums import BLOCK
from airpass.optim import line_search, sphere
from airpass.optim.hill import hill
from airpass.optim.projections import (
    Scratch,
    gradient,
    gradient_block,
    new_scratch,
    project_block,
    projections,
)
from airpass.optim.saturating import saturating
from airpass.optim.softmin import softmin

SATURATING = 0
SOFTMIN = 1
HILL = 2

# Why a run ended.
CONVERGED = 0
ITERATION_LIMIT = 1
NO_DESCENT = 2  # no step along the steepest descent improves: a minimum to rounding


@kernel
def evaluate(
    kind: int, scores: Real, weights: Real, sharpness: float, level: float, slopes: Real, terms: Real
) -> float:
    """Value of the objective `kind` and, in `slopes`, its derivative in every z_k."""
    if kind == SATURATING:
        return saturating(scores, weights, sharpness, level, slopes, terms)
    if kind == HILL:
        return hill(scores, weights, int(sharpness), level, slopes, terms)
    value = softmin(scores, level, slopes)
    for k in range(scores.size):
        slopes[k] = -slopes[k]
    return -value


@kernel
def _parabola_block(a_re: Real, a_im: Real, b_re: Real, b_im: Real, linear: Real, square: Real) -> None:
    """|a + t b|^2 = |a|^2 + t linear + t^2 square."""
    for k in range(linear.size):
        linear[k] = 2.0 * (a_re[k] * b_re[k] + a_im[k] * b_im[k])
        square[k] = b_re[k] * b_re[k] + b_im[k] * b_im[k]


@kernel
def _trial_block(scores: Real, linear: Real, square: Real, step: float, shrink: float, trial: Real) -> None:
    for k in range(scores.size):
        trial[k] = (scores[k] + step * (linear[k] + step * square[k])) * shrink


@kernel
def _direct_block(
    columns_re: Real,
    columns_im: Real,
    start: int,
    direction: Complex,
    a_re: Real,
    a_im: Real,
    b_re: Real,
    b_im: Real,
    linear: Real,
    square: Real,
) -> None:
    """Projections of the direction, and the parabolas along it."""
    project_block(columns_re, columns_im, start, direction, b_re, b_im)
    _parabola_block(a_re, a_im, b_re, b_im, linear, square)


@kernel
def _move(a: Real, b: Real, step: float, shrink: float) -> None:
    for k in range(a.size):
        a[k] = (a[k] + step * b[k]) * shrink


@kernel
def _advance_block(
    columns_re: Real,
    columns_im: Real,
    start: int,
    a_re: Real,
    a_im: Real,
    b_re: Real,
    b_im: Real,
    scores: Real,
    linear: Real,
    square: Real,
    slopes: Real,
    step: float,
    shrink: float,
    scratch: Scratch,
    grad: Complex,
) -> None:
    """Take the step, and add to the gradient there."""
    _move(a_re, b_re, step, np.sqrt(shrink))
    _move(a_im, b_im, step, np.sqrt(shrink))
    _trial_block(scores, linear, square, step, shrink, scores)
    gradient_block(columns_re, columns_im, start, slopes, a_re, a_im, scratch, grad)


@kernel
def _negative(vector: Complex, out: Complex) -> None:
    for i in range(vector.size):
        out[i] = -vector[i]


class Room(NamedTuple):
    """What `minimise_in` works in, so that one descent after the other allocates nothing for its devices."""

    a_re: Real  # projections of the current point on the columns; shape (K,), like all of these
    a_im: Real
    b_re: Real  # of the direction
    b_im: Real
    scores: Real  # z at the current point
    linear: Real  # z(t) = (scores + t linear + t^2 square)/(1 + t^2 ||d||^2)
    square: Real
    trial: Real
    slopes: Real
    terms: Real
    scratch: Scratch


@kernel
def new_room(count: int) -> Room:
    """Room for K = `count`."""
    return Room(
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
def enter(room: Room, columns_re: Real, columns_im: Real, point: Complex) -> None:
    """Put the projections and scores of a point into the room."""
    projections(columns_re, columns_im, point, room.a_re, room.a_im)
    for k in range(room.scores.size):
        room.scores[k] = room.a_re[k] * room.a_re[k] + room.a_im[k] * room.a_im[k]


@kernel
def minimise(
    columns_re: Real,
    columns_im: Real,
    kind: int,
    weights: Real,
    sharpness: float,
    level: float,
    start: Complex,
    first_step: float,
    max_iterations: int,
    tolerance: float,
) -> tuple[Complex, float, int, int, int]:
    """Polak-Ribiere+ conjugate gradient with Armijo backtracking from `start`.

    Stops when two iterations in a row have each lowered the objective by less than
    `tolerance` times its size. Returns the point, its value, the iterations, the number of
    objective evaluations, and why it ended. The objective never rises.
    """
    room = new_room(columns_re.shape[1])
    enter(room, columns_re, columns_im, start)
    return minimise_in(
        room,
        columns_re,
        columns_im,
        kind,
        weights,
        sharpness,
        level,
        start,
        first_step,
        max_iterations,
        tolerance,
    )


@kernel
def minimise_in(
    room: Room,
    columns_re: Real,
    columns_im: Real,
    kind: int,
    weights: Real,
    sharpness: float,
    level: float,
    start: Complex,
    first_step: float,
    max_iterations: int,
    tolerance: float,
) -> tuple[Complex, float, int, int, int]:
    """`minimise` in a room that `start` has entered. What it leaves there may be a step behind the result."""
    count = columns_re.shape[1]
    a_re, a_im, b_re, b_im = room.a_re, room.a_im, room.b_re, room.b_im
    scores, linear, square = room.scores, room.linear, room.square
    trial, slopes, terms, scratch = room.trial, room.slopes, room.terms, room.scratch

    point = start.copy()
    grad = np.empty_like(point)
    new_grad = np.empty_like(point)
    direction = np.empty_like(point)
    value = evaluate(kind, scores, weights, sharpness, level, slopes, terms)
    evaluations = 1
    gradient(columns_re, columns_im, slopes, a_re, a_im, scratch, grad)
    sphere.project(point, grad, grad)
    grad_square = sphere.inner(grad, grad)
    _negative(grad, direction)
    steepest = True
    step = first_step
    idle = 0

    for iteration in range(max_iterations):
        rate = sphere.slope(direction, grad)
        if not rate < 0.0:
            if steepest:
                return point, value, iteration, evaluations, CONVERGED
            _negative(grad, direction)
            steepest = True
            rate = sphere.slope(direction, grad)
        length_square = sphere.inner(direction, direction)
        if count <= BLOCK:
            _direct_block(columns_re, columns_im, 0, direction, a_re, a_im, b_re, b_im, linear, square)
        else:
            for first in range(0, count, BLOCK):
                b = slice(first, min(first + BLOCK, count))
                _direct_block(
                    columns_re,
                    columns_im,
                    first,
                    direction,
                    a_re[b],
                    a_im[b],
                    b_re[b],
                    b_im[b],
                    linear[b],
                    square[b],
                )

        accepted = False
        lower = value
        for _ in range(line_search.MAX_TRIALS):
            # The direction is tangent, so the normalisation is exactly this.
            shrink = 1.0 / (1.0 + step * step * length_square)
            if kind == SOFTMIN or count <= BLOCK:
                _trial_block(scores, linear, square, step, shrink, trial)
                lower = evaluate(kind, trial, weights, sharpness, level, slopes, terms)
            else:  # a sum over the devices: what is only needed for it stays in cache
                lower = 0.0
                for first in range(0, count, BLOCK):
                    b = slice(first, min(first + BLOCK, count))
                    some = slice(0, b.stop - first)
                    _trial_block(scores[b], linear[b], square[b], step, shrink, trial[some])
                    lower += evaluate(kind, trial[some], weights[b], sharpness, level, slopes[b], terms[some])
            evaluations += 1
            if line_search.sufficient_decrease(value, lower, step, rate):
                accepted = True
                break
            step = line_search.next_trial(value, lower, step, rate)
        if not accepted:
            if steepest:
                return point, value, iteration, evaluations, NO_DESCENT
            _negative(grad, direction)
            steepest = True
            step = first_step
            # The slopes were overwritten by trials; the gradient itself is still current.
            continue

        sphere.retract(point, direction, step, point)
        gain = value - lower
        value = lower
        idle = idle + 1 if gain <= tolerance * abs(value) else 0
        if idle >= 2:
            return point, value, iteration + 1, evaluations, CONVERGED

        shrink = 1.0 / (1.0 + step * step * length_square)
        new_grad[:] = 0.0
        if count <= BLOCK:
            _advance_block(
                columns_re,
                columns_im,
                0,
                a_re,
                a_im,
                b_re,
                b_im,
                scores,
                linear,
                square,
                slopes,
                step,
                shrink,
                scratch,
                new_grad,
            )
        else:
            for first in range(0, count, BLOCK):
                b = slice(first, min(first + BLOCK, count))
                _advance_block(
                    columns_re,
                    columns_im,
                    first,
                    a_re[b],
                    a_im[b],
                    b_re[b],
                    b_im[b],
                    scores[b],
                    linear[b],
                    square[b],
                    slopes[b],
                    step,
                    shrink,
                    scratch,
                    new_grad,
                )
        sphere.project(point, new_grad, new_grad)
        new_square = sphere.inner(new_grad, new_grad)
        sphere.transport(point, grad, grad)
        mix = 0.0
        if grad_square > 0.0:
            mix = max(0.0, (new_square - sphere.inner(new_grad, grad)) / grad_square)
        sphere.transport(point, direction, direction)
        for i in range(direction.size):
            direction[i] = direction[i] * mix - new_grad[i]
        steepest = mix == 0.0
        grad, new_grad = new_grad, grad
        grad_square = new_square
        step = line_search.first_trial(step)

    return point, value, max_iterations, evaluations, ITERATION_LIMIT
