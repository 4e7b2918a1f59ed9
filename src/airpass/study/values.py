"""Values of a figure's rows, by scheme and point, and the best array at a point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from airpass.core.display import display_name
from airpass.study.paper.plan import PLANS
from airpass.study.paper.schemes import ARRAYS
from airpass.study.summary import last_round
from airpass.study.trial import Row
from airpass.study.verdicts import Values

Rows = Mapping[str, Sequence[Row]]  # by figure


@dataclass(frozen=True)
class Results:
    """The rows of a figure, by metric, scheme and point at the last round."""

    name: str
    rows: Sequence[Row]
    scale: str | None = None

    @cached_property
    def _last(self) -> dict[tuple[str, str, str], dict[int, float]]:
        found: dict[tuple[str, str, str], dict[int, float]] = {}
        for row in last_round(self.rows):
            found.setdefault((row.metric, row.scheme, row.x_label), {})[row.trial] = row.value
        return found

    def values(self, metric: str, scheme: str, point: str = "") -> Values:
        """A metric by trial; empty if there are no rows."""
        return self._last.get((metric, scheme, point), {})

    def places(self, *schemes: str) -> dict[str, float]:
        """Points at which one of the schemes has rows, with their positions, in the order of the axis."""
        places = {row.x_label: row.x or 0.0 for row in self.rows if row.scheme in schemes}
        return dict(sorted(places.items(), key=lambda place: place[1]))

    def declared(self, *schemes: str) -> int | None:
        """Number of trials of the plan that all schemes have."""
        if self.scale is None:
            return None
        return min(PLANS[self.scale][self.name].count(scheme) for scheme in schemes)


def minus(first: Values, second: Values) -> Values:
    """Differences within trials."""
    return {trial: first[trial] - second[trial] for trial in sorted(first.keys() & second.keys())}


class Rival(NamedTuple):
    """A scheme that another one is compared with at a point."""

    name: str
    values: Values


def best_array(
    found: Results, point: str, arrays: Sequence[str] = tuple(ARRAYS), metric: str = "selected_count"
) -> Rival:
    """The array with the most selected devices at a point.

    Parameters
    ----------
    found
        Results of a figure.
    point
        Point of the axis.
    arrays
        Names of the arrays.
    metric
        Number of selected, or of aligned, devices.

    Returns
    -------
    Rival
        The array with the largest mean over the trials that all arrays with rows have, and its numbers
        of devices. Of arrays with the same mean it is the first. The name says so if arrays are missing.
    """
    counts = {name: found.values(metric, name, point) for name in arrays}
    known = {name: values for name, values in counts.items() if values}
    common = set.intersection(*map(set, known.values())) if known else set()
    if not common:
        return Rival("the best array", {})
    best = max(known, key=lambda name: float(np.mean([known[name][trial] for trial in sorted(common)])))
    missing = "" if len(known) == len(arrays) else f", of {len(known)} of {len(arrays)} arrays"
    return Rival(f"the best array ({display_name(best)}{missing})", known[best])
