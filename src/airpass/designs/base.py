"""Interface of design methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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

    @abstractmethod
    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Real | None
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
            Layout to start from, shape (M, N); None for the method's own start. A method that
            cannot use one raises `InvalidInput`.

        Returns
        -------
        DesignSearch
            Beam, channels, and layout or array.
        """


@dataclass(frozen=True)
class RecordedDesign(RecordedMethod, DesignMethod):
    """A design method of a stored result that is not registered."""

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Real | None
    ) -> DesignSearch:
        """Refuse to run."""
        raise self.refuse()
