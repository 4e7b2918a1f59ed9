"""Joint descent in antenna positions and beam: the engine of `airpass-plus`.

It minimises the sum of Hill functions F of the scores of the wanted devices (see
`airpass.optim.objectives`) by alternating two moves. Each antenna is evaluated at all feasible
positions, including beyond its neighbours, with the others fixed, and moved to the minimum of F. The
beam is updated by conjugate gradients on the sphere, before each waveguide and once at the end.

Evaluating an antenna costs a few operations per position and device, because its contribution is
tabulated: the response of every device on a grid along each waveguide, in single precision. With the
sum of all other antennas r_k, the score at grid position p is

    z_k(p) = |r_k + conj(m_m) g_k(p)|^2
           = |r_k|^2 + 2 Re(conj(r_k) conj(m_m) g_k(p)) + |m_m|^2 |g_k(p)|^2,

three products with coefficients that do not depend on p. The best position is then refined between
the grid points, and accepted if F decreases in double precision.
"""

from typing import NamedTuple

import numpy as np

from airpass.channel.pass_uplink import Field, element, guide_length, response
from airpass.core.types import Complex, Index, Real, Single
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma, fma_single
from airpass.kernels.sums import lane_sum
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill

REFINEMENTS = 3  # halvings of the grid step around the best grid point
LEAST_GAIN = 1e-9  # smallest relative decrease of F for which an antenna is moved
TINY = np.float32(1e-12)  # lower bound of scores, which rounding in single precision can make negative
ONE = np.float32(1.0)


class Track(NamedTuple):
    """Feasible positions and the tabulated responses."""

    lengths: Real  # L_m, metres
    min_gap: float  # metres
    step: float  # of the grid, metres
    points: int  # P
    reference: float  # scale of the table, so that entries stay within single precision
    table: Single  # sqrt(Gamma)/phi_k g_k over `reference`, shape (M, K, 2, P); M = 0 if not stored


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
    offset_square = field.offset_square[waveguide, device]
    amplitude = scale * field.amplitude[device]
    feed, side = field.feed[0, waveguide], field.feed[1, waveguide]
    for p in range(out_re.size):
        place = (first + p) * step
        guide = guide_length(place, feed, side)
        _, re, im = response(
            place, guide, x, offset_square, amplitude, field.turns_per_m, field.refractive_index
        )
        out_re[p] = np.float32(re)
        out_im[p] = np.float32(im)


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
    """Add 1/(floor + z(p)^power) of one device at every position p of a row."""
    for p in range(total.size):
        re = row_re[p]
        im = row_im[p]
        z = fma_single(
            square, fma_single(re, re, im * im), fma_single(along, re, fma_single(beside, im, rest))
        )
        z = max(z, TINY)
        # The conditions are loop-invariant.
        z = z * z if doublings > 0 else z
        z = z * z if doublings > 1 else z
        z = z * z if doublings > 2 else z
        z = z * z if doublings > 3 else z
        z = z * z if doublings > 4 else z
        z = z * z if doublings > 5 else z
        total[p] += ONE / (floor + z)


class _Task(NamedTuple):
    """Constants of a sweep."""

    field: Field
    scale: Real  # sqrt(Gamma)/phi_k, shape (K,)
    track: Track
    goal: Hill
    unit: float  # factor of the scores in F


class _Workspace(NamedTuple):
    """Scratch arrays of a sweep."""

    sums_re: Real  # m^H h_k over all antennas, shape (K,)
    sums_im: Real
    rest_re: Real  # the same without the antenna that is moved
    rest_im: Real
    scratch: Real  # shape (5, K)
    total: Single  # F with the antenna at every grid point, shape (P,)
    row: Single  # one device's responses, if the table is not stored; shape (2, P)
    low: Real  # ends of the free stretches in metres, shape (N,)
    high: Real
    first: Index  # and their first and last grid points
    last: Index


@inlined
def _new_workspace(count: int, antennas: int, track: Track) -> _Workspace:
    return _Workspace(
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty((5, count)),
        np.empty(track.points, np.float32),
        np.empty((2, 1 if track.table.shape[0] > 0 else track.points), np.float32),
        np.empty(antennas),
        np.empty(antennas),
        np.empty(antennas, np.int64),
        np.empty(antennas, np.int64),
    )


@kernel
def _sum_waveguide(
    layout: Real, waveguide: int, field: Field, scale: Real, re: Real, im: Real, scratch: Real
) -> None:
    """sqrt(Gamma)/phi_k g_{k,m} of one waveguide, into re[m] and im[m]."""
    re[waveguide] = 0.0
    im[waveguide] = 0.0
    for n in range(layout.shape[1]):
        element(layout[waveguide, n], waveguide, field, scratch[0], scratch[1], scratch[2])
        for k in range(scale.size):
            re[waveguide, k] += scale[k] * scratch[1, k]
            im[waveguide, k] += scale[k] * scratch[2, k]


@kernel
def _value(re: Real, im: Real, unit: float, goal: Hill, scratch: Real) -> float:
    """F in double precision, of scores in units of `unit`."""
    for k in range(re.size):
        z = max((re[k] * re[k] + im[k] * im[k]) * unit, 1e-150)
        scratch[k] = z
    for _ in range(goal.doublings):
        for k in range(re.size):
            scratch[k] = max(scratch[k] * scratch[k], 1e-150)
    for k in range(re.size):
        scratch[k] = goal.counted[k] / (goal.floor + scratch[k])
    return lane_sum(scratch)


@kernel
def _value_at(place: float, waveguide: int, weight: complex, task: _Task, workspace: _Workspace) -> float:
    """F with the antenna that is moved at `place`; leaves the sums over all antennas in scratch[3:5]."""
    scratch, scale = workspace.scratch, task.scale
    x, y = weight.real, weight.imag
    element(place, waveguide, task.field, scratch[0], scratch[1], scratch[2])
    for k in range(scale.size):
        scratch[3, k] = workspace.rest_re[k] + scale[k] * fma(x, scratch[1, k], y * scratch[2, k])
        scratch[4, k] = workspace.rest_im[k] + scale[k] * fma(x, scratch[2, k], -(y * scratch[1, k]))
    return _value(scratch[3], scratch[4], task.unit, task.goal, scratch[0])


@inlined
def _unit(scores: Real, goal: Hill) -> float:
    """The factor of the scores that keeps high powers within range.

    With floor = 0 the weakest wanted score becomes one, which only changes F by a factor. With
    floor = 1 that is done only if all are above one: the count cannot improve then.
    """
    weakest = np.inf
    for k in range(scores.size):
        if goal.counted[k] > 0.0:
            weakest = min(weakest, scores[k])
    return 1.0 / max(weakest, goal.floor, 1e-100)


@inlined
def _find(row: Real, place: float) -> int:
    """Index of the antenna at `place`."""
    n = 0
    while n < row.size - 1 and row[n] != place:
        n += 1
    return n


@inlined
def _free_stretches(
    row: Real, antenna: int, across: bool, length: float, track: Track, workspace: _Workspace
) -> int:
    """Feasible stretches of a waveguide for one antenna, with their grid points; returns their number."""
    low, high, first, last = workspace.low, workspace.high, workspace.first, workspace.last
    spans = 0
    for g in range(0 if across else antenna, row.size if across else antenna + 1):
        left = g - 1 if g - 1 < antenna else g
        right = g if g < antenna else g + 1
        low[spans] = row[left] + track.min_gap if g > 0 else 0.0
        high[spans] = row[right] - track.min_gap if g < row.size - 1 else length
        first[spans] = int(np.ceil(low[spans] / track.step))
        if spans > 0:  # with a minimum gap of zero, two stretches may share a point
            first[spans] = max(first[spans], last[spans - 1] + 1)
        last[spans] = min(int(np.floor(high[spans] / track.step)), track.points - 1)
        if first[spans] <= last[spans]:
            spans += 1
    return spans


@inlined
def _remove(place: float, waveguide: int, weight: complex, task: _Task, workspace: _Workspace) -> None:
    """The sums without the antenna at `place`, into rest_re and rest_im."""
    scratch, scale = workspace.scratch, task.scale
    x, y = weight.real, weight.imag
    element(place, waveguide, task.field, scratch[0], scratch[1], scratch[2])
    for k in range(scale.size):
        workspace.rest_re[k] = workspace.sums_re[k] - scale[k] * fma(x, scratch[1, k], y * scratch[2, k])
        workspace.rest_im[k] = workspace.sums_im[k] - scale[k] * fma(x, scratch[2, k], -(y * scratch[1, k]))


@inlined
def _scan(waveguide: int, weight: complex, spans: int, task: _Task, workspace: _Workspace) -> int:
    """F in single precision at the grid points of the free stretches, into `total`; returns their number."""
    goal, track, total = task.goal, task.track, workspace.total
    first, last = workspace.first, workspace.last
    x, y = weight.real, weight.imag
    twice = 2.0 * task.unit * track.reference
    square = np.float32(task.unit * (np.sqrt(x * x + y * y) * track.reference) ** 2)
    tried = 0
    for g in range(spans):
        total[first[g] : last[g] + 1] = 0.0
        tried += last[g] + 1 - first[g]
    for k in range(task.scale.size):
        if goal.counted[k] == 0.0:
            continue
        rest_re, rest_im = workspace.rest_re[k], workspace.rest_im[k]
        for g in range(spans):
            begin, end = first[g], last[g] + 1
            if track.table.shape[0] > 0:
                row_re = track.table[waveguide, k, 0, begin:end]
                row_im = track.table[waveguide, k, 1, begin:end]
            else:
                row_re = workspace.row[0, : end - begin]
                row_im = workspace.row[1, : end - begin]
                scale = task.scale[k] / track.reference
                response_row(task.field, waveguide, k, scale, track.step, begin, row_re, row_im)
            _add_terms(
                total[begin:end],
                row_re,
                row_im,
                np.float32(task.unit * (rest_re * rest_re + rest_im * rest_im)),
                np.float32(twice * (rest_re * x - rest_im * y)),
                np.float32(twice * (rest_re * y + rest_im * x)),
                square,
                goal.doublings,
                np.float32(goal.floor),
            )
    return tried


@inlined
def _lowest(spans: int, value: float, workspace: _Workspace) -> tuple[int, int]:
    """The grid point with the lowest F below `value`, and its stretch; -1 if there is none."""
    best = np.float32(value)
    chosen, span = -1, 0
    for g in range(spans):
        for p in range(workspace.first[g], workspace.last[g] + 1):
            if workspace.total[p] < best:
                best, chosen, span = workspace.total[p], p, g
    return chosen, span


@inlined
def _refine(
    place: float, span: int, waveguide: int, weight: complex, task: _Task, workspace: _Workspace
) -> tuple[float, float]:
    """The best position near a grid point in double precision, and F there."""
    low, high = workspace.low[span], workspace.high[span]
    lowest = _value_at(place, waveguide, weight, task, workspace)
    nudge = 0.5 * task.track.step
    for _ in range(REFINEMENTS):
        centre = place
        for side in (-1.0, 1.0):
            trial = min(max(centre + side * nudge, low), high)
            there = _value_at(trial, waveguide, weight, task, workspace)
            if there < lowest:
                lowest = there
                place = trial
        nudge *= 0.5
    return place, lowest


@inlined
def _put(row: Real, antenna: int, place: float) -> None:
    """Move one antenna, keeping the waveguide's positions in order."""
    j = antenna
    while j > 0 and row[j - 1] > place:
        row[j] = row[j - 1]
        j -= 1
    while j < row.size - 1 and row[j + 1] < place:
        row[j] = row[j + 1]
        j += 1
    row[j] = place


@inlined
def _move_antennas(
    row: Real, waveguide: int, weight: complex, across: bool, value: float, task: _Task, workspace: _Workspace
) -> int:
    """Move every antenna of one waveguide once, in `row` and in the sums; the number of evaluations."""
    tried = 0
    for old_position in row.copy():
        # Other antennas may have passed it, so it is identified by its position.
        n = _find(row, old_position)
        spans = _free_stretches(row, n, across, task.track.lengths[waveguide], task.track, workspace)
        if spans == 0:
            continue
        _remove(old_position, waveguide, weight, task, workspace)
        tried += _scan(waveguide, weight, spans, task, workspace)
        chosen, span = _lowest(spans, value, workspace)
        if chosen < 0:
            continue
        place, lowest = _refine(chosen * task.track.step, span, waveguide, weight, task, workspace)
        if lowest < value * (1.0 - LEAST_GAIN):
            value = _value_at(place, waveguide, weight, task, workspace)
            workspace.sums_re[:] = workspace.scratch[3]
            workspace.sums_im[:] = workspace.scratch[4]
            _put(row, n, place)
    return tried


@kernel
def sweep(
    start_layout: Real,
    start_beam: Complex,
    field: Field,
    scale: Real,
    track: Track,
    goal: Hill,
    across: bool,
    first_waveguide: int,
    waveguide_count: int,
    limits: cg.Limits,
) -> tuple[Real, Complex, Real, float, float, int]:
    """Move every antenna of some waveguides once; F never increases.

    Parameters
    ----------
    start_layout, start_beam
        Positions in metres, shape (M, N), and the beam, shape (M,).
    field
        Arguments of the channel kernels.
    scale
        sqrt(Gamma)/phi_k, shape (K,).
    track
        Feasible positions and the tabulated responses.
    goal
        F; `counted` is 1 for wanted devices and 0 for others.
    across
        Whether antennas may pass their neighbours.
    first_waveguide, waveguide_count
        The first waveguide, and the number of waveguides to process.
    limits
        Limits of the conjugate gradients that update the beam, before each waveguide and once at the end.

    Returns
    -------
    Layout, beam, scores, F before and after, and the number of positions evaluated.
    """
    waveguides, antennas = start_layout.shape
    layout = start_layout.copy()
    channels_re = np.empty((waveguides, scale.size))
    channels_im = np.empty((waveguides, scale.size))
    workspace = _new_workspace(scale.size, antennas, track)
    sums_re, sums_im, scratch = workspace.sums_re, workspace.sums_im, workspace.scratch
    for m in range(waveguides):
        _sum_waveguide(layout, m, field, scale, channels_re, channels_im, scratch)
    unit = _unit(projections.squares(channels_re, channels_im, start_beam), goal)
    task = _Task(field, scale, track, goal, unit)
    # The beam is updated with the channels in the same unit as the antennas.
    root = np.sqrt(unit)
    beam = start_beam
    projections.projections(channels_re, channels_im, beam, sums_re, sums_im)
    before = _value(sums_re, sums_im, unit, goal, scratch[0])
    tried = 0
    for index in range(waveguide_count):
        found = cg.minimise(channels_re * root, channels_im * root, goal, beam, limits)
        beam = found.point
        m = (first_waveguide + index) % waveguides
        weight = beam[m]
        if weight.real * weight.real + weight.imag * weight.imag == 0.0:
            continue
        projections.projections(channels_re, channels_im, beam, sums_re, sums_im)
        for k in range(scale.size):
            sums_im[k] = -sums_im[k]  # m^H h, not h^H m
        tried += _move_antennas(layout[m], m, weight, across, found.value, task, workspace)
        _sum_waveguide(layout, m, field, scale, channels_re, channels_im, scratch)
    found = cg.minimise(channels_re * root, channels_im * root, goal, beam, limits)
    scores = projections.squares(channels_re, channels_im, found.point)
    return layout, found.point, scores, before, found.value, tried
