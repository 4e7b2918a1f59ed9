"""Interface of geometry methods: move the antennas for a given beam and set of devices."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import Method
from airpass.core.types import Complex, Mask, Real
from airpass.scenario import Scenario


@dataclass(frozen=True, eq=False)
class LayoutSearch:
    """Result of a search. `objective` is the weakest normalised gain before and after."""

    layout: Real  # feasible, shape (M, N), metres
    objective: tuple[float, float]  # min over the devices of |m^H g_k|^2/phi_k^2, eq. (54)
    status: str = "done"  # or a description of the problem
    work: Mapping[str, int] = field(default_factory=dict)


class GeometryMethod(Method, ABC):
    """A method that moves the antennas for a given beam and set of devices."""

    @abstractmethod
    def move(
        self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: np.random.Generator
    ) -> LayoutSearch:
        """Move the antennas.

        Parameters
        ----------
        scenario
            Receiver, radio, devices and weights.
        layout
            Start, feasible, shape (M, N), metres.
        beam
            Unit norm, shape (M,).
        devices
            Devices whose weakest gain is maximised, at least one.
        rng
            The only source of randomness.

        Returns
        -------
        LayoutSearch
            A feasible layout that is no worse than the start.
        """


def anywhere(scenario: Scenario, name: str) -> None:
    """Raise `InvalidInput` if antennas can be at some places only, for methods that need them anywhere.

    Parameters
    ----------
    scenario
        The scenario.
    name
        Name of the method.
    """
    if scenario.candidates is not None:
        raise InvalidInput(
            f"{scenario.candidates.key}: {name} moves antennas continuously; use airpass-plus, elementwise "
            "or fixed"
        )


def any_segment(scenario: Scenario, name: str) -> None:
    """Raise `InvalidInput` if segments are selected, for methods that move antennas from one to another.

    Parameters
    ----------
    scenario
        The scenario.
    name
        Name of the method.
    """
    if scenario.selects_segments:
        raise InvalidInput(
            f"channel.segment_mode = 'selected': {name} moves antennas along whole waveguides; "
            "use airpass-plus, or segment_mode = 'summed'"
        )


def weakest_gain(scenario: Scenario, layout: Real, beam: Complex, devices: Mask) -> float:
    """min over the devices of |m^H g_k(L)|^2/phi_k^2, the objective of eq. (54).

    Parameters
    ----------
    scenario
        Receiver, devices and weights.
    layout
        Antenna positions, shape (M, N), metres.
    beam
        m, shape (M,).
    devices
        Mask of the devices, at least one.

    Returns
    -------
    float
        The weakest normalised gain.
    """
    received = np.conj(beam) @ scenario.uplink.channels(layout)[:, devices]
    return float(np.min(np.abs(received / scenario.weights[devices]) ** 2))


def no_worse(
    scenario: Scenario,
    old: Real,
    new: Real,
    beam: Complex,
    devices: Mask,
    work: Mapping[str, int],
    before: float | None = None,
) -> LayoutSearch:
    """The new layout, or the old one if its weakest gain is larger.

    Parameters
    ----------
    scenario
        Receiver, devices and weights.
    old, new
        Layouts, shape (M, N), metres.
    beam
        m, shape (M,).
    devices
        Mask of the devices.
    work
        Counts for the result.
    before
        Weakest gain of the old layout, if it is known.

    Returns
    -------
    LayoutSearch
        The better layout.
    """
    if before is None:
        before = weakest_gain(scenario, old, beam, devices)
    after = weakest_gain(scenario, new, beam, devices)
    layout, kept = (new, after) if after >= before else (old, before)
    return LayoutSearch(layout=layout, objective=(before, kept), work=work)
