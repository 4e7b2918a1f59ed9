"""Functions as geometry methods."""

from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import FunctionMethod
from airpass.core.types import Complex, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch, no_worse
from airpass.scenario import Scenario


class FunctionGeometry(FunctionMethod, GeometryMethod):
    """A function (scenario, layout, beam, devices, rng) that returns a layout."""

    arguments = ("scenario", "layout", "beam", "devices", "rng")

    def move(
        self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: np.random.Generator
    ) -> LayoutSearch:
        """Call the function; its layout is kept if it is no worse than the given one."""
        returned: Any = type(self).function(scenario, layout, beam, devices, rng, **self.options)
        try:
            found = scenario.checked_layout(returned)
        except InvalidInput as error:
            raise InvalidInput(f"{self.name} returned a wrong layout: {error}") from None
        return no_worse(scenario, layout, found, beam, devices, {})
