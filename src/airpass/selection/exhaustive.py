"""Every subset of devices, largest first: the reference for small K.

A subset is feasible if some beam gives all its devices a score of at least one. For two devices
the best beam has a closed form, which rules out most subsets; for the others the weakest score
is maximised from several starts. The search over subsets is exhaustive; the search over beams is a
multi-start local search, reliable for about a dozen devices.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.registry import Report
from airpass.core.types import Complex, Flag, Real
from airpass.kernels.interrupts import run
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Softmin
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector, random_beams

MOST_DEVICES = 12
TEMPERATURES = np.array([0.3, 0.03, 0.003])


@kernel
def pair_margin(first: Complex, second: Complex) -> float:
    """max over unit m of min(|h_1^H m|^2, |h_2^H m|^2).

    With a = ||h_1||^2 <= b = ||h_2||^2 and c = |h_1^H h_2|: if c >= a, the beam matched to h_1
    gives h_2 a larger score, and the maximum is a. Otherwise the best beam gives both the same
    score, (a b - c^2)/(a + b - 2 c).
    """
    a = float(np.sum(np.abs(first) ** 2))
    b = float(np.sum(np.abs(second) ** 2))
    c = float(np.abs(np.sum(first.conjugate() * second)))
    if c >= min(a, b):
        return min(a, b)
    return (a * b - c * c) / (a + b - 2.0 * c)


@kernel
def best_beam(
    columns_re: Real, columns_im: Real, starts: Complex, iterations: int, stop: Flag
) -> tuple[Complex, float]:
    """The beam with the largest weakest score over all columns, and that score."""
    limits = cg.Limits(3e-2, iterations, 1e-9)
    best = starts[0].copy()
    margin = -1.0
    for s in range(starts.shape[0]):
        beam = starts[s].copy()
        for temperature in TEMPERATURES:
            beam = cg.minimise(columns_re, columns_im, Softmin(temperature), beam, limits, stop).point
        weakest = np.min(projections.squares(columns_re, columns_im, beam))
        if weakest > margin:
            best = beam
            margin = weakest
        if stop[0] != 0:
            break
    return best, margin


def _clashes(effective: Complex, able: list[int]) -> set[tuple[int, int]]:
    """Pairs of devices that cannot be selected together."""
    columns = [np.ascontiguousarray(effective[:, k]) for k in range(effective.shape[1])]
    return {(i, j) for i, j in combinations(able, 2) if pair_margin(columns[i], columns[j]) < 1.0}


@dataclass(frozen=True)
class Exhaustive(SelectionMethod):
    """Every subset of devices, largest first; up to 12 devices."""

    name = "exhaustive"

    starts: int = 24  # random starts for each subset, in addition to its dominant eigenvector
    iterations: int = 200  # conjugate-gradient iterations at each of three temperatures

    def __post_init__(self) -> None:
        checks.whole("starts", self.starts, 0)
        checks.whole("iterations", self.iterations, 1)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """The largest feasible subset; among those of equal size, the one with the largest weakest score."""
        able, beams = self._able(effective, np.ones(effective.shape[1])), self._beams(effective, rng)
        groups = (combinations(able, size) for size in range(len(able), 0, -1))
        return self._first_feasible(effective, groups, able, beams, report)

    def prioritised(
        self, effective: Complex, priorities: Real, rng: np.random.Generator, report: Report
    ) -> BeamSearch:
        """The feasible subset of the largest value; among equals, the one with the largest weakest score."""
        able, beams = self._able(effective, priorities), self._beams(effective, rng)
        values: dict[float, list[tuple[int, ...]]] = {}
        for size in range(len(able), 0, -1):
            for subset in combinations(able, size):
                values.setdefault(float(priorities[list(subset)].sum()), []).append(subset)
        groups = (values[value] for value in sorted(values, reverse=True))
        return self._first_feasible(effective, groups, able, beams, report)

    def _able(self, effective: Complex, priorities: Real) -> list[int]:
        """Devices that count and that some beam selects."""
        count = priorities.size
        if count > MOST_DEVICES:
            raise InvalidInput(f"method = 'exhaustive' with {count} devices: takes at most {MOST_DEVICES}")
        lengths = np.linalg.norm(effective, axis=0)
        return [k for k in range(count) if lengths[k] ** 2 >= 1.0 and priorities[k] > 0.0]

    def _beams(self, effective: Complex, rng: np.random.Generator) -> Complex:
        """Random starts."""
        memory.require(64.0 * self.starts * len(effective), "random starts", "starts")
        return random_beams(self.starts, len(effective), rng)

    def _work(self, chosen: Complex) -> float:
        """Operations for a subset, at most."""
        return (1 + self.starts) * TEMPERATURES.size * self.iterations * cg.operations(*chosen.shape)

    def _first_feasible(
        self,
        effective: Complex,
        groups: Iterable[Iterable[tuple[int, ...]]],
        able: list[int],
        beams: Complex,
        report: Report,
    ) -> BeamSearch:
        """The subset with the largest weakest score of the first group that has a feasible one."""
        if not able:
            strongest = effective[:, np.linalg.norm(effective, axis=0).argmax()]
            return BeamSearch(beam=strongest / np.linalg.norm(strongest), work={"subsets": 0})
        clash = _clashes(effective, able)
        tried = 0
        for group in groups:
            best: tuple[float, Complex] | None = None
            for subset in group:
                if any(pair in clash for pair in combinations(subset, 2)):
                    continue
                if tried % 100 == 0:
                    report(f"subsets of {len(subset)}")
                tried += 1
                chosen = np.ascontiguousarray(effective[:, list(subset)])
                starts = np.vstack([dominant_eigenvector(chosen)[None, :], beams])
                beam, margin = run(
                    best_beam, *projections.split(chosen), starts, self.iterations, work=self._work(chosen)
                )
                if margin >= 1.0 and (best is None or margin > best[0]):
                    best = (margin, beam)
            if best is not None:
                return BeamSearch(beam=best[1], work={"subsets": tried})
        raise AssertionError("a device that is feasible alone is a feasible subset")
