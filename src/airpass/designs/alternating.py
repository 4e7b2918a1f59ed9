"""Algorithm 3: alternate between device selection and antenna geometry.

`alternation` makes a design of any selection method and any geometry method; AirPASS is
HRMC with HAGO. As selection and geometry each pursue their own objective, a round may lose
devices: the best layout visited is returned (the paper returns the last), by the number of
selected devices, then by the weakest score among them. The trace shows every round.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.core import checks
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import lookup
from airpass.core.types import Complex, Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Step
from airpass.geometry import methods as geometry_methods
from airpass.geometry.base import GeometryMethod
from airpass.scenario import Scenario
from airpass.selection import methods as selection_methods
from airpass.selection.base import Report, SelectionMethod, rank


@dataclass(frozen=True)
class AlternationOptions:
    """When Algorithm 3 ends; the paper does not say. Measured in docs/tuning.md."""

    max_iterations: int = 40  # rounds of geometry; ours
    patience: int = 10  # rounds without a better design that end it; ours
    tolerance: float = 1e-3  # relative rise of the weakest score that counts as better; ours
    selection: Any = None  # options of the selection method
    geometry: Any = None  # options of the geometry method

    def __post_init__(self) -> None:
        checks.whole("max_iterations", self.max_iterations, 0)
        checks.whole("patience", self.patience, 1)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)


def alternate(
    scenario: Scenario,
    options: AlternationOptions,
    seed: int,
    on_step: OnStep,
    report: Report,
    start: Real | None,
    selection: SelectionMethod,
    geometry: GeometryMethod,
) -> DesignSearch:
    """Algorithm 3 with the given blocks, from `start` or else from the uniform layout."""
    began = time.perf_counter()
    layout = scenario.uniform_layout() if start is None else start  # line 1
    best: tuple[int, float, Real, Complex, Complex] | None = None
    mark = (-1, 0.0)  # count and weakest score that a round has to beat to be progress
    trace: list[Step] = []
    work: dict[str, int] = {}
    remarks: dict[str, int] = {}  # what the blocks said of themselves, and in how many rounds
    stale = 0
    status = "iteration limit"
    for iteration in range(options.max_iterations + 1):  # lines 2-7; the last is lines 8-9
        channels = scenario.uplink.channels(layout)
        effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
        found = selection.search(  # line 4
            effective, options.selection, stream(seed, Purpose.SELECTION, iteration), report
        )
        scores = aircomp.scores(found.beam, effective)
        chosen = aircomp.selected(scores)
        count, weakest = rank(scores)
        better = best is None or (count, weakest) > best[:2]
        if better:
            best = (count, weakest, layout, found.beam, channels)
        step = Step(iteration, count, weakest, time.perf_counter() - began, better)
        trace.append(step)
        on_step(step)
        _add(work, "selection", found.work)
        if found.status != "done":
            text = f"selection: {found.status}"
            remarks[text] = remarks.get(text, 0) + 1

        if count > mark[0] or (count == mark[0] and weakest > mark[1] * (1.0 + options.tolerance)):
            mark = (count, weakest)
            stale = 0
        else:
            stale += 1
        if stale >= options.patience:  # line 7
            status = "converged"
            break
        if iteration == options.max_iterations:
            break
        # With nobody selected, the geometry aims at the device that is nearest to being so.
        targets = chosen if count else scores == scores.max()
        moved = geometry.move(  # line 5
            scenario,
            layout,
            found.beam,
            targets,
            options.geometry,
            stream(seed, Purpose.GEOMETRY, iteration),
        )
        _add(work, "geometry", moved.work)
        if moved.status != "done":
            text = f"geometry: {moved.status}"
            remarks[text] = remarks.get(text, 0) + 1
        if np.array_equal(moved.layout, layout):
            # Nothing moved: a further round could only redraw random starts.
            status = "converged"
            break
        layout = moved.layout
    assert best is not None
    return DesignSearch(
        beam=best[3],
        channels=best[4],
        layout=best[2],
        array=None,
        trace=tuple(trace),
        status="; ".join([status, *(f"in {n} rounds {text}" for text, n in remarks.items())]),
        work=work,
    )


def _add(total: dict[str, int], block: str, work: Any) -> None:
    for name, amount in work.items():
        key = f"{block}_{name}"
        total[key] = total.get(key, 0) + amount


def alternation(selection: str, geometry: str, name: str | None = None, summary: str = "") -> DesignMethod:
    """Algorithm 3 with the named blocks, as a design method."""
    select = lookup("selection", selection, selection_methods())
    arrange = lookup("geometry", geometry, geometry_methods())
    return DesignMethod(
        name=name or f"{selection}+{geometry}",
        summary=summary or f"Algorithm 3 with {selection} and {geometry}",
        options=lambda: AlternationOptions(selection=select.options(), geometry=arrange.options()),
        run=partial(alternate, selection=select, geometry=arrange),
        parts={"selection": selection, "geometry": geometry},
    )


METHODS = (
    alternation("hrmc", "hago", "airpass", "Algorithm 3: hrmc for the devices, hago for the antennas"),
    alternation("sdr-dc", "hago", "airpass-sdr-dc", "Algorithm 3 with sdr-dc in place of hrmc"),
    alternation("mp", "hago", "airpass-mp", "Algorithm 3 with matching pursuit in place of hrmc"),
)
