"""A random beam, the baseline of every selection method.

For a uniform unit beam in C^M, |h^H m|^2/||h||^2 follows a Beta(1, M-1) distribution, so that
device k passes with probability (1 - 1/||h_k||^2)^(M-1) where ||h_k|| >= 1, and never otherwise.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core.registry import Report
from airpass.core.types import Complex
from airpass.selection.base import BeamSearch, SelectionMethod, random_beams


def expected_count(effective: Complex) -> float:
    """Mean number of devices that pass."""
    size = effective.shape[0]
    strength = np.sum(np.abs(effective) ** 2, axis=0)
    able = strength >= 1.0
    return float(np.sum((1.0 - 1.0 / strength[able]) ** (size - 1)))


@dataclass(frozen=True)
class Random(SelectionMethod):
    """Random unit beam (baseline)."""

    name = "random"

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """One uniform unit beam."""
        return BeamSearch(beam=random_beams(1, effective.shape[0], rng)[0])
