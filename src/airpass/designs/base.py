"""Interface of design methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from airpass import aircomp, wideband
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Method, RecordedMethod, Report
from airpass.core.types import Complex, Real
from airpass.kernels.clock import now
from airpass.optim.ranking import rank
from airpass.scenario import Scenario
from airpass.selection.base import scaled_priorities
from airpass.selection.wideband import wideband_beams


@dataclass(frozen=True)
class Step:
    """One outer iteration: entry of the trace."""

    iteration: int
    selected_count: int
    weakest_score: float  # among the selected devices; the largest of all if none is selected
    seconds: float  # since the design began
    best: bool  # better than all iterations before
    phase: str = "round"  # name of the phase
    # Antenna positions, shape (M, N), for `on_step`; None for arrays, and in the trace of a design.
    layout: Real | None = field(default=None, compare=False, repr=False)


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
    """Result of a search: a beam, and its layout or co-located array.

    With S subcarriers, the beams have the shape (S, M) and the channels the shape (S, M, K).
    """

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

    def run_wideband(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Design the receiver of a scenario with subcarriers.

        Antennas are those that `run` finds for the centre frequency alone; then beams are found for all
        subcarriers. Methods that move antennas for all subcarriers override this.

        Parameters
        ----------
        scenario, seed, on_step, report, start
            As for `run`.

        Returns
        -------
        DesignSearch
            Beams, shape (S, M), channels, shape (S, M, K), and layout or array.
        """
        began = now()
        named = CentreSteps(on_step)
        centre = scenario.centre
        found = checked_search(self, self.run(centre, seed, named, report, start), centre)
        report("beams of all subcarriers")
        channels = subcarrier_channels(scenario, found.layout, found.array)
        effective = wideband.effective_channels(channels, scenario.weights, scenario.budget)
        rule = scenario.channel.subcarrier_rule
        beams = wideband_beams(
            effective,
            rule,
            scaled_priorities(scenario.priorities),
            stream(seed, Purpose.SELECTION, 0),
            np.tile(found.beam, (len(channels), 1)),
        )
        scores = wideband.combined_scores(wideband.subcarrier_scores(beams, effective), rule)
        step = Step(len(named.steps), *rank(scores), now() - began, True, "subcarriers")
        on_step(step)
        return replace(found, beam=beams, channels=channels, trace=(*named.steps, step))


class CentreSteps:
    """Passes the steps of a search for the centre frequency on, and keeps them; none of them is the best."""

    def __init__(self, on_step: OnStep) -> None:
        self.on_step = on_step
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> None:
        """Keep a step under a name that tells it from those of all subcarriers."""
        self.steps.append(replace(step, phase=f"centre: {step.phase}", best=False))
        self.on_step(self.steps[-1])


def subcarrier_channels(scenario: Scenario, layout: Real | None, array: Real | None) -> Complex:
    """Channels of antennas on all subcarriers.

    Parameters
    ----------
    scenario
        The scenario.
    layout, array
        Antennas on waveguides, shape (M, N), or of an array, shape (antennas, 3); metres. One of them is
        None.

    Returns
    -------
    Complex
        Channels, shape (S, M, K).
    """
    if layout is not None:
        return np.stack([one.uplink.channels(layout) for one in scenario.subcarriers])
    assert array is not None
    return np.stack([one.array_at(array).channels() for one in scenario.subcarriers])


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
    count = scenario.channel.subcarriers
    if count > 1:
        if len(shape) != 3 or shape[::2] != (count, scenario.devices.count) or len(found.beam) != count:
            raise InvalidInput(
                f"{method.name} returned channels of shape {shape}, beams of shape {np.shape(found.beam)}: "
                f"must be ({count}, M, {scenario.devices.count}) and ({count}, M)"
            )
    elif len(shape) != 2 or shape[1] != scenario.devices.count:
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
    for beam in found.beam if count > 1 else (found.beam,):
        aircomp.checked_beam(beam, shape[-2], method.name)
    return found
