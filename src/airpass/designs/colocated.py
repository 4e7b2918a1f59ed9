"""The conventional receivers of the paper's comparison: co-located arrays.

On a co-located array the dominant eigenvector, HRMC's one start, points at a few strong devices
and HRMC often stays there: with 100 antennas it can select fewer devices than with ten of them,
which the optimum cannot. So these designs use 16 starts unless told otherwise; a baseline is not
to lose for want of a start (numbers in docs/baselines.md). With `hrmc+` in place of HRMC the large
array selects far more still; `mimo-m-plus` and `mimo-mn-plus` are what `airpass-plus` is to be
measured against.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.channel.colocated import AXES
from airpass.core import checks
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Step
from airpass.scenario import Receiver, Scenario
from airpass.selection import hrmc, hrmc_plus
from airpass.selection.base import Report, SelectionMethod, rank


@dataclass(frozen=True)
class ColocatedOptions:
    """The paper gives the spacing and the midpoint; the axis is ours."""

    axis: str = "x"  # of the line of antennas: x along the waveguides, y across, z upright
    selection: Any = None  # options of the selection method

    def __post_init__(self) -> None:
        checks.one_of("axis", self.axis, AXES)


def run(
    scenario: Scenario,
    options: ColocatedOptions,
    seed: int,
    on_step: OnStep,
    report: Report,
    start: Real | None,
    antennas: Callable[[Receiver], int],
    selection: SelectionMethod,
) -> DesignSearch:
    """Selection on a half-wavelength line of antennas, each with a receive chain of its own."""
    began = time.perf_counter()
    array = scenario.colocated(antennas(scenario.receiver), options.axis)
    channels = array.channels()
    effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
    found = selection.search(effective, options.selection, stream(seed, Purpose.SELECTION, 0), report)
    count, weakest = rank(aircomp.scores(found.beam, effective))
    step = Step(0, count, weakest, time.perf_counter() - began, True)
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


def _per_waveguide(receiver: Receiver) -> int:
    return receiver.waveguides


def _per_antenna(receiver: Receiver) -> int:
    return receiver.waveguides * receiver.antennas


def _design(
    name: str, summary: str, antennas: Callable[[Receiver], int], selection: SelectionMethod, options: Any
) -> DesignMethod:
    return DesignMethod(
        name=name,
        summary=f"co-located array of {summary}, with {selection.name}",
        options=lambda: ColocatedOptions(selection=options),
        run=partial(run, antennas=antennas, selection=selection),
        parts={"selection": selection.name},
    )


_HRMC = (hrmc.METHOD, hrmc.HrmcOptions(starts=16))
_HRMC_PLUS = (hrmc_plus.METHOD, hrmc_plus.HrmcPlusOptions())
METHODS = (
    _design("mimo-m", "M antennas", _per_waveguide, *_HRMC),
    _design("mimo-mn", "M x N antennas, each with a receive chain", _per_antenna, *_HRMC),
    _design("mimo-m-plus", "M antennas", _per_waveguide, *_HRMC_PLUS),
    _design("mimo-mn-plus", "M x N antennas, each with a receive chain", _per_antenna, *_HRMC_PLUS),
)
