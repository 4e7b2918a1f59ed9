"""Conjugate gradient over one beam per subcarrier, for functions of scores combined over subcarriers.

With z_{k,s} = |h_{k,s}^H m_s|^2, beams m_s on complex spheres and p = 2^doublings, it minimises

    F = sum_k c_k T_k/(1 + floor T_k),    T_k = mean_s z_{k,s}^-p      for the worst subcarrier,
                                          T_k = (mean_s 1/z_{k,s})^p   for the mean error.

T_k^(-1/p) is a power mean of the scores of device k: the harmonic mean for p = 1, and in the first case it
tends to the lowest score as p grows. For one subcarrier F is `Hill` (`airpass.optim.objectives`): with floor
= 1 a smooth count of the devices whose combined score is below one, with floor = 0 the weakest dominates.

As in `airpass.optim.conjugate_gradient`, scores are ratios of parabolas along a direction, so that trial
steps of the line search take no products with the channels. All beams take the same step.
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel
from airpass.optim import line_search, sphere
from airpass.optim.conjugate_gradient import Limits

SMALLEST = 1e-30  # of scores, in the objective
LARGEST_POWER = 1e60  # of reciprocal scores; its reciprocal is the smallest


class Goal(NamedTuple):
    """F."""

    counted: Real  # c_k, shape (K,)
    doublings: int  # log2 of p
    floor: float
    mean: bool  # the mean error instead of the worst subcarrier


class Beams(NamedTuple):
    """Result of `minimise`."""

    beams: Complex  # shape (S, M), rows of norm one
    value: float
    iterations: int


@kernel
def evaluate(goal: Goal, scores: Real, slopes: Real, terms: Real) -> float:
    """F, with its derivatives by all scores in `slopes`.

    Parameters
    ----------
    goal
        F.
    scores
        z_{k,s}, shape (S, K).
    slopes
        Output, shape (S, K).
    terms
        Scratch array, shape (K,).

    Returns
    -------
    F.
    """
    count, devices = scores.shape
    inside = 0 if goal.mean else goal.doublings  # doublings before the mean over subcarriers
    power = 2.0**goal.doublings
    least = 1.0 / LARGEST_POWER
    terms[:] = 0.0
    for s in range(count):
        row, slope = scores[s], slopes[s]
        for k in range(devices):
            slope[k] = 1.0 / max(row[k], SMALLEST)
        for _ in range(inside):
            for k in range(devices):
                slope[k] = min(max(slope[k] * slope[k], least), LARGEST_POWER)
        for k in range(devices):
            terms[k] += slope[k]
            slope[k] /= max(row[k], SMALLEST)
    value = 0.0
    for k in range(devices):
        mean = terms[k] / count
        raised = mean
        if goal.mean:
            for _ in range(goal.doublings):
                raised = min(max(raised * raised, least), LARGEST_POWER)
        share = 1.0 / (1.0 + goal.floor * raised)
        value += goal.counted[k] * raised * share
        terms[k] = -goal.counted[k] * share * share * power / count
        if goal.mean:
            terms[k] *= raised / mean
    for s in range(count):
        slope = slopes[s]
        for k in range(devices):
            slope[k] *= terms[k]
    return value


@kernel
def project(columns_re: Real, columns_im: Real, points: Complex, out_re: Real, out_im: Real) -> None:
    """h_{k,s}^H m_s, shape (S, K)."""
    out_re[:] = 0.0
    out_im[:] = 0.0
    for s in range(points.shape[0]):
        for m in range(points.shape[1]):
            x, y = points[s, m].real, points[s, m].imag
            row_re, row_im = columns_re[s, m], columns_im[s, m]
            sum_re, sum_im = out_re[s], out_im[s]
            for k in range(row_re.size):
                sum_re[k] += row_re[k] * x + row_im[k] * y
                sum_im[k] += row_re[k] * y - row_im[k] * x


@kernel
def _gradient(
    columns_re: Real, columns_im: Real, points: Complex, slopes: Real, a_re: Real, a_im: Real, out: Complex
) -> None:
    """Wirtinger gradients sum_k (dF/dz_{k,s}) h_{k,s} h_{k,s}^H m_s, tangent to the spheres."""
    for s in range(points.shape[0]):
        slope, re, im = slopes[s], a_re[s], a_im[s]
        for m in range(points.shape[1]):
            row_re, row_im = columns_re[s, m], columns_im[s, m]
            sum_re = 0.0
            sum_im = 0.0
            for k in range(row_re.size):
                sum_re += slope[k] * (row_re[k] * re[k] - row_im[k] * im[k])
                sum_im += slope[k] * (row_re[k] * im[k] + row_im[k] * re[k])
            out[s, m] = complex(sum_re, sum_im)
        sphere.project(points[s], out[s], out[s])


@kernel
def _inner(x: Complex, y: Complex) -> float:
    total = 0.0
    for s in range(x.shape[0]):
        total += sphere.inner(x[s], y[s])
    return total


@kernel
def _squares(re: Real, im: Real, out: Real) -> None:
    for s in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[s, k] = re[s, k] * re[s, k] + im[s, k] * im[s, k]


@kernel
def combined(scores: Real, mean: bool) -> Real:
    """The lowest scores over the subcarriers, or their harmonic means; shape (K,)."""
    count, devices = scores.shape
    result = np.empty(devices)
    for k in range(devices):
        lowest = np.inf
        for s in range(count):
            lowest = min(lowest, scores[s, k])
        result[k] = lowest
        if mean and lowest > 0.0:
            total = 0.0
            for s in range(count):
                total += lowest / scores[s, k]
            result[k] = lowest * count / total
    return result


@kernel
def minimise(columns_re: Real, columns_im: Real, goal: Goal, start: Complex, limits: Limits) -> Beams:
    """Polak-Ribiere+ conjugate gradient with Armijo backtracking on the product of the spheres.

    Parameters
    ----------
    columns_re, columns_im
        Real and imaginary parts of h_{k,s}, contiguous, shape (S, M, K).
    goal
        F.
    start
        First beams, shape (S, M), rows of norm one.
    limits
        First step and stopping rule.

    Returns
    -------
    The beams with the lowest value found. The value never exceeds that of `start`.
    """
    shape = (columns_re.shape[0], columns_re.shape[2])
    a_re, a_im, b_re, b_im = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    scores, linear, square, trial = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    slopes, terms = np.empty(shape), np.empty(shape[1])
    points = start.copy()
    grad, old, direction = np.empty_like(points), np.empty_like(points), np.empty_like(points)
    lengths = np.empty(shape[0])
    project(columns_re, columns_im, points, a_re, a_im)
    _squares(a_re, a_im, scores)
    value = evaluate(goal, scores, slopes, terms)
    _gradient(columns_re, columns_im, points, slopes, a_re, a_im, grad)
    direction[:] = -grad
    steepest = True
    step = limits.first_step
    idle = 0
    for iteration in range(limits.max_iterations):
        rate = 2.0 * _inner(direction, grad)
        if not rate < 0.0:
            if steepest:
                return Beams(points, value, iteration)
            direction[:] = -grad
            steepest = True
            rate = 2.0 * _inner(direction, grad)
        project(columns_re, columns_im, direction, b_re, b_im)
        for s in range(shape[0]):
            lengths[s] = sphere.inner(direction[s], direction[s])
            for k in range(shape[1]):
                linear[s, k] = 2.0 * (a_re[s, k] * b_re[s, k] + a_im[s, k] * b_im[s, k])
                square[s, k] = b_re[s, k] * b_re[s, k] + b_im[s, k] * b_im[s, k]
        accepted = False
        lower = value
        for _ in range(line_search.MAX_TRIALS):
            for s in range(shape[0]):
                shrink = 1.0 / (1.0 + step * step * lengths[s])
                for k in range(shape[1]):
                    trial[s, k] = (scores[s, k] + step * (linear[s, k] + step * square[s, k])) * shrink
            lower = evaluate(goal, trial, slopes, terms)
            accepted = line_search.sufficient_decrease(value, lower, step, rate)
            if accepted:
                break
            step = line_search.next_trial(value, lower, step, rate)
        if not accepted:
            if steepest:
                return Beams(points, value, iteration)
            direction[:] = -grad
            steepest = True
            step = limits.first_step
            continue
        for s in range(shape[0]):
            sphere.retract(points[s], direction[s], step, points[s])
        gain = value - lower
        value = lower
        idle = idle + 1 if gain <= limits.tolerance * abs(value) else 0
        if idle >= 2:
            return Beams(points, value, iteration + 1)
        for s in range(shape[0]):
            root = np.sqrt(1.0 / (1.0 + step * step * lengths[s]))
            for k in range(shape[1]):
                a_re[s, k] = (a_re[s, k] + step * b_re[s, k]) * root
                a_im[s, k] = (a_im[s, k] + step * b_im[s, k]) * root
        scores[:] = trial
        old[:] = grad
        before = _inner(old, old)
        _gradient(columns_re, columns_im, points, slopes, a_re, a_im, grad)
        for s in range(shape[0]):
            sphere.transport(points[s], old[s], old[s])
            sphere.transport(points[s], direction[s], direction[s])
        mix = 0.0
        if before > 0.0:
            mix = max(0.0, (_inner(grad, grad) - _inner(grad, old)) / before)
        direction[:] = direction * mix - grad
        steepest = mix == 0.0
        step = line_search.first_trial(step)
    return Beams(points, value, limits.max_iterations)
