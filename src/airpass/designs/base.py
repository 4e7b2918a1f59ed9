"""What a design method is, and what it returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airpass.core.types import Complex, Real
from airpass.scenario import Scenario
from airpass.selection.base import Report


@dataclass(frozen=True)
class Step:
    """One outer iteration, as the trace keeps it."""

    iteration: int
    selected_count: int
    weakest_score: float  # among the selected; the best of all if nobody is
    seconds: float  # since the design began
    best: bool  # whether it is better than all before
    phase: str = "round"  # what was done in it


OnStep = Callable[[Step], None]


@dataclass(frozen=True, eq=False)
class DesignSearch:
    """What a method found: a beam, and the layout (or the co-located array) it is for."""

    beam: Complex
    channels: Complex  # of that layout or array, shape (M, K)
    layout: Real | None  # (M, N) positions in metres; None for a co-located array
    array: Real | None  # [x, y, z] in metres of a co-located array's antennas
    trace: tuple[Step, ...]
    status: str
    work: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DesignMethod:
    """A named method.

    `run(scenario, options, seed, on_step, report, start)` calls `on_step` after every outer
    iteration, and tells `report` in words what takes long within one. It may begin from the
    layout `start`, if that is not None.

    `parts` names the blocks it is made of, such as {"selection": "hrmc", "geometry": "hago"}.
    """

    name: str
    summary: str
    options: Callable[[], Any]  # makes the defaults
    run: Callable[[Scenario, Any, int, OnStep, Report, Real | None], DesignSearch]
    parts: Mapping[str, str] = field(default_factory=dict)
