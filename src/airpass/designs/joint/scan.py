"""Where an antenna of one waveguide would be best, to first order.

Let u_k be the sum over all antennas for device k, so that z_k = |u_k|^2 and F = sum_k f(z_k). Moving an
antenna of waveguide m from q to p changes u_k by conj(m_m) (g_k(p) - g_k(q)) and F, to first order, by
T(p) - T(q) with

    T(p) = sum_k Re(s_k conj(u_k) conj(m_m) g_k(p)),    s_k = 2 f'(z_k).

T does not depend on the antenna: one scan of the waveguide's table serves all N of them. Its lowest minima
are candidates, which `sweep` evaluates exactly.
"""

import numpy as np

from airpass.channel.field import segment_span
from airpass.channel.segments import BORDER
from airpass.core.types import Complex, Flag, Index, Real, Short, Single
from airpass.designs.joint.space import Space, response_row
from airpass.designs.joint.wanted import LANES, Wanted
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma_single

MOST_MINIMA = 32
# Minima above this share of the lowest one are left out, unless fewer than `FEWEST_MINIMA` are below it.
SHARE = np.float32(0.45)
FEWEST_MINIMA = 8


@kernel
def _add_rows(total: Single, rows: Short, device: Index, start: int, along: Single, beside: Single) -> None:
    """Add the terms of eight devices: those at `start`, start + 1, ... of `device`."""
    d0, d1, d2, d3 = device[start], device[start + 1], device[start + 2], device[start + 3]
    d4, d5, d6, d7 = device[start + 4], device[start + 5], device[start + 6], device[start + 7]
    r0, s0, r1, s1 = rows[d0, 0], rows[d0, 1], rows[d1, 0], rows[d1, 1]
    r2, s2, r3, s3 = rows[d2, 0], rows[d2, 1], rows[d3, 0], rows[d3, 1]
    r4, s4, r5, s5 = rows[d4, 0], rows[d4, 1], rows[d5, 0], rows[d5, 1]
    r6, s6, r7, s7 = rows[d6, 0], rows[d6, 1], rows[d7, 0], rows[d7, 1]
    a0, a1, a2, a3 = along[start], along[start + 1], along[start + 2], along[start + 3]
    a4, a5, a6, a7 = along[start + 4], along[start + 5], along[start + 6], along[start + 7]
    b0, b1, b2, b3 = beside[start], beside[start + 1], beside[start + 2], beside[start + 3]
    b4, b5, b6, b7 = beside[start + 4], beside[start + 5], beside[start + 6], beside[start + 7]
    single = np.float32
    for p in range(total.size):
        one = fma_single(a0, single(r0[p]), b0 * single(s0[p]))
        two = fma_single(a1, single(r1[p]), b1 * single(s1[p]))
        one = fma_single(a2, single(r2[p]), fma_single(b2, single(s2[p]), one))
        two = fma_single(a3, single(r3[p]), fma_single(b3, single(s3[p]), two))
        one = fma_single(a4, single(r4[p]), fma_single(b4, single(s4[p]), one))
        two = fma_single(a5, single(r5[p]), fma_single(b5, single(s5[p]), two))
        one = fma_single(a6, single(r6[p]), fma_single(b6, single(s6[p]), one))
        two = fma_single(a7, single(r7[p]), fma_single(b7, single(s7[p]), two))
        total[p] += one + two


@kernel
def scan(
    space: Space,
    wanted: Wanted,
    waveguide: int,
    weight: complex,
    sums: Complex,
    slopes: Real,
    along: Single,
    beside: Single,
    rows: Short,
    total: Single,
    stop: Flag,
) -> bool:
    """T on the grid of one waveguide, up to a positive factor.

    Parameters
    ----------
    space, wanted
        The space and the wanted devices.
    waveguide, weight
        m and m_m.
    sums
        u_k, shape (W,).
    slopes
        f'(z_k), shape (W,); they are negative.
    along, beside
        Scratch arrays, shape (W,).
    rows
        Scratch array for table entries, shape (LANES, 2, P), if the table is not stored.
    total
        Output, shape (P,).
    stop
        The scan ends early once the entry is not zero.

    Returns
    -------
    Whether T is not zero; false if the scan was ended.
    """
    largest = 0.0
    for k in range(sums.size):
        pull = slopes[k] * (sums[k] * weight)  # conj(pull) = s_k conj(u_k) conj(m_m)/2
        largest = max(largest, abs(pull.real), abs(pull.imag))
    if not largest > 0.0:
        return False
    for k in range(sums.size):
        pull = slopes[k] * (sums[k] * weight) / largest
        scale = space.row_scale[waveguide, wanted.device[k]]
        along[k] = np.float32(pull.real) * scale
        beside[k] = np.float32(pull.imag) * scale
    total[:] = np.float32(0.0)
    if space.table.shape[0] > 0:
        for start in range(0, sums.size, LANES):
            if stop[0] != 0:
                return False
            _add_rows(total, space.table[waveguide], wanted.device, start, along, beside)
        return True
    order = np.arange(LANES)
    for start in range(0, sums.size, LANES):
        if stop[0] != 0:
            return False
        for lane in range(LANES):
            response_row(space, waveguide, wanted.device[start + lane], 0, rows[lane, 0], rows[lane, 1])
        _add_rows(total, rows, order, 0, along[start : start + LANES], beside[start : start + LANES])
    return True


@kernel
def _lowest(total: Single, first: int, last: int) -> np.float32:
    """The lowest value from a grid point to another, or zero."""
    a = b = c = d = np.float32(0.0)
    whole = first + (last + 1 - first) // 4 * 4
    for p in range(first, whole, 4):
        a = min(a, total[p])
        b = min(b, total[p + 1])
        c = min(c, total[p + 2])
        d = min(d, total[p + 3])
    for p in range(whole, last + 1):
        a = min(a, total[p])
    return min(a, b, c, d)


@inlined
def insert(place: float, value: np.float32, count: int, places: Real, values: Single) -> int:
    """Insert a candidate into a list that is sorted by value and keeps the lowest; its new length."""
    if count == places.size:
        if value >= values[count - 1]:
            return count
        j = count - 1
    else:
        j = count
        count += 1
    while j > 0 and values[j - 1] > value:
        values[j] = values[j - 1]
        places[j] = places[j - 1]
        j -= 1
    values[j] = value
    places[j] = place
    return count


@kernel
def _minima(
    total: Single,
    first: int,
    last: int,
    row: Real,
    space: Space,
    share: np.float32,
    places: Real,
    values: Single,
) -> int:
    """Local minima below `share` times the lowest; see `candidates`."""
    count = 0
    threshold = _lowest(total, first, last) * share
    for p in range(first + 1, last):
        here = total[p]
        if not here < threshold:
            continue
        left, right = total[p - 1], total[p + 1]
        if here > left or here >= right:
            continue
        # The parabola through three points has its minimum within half a step.
        bend = left + right - np.float32(2.0) * here
        place = (p + 0.5 * (left - right) / bend) * space.step
        near = 0
        for n in range(row.size):
            if abs(row[n] - place) < space.min_gap:
                near += 1
        if near <= 1:  # one antenna may be in the way: itself
            value = here - np.float32(0.125) * (left - right) * (left - right) / bend
            count = insert(place, value, count, places, values)
            if count == places.size:
                threshold = values[count - 1]
    return count


@kernel
def place_candidates(
    total: Single,
    waveguide: int,
    row: Real,
    antenna: int,
    across: bool,
    space: Space,
    places: Real,
    values: Single,
) -> int:
    """The given places with the lowest T that are free for one antenna, or for some if `antenna` is -1.

    Of places closer together than the step of a grid only the best is a candidate. Other parameters and the
    result are those of `stretch_candidates`.
    """
    count = 0
    given = space.places[waveguide]
    last = space.counts[waveguide] - 1
    low, high = segment_span(space.field.segments, row[0], waveguide, 0.0, space.lengths[waveguide])
    beyond = BORDER * (high - low)
    for p in range(last + 1):
        here = total[p]
        if given[p] < low - beyond or given[p] > high + beyond:
            continue
        if count == places.size and here >= values[count - 1]:
            continue
        if p > 0 and here > total[p - 1] and given[p] - given[p - 1] < space.step:
            continue
        if p < last and here >= total[p + 1] and given[p + 1] - given[p] < space.step:
            continue
        near = 0
        for n in range(row.size):
            if n != antenna and abs(row[n] - given[p]) < space.min_gap:
                near += 1
        if not across:
            # Antennas stay between their neighbours.
            if antenna > 0 and given[p] < row[antenna - 1]:
                near += 1
            if antenna < row.size - 1 and given[p] > row[antenna + 1]:
                near += 1
        if near == 0 or (antenna < 0 and near == 1):
            count = insert(given[p], here, count, places, values)
    return count


@kernel
def candidates(total: Single, waveguide: int, row: Real, space: Space, places: Real, values: Single) -> int:
    """The lowest minima of T that are feasible for at least one antenna.

    Parameters
    ----------
    total
        T on the grid.
    waveguide, row
        m, and the positions of its antennas.
    space
        The space.
    places, values
        Output: positions in metres and T there, lowest first; shape (MOST_MINIMA,).

    Returns
    -------
    The number of minima.
    """
    if space.places.shape[1] > 0:
        return place_candidates(total, waveguide, row, -1, True, space, places, values)
    low, high = segment_span(space.field.segments, row[0], waveguide, 0.0, space.lengths[waveguide])
    first = int(np.ceil(low / space.step))
    last = min(int(high / space.step), space.points - 1)
    count = _minima(total, first, last, row, space, SHARE, places, values)
    if count < FEWEST_MINIMA:
        count = _minima(total, first, last, row, space, np.float32(0.0), places, values)
    return count


@kernel
def stretch_candidates(
    total: Single,
    waveguide: int,
    row: Real,
    antenna: int,
    across: bool,
    space: Space,
    places: Real,
    values: Single,
) -> int:
    """The lowest point of T in every stretch that is free for one antenna, lowest first.

    For crowded waveguides, on which few minima are free, and for antennas that must stay between their
    neighbours. Parameters as for `candidates`.
    """
    if space.places.shape[1] > 0:
        return place_candidates(total, waveguide, row, antenna, across, space, places, values)
    start, end = segment_span(space.field.segments, row[0], waveguide, 0.0, space.lengths[waveguide])
    last = min(int(end / space.step), space.points - 1)
    count = 0
    for g in range(0 if across else antenna, row.size if across else antenna + 1):
        left = g - 1 if g - 1 < antenna else g
        right = g if g < antenna else g + 1
        low = row[left] + space.min_gap if g > 0 else start
        high = row[right] - space.min_gap if g < row.size - 1 else end
        if high < low:
            continue
        first = int(np.ceil(low / space.step))
        final = min(int(np.floor(high / space.step)), last)
        place, value = low, total[min(max(int(np.rint(low / space.step)), 0), last)]
        for p in range(first, final + 1):
            if total[p] < value:
                place, value = p * space.step, total[p]
        if final > first and place == final * space.step:
            place = high
        count = insert(place, value, count, places, values)
    return count
