"""Waveguides that are cut into segments, each with a feed of its own.

A waveguide of length L_m has Q segments of the length l_m = L_m/Q. Segment q = 0, ..., Q-1 extends from
q l_m to (q+1) l_m; a place on a border belongs to the segment on its right, the end of the waveguide to the
last. The feed of segment q is at f_m + q l_m, with f_m = 0, l_m or l_m/2 for feeds on the left, on the right
or in the centre. Only the distance s_m(l) from an antenna to the feed of its segment differs from a whole
waveguide, in phase and loss. At a border s_m jumps; derivatives there are those of the segment on the right.

"summed": a combiner without loss adds the signals of the Q feeds, with amplitudes 1/sqrt(Q), for the receive
chain of the waveguide. With N/Q antennas per segment, each has 1/sqrt(N/Q) 1/sqrt(Q) = 1/sqrt(N), as in eq.
(64). This amplitude is used for all layouts.

"selected": a switch connects one segment of each waveguide to its receive chain. All N antennas are on that
segment, with the amplitude 1/sqrt(N).

Q = 1 is the paper's waveguide.
"""

from typing import Any, NamedTuple

import numpy as np

from airpass.core.types import Real

SUMMED, SELECTED = SEGMENT_MODES = ("summed", "selected")
BORDER = 1e-9  # share of l_m by which borders are moved to the left, against rounding


class Segments(NamedTuple):
    """Arguments of kernels."""

    length: Real  # l_m, metres, shape (M,)
    parts: float  # Q
    selected: bool  # whether all antennas of a waveguide are on one segment


def segment_number(place: Any, length: Any, count: float) -> Any:
    """q of a place, as a float; numbers or arrays.

    Parameters
    ----------
    place
        Position in metres. Places beyond an end belong to the segment at that end.
    length
        l_m in metres.
    count
        Number of segments Q.

    Returns
    -------
    Any
        q.
    """
    return np.minimum(np.maximum(np.floor(place / length + BORDER), 0.0), count - 1.0)


def segment_ends(number: Any, length: Any, count: float) -> tuple[Any, Any]:
    """Smallest and largest place of a segment; numbers or arrays.

    Parameters
    ----------
    number
        q.
    length
        l_m in metres.
    count
        Number of segments Q.

    Returns
    -------
    low, high
        Metres. The border to the next segment is left out.
    """
    return number * length, (number + 1.0 - 2.0 * BORDER * (number < count - 1.0)) * length


def places_on(segments: Segments, nominal: Real, moved: Real) -> Real:
    """Places of antennas that cannot leave their segment.

    Parameters
    ----------
    segments
        The segments.
    nominal
        Where antennas should be, metres, shape (M, N).
    moved
        Where errors would move them to.

    Returns
    -------
    Real
        `moved`, clipped to the segments of `nominal`. The ends of the waveguides do not clip.
    """
    length = segments.length[:, None]
    number = segment_number(nominal, length, segments.parts)
    low, high = segment_ends(number, length, segments.parts)
    low = np.where(number == 0.0, -np.inf, low)
    high = np.where(number == segments.parts - 1.0, np.inf, high)
    clipped: Real = np.clip(moved, low, high)
    return clipped


def segment_feeds(segments: Segments | None, places: Real, feed: Real) -> Real:
    """x of the feed of every place, metres.

    Parameters
    ----------
    segments
        The segments; None for whole waveguides.
    places
        Metres, shape (M, P).
    feed
        f_m in metres, shape (M,).

    Returns
    -------
    Real
        Shape (M, P).
    """
    first = np.broadcast_to(feed[:, None], places.shape)
    if segments is None:
        return first
    length = segments.length[:, None]
    result: Real = first + segment_number(places, length, segments.parts) * length
    return result
