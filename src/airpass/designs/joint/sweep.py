"""A sweep: every antenna is moved once, waveguide by waveguide, and the beam is updated in between.

For every waveguide, `scan` gives candidate positions for all its antennas. Each antenna in turn is removed,
and F is evaluated with it at its old position and at the first free candidates. The best of these is refined
by a parabola, and the antenna moves if F decreases. If antennas can be at given places only, these are the
candidates, and the places next to the best are tried in place of the parabola. F is evaluated in single
precision, except for distances and phases; the beam is updated in double precision.
"""

from typing import NamedTuple

import numpy as np

from airpass.channel.field import segment_span
from airpass.channel.segments import BORDER
from airpass.core.types import Complex, Flag, Real, Single
from airpass.designs.joint.scan import MOST_MINIMA, candidates, scan, stretch_candidates
from airpass.designs.joint.space import Space
from airpass.designs.joint.wanted import LANES, Wanted, respond
from airpass.kernels.blocks import borrowed
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma_single
from airpass.kernels.sums import lane_sum_single
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill

TRIES = 3  # candidates that are evaluated per antenna
FLATTEST = 2  # log2 of the largest power p in the slopes of the scan; more would only see the weakest devices
LEAST_GAIN = np.float32(2e-6)  # smallest relative decrease of F for which an antenna is moved
CROWDED = 0.3  # share of a waveguide taken by minimum gaps above which it is crowded
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


class Goal(NamedTuple):
    """F, as a function of the wanted devices' scores."""

    doublings: int  # log2 of the power p
    floor: float  # 1 counts devices, 0 raises the weakest score


class Moves(NamedTuple):
    """How antennas and beam are moved."""

    across: bool  # whether antennas may pass their neighbours; they must not if their shares of power differ
    beam: cg.Limits  # conjugate gradients before each waveguide and once at the end
    tolerance: float  # relative decrease of F in a sweep that ends a descent


class Swept(NamedTuple):
    """Result of `sweep`."""

    layout: Real
    beam: Complex
    left: float  # F after the sweep over F before it
    tried: int  # positions evaluated


class _Workspace(NamedTuple):
    """Scratch arrays in single precision, shape (W,) unless noted."""

    sum_re: Single  # u_k over all antennas
    sum_im: Single
    rest_re: Single  # the same without the antenna that is moved
    rest_im: Single
    best_re: Single  # responses at the best position so far
    best_im: Single
    term_re: Single  # responses at a trial position
    term_im: Single
    terms: Single  # of F
    places: Real  # candidates, shape (MOST_MINIMA,)
    values: Single


@inlined
def _new_workspace(count: int) -> _Workspace:
    return _Workspace(
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(count, np.float32),
        np.empty(MOST_MINIMA),
        np.empty(MOST_MINIMA, np.float32),
    )


@kernel
def hill_value(
    rest_re: Single,
    rest_im: Single,
    term_re: Single,
    term_im: Single,
    weight_re: np.float32,
    weight_im: np.float32,
    counted: Single,
    unit: np.float32,
    doublings: int,
    floor: np.float32,
    least: np.float32,
    terms: Single,
) -> np.float32:
    """F with the term conj(m_m) g_k added to the other antennas' sum, of scores in units of `unit`."""
    for k in range(terms.size):
        re = fma_single(weight_re, term_re[k], fma_single(weight_im, term_im[k], rest_re[k]))
        im = fma_single(weight_re, term_im[k], fma_single(-weight_im, term_re[k], rest_im[k]))
        z = max(unit * fma_single(re, re, im * im), least)
        # The conditions are loop-invariant.
        z = z * z if doublings > 0 else z
        z = z * z if doublings > 1 else z
        z = z * z if doublings > 2 else z
        z = z * z if doublings > 3 else z
        z = z * z if doublings > 4 else z
        z = z * z if doublings > 5 else z
        terms[k] = counted[k] / (floor + z)
    return lane_sum_single(terms)


class _Line(NamedTuple):
    """Constants while the antennas of one waveguide are moved."""

    space: Space
    wanted: Wanted
    offset_square: Real  # of this waveguide, shape (W,)
    number: int  # m
    weight_re: np.float32  # m_m
    weight_im: np.float32
    unit: np.float32  # factor of the scores in F
    doublings: int
    floor: np.float32
    least: np.float32  # lower bound of scores whose power is within single precision


@inlined
def _value(term_re: Single, term_im: Single, line: _Line, w: _Workspace) -> np.float32:
    """F with the responses `term_re`, `term_im` of the antenna that is moved."""
    return hill_value(
        w.rest_re,
        w.rest_im,
        term_re,
        term_im,
        line.weight_re,
        line.weight_im,
        line.wanted.counted_single,
        line.unit,
        line.doublings,
        line.floor,
        line.least,
        w.terms,
    )


@kernel
def _copy(source_re: Single, source_im: Single, out_re: Single, out_im: Single) -> None:
    for k in range(source_re.size):
        out_re[k] = source_re[k]
        out_im[k] = source_im[k]


@kernel
def _add(
    re: Single,
    im: Single,
    term_re: Single,
    term_im: Single,
    x: np.float32,
    y: np.float32,
    out_re: Single,
    out_im: Single,
) -> None:
    """out = re + j im + conj(x + j y) (term_re + j term_im)."""
    for k in range(re.size):
        out_re[k] = fma_single(x, term_re[k], fma_single(y, term_im[k], re[k]))
        out_im[k] = fma_single(x, term_im[k], fma_single(-y, term_re[k], im[k]))


@inlined
def _try(
    place: float, best: float, lowest: np.float32, antenna: int, line: _Line, w: _Workspace
) -> tuple[float, np.float32, np.float32]:
    """Evaluate a position: the better of it and the best so far, F there, and F at the position."""
    respond(place, line.number, antenna, line.space, line.wanted, line.offset_square, w.term_re, w.term_im)
    value = _value(w.term_re, w.term_im, line, w)
    if value < lowest:
        _copy(w.term_re, w.term_im, w.best_re, w.best_im)
        return place, value, value
    return best, lowest, value


@inlined
def _span(row: Real, line: _Line) -> tuple[float, float]:
    """Where the antennas of the waveguide can be."""
    space = line.space
    return segment_span(space.field.segments, row[0], line.number, 0.0, space.lengths[line.number])


@inlined
def _refine(
    centre: float, centre_value: np.float32, row: Real, antenna: int, line: _Line, w: _Workspace
) -> tuple[float, np.float32]:
    """The best of a position, two others next to it, and the minimum of the parabola through the three."""
    low, high = _span(row, line)
    for n in range(row.size):
        if n != antenna:
            if row[n] <= centre:
                low = max(low, row[n] + line.space.min_gap)
            else:
                high = min(high, row[n] - line.space.min_gap)
    nudge = 0.25 * line.space.step
    place, lowest, left = _try(max(centre - nudge, low), centre, centre_value, antenna, line, w)
    place, lowest, right = _try(min(centre + nudge, high), place, lowest, antenna, line, w)
    bend = left + right - TWO * centre_value
    if bend > ZERO:
        shift = nudge * min(max(0.5 * float(left - right) / float(bend), -2.0), 2.0)
        place, lowest, _ = _try(min(max(centre + shift, low), high), place, lowest, antenna, line, w)
    return place, lowest


@inlined
def _refine_places(
    centre: float, centre_value: np.float32, row: Real, antenna: int, line: _Line, w: _Workspace
) -> tuple[float, np.float32]:
    """The best of a place and the places next to it."""
    given = line.space.places[line.number]
    low, high = _span(row, line)
    beyond = BORDER * (high - low)
    at = np.searchsorted(given, centre)
    before, after = at > 0, at + 1 < line.space.counts[line.number]
    place, lowest = centre, centre_value
    if before and given[at - 1] >= low - beyond and _is_free(given[at - 1], row, antenna, line.space):
        place, lowest, _ = _try(given[at - 1], place, lowest, antenna, line, w)
    if after and given[at + 1] <= high + beyond and _is_free(given[at + 1], row, antenna, line.space):
        place, lowest, _ = _try(given[at + 1], place, lowest, antenna, line, w)
    return place, lowest


@inlined
def _find(row: Real, place: float) -> int:
    """Index of the antenna at `place`."""
    n = 0
    while n < row.size - 1 and row[n] != place:
        n += 1
    return n


@inlined
def _is_free(place: float, row: Real, antenna: int, space: Space) -> bool:
    """Whether a position keeps the minimum gap to the other antennas."""
    for n in range(row.size):
        if n != antenna and abs(row[n] - place) < space.min_gap * (1.0 - 1e-12):
            return False
    return True


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
def _move_antennas(row: Real, total: Single, across: bool, line: _Line, w: _Workspace) -> int:
    """Move every antenna of one waveguide once; the number of positions evaluated."""
    space, places, values = line.space, w.places, w.values
    low, high = _span(row, line)
    by_stretch = not across or row.size * space.min_gap > CROWDED * (high - low)
    count = 0 if by_stretch else candidates(total, line.number, row, space, places, values)
    tried = 0
    for old_place in row.copy():
        # Other antennas may have passed it, so it is identified by its position.
        n = _find(row, old_place)
        if by_stretch:
            count = stretch_candidates(total, line.number, row, n, across, space, places, values)
        respond(old_place, line.number, n, space, line.wanted, line.offset_square, w.best_re, w.best_im)
        _add(
            w.sum_re,
            w.sum_im,
            w.best_re,
            w.best_im,
            -line.weight_re,
            -line.weight_im,
            w.rest_re,
            w.rest_im,
        )
        old_value = _value(w.best_re, w.best_im, line, w)
        place, lowest = old_place, old_value
        left = TRIES
        for j in range(count):
            if left > 0 and _is_free(places[j], row, n, space):
                place, lowest, _ = _try(places[j], place, lowest, n, line, w)
                left -= 1
        if space.places.shape[1] == 0:
            place, lowest = _refine(place, lowest, row, n, line, w)
        else:
            place, lowest = _refine_places(place, lowest, row, n, line, w)
        tried += TRIES - left + 4
        if lowest < old_value * (ONE - LEAST_GAIN):
            _add(
                w.rest_re,
                w.rest_im,
                w.best_re,
                w.best_im,
                line.weight_re,
                line.weight_im,
                w.sum_re,
                w.sum_im,
            )
            _put(row, n, place)
    return tried


@inlined
def _slopes(scores: Real, counted: Real, doublings: int, floor: float, out: Real) -> None:
    """df/dz_k of the terms of F, with the power limited."""
    limited = min(doublings, FLATTEST)
    power = 2.0**limited
    for k in range(scores.size):
        z = max(scores[k], 1e-12)
        raised = z
        for _ in range(limited):
            raised *= raised
        h = 1.0 / (floor + raised)
        out[k] = -counted[k] * power * h * (raised * h) / z


@kernel
def sum_waveguide(layout: Real, waveguide: int, space: Space, wanted: Wanted, re: Real, im: Real) -> None:
    """Channels of the wanted devices to one waveguide, into re[m] and im[m]."""
    out_re, out_im = re[waveguide], im[waveguide]
    term_re, term_im = np.empty(out_re.size, np.float32), np.empty(out_re.size, np.float32)
    offset_square = wanted.offset_square[waveguide]
    out_re[:] = 0.0
    out_im[:] = 0.0
    for n in range(layout.shape[1]):
        respond(layout[waveguide, n], waveguide, n, space, wanted, offset_square, term_re, term_im)
        for k in range(out_re.size):
            out_re[k] += np.float64(term_re[k])
            out_im[k] += np.float64(term_im[k])


@kernel
def sweep(
    start_layout: Real,
    start_beam: Complex,
    space: Space,
    wanted: Wanted,
    goal: Goal,
    moves: Moves,
    first_waveguide: int,
    stop: Flag,
) -> Swept:
    """Move every antenna once.

    Parameters
    ----------
    start_layout, start_beam
        Positions in metres, shape (M, N), and the beam, shape (M,).
    space, wanted
        The space and the wanted devices.
    goal
        F.
    moves
        How antennas and beam are moved.
    first_waveguide
        The waveguide to begin with.
    stop
        The sweep ends early once the entry is not zero.

    Returns
    -------
    Layout, beam, the decrease of F and the number of positions evaluated. F increases at most by rounding
    in single precision.
    """
    space, wanted = borrowed(space), borrowed(wanted)
    layout = start_layout.copy()
    waveguides = layout.shape[0]
    count = wanted.device.size
    re, im = np.empty((waveguides, count)), np.empty((waveguides, count))
    for m in range(waveguides):
        sum_waveguide(layout, m, space, wanted, re, im)
    squares = projections.squares(re, im, start_beam)
    # With floor = 0 the weakest score is the unit, which only changes F by a factor and keeps high powers in
    # range. With floor = 1 that is done only if all scores are above one: the count cannot improve then.
    unit = 1.0 / max(np.min(squares), goal.floor / (space.reference * space.reference), 1e-100)
    power = 2.0**goal.doublings
    least = np.float32(max(1e-12, 1e-36 ** (1.0 / power)))
    hill = Hill(wanted.counted, goal.doublings, goal.floor)
    before = 0.0
    for k in range(count):
        before += wanted.counted[k] / (goal.floor + max(squares[k] * unit, 1e-9) ** power)
    w = _new_workspace(count)
    sums = np.empty(count, np.complex128)
    sums_re, sums_im, slopes = np.empty(count), np.empty(count), np.empty(count)
    along, beside = np.empty(count, np.float32), np.empty(count, np.float32)
    total = np.empty(space.points, np.float32)
    rows = np.empty((LANES, 2, 1 if space.table.shape[0] > 0 else space.points), np.int16)
    root = np.sqrt(unit)
    beam, after = start_beam, before
    tried = 0
    for index in range(waveguides + 1):
        found = cg.minimise(re * root, im * root, hill, beam, moves.beam, stop)
        beam, after = found.point, found.value
        if index == waveguides or stop[0] != 0:
            break
        m = (first_waveguide + index) % waveguides
        projections.projections(re, im, beam, sums_re, sums_im)
        for k in range(count):
            sums[k] = complex(sums_re[k], -sums_im[k])  # m^H h, not h^H m
            squares[k] = unit * (sums_re[k] * sums_re[k] + sums_im[k] * sums_im[k])
            w.sum_re[k] = np.float32(sums[k].real)
            w.sum_im[k] = np.float32(sums[k].imag)
        _slopes(squares, wanted.counted, goal.doublings, goal.floor, slopes)
        if not scan(space, wanted, m, beam[m], sums, slopes, along, beside, rows, total, stop):
            continue
        line = _Line(
            space,
            wanted,
            wanted.offset_square[m],
            m,
            np.float32(beam[m].real),
            np.float32(beam[m].imag),
            np.float32(unit),
            goal.doublings,
            np.float32(goal.floor),
            least,
        )
        tried += _move_antennas(layout[m], total, moves.across, line, w)
        sum_waveguide(layout, m, space, wanted, re, im)
    return Swept(layout, beam, after / max(before, 1e-300), tried)
