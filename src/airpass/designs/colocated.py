"""Co-located arrays, the conventional receivers of the paper's comparison.

On a co-located array the dominant eigenvector, the only start of HRMC in the paper, favours a few
strong devices, and HRMC often stays there: on 100 antennas it can select fewer devices
than on a subset of ten antennas, although the optimum cannot be lower. The default is therefore 16
starts, so that the baseline is not limited by its start (measurements in docs/science/baselines.md). With
`hrmc+` instead of HRMC the large array selects many more devices. `mimo-m-plus` and `mimo-mn-plus` are
the baselines for `airpass-plus`.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from airpass import aircomp
from airpass.channel.colocated import SHAPES
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report
from airpass.core.types import Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Start, Step
from airpass.kernels.clock import now
from airpass.optim.ranking import rank
from airpass.scenario import Receiver, Scenario
from airpass.selection.base import SelectionMethod
from airpass.selection.hrmc import Hrmc
from airpass.selection.hrmc_plus import HrmcPlus


@dataclass(frozen=True)
class ArrayDesign(DesignMethod):
    """Selection for fixed antennas with a receive chain per antenna."""

    uses_priorities = True

    selection: SelectionMethod = Hrmc(starts=16)  # of devices and beam

    @abstractmethod
    def positions(self, scenario: Scenario) -> Real:
        """Antennas, [x, y, z] in metres, shape (antennas, 3)."""

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Select devices for the array's channels."""
        if start is not None:
            raise InvalidInput(f"start_layout: {self.name} has no antennas that move")
        began = now()
        array = scenario.array_at(self.positions(scenario))
        channels = array.channels()
        effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
        rng = stream(seed, Purpose.SELECTION, 0)
        found = self.selection.find(effective, scenario.priorities, rng, report)
        count, weakest = rank(aircomp.scores(found.beam, effective))
        step = Step(0, count, weakest, now() - began, True)
        on_step(step)
        return DesignSearch(
            beam=found.beam,
            channels=channels,
            layout=None,
            array=np.asarray(array.positions),
            trace=(step,),
            status=found.status,
            work=found.work,
        )


@dataclass(frozen=True)
class ColocatedDesign(ArrayDesign):
    """Selection on a half-wavelength array at the midpoint of the structure.

    The paper gives the spacing and the midpoint; the axis is not from the paper.
    """

    axis: str = "x"  # of a line: x along the waveguides, y across, z upright; of a plane: xy, xz, yz

    def __post_init__(self) -> None:
        checks.one_of("axis", self.axis, SHAPES)

    @abstractmethod
    def antennas(self, receiver: Receiver) -> int:
        """Number of antennas of the array that replaces a receiver."""

    def positions(self, scenario: Scenario) -> Real:
        """A line or a near-square plane."""
        return scenario.colocated(self.antennas(scenario.receiver), self.axis).positions


@dataclass(frozen=True)
class MimoM(ColocatedDesign):
    """Co-located array of M antennas, with hrmc."""

    name = "mimo-m"

    def antennas(self, receiver: Receiver) -> int:
        """One per waveguide."""
        return receiver.waveguides


@dataclass(frozen=True)
class MimoMn(ColocatedDesign):
    """Co-located array of M x N antennas, each with a receive chain, with hrmc."""

    name = "mimo-mn"

    def antennas(self, receiver: Receiver) -> int:
        """One per antenna of the waveguides."""
        return receiver.waveguides * receiver.antennas


@dataclass(frozen=True)
class MimoMPlus(MimoM):
    """Co-located array of M antennas, with hrmc+."""

    name = "mimo-m-plus"

    selection: SelectionMethod = HrmcPlus()  # of devices and beam


@dataclass(frozen=True)
class MimoMnPlus(MimoMn):
    """Co-located array of M x N antennas, each with a receive chain, with hrmc+."""

    name = "mimo-mn-plus"

    selection: SelectionMethod = HrmcPlus()  # of devices and beam
