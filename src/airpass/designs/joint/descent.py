"""A descent: sweeps until F decreases little."""

from typing import NamedTuple

import numpy as np

from airpass.core.types import Complex, Flag, Real
from airpass.designs.joint.space import Space, scores_at
from airpass.designs.joint.sweep import Goal, Moves, sweep
from airpass.designs.joint.wanted import Wanted
from airpass.kernels.jit import inlined, kernel
from airpass.optim.ranking import value_rank


class Descended(NamedTuple):
    """Result of `descend`: its end, and the best point on the way."""

    layout: Real
    beam: Complex
    scores: Real  # of all devices, in double precision
    best_layout: Real
    best_beam: Complex
    best_scores: Real
    sweeps: int
    tried: int  # positions evaluated


@inlined
def weakest(scores: Real, wanted: Wanted) -> float:
    """The smallest score of the wanted devices."""
    lowest = np.inf
    for k in wanted.device:
        lowest = min(lowest, scores[k])
    return lowest


@kernel
def descend(
    start_layout: Real,
    start_beam: Complex,
    space: Space,
    wanted: Wanted,
    goal: Goal,
    moves: Moves,
    most_sweeps: int,
    until_selected: bool,
    priorities: Real,
    stop: Flag,
) -> Descended:
    """Sweep until F decreases little.

    Parameters
    ----------
    start_layout, start_beam, space, wanted, goal, moves, stop
        As for `sweep`.
    most_sweeps
        Largest number of sweeps.
    until_selected
        Also end once the scores of all wanted devices are at least one.
    priorities
        v_k of all devices, shape (K,), by which points are ranked.

    Returns
    -------
    The end of the descent, and the point on the way that ranks highest (`airpass.optim.ranking`), which may
    be the start.
    """
    layout, beam = start_layout, start_beam
    scores = scores_at(space, layout, beam)
    best_layout, best_beam, best_scores = layout, beam, scores
    best = value_rank(scores, priorities)
    tried = 0
    sweeps = 0
    while sweeps < most_sweeps and stop[0] == 0:
        swept = sweep(layout, beam, space, wanted, goal, moves, sweeps, stop)
        layout, beam = swept.layout, swept.beam
        scores = scores_at(space, layout, beam)
        sweeps += 1
        tried += swept.tried
        reached = value_rank(scores, priorities)
        if reached > best:
            best = reached
            best_layout, best_beam, best_scores = layout, beam, scores
        if swept.left > 1.0 - moves.tolerance:
            break
        if until_selected and weakest(scores, wanted) >= 1.0:
            break
    return Descended(layout, beam, scores, best_layout, best_beam, best_scores, sweeps, tried)
