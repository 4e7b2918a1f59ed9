"""What stays the same during a search: the channel, the feasible positions and the tabulated responses.

The table holds the response of every device on a grid along every waveguide, as 16-bit integers. It is only
used to find candidate positions, which are then evaluated exactly: 16 bits are enough for that, and the scan
is limited by memory bandwidth. If antennas can be at given places only, the table has these in place of the
grid. Entries are relative to the largest amplitude on their row, so that the table
does not depend on powers, gains or weights.
"""

from typing import NamedTuple

import numpy as np

from airpass import aircomp
from airpass.channel.field import LARGEST_ENTRY as LARGEST
from airpass.channel.field import Field, SampledTable, modulate_one, segment_feed
from airpass.channel.pass_uplink import element, guide_decay, guide_length, response_single
from airpass.core.types import Complex, Index, Real, Short, Single
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import exp
from airpass.optim import projections
from airpass.scenario import Scenario
from airpass.scenario.candidates import search_places
from airpass.scenario.scenario import CLOSEST_M

ENTRY_BYTES = 4  # real and imaginary part of a table entry
FILLED = 10_000_000  # entries that are computed at a time


class Space(NamedTuple):
    """Kernel arguments of a scenario."""

    field: Field  # with the amplitude sqrt(Gamma)/phi_k xi gamma_k/sqrt(N), over `reference`
    reference: float  # so that squares stay within single precision
    lengths: Real  # L_m, metres
    min_gap: float  # metres
    step: float  # of the grid, metres
    points: int  # of the grid on the longest waveguide, P
    row_scale: Single  # value of a table entry of one, over `reference`; shape (M, K)
    table: Short  # responses, shape (M, K, 2, P); M = 0 if it is not stored
    places: (
        Real  # the only places of antennas, instead of the grid, shape (M, P); P = 0 if they may be anywhere
    )
    counts: Index  # number of places on every waveguide, shape (M,)


@inlined
def _rounded(value: np.float32) -> np.int16:
    # A device in line with a waveguide may come closer to it than to its axis.
    return np.int16(min(max(value, -LARGEST), LARGEST))


@kernel
def response_row(space: Space, waveguide: int, device: int, first: int, out_re: Short, out_im: Short) -> None:
    """Table entries of one device at the grid points first, first + 1, ..."""
    field = space.field
    offset_square = field.offset_square[waveguide, device]
    first_feed, side, loss = field.feed[0, waveguide], field.feed[1, waveguide], field.loss_per_m
    x = field.device_x[device]
    amplitude = LARGEST * np.float32(np.sqrt(max(offset_square, CLOSEST_M * CLOSEST_M)))
    if space.places.shape[1] > 0:
        places = space.places[waveguide]
        for p in range(out_re.size):
            place = places[first + p]
            feed = segment_feed(field.segments, place, waveguide, first_feed)
            guide = guide_length(place, feed, side)
            _, re, im = response_single(
                place, guide, x, offset_square, amplitude, field.turns_per_m, field.refractive_index
            )
            re, im = modulate_one(field.factor, place, waveguide, device, re, im)
            decay = np.float32(guide_decay(guide, loss))
            out_re[p], out_im[p] = _rounded(decay * re), _rounded(decay * im)
        return
    for p in range(out_re.size):
        place = (first + p) * space.step
        feed = segment_feed(field.segments, place, waveguide, first_feed)
        guide = guide_length(place, feed, side)
        _, re, im = response_single(
            place, guide, x, offset_square, amplitude, field.turns_per_m, field.refractive_index
        )
        re, im = modulate_one(field.factor, place, waveguide, device, re, im)
        out_re[p], out_im[p] = _rounded(re), _rounded(im)
    if loss > 0.0:
        for p in range(out_re.size):
            # `guide_decay` would not vectorise.
            place = (first + p) * space.step
            feed = segment_feed(field.segments, place, waveguide, first_feed)
            decay = np.float32(exp(-loss * guide_length(place, feed, side)))
            out_re[p] = np.int16(decay * np.float32(out_re[p]))
            out_im[p] = np.int16(decay * np.float32(out_im[p]))


@kernel
def fill_table(space: Space, waveguide: int, first: int, last: int) -> None:
    """Table entries of some devices at one waveguide."""
    for k in range(first, last):
        response_row(space, waveguide, k, 0, space.table[waveguide, k, 0], space.table[waveguide, k, 1])


def space_of(scenario: Scenario, scale: Real, step_m: float, table_bytes: float) -> Space:
    """The space of a scenario.

    Parameters
    ----------
    scenario
        Receiver, radio and devices.
    scale
        sqrt(Gamma)/phi_k, shape (K,).
    step_m
        Step of the grid, metres.
    table_bytes
        A larger table is not stored; its entries are computed whenever they are used.

    Returns
    -------
    Space
        Arguments of the kernels.
    """
    receiver = scenario.receiver
    field = scenario.uplink.field(receiver.antennas)
    places, counts, gap_m = search_places(receiver, scenario.candidates)
    points = places.shape[1] or int(float(receiver.lengths.max()) / step_m) + 1
    nearest = np.sqrt(np.maximum(field.offset_square, CLOSEST_M**2))
    amplitude = scale * field.amplitude
    if isinstance(field.factor, SampledTable):
        reference = float(np.max(scale * field.factor.peak))
        table = field.factor.scaled(scale / reference)
        field, row_scale = field._replace(factor=table), table.peak / LARGEST
    else:
        reference = float(np.max(amplitude / nearest))
        row_scale = (amplitude / reference / nearest / float(LARGEST)).astype(np.float32)
        if field.factor is not None:
            row_scale *= field.factor.peak
    stored = ENTRY_BYTES * receiver.waveguides * scale.size * points <= table_bytes
    shape = (receiver.waveguides, scale.size, 2, points) if stored else (0, 0, 2, 0)
    space = Space(
        field._replace(amplitude=amplitude / reference),
        reference,
        receiver.lengths,
        gap_m,
        step_m,
        points,
        row_scale,
        np.empty(shape, np.int16),
        places,
        counts,
    )
    block = max(1, FILLED // points)  # in blocks, because Ctrl-C waits for the end of each
    for m in range(shape[0]):
        for first in range(0, scale.size, block):
            fill_table(space, m, first, min(first + block, scale.size))
    return space


def exact_scores(scenario: Scenario, space: Space, layout: Real, beam: Complex) -> Real:
    """z_k of all devices, shape (K,), also if loops take a part of the channel from a table.

    Parameters
    ----------
    scenario, space
        The scenario and its space.
    layout, beam
        Positions in metres, shape (M, N), and the beam, shape (M,).

    Returns
    -------
    Real
        Scores.
    """
    if space.field.factor is None:
        return scores_at(space, layout, beam)
    channels = scenario.uplink.channels(layout)
    effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
    return aircomp.scores(beam, effective)


@kernel
def scores_at(space: Space, layout: Real, beam: Complex) -> Real:
    """z_k of all devices, in double precision; shape (K,)."""
    waveguides, antennas = layout.shape
    count = space.field.device_x.size
    re, im = np.zeros((waveguides, count)), np.zeros((waveguides, count))
    distance, term_re, term_im = np.empty(count), np.empty(count), np.empty(count)
    for m in range(waveguides):
        for n in range(antennas):
            element(layout[m, n], m, n, space.field, distance, term_re, term_im)
            for k in range(count):
                re[m, k] += term_re[k]
                im[m, k] += term_im[k]
    return projections.squares(re, im, beam) * (space.reference * space.reference)
