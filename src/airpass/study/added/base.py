"""Base class of the figures that were added: metrics against an axis, with one line per scheme."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airpass.core.display import display_name
from airpass.figures.chart import Chart
from airpass.study.charts import axis_panel, shown
from airpass.study.paper.base import PaperFigure
from airpass.study.paper.schemes import BEST_ARRAY
from airpass.study.summary import means_by_point
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row, Trial

Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Place:
    """A point of an axis.

    Parameters
    ----------
    x
        Position on the axis.
    scenario
        Tables of the scenario, without the seed of the devices.
    methods
        Arguments of `design` by scheme.
    evaluation
        What is done with the designs, see `Trial`.
    """

    x: float
    scenario: Tables
    methods: Mapping[str, dict[str, Any]]
    evaluation: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """`x_label` of the rows."""
        return f"{self.x:g}"


@dataclass(frozen=True, kw_only=True)
class AxisFigure(PaperFigure):
    """Metrics against an axis.

    Parameters
    ----------
    xlabel
        Label of the axis.
    metrics
        A panel for each.
    log
        Logarithmic axes: "", "x", "y" or "xy".
    training
        Options of training by scale; empty if nothing is trained.
    arrays
        Schemes that are drawn as one line: at every point, the one with the largest mean.
    best
        Scheme whose look that line has.
    """

    xlabel: str
    metrics: tuple[str, ...] = ("selected_count",)
    log: str = ""
    training: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    arrays: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    best: str = BEST_ARRAY

    @abstractmethod
    def places(self, scale: str) -> tuple[Place, ...]:
        """The points of a scale."""

    def trials(self, scale: str) -> tuple[Trial, ...]:
        """Every scheme at every point, on the same draws."""
        plan = self.plan(scale)
        return tuple(
            self._trial(scale, place, scheme, number, seed)
            for number, seed in plan.seeds()
            for place in self.places(scale)
            for scheme in place.methods
            if number < plan.count(scheme)
        )

    def _trial(self, scale: str, place: Place, scheme: str, number: int, seed: int) -> Trial:
        devices = {**place.scenario.get("devices", {}), "seed": seed}
        return Trial(
            job="train" if self.training else "design" if place.evaluation is None else "evaluate",
            figure=self.name,
            scheme=scheme,
            x=place.x,
            x_label=place.label,
            trial=number,
            seed=seed,
            scenario={**place.scenario, "devices": devices},
            method=place.methods[scheme],
            training=self.training.get(scale),
            evaluation=place.evaluation,
        )

    def chart(self, rows: Sequence[Row]) -> Chart:
        """A panel per metric."""
        panels = [
            axis_panel(self._with_best(rows, metric), metric, self.xlabel, "") for metric in self.metrics
        ]
        return Chart(panels=panels, columns=min(2, len(panels)), log=self.log)

    def table(self, rows: Sequence[Row]) -> Table:
        """The metrics as numbers; if there are several, the second column says which."""
        shape = f"{self.best}-"
        labels = {
            name: f"{display_name(self.best)} ({name.removeprefix(shape)})"
            for name in self.arrays
            if name.startswith(shape)
        }
        tables = {shown(one).label: by_point(rows, one, labels=labels) for one in self.metrics}
        if len(tables) == 1:
            ((label, (heads, cells)),) = tables.items()
            return [f"{label}; {self.xlabel}:", *heads[1:]], cells
        heads, _ = next(iter(tables.values()))
        lines = [[line[0], label, *line[1:]] for label, (_, cells) in tables.items() for line in cells]
        return [f"{self.xlabel}:", "", *heads[1:]], lines

    def _with_best(self, rows: Sequence[Row], metric: str) -> list[Row]:
        """Rows with the best array at every point in place of all arrays."""
        means = {name: found for name, found in means_by_point(rows, metric).items() if name in self.arrays}
        points = dict.fromkeys(point for found in means.values() for point in found)
        chosen = {
            point: max(
                (name for name in means if point in means[name]), key=lambda name: means[name][point].value
            )
            for point in points
        }
        others = [row for row in rows if row.scheme not in self.arrays]
        best = [replace(row, scheme=self.best) for row in rows if chosen.get(row.x_label) == row.scheme]
        return others + best
