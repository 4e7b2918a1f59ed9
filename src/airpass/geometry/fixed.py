"""The reference geometry: fixed antennas."""

from dataclasses import dataclass

import numpy as np

from airpass.core.types import Complex, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch, weakest_gain
from airpass.scenario import Scenario


@dataclass(frozen=True)
class Fixed(GeometryMethod):
    """Antennas stay where they are."""

    name = "fixed"

    def move(
        self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: np.random.Generator
    ) -> LayoutSearch:
        """Return the layout unchanged."""
        gain = weakest_gain(scenario, layout, beam, devices)
        return LayoutSearch(layout=layout, objective=(gain, gain))
