"""A reference search for antennas at candidate places: exchange one place at a time.

It needs only responses at places, so that it also searches over ray-traced and measured ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from airpass.channel.sampled import SampledResponse
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Index, Real
from airpass.optim.ranking import rank
from airpass.selection.api import Selection, select
from airpass.selection.base import SelectionMethod

TRIED = 4  # places per antenna for which the beam is solved again


@dataclass(frozen=True, eq=False)
class PlacedAntennas:
    """Antennas at candidate places, and the selection of devices with them."""

    indices: Index  # numbers of the places, shape (M, N), increasing
    layout: Real  # positions in metres, shape (M, N)
    selection: Selection


def best_places(
    sampled: SampledResponse,
    weights: Any = None,
    budget: float | None = None,
    antennas: int = 1,
    *,
    min_gap_m: float = 0.0,
    snr_db: float | None = None,
    mse_threshold: float | None = None,
    method: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] = "hrmc+",
    starts: int = 4,
    seed: int = 0,
) -> PlacedAntennas:
    """Choose places and a beam that select many devices.

    Every antenna in turn is tried at the places that are best for the current beam, and the beam is solved
    again for each. A change is kept if more devices are selected, or as many with a larger score of the
    weakest. The search ends when no change helps; it starts from evenly spaced antennas and from random ones.

    Parameters
    ----------
    sampled
        Responses at the feeds.
    weights
        phi_k, shape (K,). Default: 1/K.
    budget
        Gamma; or give `snr_db` and `mse_threshold`.
    antennas
        N, per waveguide.
    min_gap_m
        Smallest distance of neighbouring antennas in metres.
    snr_db, mse_threshold
        P0/sigma^2 in dB and eps, instead of `budget`.
    method
        Selection method.
    starts
        Number of layouts that are improved, the first with even spacing.
    seed
        Seed of the random layouts and of the selection method.

    Returns
    -------
    PlacedAntennas
        The places and the selection.
    """
    gap = checks.at_least("min_gap_m", min_gap_m, 0.0)
    count = checks.whole("antennas", antennas, 1)
    rng = stream(checks.whole("seed", seed, 0), Purpose.GEOMETRY)

    def solve(indices: Index) -> Selection:
        return select(
            sampled.channels_at(indices),
            weights,
            budget,
            method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            seed=seed,
        )

    best: tuple[Index, Selection] | None = None
    for start in range(checks.whole("starts", starts, 1)):
        indices = _start(sampled.places_m, count, gap, None if start == 0 else rng)
        found = _improve(sampled, indices, gap, solve)
        if best is None or rank(found[1].scores) > rank(best[1].scores):
            best = found
    assert best is not None
    return PlacedAntennas(best[0], np.take_along_axis(sampled.places_m, best[0], axis=1), best[1])


def _start(places: Real, count: int, gap: float, rng: np.random.Generator | None) -> Index:
    """Places near evenly spaced or random positions, with the gap kept."""
    chosen = np.empty((len(places), count), dtype=np.int64)
    for m, row in enumerate(places):
        wanted = (np.arange(count) + 0.5) / count if rng is None else np.sort(rng.random(count))
        targets = row[0] + wanted * (row[-1] - row[0])
        # The last places that leave room for the antennas to the right, from right to left.
        latest = np.empty(count, dtype=np.int64)
        limit = np.inf
        for n in reversed(range(count)):
            free = np.flatnonzero(row <= limit)
            if not free.size:
                raise InvalidInput(
                    f"antennas = {count}: the places of waveguide {m} do not hold that many with "
                    f"min_gap_m = {gap:g}"
                )
            latest[n] = free[-1]
            limit = min(row[latest[n]] - gap, np.nextafter(row[latest[n]], -np.inf))
        first = 0
        for n in range(count):
            window = np.arange(first, latest[n] + 1)
            chosen[m, n] = window[np.argmin(np.abs(row[window] - targets[n]))]
            later = np.flatnonzero((row >= row[chosen[m, n]] + gap) & (row > row[chosen[m, n]]))
            first = int(later[0]) if later.size else len(row)
    return chosen


def _improve(
    sampled: SampledResponse, indices: Index, gap: float, solve: Callable[[Index], Selection]
) -> tuple[Index, Selection]:
    """Exchange places until no exchange helps."""
    current = solve(indices)
    antennas = indices.shape[1]
    improved = True
    while improved:
        improved = False
        for m in range(len(indices)):
            for n in range(antennas):
                row = sampled.places_m[m]
                others = np.delete(indices[m], n)
                distances = np.abs(row[:, None] - row[others])
                allowed = np.flatnonzero(((distances >= gap) & (distances > 0.0)).all(axis=1))
                change = sampled.response[m, allowed] - sampled.response[m, indices[m, n]]
                beam = np.conj(current.beam)
                signal = beam @ current.channels + beam[m] * change / np.sqrt(antennas)
                scores = current.budget * np.abs(signal) ** 2 / current.weights**2
                promise = np.minimum(scores, 1.0).sum(axis=1)  # devices, or parts of them below the threshold
                for place in allowed[np.argsort(-promise, kind="stable")[:TRIED]]:
                    trial = indices.copy()
                    trial[m, n] = place
                    trial[m].sort()
                    if not sampled.channels_at(trial).any(axis=0).all():
                        continue  # a device is not received at all
                    solved = solve(trial)
                    if rank(solved.scores) > rank(current.scores):
                        indices, current, improved = trial, solved, True
                        break
    return indices, current
