"""A layout on fresh draws of the devices, next to other receivers on the same draws."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Real
from airpass.designs.api import Design
from airpass.designs.api import design as run_design
from airpass.designs.lasting import FRESH, SEARCH, AirpassLasting, drawn, selected_counts
from airpass.selection.hrmc_plus import HrmcPlus

THIS, EVEN, RANDOM, EACH = "this layout", "even spacing", "random layouts", "designed for each draw"
ARRAYS = ("distributed-mn", "mimo-mn-plus", "mimo-m-plus")


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of selected devices over some draws."""

    counts: Real  # shape (draws,)

    @property
    def mean(self) -> float:
        """Mean over the draws."""
        return float(self.counts.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for one draw."""
        size = self.counts.size
        return float(self.counts.std(ddof=1) / np.sqrt(size)) if size > 1 else float("nan")

    def above(self, other: "Counts") -> "Counts":
        """Differences on the same draws."""
        return Counts(self.counts - other.counts)


@dataclass(frozen=True, eq=False)
class FreshDraws:
    """A layout, and other receivers, on draws of the devices that no search has used."""

    draws: int
    seed: int
    searched: Counts | None  # on the draws of the search; None if the method has none
    fresh: Mapping[str, Counts]  # by receiver, all on the same draws

    @property
    def kept_gain(self) -> float:
        """(this layout - even spacing)/(designed for each draw - even spacing); NaN if not measured."""
        if EACH not in self.fresh:
            return float("nan")
        even, here, each = (self.fresh[name].mean for name in (EVEN, THIS, EACH))
        return (here - even) / (each - even) if each > even else float("nan")


def fresh_draws(
    design: Design,
    *,
    draws: int = 32,
    seed: int | None = None,
    compare: bool = True,
    report: Report | None = None,
) -> FreshDraws:
    """Count the devices that a design's layout selects on fresh draws, with a new beam for each.

    Parameters
    ----------
    design
        A design with a layout, for devices that were drawn.
    draws
        Number of fresh draws.
    seed
        Seed of the draws. Default: that of the design. The draws of the search are others even for the same
        seed.
    compare
        Whether to evaluate fixed arrays, and designs by `airpass-plus` (effort fast) for each draw, too.
        They take most of the time.
    report
        Callback for progress messages.

    Returns
    -------
    FreshDraws
        Counts of this layout, of even spacing, of random layouts, another for each draw, and of the rest.
    """
    checks.instance("design", design, Design, "the result of airpass.design")
    design.scenario.require_one_carrier("fresh_draws")
    checks.whole("draws", draws, 1)
    if design.layout is None:
        raise InvalidInput(f"fresh_draws: {design.method.name} has no antennas on waveguides")
    seed = design.seed if seed is None else checks.whole("seed", seed, 0)
    tell = report or discard
    selection = HrmcPlus()
    scenarios = drawn(design.scenario, FRESH, draws, seed)
    searched = None
    with one_blas_thread():
        if isinstance(design.method, AirpassLasting):
            before = drawn(design.scenario, SEARCH, design.method.draws, design.seed)
            selection_then = design.method.selection
            searched = Counts(selected_counts(before, design.layout, selection_then, design.seed, discard))
        fresh: dict[str, Counts] = {}
        for name, layout in ((THIS, design.layout), (EVEN, design.scenario.uniform_layout())):
            tell(f"fresh draws: {name}")
            fresh[name] = Counts(selected_counts(scenarios, layout, selection, seed, discard))
        tell(f"fresh draws: {RANDOM}")
        other = np.empty(draws)
        for index, scenario in enumerate(scenarios):
            layout = scenario.random_layout(stream(seed, Purpose.GEOMETRY, index))
            other[index] = selected_counts([scenario], layout, selection, seed, discard)[0]
        fresh[RANDOM] = Counts(other)
        if compare:
            for name in ARRAYS:
                tell(f"fresh draws: {name}")
                fresh[name] = Counts(
                    np.array([float(run_design(one, name, seed=seed).selected_count) for one in scenarios])
                )
            counts = np.empty(draws)
            for index, scenario in enumerate(scenarios):
                tell(f"fresh draws: {EACH}, {index + 1} of {draws}")
                each = run_design(scenario, "airpass-plus", options={"effort": "fast"}, seed=seed)
                counts[index] = each.selected_count
            fresh[EACH] = Counts(counts)
    return FreshDraws(draws, seed, searched, fresh)
