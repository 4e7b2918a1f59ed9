"""What a selection method is: a search for a beam, given effective channels.

Who is selected then follows from the beam by eq. (29), in one place, for every method.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airpass.core.types import Complex, Real

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class BeamSearch:
    """What a method found. `work` counts what it did (iterations, solves), for diagnosis."""

    beam: Complex  # unit norm, shape (M,)
    status: str  # "done", or what went wrong in words
    work: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectionMethod:
    """A named method.

    `search(effective, options, rng, report)` gets the columns sqrt(Gamma) g_k/phi_k; a method
    that takes long says where it is through `report`.
    """

    name: str
    summary: str
    options: Callable[[], Any]  # makes the defaults
    search: Callable[[Complex, Any, np.random.Generator, Report], BeamSearch]


def dominant_eigenvector(effective: Complex) -> Complex:
    """Unit eigenvector of sum_k Q_k for its largest eigenvalue, where many methods start."""
    _, vectors = np.linalg.eigh(effective @ effective.conj().T)
    start: Complex = np.ascontiguousarray(vectors[:, -1])
    return start


def random_beams(count: int, dimension: int, rng: np.random.Generator) -> Complex:
    """Unit beams, uniform on the sphere; shape (count, dimension).

    Drawn one after the other, so that more beams begin with the same ones.
    """
    parts = rng.standard_normal((count, 2, dimension))
    beams = parts[:, 0] + 1j * parts[:, 1]
    unit: Complex = beams / np.linalg.norm(beams, axis=1, keepdims=True)
    return unit


def rank(scores: Real) -> tuple[int, float]:
    """Count of feasible devices, then the weakest score among them: larger is better.

    With nobody feasible, the best score of all.
    """
    feasible = scores[scores >= 1.0]
    return (feasible.size, float(feasible.min())) if feasible.size else (0, float(scores.max()))
