"""A search over candidate places without compiled loops: exchange one place, and solve the beam again."""

import numpy as np

from airpass import SampledResponse, Selection, select
from airpass.core.types import Index

TRIED = 4  # places per antenna for which the beam is solved again


def rank(found: Selection) -> tuple[int, float]:
    inside = found.scores[found.selected]
    return found.selected_count, float(inside.min(initial=np.inf))


def exchange(
    room: SampledResponse, antennas: int, min_gap_m: float, budget: float, starts: int, seed: int = 0
) -> Selection:
    """The best selection with equal weights from random places, each start improved until no exchange helps.

    `room` has responses at the feeds. Responses and channels are summed here, not by the package.
    """
    rng = np.random.default_rng(seed)
    waveguides, _, devices = room.response.shape

    def free(m: int, others: Index) -> Index:
        distances = np.abs(room.places_m[m][:, None] - room.places_m[m][others])
        return np.flatnonzero((distances >= max(min_gap_m - 1e-9, 1e-9)).all(axis=1))

    def solve(indices: Index) -> Selection:
        channels = np.array([room.response[m, row].sum(axis=0) for m, row in enumerate(indices)])
        return select(channels / np.sqrt(antennas), None, budget, "hrmc+")

    best: Selection | None = None
    for _ in range(starts):
        indices = np.empty((waveguides, antennas), np.intp)
        for m in range(waveguides):
            row: list[int] = []
            while len(row) < antennas:
                left = free(m, np.array(row, np.intp))
                row = [*row, int(rng.choice(left))] if left.size else []
            indices[m] = row
        current = solve(indices)
        improved = True
        while improved:
            improved = False
            for m, n in np.ndindex(indices.shape):
                allowed = free(m, np.delete(indices[m], n))
                change = room.response[m, allowed] - room.response[m, indices[m, n]]
                beam = np.conj(current.beam)
                signal = beam @ current.channels + beam[m] * change / np.sqrt(antennas)
                promise = np.minimum(budget * np.abs(signal) ** 2 * devices**2, 1.0).sum(axis=1)
                for place in allowed[np.argsort(-promise, kind="stable")[:TRIED]]:
                    trial = indices.copy()
                    trial[m, n] = place
                    solved = solve(trial)
                    if rank(solved) > rank(current):
                        indices, current, improved = trial, solved, True
                        break
        if best is None or rank(current) > rank(best):
            best = current
    assert best is not None
    return best
