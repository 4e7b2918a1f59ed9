"""Algorithm 3: alternate between device selection and antenna geometry.

AirPASS is HRMC with HAGO; `Alternation` takes any other pair of methods. Selection and geometry
have different objectives, so the number of devices can fall in a round. The best layout visited is
returned (the paper returns the last): the one with the most selected devices, then with the largest
weakest score. The trace has every round.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.core import checks
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report
from airpass.core.types import Complex, Real
from airpass.designs.base import DesignMethod, DesignSearch, OnStep, Start, Step
from airpass.geometry.base import GeometryMethod
from airpass.geometry.hago import Hago
from airpass.kernels.clock import now
from airpass.optim.ranking import rank, value_rank
from airpass.scenario import Scenario
from airpass.selection.base import SelectionMethod, scaled_priorities
from airpass.selection.hrmc import Hrmc
from airpass.selection.matching_pursuit import Mp
from airpass.selection.sdr_dc import SdrDc


def _add(total: dict[str, int], block: str, work: Any) -> None:
    for name, amount in work.items():
        key = f"{block}_{name}"
        total[key] = total.get(key, 0) + amount


@dataclass(frozen=True)
class AlternatingDesign(DesignMethod):
    """Algorithm 3 with any selection method and any geometry method.

    The paper does not say when Algorithm 3 ends; the limits are not from the paper, see
    docs/science/tuning.md.
    """

    uses_priorities = True

    max_iterations: int = 1000  # rounds of geometry; a safety net
    patience: int = 10  # rounds without progress before it stops
    tolerance: float = 1e-3  # relative increase of the weakest score that counts as progress
    selection: SelectionMethod = Hrmc()  # of devices and beam
    geometry: GeometryMethod = Hago()  # of the antennas, for a given beam

    def __post_init__(self) -> None:
        checks.whole("max_iterations", self.max_iterations, 0)
        checks.whole("patience", self.patience, 1)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)

    def run(
        self, scenario: Scenario, seed: int, on_step: OnStep, report: Report, start: Start | None
    ) -> DesignSearch:
        """Algorithm 3 from `start` or else from the uniform layout."""
        began = now()
        given = self.layout_of(start)
        layout = scenario.uniform_layout() if given is None else given  # line 1
        priorities = scaled_priorities(scenario.priorities)
        best: tuple[float, float, Real, Complex, Complex] | None = None
        mark = (-1.0, 0.0)  # value and weakest score to exceed for a round to count as progress
        trace: list[Step] = []
        work: dict[str, int] = {}
        remarks: dict[str, int] = {}  # abnormal statuses of selection and geometry, with counts
        stale = 0
        status = "iteration limit"
        for iteration in range(self.max_iterations + 1):  # lines 2-7; the last is lines 8-9
            channels = scenario.uplink.channels(layout)
            effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
            found = self.selection.find(  # line 4
                effective, priorities, stream(seed, Purpose.SELECTION, iteration), report
            )
            scores = aircomp.scores(found.beam, effective)
            chosen = aircomp.selected(scores)
            value, weakest = value_rank(scores, priorities)
            better = best is None or (value, weakest) > best[:2]
            if better:
                best = (value, weakest, layout, found.beam, channels)
            step = Step(iteration, *rank(scores), now() - began, better, layout=layout)
            trace.append(step)
            on_step(step)
            _add(work, "selection", found.work)
            if found.status != "done":
                text = f"selection: {found.status}"
                remarks[text] = remarks.get(text, 0) + 1

            if value > mark[0] or (value == mark[0] and weakest > mark[1] * (1.0 + self.tolerance)):
                mark = (value, weakest)
                stale = 0
            else:
                stale += 1
            if stale >= self.patience:  # line 7
                status = "converged"
                break
            if iteration == self.max_iterations:
                break
            # If no device is selected, optimise for the one with the largest score.
            wanted = np.where(priorities > 0.0, scores, 0.0)
            targets = chosen & (priorities > 0.0) if value > 0.0 else wanted == wanted.max()
            moved = self.geometry.move(  # line 5
                scenario,
                layout,
                found.beam,
                targets,
                stream(seed, Purpose.GEOMETRY, iteration),
            )
            _add(work, "geometry", moved.work)
            if moved.status != "done":
                text = f"geometry: {moved.status}"
                remarks[text] = remarks.get(text, 0) + 1
            if np.array_equal(moved.layout, layout):
                # No antenna moved: a further round would only draw other random starts.
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


@dataclass(frozen=True)
class Alternation(AlternatingDesign):
    """Algorithm 3 with selection and geometry chosen by the user."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """Names of selection and geometry."""
        return f"{self.selection.name}+{self.geometry.name}"


@dataclass(frozen=True)
class Airpass(AlternatingDesign):
    """Algorithm 3: hrmc for the devices, hago for the antennas."""

    name = "airpass"


@dataclass(frozen=True)
class AirpassSdrDc(AlternatingDesign):
    """Algorithm 3 with sdr-dc in place of hrmc."""

    name = "airpass-sdr-dc"

    selection: SelectionMethod = SdrDc()  # of devices and beam


@dataclass(frozen=True)
class AirpassMp(AlternatingDesign):
    """Algorithm 3 with matching pursuit in place of hrmc."""

    name = "airpass-mp"

    selection: SelectionMethod = Mp()  # of devices and beam
