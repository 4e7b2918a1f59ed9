"""The reference geometry: antennas stay where they are."""

from dataclasses import dataclass

import numpy as np

from airpass.core.types import Complex, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch, weakest_gain
from airpass.scenario import Scenario


@dataclass(frozen=True)
class FixedOptions:
    """Nothing to set."""


def move(
    scenario: Scenario,
    layout: Real,
    beam: Complex,
    devices: Mask,
    options: FixedOptions,
    rng: np.random.Generator,
) -> LayoutSearch:
    """The layout as it was."""
    gain = weakest_gain(scenario, layout, beam, devices)
    return LayoutSearch(layout=layout, objective=(gain, gain), status="done")


METHOD = GeometryMethod(
    name="fixed", summary="antennas stay at the uniform placement", options=FixedOptions, move=move
)
