"""The wanted devices, packed, and their responses in single precision.

Distances and phases are computed in double precision: at 100 GHz a phase has thousands of turns.
"""

from typing import NamedTuple

import numpy as np

from airpass.channel.field import modulate_packed, segment_feed
from airpass.channel.pass_uplink import guide_decay, guide_length, response_single
from airpass.core.types import Index, Real, Single
from airpass.designs.joint.space import Space
from airpass.kernels.jit import inlined, kernel

LANES = 8  # the number of packed devices is a multiple


class Wanted(NamedTuple):
    """The wanted devices, packed, and padded to whole vectors by repeating the first one without weight."""

    device: Index  # number of the device, shape (W,)
    counted: Real  # weight in F; 0 for padding
    counted_single: Single
    device_x: Real  # x_k
    offset_square: Real  # shape (M, W)
    amplitude: Single  # as in `Space.field`


def wanted_of(space: Space, devices: Index, counted: Real) -> Wanted:
    """Pack some devices.

    Parameters
    ----------
    space
        The space.
    devices
        Numbers of the wanted devices; at least one.
    counted
        Their weights in F.

    Returns
    -------
    Wanted
        The packed devices.
    """
    padding = -devices.size % LANES
    packed = np.concatenate([devices, np.full(padding, devices[0])])
    weights = np.concatenate([counted, np.zeros(padding)])
    field = space.field
    return Wanted(
        packed,
        weights,
        weights.astype(np.float32),
        field.device_x[packed],
        np.ascontiguousarray(field.offset_square[:, packed]),
        field.amplitude[packed].astype(np.float32),
    )


@kernel
def responses(
    place: float,
    guide: float,
    decay: np.float32,
    device_x: Real,
    offset_square: Real,
    amplitude: Single,
    turns_per_m: float,
    refractive_index: float,
    out_re: Single,
    out_im: Single,
) -> None:
    """Responses of the packed devices to one antenna."""
    for k in range(device_x.size):
        _, out_re[k], out_im[k] = response_single(
            place, guide, device_x[k], offset_square[k], decay * amplitude[k], turns_per_m, refractive_index
        )


@inlined
def respond(
    place: float,
    waveguide: int,
    antenna: int,
    space: Space,
    wanted: Wanted,
    offset_square: Real,
    out_re: Single,
    out_im: Single,
) -> None:
    """`responses` to an antenna with a number at `place`; `offset_square` is that of the waveguide."""
    field = space.field
    feed = segment_feed(field.segments, place, waveguide, field.feed[0, waveguide])
    guide = guide_length(place, feed, field.feed[1, waveguide])
    responses(
        place,
        guide,
        np.float32(guide_decay(guide, field.loss_per_m) * field.feed[2 + antenna, waveguide]),
        wanted.device_x,
        offset_square,
        wanted.amplitude,
        field.turns_per_m,
        field.refractive_index,
        out_re,
        out_im,
    )
    modulate_packed(field.factor, place, waveguide, wanted.device, out_re, out_im)
