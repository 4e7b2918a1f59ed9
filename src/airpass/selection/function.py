"""Functions as selection methods."""

from typing import Any

import numpy as np

from airpass import aircomp
from airpass.core.registry import FunctionMethod, Report
from airpass.core.types import Complex
from airpass.selection.base import BeamSearch, SelectionMethod


class FunctionSelection(FunctionMethod, SelectionMethod):
    """A function (effective, rng) that returns a beam of any norm."""

    arguments = ("effective", "rng")

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Call the function and scale its beam to unit norm."""
        returned: Any = type(self).function(effective, rng, **self.options)
        return BeamSearch(aircomp.checked_beam(returned, len(effective), self.name, unit=False))
