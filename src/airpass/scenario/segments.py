"""Waveguides cut into segments, `channel.segments`: which layouts are feasible."""

import numpy as np

from airpass.channel.segments import BORDER, SELECTED, Segments, segment_ends, segment_number
from airpass.core.errors import InvalidInput
from airpass.core.types import Real
from airpass.scenario.candidates import Candidates
from airpass.scenario.channel import EQUAL, Channel
from airpass.scenario.receiver import Receiver

KEY = "channel.segments"


def segments_on(receiver: Receiver, channel: Channel, candidates: Candidates | None) -> Segments | None:
    """The segments of a receiver.

    Parameters
    ----------
    receiver, channel
        The waveguides, and how they are cut.
    candidates
        The only places of antennas; None if they can be anywhere.

    Returns
    -------
    Segments | None
        The segments; None for whole waveguides. `InvalidInput` is raised if one segment is selected and has
        no room for all antennas.
    """
    if channel.segments == 1:
        return None
    length = receiver.lengths / channel.segments
    found = Segments(length, float(channel.segments), channel.segment_mode == SELECTED)
    if not found.selected:
        if channel.power_split != EQUAL:
            raise InvalidInput(
                f"channel.power_split = {channel.power_split!r}: antennas are counted from the feed of a "
                f"whole waveguide; cannot be combined with {KEY} = {channel.segments}, unless segment_mode = "
                f"{SELECTED!r}"
            )
        return found
    needed = (receiver.antennas - 1) * receiver.min_gap_m
    shortest = float(length.min())
    if needed > shortest * (1.0 - 4.0 * BORDER):
        raise InvalidInput(
            f"{KEY} = {channel.segments}: {receiver.antennas} antennas {receiver.min_gap_m:g} m apart need a "
            f"segment longer than {needed:g} m, and segments have {shortest:g} m; use fewer segments, or "
            "segment_mode = 'summed'"
        )
    for m, places in enumerate(candidates.places if candidates is not None else ()):
        assert candidates is not None
        numbers = segment_number(places, length[m], found.parts)
        for q in range(channel.segments):
            chosen = candidates.most(places[numbers == q])
            if chosen < receiver.antennas:
                raise InvalidInput(
                    f"channel.candidates_m: segment {q} of waveguide {m} has places for {chosen} antennas: "
                    f"must be at least receiver.antennas = {receiver.antennas} if a segment is selected"
                )
    return found


def segments_at(segments: Segments | None, layout: Real) -> Real:
    """The segment of every antenna.

    Parameters
    ----------
    segments
        The segments; None for whole waveguides.
    layout
        Positions in metres, shape (M, N).

    Returns
    -------
    Real
        q, shape (M, N).
    """
    if segments is None:
        return np.zeros(layout.shape)
    numbers: Real = segment_number(layout, segments.length[:, None], segments.parts)
    return numbers


def spread_segments(segments: Segments | None, waveguides: int) -> Real:
    """The segments of the uniform layout: waveguides take them in turn, as evenly as possible.

    Parameters
    ----------
    segments
        The segments; None for whole waveguides.
    waveguides
        Number of waveguides M.

    Returns
    -------
    Real
        q of every waveguide, shape (M,): m modulo Q if there are at least Q waveguides.
    """
    count = 1.0 if segments is None else segments.parts
    turn = min(waveguides, int(count))
    result: Real = np.floor((np.arange(waveguides) % turn + 0.5) * count / turn)
    return result


def layout_spans(receiver: Receiver, segments: Segments | None, numbers: Real) -> tuple[Real, Real]:
    """Where the antennas of each waveguide can be.

    Parameters
    ----------
    receiver
        The waveguides.
    segments
        Their segments; None for whole waveguides.
    numbers
        q of the selected segments, shape (M,); not used if none is selected.

    Returns
    -------
    low, high : Real
        Metres, shape (M,): the whole waveguide, or the segment if one is selected.
    """
    if segments is None or not segments.selected:
        return np.zeros(receiver.waveguides), receiver.lengths
    low, high = segment_ends(numbers, segments.length, segments.parts)
    return low, high


def moved_to(receiver: Receiver, segments: Segments, row: Real, waveguide: int, number: int) -> Real:
    """The antennas of one waveguide on another segment, at the same distances from its beginning.

    Parameters
    ----------
    receiver
        The waveguides.
    segments
        Their segments.
    row
        Positions on one segment, metres, shape (N,).
    waveguide, number
        m and q.

    Returns
    -------
    Real
        Positions in metres, shape (N,).
    """
    length = segments.length[waveguide]
    old = segment_number(row[0], length, segments.parts)
    low, high = segment_ends(number, length, segments.parts)
    packed = np.arange(row.size) * receiver.min_gap_m
    free = np.clip(row - old * length - packed, 0.0, high - low - packed[-1])
    moved: Real = low + free + packed
    return moved


def check_segments(segments: Segments, layout: Real) -> None:
    """Refuse layouts with antennas of a waveguide on several segments, if one is selected.

    Parameters
    ----------
    segments
        The segments.
    layout
        Positions in metres, shape (M, N).
    """
    numbers = segments_at(segments, layout)
    for m in np.flatnonzero(np.ptp(numbers, axis=1))[:1] if segments.selected else ():
        raise InvalidInput(
            f"layout[{m}] is on segments {int(numbers[m, 0])} to {int(numbers[m, -1])}: all antennas of a "
            f"waveguide must be on one segment (channel.segment_mode = {SELECTED!r})"
        )
