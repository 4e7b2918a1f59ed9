"""Interface of design methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from airpass import aircomp
from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, RecordedMethod, Report
from airpass.core.types import Complex, Real
from airpass.scenario import Scenario


@dataclass(frozen=True)
class Step:
    """One outer iteration: entry of the trace."""

    iteration: int
    selected_count: int
    weakest_score: float  # among the selected devices; the largest of all if none is selected
    seconds: float  # since the design began
    best: bool  # better than all iterations before
    phase: str = "round"  # name of the phase


OnStep = Callable[[Step], None]


def discard_step(step: Step) -> None:
    """Discard a step."""


@dataclass(frozen=True, eq=False)
class Start:
    """A design to start from."""

    layout: Real  # positions in metres, shape (M, N)
    beam: Complex | None  # of unit norm, shape (M,); None if only a layout is given


@dataclass(frozen=True, eq=False)
class DesignSearch:
    """Result of a search: a beam, and its layout or co-located array."""

    beam: Complex
    channels: Complex  # of that layout or array, shape (M, K)
    layout: Real | None  # (M, N) positions in metres; None for a co-located array
    array: Real | None  # [x, y, z] in metres of a co-located array's antennas
    trace: tuple[Step, ...]
    status: str
    work: Mapping[str, int] = field(default_factory=dict)


class DesignMethod(Method, ABC):
    """A method that designs a whole receiver. Fields may hold nested methods."""

    uses_start_beam: ClassVar[bool] = False  # whether `run` can start from a beam
    # Whether `run` maximises the sum of the scenario's priorities. If not, `design` refuses unequal ones.
    uses_priorities: ClassVar[bool] = False

    def layout_of(self, start: Start | None) -> Real | None:
        """The layout to start from, for methods that cannot use a beam."""
        if start is not None and start.beam is not None:
            raise InvalidInput(f"start_beam: {self.name} cannot use it; airpass-plus can")
        return None if start is None else start.layout

    @abstractmethod
    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Design the receiver of a scenario.

        Parameters
        ----------
        scenario
            Receiver, radio, devices and weights.
        seed
            Seed of everything random.
        on_step
            Callback after every outer iteration.
        report
            Callback for progress messages within an iteration.
        start
            Layout, and perhaps beam, to start from; None for the method's own start. A method that
            cannot use one of them raises `InvalidInput`.

        Returns
        -------
        DesignSearch
            Beam, channels, and layout or array.
        """


@dataclass(frozen=True)
class RecordedDesign(RecordedMethod, DesignMethod):
    """A design method of a stored result that is not registered."""

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Refuse to run."""
        raise self.refuse()


def checked_search(method: DesignMethod, found: DesignSearch, scenario: Scenario) -> DesignSearch:
    """The result of a method's run; `InvalidInput` is raised if it is not a beam of unit norm for a layout.

    Parameters
    ----------
    method
        The method.
    found
        What it returned.
    scenario
        What it was called with.

    Returns
    -------
    DesignSearch
        The same object.
    """
    if not isinstance(found, DesignSearch):
        raise InvalidInput(f"{method.name}: run returned {type(found).__name__}: must be a DesignSearch")
    shape = np.shape(found.channels)
    if len(shape) != 2 or shape[1] != scenario.devices.count:
        raise InvalidInput(
            f"{method.name} returned channels of shape {shape}: must be (M, {scenario.devices.count}), "
            "a row per receive chain, a column per device"
        )
    if (found.layout is None) == (found.array is None):
        raise InvalidInput(f"{method.name}: must return a layout or an array, and None for the other")
    if found.layout is not None:
        try:
            scenario.checked_layout(found.layout)
        except InvalidInput as error:
            raise InvalidInput(f"{method.name} returned a wrong layout: {error}") from None
    aircomp.checked_beam(found.beam, shape[0], method.name)
    return found
