"""Positions and beam together: a quasi-Newton method that raises the weakest score of the wanted devices.

A sweep moves one antenna at a time, which is slow once all are near their best positions. Here all positions
and the beam change at once, along the limited-memory BFGS direction. It minimises

    f = (1/p) log sum_k c_k z_k^-p,    z_k = |u_k|^2/||m||^2,    u_k = sum_m conj(m_m) sum_n g_{k,m,n},

the logarithm of the soft minimum of the scores, up to its sign. With q_k = 2 (df/dz_k) conj(u_k)/||m||^2,

    df/dl_{m,n} = Re sum_k q_k conj(m_m) dg_{k,m,n}/dl,
    df/dRe m_m + j df/dIm m_m = sum_k q_k g_{k,m} - 2 m_m sum_k (df/dz_k) z_k/||m||^2.

The second term of the beam's gradient is that of the norm. Positions are in radians of the guided wave, so
that they have about the same scale as the beam. A step that violates the minimum gap or an end is pushed
back.
"""

from typing import NamedTuple

import numpy as np

from airpass.channel.field import modulate_packed, modulate_slopes, segment_feed, segment_span
from airpass.channel.pass_uplink import (
    guide_decay,
    guide_length,
    guide_slope,
    response_single,
    response_slope,
)
from airpass.core.types import Complex, Flag, Real, Single
from airpass.designs.joint.space import Space
from airpass.designs.joint.wanted import Wanted
from airpass.kernels.blocks import borrowed
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma_single
from airpass.kernels.sums import lane_sum_single
from airpass.optim import line_search
from airpass.optim.curvature import Pairs, dot, forget, new_pairs, newton_direction, remember

FIRST_CHANGE = 0.1  # length of the first step, radians or shares of the beam
LARGEST_CHANGE = 0.7  # of a variable in one step
MOST_TRIALS = 10  # of a line search


class AscentLimits(NamedTuple):
    """Stopping rule."""

    max_iterations: int
    tolerance: float  # decrease of f; stop after two consecutive smaller decreases
    enough: float  # stop once the weakest score is at least this
    memory: int  # pairs of the quasi-Newton method


class Ascended(NamedTuple):
    """Result of `ascend`."""

    layout: Real
    beam: Complex
    evaluations: int


class Workspace(NamedTuple):
    """Scratch arrays."""

    term_re: Single  # responses, shape (M, N, W)
    term_im: Single
    slope_re: Single  # (dg/dl)/g
    slope_im: Single
    channel_re: Single  # their sums over the antennas of a waveguide, shape (M, W)
    channel_im: Single
    sum_re: Single  # u_k, shape (W,)
    sum_im: Single
    pull_re: Single  # q_k
    pull_im: Single
    terms: Single
    scores: Real  # z_k
    by_layout: Real  # gradient, per metre; shape (M, N)
    by_beam: Complex  # df/dRe m + j df/dIm m, shape (M,)


@kernel
def new_workspace(waveguides: int, antennas: int, count: int) -> Workspace:
    """Allocate a workspace."""
    each = (waveguides, antennas, count)
    return Workspace(
        np.empty(each, np.float32),
        np.empty(each, np.float32),
        np.empty(each, np.float32),
        np.empty(each, np.float32),
        np.empty((waveguides, count), np.float32),
        np.empty((waveguides, count), np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count),
        np.empty((waveguides, antennas)),
        np.empty(waveguides, np.complex128),
    )


@kernel
def _respond(
    place: float,
    guide: float,
    guide_rate: float,
    decay: np.float32,
    loss_rate: float,
    device_x: Real,
    offset_square: Real,
    amplitude: Single,
    turns_per_m: float,
    refractive_index: float,
    re: Single,
    im: Single,
    slope_re: Single,
    slope_im: Single,
) -> None:
    """Responses of the wanted devices to one antenna, and their logarithmic derivatives."""
    for k in range(re.size):
        distance, re[k], im[k] = response_single(
            place, guide, device_x[k], offset_square[k], decay * amplitude[k], turns_per_m, refractive_index
        )
        by_amplitude, by_phase = response_slope(
            place, device_x[k], distance, turns_per_m, guide_rate, loss_rate
        )
        slope_re[k] = np.float32(by_amplitude)
        slope_im[k] = np.float32(by_phase)


@kernel
def _accumulate(total_re: Single, total_im: Single, re: Single, im: Single) -> None:
    for k in range(re.size):
        total_re[k] += re[k]
        total_im[k] += im[k]


@kernel
def _accumulate_weighted(
    total_re: Single, total_im: Single, re: Single, im: Single, x: np.float32, y: np.float32
) -> None:
    """total += conj(x + j y) (re + j im)."""
    for k in range(re.size):
        total_re[k] = fma_single(x, re[k], fma_single(y, im[k], total_re[k]))
        total_im[k] = fma_single(x, im[k], fma_single(-y, re[k], total_im[k]))


@kernel
def _product_sum(a_re: Single, a_im: Single, b_re: Single, b_im: Single, terms: Single) -> complex:
    """sum_k a_k b_k."""
    for k in range(terms.size):
        terms[k] = fma_single(a_re[k], b_re[k], -(a_im[k] * b_im[k]))
    re = lane_sum_single(terms)
    for k in range(terms.size):
        terms[k] = fma_single(a_re[k], b_im[k], a_im[k] * b_re[k])
    return complex(re, lane_sum_single(terms))


@kernel
def _position_slope(
    pull_re: Single,
    pull_im: Single,
    re: Single,
    im: Single,
    slope_re: Single,
    slope_im: Single,
    x: np.float32,
    y: np.float32,
    terms: Single,
) -> np.float32:
    """Re sum_k q_k conj(m_m) g_k (dg_k/dl)/g_k."""
    for k in range(terms.size):
        term_re = fma_single(x, re[k], y * im[k])
        term_im = fma_single(x, im[k], -(y * re[k]))
        product_re = fma_single(pull_re[k], term_re, -(pull_im[k] * term_im))
        product_im = fma_single(pull_re[k], term_im, pull_im[k] * term_re)
        terms[k] = fma_single(product_re, slope_re[k], -(product_im * slope_im[k]))
    return lane_sum_single(terms)


@inlined
def _sums(layout: Real, beam: Complex, space: Space, wanted: Wanted, w: Workspace) -> None:
    """u_k, with every antenna's responses and their derivatives."""
    field = space.field
    w.sum_re[:] = np.float32(0.0)
    w.sum_im[:] = np.float32(0.0)
    for m in range(layout.shape[0]):
        side = field.feed[1, m]
        offset_square = wanted.offset_square[m]
        channel_re, channel_im = w.channel_re[m], w.channel_im[m]
        channel_re[:] = np.float32(0.0)
        channel_im[:] = np.float32(0.0)
        for n in range(layout.shape[1]):
            place = layout[m, n]
            feed = segment_feed(field.segments, place, m, field.feed[0, m])
            guide = guide_length(place, feed, side)
            slope = guide_slope(place, feed, side)
            _respond(
                place,
                guide,
                field.refractive_index * slope,
                np.float32(guide_decay(guide, field.loss_per_m) * field.feed[2 + n, m]),
                field.loss_per_m * slope,
                wanted.device_x,
                offset_square,
                wanted.amplitude,
                field.turns_per_m,
                field.refractive_index,
                w.term_re[m, n],
                w.term_im[m, n],
                w.slope_re[m, n],
                w.slope_im[m, n],
            )
            modulate_packed(field.factor, place, m, wanted.device, w.term_re[m, n], w.term_im[m, n])
            modulate_slopes(field.factor, place, m, wanted.device, w.slope_re[m, n], w.slope_im[m, n])
            _accumulate(channel_re, channel_im, w.term_re[m, n], w.term_im[m, n])
        _accumulate_weighted(
            w.sum_re,
            w.sum_im,
            channel_re,
            channel_im,
            np.float32(beam[m].real),
            np.float32(beam[m].imag),
        )


@kernel
def value_and_gradient(
    layout: Real, beam: Complex, space: Space, wanted: Wanted, doublings: int, w: Workspace
) -> tuple[float, float]:
    """f and the weakest score; the gradient is left in the workspace.

    Parameters
    ----------
    layout, beam
        Positions in metres, shape (M, N), and the beam, shape (M,), of any norm.
    space, wanted
        The space and the wanted devices.
    doublings
        log2 of p.
    w
        Workspace; the result is in `by_layout` and `by_beam`.

    Returns
    -------
    f, and the weakest z_k.
    """
    space, wanted, w = borrowed(space), borrowed(wanted), borrowed(w)
    norm_square = 0.0
    for m in range(beam.size):
        norm_square += beam[m].real * beam[m].real + beam[m].imag * beam[m].imag
    _sums(layout, beam, space, wanted, w)
    factor = space.reference * space.reference / norm_square
    weakest = np.inf
    for k in range(w.scores.size):
        re, im = np.float64(w.sum_re[k]), np.float64(w.sum_im[k])
        w.scores[k] = max(factor * (re * re + im * im), 1e-30)
        weakest = min(weakest, w.scores[k])
    total = 0.0
    for k in range(w.scores.size):
        raised = w.scores[k] / weakest
        for _ in range(doublings):
            raised = min(raised * raised, 1e150)
        w.terms[k] = np.float32(wanted.counted[k] / raised)  # below 1e-38 they do not count
        total += wanted.counted[k] / raised
    power = 2.0**doublings
    by_norm = 0.0
    for k in range(w.scores.size):
        slope = -np.float64(w.terms[k]) / (total * w.scores[k])  # df/dz_k
        by_norm += slope * w.scores[k] / norm_square
        w.pull_re[k] = np.float32(2.0 * slope * factor * np.float64(w.sum_re[k]))
        w.pull_im[k] = np.float32(-2.0 * slope * factor * np.float64(w.sum_im[k]))
    for m in range(layout.shape[0]):
        x, y = np.float32(beam[m].real), np.float32(beam[m].imag)
        by_channel = _product_sum(w.pull_re, w.pull_im, w.channel_re[m], w.channel_im[m], w.terms)
        w.by_beam[m] = by_channel - 2.0 * by_norm * beam[m]
        for n in range(layout.shape[1]):
            w.by_layout[m, n] = _position_slope(
                w.pull_re,
                w.pull_im,
                w.term_re[m, n],
                w.term_im[m, n],
                w.slope_re[m, n],
                w.slope_im[m, n],
                x,
                y,
                w.terms,
            )
    return np.log(total) / power - np.log(weakest), weakest


@inlined
def push_apart(layout: Real, low: Real, high: Real, min_gap: float) -> None:
    """Make a layout feasible, from `low` to `high`: from left to right, then from right to left."""
    last = layout.shape[1] - 1
    for m in range(layout.shape[0]):
        row = layout[m]
        row[0] = max(row[0], low[m])
        for n in range(1, last + 1):
            row[n] = max(row[n], row[n - 1] + min_gap)
        row[last] = min(row[last], high[m])
        for n in range(last - 1, -1, -1):
            row[n] = min(row[n], row[n + 1] - min_gap)


@inlined
def _pack(layout: Real, beam: Complex, unit: float, out: Real) -> None:
    """Positions over `unit`, then real and imaginary parts of the beam, as one vector."""
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        for n in range(antennas):
            out[m * antennas + n] = layout[m, n] / unit
        out[waveguides * antennas + m] = beam[m].real
        out[waveguides * antennas + waveguides + m] = beam[m].imag


@inlined
def _unpack(variables: Real, unit: float, layout: Real, beam: Complex) -> None:
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        for n in range(antennas):
            layout[m, n] = variables[m * antennas + n] * unit
        first = waveguides * antennas + m
        beam[m] = complex(variables[first], variables[first + waveguides])


@inlined
def _uphill(w: Workspace, unit: float, out: Real) -> None:
    """The negative gradient of f in the packed variables."""
    _pack(w.by_layout, w.by_beam, 1.0 / unit, out)
    for i in range(out.size):
        out[i] = -out[i]


@inlined
def _direct(pairs: Pairs, uphill: Real, direction: Real) -> tuple[float, float]:
    """The direction of the next step, the slope of f along it, and its first trial step."""
    direction[:] = uphill
    step = 1.0
    if pairs.stored[0] > 0.0:
        newton_direction(pairs, direction)
    slope = -dot(uphill, direction)
    if not slope < 0.0:
        forget(pairs)
        direction[:] = uphill
        slope = -dot(uphill, uphill)
    if pairs.stored[0] == 0.0:
        step = FIRST_CHANGE / np.sqrt(-slope + 1e-300)
    largest = 0.0
    for i in range(direction.size):
        largest = max(largest, abs(direction[i]))
    return slope, min(step, LARGEST_CHANGE / max(largest, 1e-300))


@kernel
def ascend(
    start_layout: Real,
    start_beam: Complex,
    space: Space,
    wanted: Wanted,
    doublings: int,
    limits: AscentLimits,
    stop: Flag,
) -> Ascended:
    """Raise the weakest score of the wanted devices.

    Parameters
    ----------
    start_layout, start_beam
        Positions in metres, shape (M, N), and the beam, shape (M,).
    space, wanted
        The space and the wanted devices.
    doublings
        log2 of p.
    limits
        Stopping rule.
    stop
        The ascent ends early once the entry is not zero.

    Returns
    -------
    Layout, beam and the number of evaluations. f increases at most by rounding in single precision.
    """
    space, wanted = borrowed(space), borrowed(wanted)
    waveguides, antennas = start_layout.shape
    layout, beam = start_layout.copy(), start_beam.copy()
    unit = 1.0 / (2.0 * np.pi * space.field.turns_per_m * space.field.refractive_index)
    size = waveguides * (antennas + 2)
    low, high = np.empty(waveguides), np.empty(waveguides)
    for m in range(waveguides):
        low[m], high[m] = segment_span(space.field.segments, layout[m, 0], m, 0.0, space.lengths[m])
    w = new_workspace(waveguides, antennas, wanted.device.size)
    pairs = new_pairs(limits.memory, size)
    point, old_point, direction = np.empty(size), np.empty(size), np.empty(size)
    uphill, old_uphill = np.empty(size), np.empty(size)
    value, weakest = value_and_gradient(layout, beam, space, wanted, doublings, w)
    evaluations = 1
    idle = 0
    _pack(layout, beam, unit, point)
    _uphill(w, unit, uphill)
    for _ in range(limits.max_iterations):
        if weakest >= limits.enough or stop[0] != 0:
            break
        old_point[:] = point
        old_uphill[:] = uphill
        slope, step = _direct(pairs, uphill, direction)
        accepted = False
        lower = value
        for _ in range(MOST_TRIALS):
            for i in range(size):
                point[i] = old_point[i] + step * direction[i]
            _unpack(point, unit, layout, beam)
            push_apart(layout, low, high, space.min_gap)
            lower, weakest = value_and_gradient(layout, beam, space, wanted, doublings, w)
            evaluations += 1
            if line_search.sufficient_decrease(value, lower, step, slope):
                accepted = True
                break
            step = line_search.next_trial(value, lower, step, slope)
            if stop[0] != 0:
                break
        if not accepted:
            point[:] = old_point
            _unpack(point, unit, layout, beam)
            if pairs.stored[0] == 0.0:
                break
            forget(pairs)
            continue
        _pack(layout, beam, unit, point)
        _uphill(w, unit, uphill)
        remember(pairs, old_point, point, old_uphill, uphill)
        idle = idle + 1 if value - lower < limits.tolerance else 0
        value = lower
        if idle >= 2:
            break
    norm = np.sqrt(np.sum(beam.real * beam.real + beam.imag * beam.imag))
    return Ascended(layout, beam / norm, evaluations)
