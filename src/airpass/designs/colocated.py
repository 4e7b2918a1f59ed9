"""The conventional receivers of the paper's comparison: co-located arrays with HRMC.

On a co-located array the dominant eigenvector, HRMC's one start, points at a few strong devices
and HRMC often stays there: with 100 antennas it can select fewer devices than with ten of them,
which the optimum cannot. So these designs use 16 starts unless told otherwise; a baseline is not
to lose for want of a start (numbers in docs/baselines.md).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from airpass import aircomp, checks
from airpass.channel.colocated import AXES
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Step
from airpass.optim.types import Real
from airpass.randomness import Purpose, stream
from airpass.scenario import Receiver, Scenario
from airpass.selection import hrmc
from airpass.selection.base import Report, rank


@dataclass(frozen=True)
class ColocatedOptions:
    """The paper gives the spacing and the midpoint; the axis is ours."""

    axis: str = "x"  # of the line of antennas: x along the waveguides, y across, z upright
    selection: hrmc.HrmcOptions = field(default_factory=lambda: hrmc.HrmcOptions(starts=16))

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
) -> DesignSearch:
    """HRMC on a half-wavelength line of antennas, each with a receive chain of its own."""
    began = time.perf_counter()
    array = scenario.colocated(antennas(scenario.receiver), options.axis)
    channels = array.channels()
    effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
    found = hrmc.search(effective, options.selection, stream(seed, Purpose.SELECTION, 0), report)
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


METHODS = (
    DesignMethod(
        name="mimo-m",
        summary="co-located array of M antennas, with hrmc",
        options=ColocatedOptions,
        run=partial(run, antennas=lambda receiver: receiver.waveguides),
        parts={"selection": "hrmc"},
    ),
    DesignMethod(
        name="mimo-mn",
        summary="co-located array of M x N antennas, each with a receive chain, with hrmc",
        options=ColocatedOptions,
        run=partial(run, antennas=lambda receiver: receiver.waveguides * receiver.antennas),
        parts={"selection": "hrmc"},
    ),
)
