"""Antennas moved one by one, judged by the scores of all subcarriers; beams by conjugate gradients.

If antenna n of waveguide m moves, h_{k,s}^H m_s changes by the difference of its terms only. With the
responses of the places of a waveguide in a table, F (`airpass.optim.subcarriers`) is computed for every
place, in single precision. The antenna goes to the place with the lowest F among those that keep their
distance from the others.
"""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Index, Real, Single
from airpass.kernels.jit import kernel
from airpass.optim import subcarriers
from airpass.optim.conjugate_gradient import Limits
from airpass.optim.subcarriers import Goal

BLOCK = 512  # places that are evaluated together
LEAST, MOST = np.float32(1e-18), np.float32(1e18)  # of powers of reciprocal scores, in single precision
ONE = np.float32(1.0)


class Line(NamedTuple):
    """Places of one waveguide, and the responses there."""

    places: Real  # metres, shape (P,)
    # Effective responses of devices and subcarriers, real and imaginary parts; shape (K, S, 2, P)
    table: Single
    gap: float  # smallest distance of antennas, metres
    across: bool  # whether an antenna may pass its neighbours


class State(NamedTuple):
    """What a sweep changes."""

    layout: Real  # metres, shape (M, N)
    terms: Complex  # effective responses of the antennas, shape (M, N, S, K)
    re: Real  # sums over the antennas of a waveguide, shape (S, M, K)
    im: Real
    beams: Complex  # shape (S, M)


@kernel
def _power(values: Single, doublings: int) -> None:
    for _ in range(doublings):
        for p in range(values.size):
            values[p] = min(max(values[p] * values[p], LEAST), MOST)


@kernel
def scan(
    table: Single, devices: Index, rest: Complex, beam: Complex, unit: float, goal: Goal, out: Single
) -> None:
    """F for one antenna at every place.

    Parameters
    ----------
    table
        Responses, shape (K, S, 2, P).
    devices
        Numbers of the wanted devices.
    rest
        h_{k,s}^H m_s of the wanted devices without the antenna, shape (S, wanted).
    beam
        Entries of the beams for the waveguide, times the antenna's share; shape (S,).
    unit
        Factor on all scores.
    goal
        F.
    out
        Output, shape (P,).
    """
    count = beam.size
    root = np.sqrt(unit)
    values, mean = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    inverse, floor = np.float32(1.0 / count), np.float32(goal.floor)
    out[:] = np.float32(0.0)
    for first in range(0, out.size, BLOCK):
        last = min(first + BLOCK, out.size)
        total = out[first:last]
        value, power = values[: total.size], mean[: total.size]
        for i in range(devices.size):
            power[:] = np.float32(0.0)
            for s in range(count):
                row_re = table[devices[i], s, 0, first:last]
                row_im = table[devices[i], s, 1, first:last]
                x, y = np.float32(root * beam[s].real), np.float32(root * beam[s].imag)
                at_re, at_im = np.float32(root * rest[s, i].real), np.float32(root * rest[s, i].imag)
                for p in range(total.size):
                    re = at_re + (row_re[p] * x + row_im[p] * y)
                    im = at_im + (row_re[p] * y - row_im[p] * x)
                    value[p] = ONE / max(re * re + im * im, LEAST)
                if not goal.mean:
                    _power(value, goal.doublings)
                for p in range(total.size):
                    power[p] += value[p] * inverse
            if goal.mean:
                _power(power, goal.doublings)
            weight = np.float32(goal.counted[i])
            for p in range(total.size):
                total[p] += weight * power[p] / (ONE + floor * power[p])


@kernel
def _is_free(row: Real, n: int, place: float, gap: float, across: bool) -> bool:
    """Whether antenna n of a waveguide may go to a place."""
    for j in range(row.size):
        if j != n and abs(place - row[j]) < gap:
            return False
    if across:
        return True
    below = n == 0 or place > row[n - 1]
    above = n == row.size - 1 or place < row[n + 1]
    return below and above


@kernel
def move_antenna(
    state: State, m: int, n: int, share: float, line: Line, devices: Index, unit: float, goal: Goal
) -> int:
    """Move one antenna to the best of the places of a line, unless it is best where it is.

    Parameters
    ----------
    state
        Changed.
    m, n
        Waveguide and antenna.
    share
        Amplitude that the antenna couples, over that of an equal split.
    line
        Places and responses.
    devices
        Numbers of the wanted devices.
    unit
        Factor on all scores.
    goal
        F, over the wanted devices.

    Returns
    -------
    The number of the antenna after the move, as antennas are kept in rising order.
    """
    layout, terms, beams = state.layout, state.terms, state.beams
    count = beams.shape[0]
    rest = np.empty((count, devices.size), np.complex128)
    now = np.empty((devices.size, count, 2, 1), np.float32)
    here = np.arange(devices.size)
    for s in range(count):
        for i in range(devices.size):
            k = devices[i]
            total = -np.conj(terms[m, n, s, k]) * beams[s, m]
            for other in range(beams.shape[1]):
                total += complex(state.re[s, other, k], -state.im[s, other, k]) * beams[s, other]
            rest[s, i] = total
            now[i, s, 0, 0] = np.float32(terms[m, n, s, k].real)
            now[i, s, 1, 0] = np.float32(terms[m, n, s, k].imag)
    values = np.empty(line.places.size, np.float32)
    current = np.empty(1, np.float32)
    scan(line.table, devices, rest, beams[:, m] * share, unit, goal, values)
    scan(now, here, rest, beams[:, m].copy(), unit, goal, current)
    best = -1
    lowest = current[0]
    for p in range(line.places.size):
        if values[p] < lowest and _is_free(layout[m], n, line.places[p], line.gap, line.across):
            best, lowest = p, values[p]
    if best < 0:
        return n
    layout[m, n] = line.places[best]
    for s in range(count):
        for k in range(line.table.shape[0]):
            response = share * complex(line.table[k, s, 0, best], line.table[k, s, 1, best])
            change = response - terms[m, n, s, k]
            terms[m, n, s, k] = response
            state.re[s, m, k] += change.real
            state.im[s, m, k] += change.imag
    while n > 0 and layout[m, n] < layout[m, n - 1]:
        _swap(state, m, n - 1)
        n -= 1
    while n < layout.shape[1] - 1 and layout[m, n] > layout[m, n + 1]:
        _swap(state, m, n)
        n += 1
    return n


@kernel
def _swap(state: State, m: int, n: int) -> None:
    """Exchange the numbers of two neighbours."""
    row = state.layout[m]
    row[n], row[n + 1] = row[n + 1], row[n]
    kept = state.terms[m, n].copy()
    state.terms[m, n] = state.terms[m, n + 1]
    state.terms[m, n + 1] = kept


@kernel
def solve_beams(state: State, devices: Index, unit: float, goal: Goal, limits: Limits) -> float:
    """Minimise F over the beams; returns F."""
    root = np.sqrt(unit)
    shape = (state.re.shape[0], state.re.shape[1], devices.size)
    re, im = np.empty(shape), np.empty(shape)
    for s in range(shape[0]):
        for m in range(shape[1]):
            for i in range(shape[2]):
                re[s, m, i] = root * state.re[s, m, devices[i]]
                im[s, m, i] = root * state.im[s, m, devices[i]]
    found = subcarriers.minimise(re, im, goal, state.beams, limits)
    state.beams[:] = found.beams
    return found.value


@kernel
def sweep(
    state: State,
    places: Real,
    counts: Index,
    table: Single,
    shares: Real,
    gap: float,
    across: bool,
    devices: Index,
    unit: float,
    goal: Goal,
    limits: Limits,
) -> tuple[float, float]:
    """Move every antenna once, and solve the beams after every waveguide.

    Parameters
    ----------
    state
        Changed.
    places, counts
        Places in metres, shape (M, P), of which the first `counts` of each row are valid.
    table
        Responses there, shape (M, K, S, 2, P).
    shares
        Amplitudes that the antennas couple, over those of an equal split; shape (N, M).
    gap, across
        Smallest distance of antennas, and whether they may pass their neighbours.
    devices, unit, goal
        Wanted devices, factor on all scores, and F.
    limits
        Of the beams.

    Returns
    -------
    F before and after.
    """
    before = solve_beams(state, devices, unit, goal, limits)
    after = before
    for m in range(state.layout.shape[0]):
        moved = np.zeros(state.layout.shape[1], np.bool_)
        n = 0
        while n < moved.size:
            if moved[n]:
                n += 1
                continue
            line = Line(places[m, : counts[m]], table[m], gap, across)
            at = move_antenna(state, m, n, shares[n, m], line, devices, unit, goal)
            if at > n:  # the antennas between have moved down by one
                moved[n:at] = moved[n + 1 : at + 1].copy()
            elif at < n:
                moved[at + 1 : n + 1] = moved[at:n].copy()
            moved[at] = True
        after = solve_beams(state, devices, unit, goal, limits)
    return before, after
