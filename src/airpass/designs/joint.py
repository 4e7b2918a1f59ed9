"""Joint descent in antenna positions and beam: the engine of `airpass-plus`.

It minimises the sum of Hill functions F of the scores of the wanted devices (see
`airpass.optim.hill`) by two moves in turn. One antenna is tried everywhere it may go, over its
neighbours too, the rest staying as they are, and goes where F is least. After each waveguide
the beam follows by conjugate gradients on the sphere.

Trying an antenna everywhere costs a few operations a place and device, because what it would
add is in a table: the response of every device on a grid along each waveguide, in single
precision. With the sum of all other antennas r_k, the score at place p is

    z_k(p) = |r_k + conj(m_m) g_k(p)|^2
           = |r_k|^2 + 2 Re(conj(r_k) conj(m_m) g_k(p)) + |m_m|^2 |g_k(p)|^2,

three products with coefficients that do not depend on p. The place found is then refined
between the grid points, and taken if it is better in double precision.
"""

from typing import NamedTuple

import numpy as np

from airpass.channel.pass_uplink import Field, element
from airpass.core.types import Complex, Real, Single
from airpass.kernels.jit import kernel
from airpass.kernels.math import cos_sin_turns, fma, fma_single
from airpass.kernels.sums import lane_sum
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections

REFINEMENTS = 3  # halvings of the grid step around the best grid point
FIRST_STEP = 0.3  # of the beam's conjugate gradients
LEAST_GAIN = 1e-9  # relative fall of F for which an antenna is moved
TINY = np.float32(1e-12)  # scores from single precision may come out below zero
ONE = np.float32(1.0)


class Track(NamedTuple):
    """Where antennas may be, and what every place on a grid would add."""

    lengths: Real  # L_m, metres
    min_gap: float  # metres
    step: float  # of the grid, metres
    points: int  # P
    reference: float  # what responses are divided by, to stay within single precision
    table: Single  # sqrt(Gamma)/phi_k g_k over `reference`, shape (M, K, 2, P); M = 0 if not kept


class Goal(NamedTuple):
    """Which objective: F over the wanted devices with power 2^doublings and `floor`."""

    wanted: Real  # 1 or 0 for each device
    doublings: int
    floor: float  # 1: smooth count; 0: the weakest score


@kernel
def response_row(
    field: Field,
    waveguide: int,
    device: int,
    scale: float,
    step: float,
    first: int,
    out_re: Single,
    out_im: Single,
) -> None:
    """scale g_k on the grid points first, first+1, ..."""
    x = field.device_x[device]
    offset = field.offset_square[waveguide, device]
    amplitude = scale * field.amplitude[device]
    for p in range(out_re.size):
        place = (first + p) * step
        dx = place - x
        distance = np.sqrt(dx * dx + offset)
        cosine, sine = cos_sin_turns(field.turns_per_m * (distance + field.refractive_index * place))
        size = amplitude / distance
        out_re[p] = np.float32(size * cosine)
        out_im[p] = np.float32(-size * sine)


@kernel
def response_table(field: Field, scale: Real, step: float, points: int) -> Single:
    """Every waveguide's and device's row, shape (M, K, 2, points)."""
    waveguides = field.offset_square.shape[0]
    table = np.empty((waveguides, scale.size, 2, points), np.float32)
    for m in range(waveguides):
        for k in range(scale.size):
            response_row(field, m, k, scale[k], step, 0, table[m, k, 0], table[m, k, 1])
    return table


@kernel
def _add_terms(
    total: Single,
    row_re: Single,
    row_im: Single,
    rest: np.float32,
    along: np.float32,
    beside: np.float32,
    square: np.float32,
    doublings: int,
    floor: np.float32,
) -> None:
    """Add 1/(floor + z(p)^power) of one device at every place p of a row."""
    for p in range(total.size):
        re = row_re[p]
        im = row_im[p]
        z = fma_single(
            square, fma_single(re, re, im * im), fma_single(along, re, fma_single(beside, im, rest))
        )
        z = max(z, TINY)
        # Each of these is decided once for the loop, not at every place.
        z = z * z if doublings > 0 else z
        z = z * z if doublings > 1 else z
        z = z * z if doublings > 2 else z
        z = z * z if doublings > 3 else z
        z = z * z if doublings > 4 else z
        z = z * z if doublings > 5 else z
        total[p] += ONE / (floor + z)


@kernel
def _sum_waveguide(
    layout: Real, waveguide: int, field: Field, scale: Real, re: Real, im: Real, work: Real
) -> None:
    """sqrt(Gamma)/phi_k g_{k,m} of one waveguide, into re[m] and im[m]."""
    re[waveguide] = 0.0
    im[waveguide] = 0.0
    for n in range(layout.shape[1]):
        element(layout[waveguide, n], waveguide, field, work[0], work[1], work[2])
        for k in range(scale.size):
            re[waveguide, k] += scale[k] * work[1, k]
            im[waveguide, k] += scale[k] * work[2, k]


@kernel
def _value(re: Real, im: Real, unit: float, goal: Goal, work: Real) -> float:
    """F in double precision, of scores in units of `unit`."""
    for k in range(re.size):
        z = max((re[k] * re[k] + im[k] * im[k]) * unit, 1e-150)
        work[k] = z
    for _ in range(goal.doublings):
        for k in range(re.size):
            work[k] = max(work[k] * work[k], 1e-150)
    for k in range(re.size):
        work[k] = goal.wanted[k] / (goal.floor + work[k])
    return lane_sum(work)


@kernel
def _value_at(
    place: float,
    waveguide: int,
    x: float,
    y: float,
    field: Field,
    scale: Real,
    rest_re: Real,
    rest_im: Real,
    unit: float,
    goal: Goal,
    work: Real,
) -> float:
    """F with one antenna at `place` and the others' sum in rest_re, rest_im; leaves all sums in work[3:5]."""
    element(place, waveguide, field, work[0], work[1], work[2])
    for k in range(scale.size):
        work[3, k] = rest_re[k] + scale[k] * fma(x, work[1, k], y * work[2, k])
        work[4, k] = rest_im[k] + scale[k] * fma(x, work[2, k], -(y * work[1, k]))
    return _value(work[3], work[4], unit, goal, work[0])


@kernel
def _put(layout: Real, waveguide: int, antenna: int, place: float) -> None:
    """Move one antenna, keeping the waveguide's positions in order."""
    row = layout[waveguide]
    j = antenna
    while j > 0 and row[j - 1] > place:
        row[j] = row[j - 1]
        j -= 1
    while j < row.size - 1 and row[j + 1] < place:
        row[j] = row[j + 1]
        j += 1
    row[j] = place


@kernel
def _unit(scores: Real, goal: Goal) -> float:
    """What scores are multiplied by, so that high powers stay within range.

    With floor = 0 the weakest wanted one becomes one, which only changes F by a factor. With
    floor = 1 that is done only if all are above one: the count has then nothing left to gain.
    """
    weakest = np.inf
    for k in range(scores.size):
        if goal.wanted[k] > 0.0:
            weakest = min(weakest, scores[k])
    return 1.0 / max(weakest, goal.floor, 1e-100)


@kernel
def sweep(
    start_layout: Real,
    start_beam: Complex,
    field: Field,
    scale: Real,
    track: Track,
    goal: Goal,
    across: bool,
    first_waveguide: int,
    turns: int,
    beam_iterations: int,
    beam_tolerance: float,
) -> tuple[Real, Complex, Real, float, float, int]:
    """Every antenna of `turns` waveguides once: layout, beam, scores, F before and after, places tried.

    `scale` is sqrt(Gamma)/phi_k. Antennas may pass their neighbours if `across`. F never rises.
    """
    waveguides, antennas = start_layout.shape
    count = scale.size
    layout = start_layout.copy()
    channels_re = np.empty((waveguides, count))
    channels_im = np.empty((waveguides, count))
    sums_re = np.empty(count)
    sums_im = np.empty(count)
    rest_re = np.empty(count)
    rest_im = np.empty(count)
    work = np.empty((5, count))
    total = np.empty(track.points, np.float32)
    kept = track.table.shape[0] > 0
    spare = np.empty((2, 1 if kept else track.points), np.float32)
    standing = np.empty(antennas)
    low = np.empty(antennas)
    high = np.empty(antennas)
    first = np.empty(antennas, np.int64)
    last = np.empty(antennas, np.int64)
    tried = 0
    begin = 0
    end = 0

    for m in range(waveguides):
        _sum_waveguide(layout, m, field, scale, channels_re, channels_im, work)
    unit = _unit(projections.squares(channels_re, channels_im, start_beam), goal)
    # The beam's conjugate gradients see the channels in the same unit as the antennas.
    root = np.sqrt(unit)
    beam = start_beam
    value = 0.0
    projections.projections(channels_re, channels_im, beam, sums_re, sums_im)
    before = _value(sums_re, sums_im, unit, goal, work[0])
    for turn in range(turns + 1):
        beam, value, _, _, _ = cg.minimise(
            channels_re * root,
            channels_im * root,
            cg.HILL,
            goal.wanted,
            float(goal.doublings),
            goal.floor,
            beam,
            FIRST_STEP,
            beam_iterations,
            beam_tolerance,
        )
        if turn == turns:
            break
        m = (first_waveguide + turn) % waveguides
        projections.projections(channels_re, channels_im, beam, sums_re, sums_im)
        for k in range(count):
            sums_im[k] = -sums_im[k]  # m^H h, not h^H m
        x = beam[m].real
        y = beam[m].imag
        reach = np.sqrt(x * x + y * y)
        if reach == 0.0:
            continue
        twice = 2.0 * unit * track.reference
        square = np.float32(unit * (reach * track.reference) ** 2)
        standing[:] = layout[m]
        for stood in standing:
            # Antennas may have passed it since: it is known by where it stood.
            n = 0
            while n < antennas - 1 and layout[m, n] != stood:
                n += 1
            # The stretches of waveguide that are free for this antenna, and the grid points there.
            spans = 0
            for g in range(0 if across else n, antennas if across else n + 1):
                left = g - 1 if g - 1 < n else g
                right = g if g < n else g + 1
                low[spans] = layout[m, left] + track.min_gap if g > 0 else 0.0
                high[spans] = layout[m, right] - track.min_gap if g < antennas - 1 else track.lengths[m]
                first[spans] = int(np.ceil(low[spans] / track.step))
                if spans > 0:  # without a least gap two stretches may meet in a point
                    first[spans] = max(first[spans], last[spans - 1] + 1)
                last[spans] = min(int(np.floor(high[spans] / track.step)), track.points - 1)
                if first[spans] <= last[spans]:
                    total[first[spans] : last[spans] + 1] = 0.0
                    tried += last[spans] + 1 - first[spans]
                    spans += 1
            if spans == 0:
                continue
            element(layout[m, n], m, field, work[0], work[1], work[2])
            for k in range(count):
                rest_re[k] = sums_re[k] - scale[k] * fma(x, work[1, k], y * work[2, k])
                rest_im[k] = sums_im[k] - scale[k] * fma(x, work[2, k], -(y * work[1, k]))
            for k in range(count):
                if goal.wanted[k] == 0.0:
                    continue
                for g in range(spans):
                    begin = first[g]
                    end = last[g] + 1
                    if kept:
                        row_re = track.table[m, k, 0, begin:end]
                        row_im = track.table[m, k, 1, begin:end]
                    else:
                        row_re = spare[0, : end - begin]
                        row_im = spare[1, : end - begin]
                        response_row(
                            field, m, k, scale[k] / track.reference, track.step, begin, row_re, row_im
                        )
                    _add_terms(
                        total[begin:end],
                        row_re,
                        row_im,
                        np.float32(unit * (rest_re[k] * rest_re[k] + rest_im[k] * rest_im[k])),
                        np.float32(twice * (rest_re[k] * x - rest_im[k] * y)),
                        np.float32(twice * (rest_re[k] * y + rest_im[k] * x)),
                        square,
                        goal.doublings,
                        np.float32(goal.floor),
                    )
            best = np.float32(value)
            chosen = -1
            span = 0
            for g in range(spans):
                for p in range(first[g], last[g] + 1):
                    if total[p] < best:
                        best = total[p]
                        chosen = p
                        span = g
            if chosen < 0:
                continue
            place = chosen * track.step
            lowest = _value_at(place, m, x, y, field, scale, rest_re, rest_im, unit, goal, work)
            nudge = 0.5 * track.step
            for _ in range(REFINEMENTS):
                centre = place
                for side in (-1.0, 1.0):
                    trial = min(max(centre + side * nudge, low[span]), high[span])
                    there = _value_at(trial, m, x, y, field, scale, rest_re, rest_im, unit, goal, work)
                    if there < lowest:
                        lowest = there
                        place = trial
                nudge *= 0.5
            if lowest < value * (1.0 - LEAST_GAIN):
                value = _value_at(place, m, x, y, field, scale, rest_re, rest_im, unit, goal, work)
                sums_re[:] = work[3]
                sums_im[:] = work[4]
                _put(layout, m, n, place)
        _sum_waveguide(layout, m, field, scale, channels_re, channels_im, work)
    return layout, beam, projections.squares(channels_re, channels_im, beam), before, value, tried
