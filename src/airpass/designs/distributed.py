"""Fixed antennas spread over the structure: the baselines for moving antennas.

Both have the antennas of the uniform layout. `distributed-mn` gives each a receive chain of its own, so
that it has N times as many chains as the pinching-antenna receiver, and no waveguides. `distributed-m`
has the waveguides with one chain each: the pinching-antenna receiver without moving its antennas.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core.types import Real
from airpass.designs.alternating import AlternatingDesign
from airpass.designs.colocated import ArrayDesign
from airpass.geometry.base import GeometryMethod
from airpass.geometry.fixed import Fixed
from airpass.scenario import Scenario
from airpass.selection.base import SelectionMethod
from airpass.selection.hrmc_plus import HrmcPlus


@dataclass(frozen=True)
class DistributedMn(ArrayDesign):
    """M x N antennas at the uniform layout, each with a receive chain, with hrmc+."""

    name = "distributed-mn"

    selection: SelectionMethod = HrmcPlus()  # of devices and beam

    def positions(self, scenario: Scenario) -> Real:
        """The antennas of the uniform layout."""
        layout, receiver = scenario.uniform_layout(), scenario.receiver
        y, z = (np.repeat(values, receiver.antennas) for values in (receiver.waveguide_y, receiver.heights))
        return np.column_stack([layout.ravel(), y, z])


@dataclass(frozen=True)
class DistributedM(AlternatingDesign):
    """M waveguides with antennas at the uniform layout, with hrmc+."""

    name = "distributed-m"

    selection: SelectionMethod = HrmcPlus()  # of devices and beam
    geometry: GeometryMethod = Fixed()  # of the antennas, for a given beam
