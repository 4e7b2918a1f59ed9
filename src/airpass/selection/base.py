"""What a selection method is: a search for a beam, given effective channels.

Who is selected then follows from the beam by eq. (29), in one place, for every method.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airpass.optim.types import Complex


@dataclass(frozen=True, eq=False)
class BeamSearch:
    """What a method found. `work` counts what it did (iterations, solves), for diagnosis."""

    beam: Complex  # unit norm, shape (M,)
    status: str  # "done", or what went wrong in words
    work: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectionMethod:
    """A named method. `search(effective, options, rng)` gets the columns sqrt(Gamma) g_k/phi_k."""

    name: str
    summary: str
    options: type
    search: Callable[[Complex, Any, np.random.Generator], BeamSearch]
