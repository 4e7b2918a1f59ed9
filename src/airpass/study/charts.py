"""Charts of a study's rows, as plain data for `airpass.figures.study`."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, isnan, log10
from typing import NamedTuple

from airpass.core.errors import InvalidInput
from airpass.core.fields import named, with_unit
from airpass.figures.chart import Chart, Format, Line, Panel, plain, plain_name
from airpass.study.figure_table import FigureTable
from airpass.study.summary import Mean, means_by_point, means_by_round
from airpass.study.trial import Row

ROUND = "communication round"
MOST_TICKS = 9  # at the points of an axis; more are left to matplotlib
WIDE_IN = 5.0  # from this width on, panels are side by side


class Shown(NamedTuple):
    """How a metric is shown."""

    label: str
    scale: float = 1.0  # from the value in rows to the value shown
    digits: int = 3  # after the decimal point
    most: bool = True  # whether more is better
    significant: bool = False  # whether `digits` counts significant digits instead

    def decimals(self, value: float) -> int:
        """Number of digits after the decimal point of a value in rows."""
        scaled = abs(self.scale * value)
        if not self.significant or scaled == 0.0 or not isfinite(scaled):
            return self.digits
        return max(0, self.digits - 1 - floor(log10(scaled)))


METRICS = {
    "test_accuracy": Shown("test accuracy, %", 100.0, 1),
    "test_loss": Shown("test loss", most=False),
    "train_loss": Shown("training loss", most=False),
    "selected_count": Shown("selected devices", 1.0, 1),
    "aligned_as_designed": Shown("aligned devices, as designed", 1.0, 1),
    "aligned_rescaled": Shown("aligned devices, scaling renewed", 1.0, 1),
    "aligned_re_solved": Shown("aligned devices, beam re-solved", 1.0, 1),
    "weakest_score": Shown("weakest score"),
    "mse": Shown("aggregation error (MSE)", 1.0, 4, most=False),
    "predicted_mse": Shown("predicted MSE", 1.0, 4, most=False),
    "measured_mse": Shown("measured MSE", 1.0, 4, most=False),
    "sdr_db": Shown("signal-to-distortion ratio, dB", 1.0, 1),
    "predicted_sdr_db": Shown("predicted SDR, dB", 1.0, 1),
    "measured_sdr_db": Shown("measured SDR, dB", 1.0, 1),
    "largest_power": Shown("largest transmit power, P₀", most=False),
    "seconds": Shown("time, s", 1.0, 2, most=False, significant=True),
}

ERRORS = ("mse", "predicted_mse", "measured_mse")  # zero for ideal FedAvg


def shown(metric: str) -> Shown:
    """How a metric is shown. Metrics that are not in `METRICS` are named by their key."""
    return METRICS.get(metric) or Shown(metric.replace("_", " "))


def has_values(metric: str, means: Iterable[Mean]) -> bool:
    """Whether a scheme has a metric. Ideal FedAvg has no error: zero, which is infinite in dB."""
    known = [one.value for one in means if isfinite(one.value)]
    return any(value != 0.0 for value in known) if metric in ERRORS else bool(known)


def shown_metric(rows: Sequence[Row]) -> str:
    """The metric that a sweep shows by default.

    Test accuracy, test loss if models were trained for regression, or selected devices without training.
    """
    accuracies = [row.value for row in rows if row.metric == "test_accuracy"]
    if not accuracies:
        return "selected_count"
    return "test_loss" if all(isnan(value) for value in accuracies) else "test_accuracy"


def line(key: str, label: str, x: Sequence[float], means: Sequence[Mean], scale: float = 1.0) -> Line:
    """A line through means."""
    return Line(
        key=key,
        label=label,
        x=x,
        value=[scale * mean.value for mean in means],
        half_width=[scale * mean.half_width for mean in means],
        count=[mean.count for mean in means],
    )


def rounds_chart(
    rows: Sequence[Row], metric: str, panels: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Chart:
    """A metric against communication rounds.

    Parameters
    ----------
    rows
        Rows of a study.
    metric
        A metric of the rows.
    panels
        Titles by point of the axis; with `labels`, by scheme.
    labels
        If given, each panel shows one scheme, with one line per point that has this label.
        Otherwise each panel shows one point, with one line per scheme.

    Returns
    -------
    Chart
        Panels in the order of `panels`.
    """
    means = means_by_round(rows, metric)
    look = shown(metric)
    found: dict[str, list[Line]] = {panel: [] for panel in panels}
    for (scheme, point), rounds in means.items():
        panel, key, label = (
            (point, scheme, plain_name(scheme)) if labels is None else (scheme, point, labels[point])
        )
        if has_values(metric, rounds.values()):
            found[panel].append(line(key, label, list(rounds), list(rounds.values()), look.scale))
    return Chart(
        panels=[
            Panel(panels[key], ROUND, lines, ylabel=look.label, percent=metric == "test_accuracy")
            for key, lines in found.items()
        ],
        over_rounds=True,
        format=Format(legend="below" if labels is None else "ends"),
    )


def _well_apart(values: Sequence[float]) -> bool:
    """Whether ticks at these values leave room for their numbers."""
    gaps = [high - low for low, high in itertools.pairwise(values)]
    return bool(gaps) and len(values) <= MOST_TICKS and min(gaps) >= (values[-1] - values[0]) / MOST_TICKS


def axis_panel(rows: Sequence[Row], metric: str, xlabel: str, title: str) -> Panel:
    """A metric at the last round against the sweep's axis, with one line per scheme."""
    look = shown(metric)
    points = list(dict.fromkeys(row.x_label for row in rows))
    numeric = all(row.x is not None for row in rows)
    place = {
        row.x_label: row.x if numeric and row.x is not None else float(points.index(row.x_label))
        for row in rows
    }
    lines = []
    for scheme, found in means_by_point(rows, metric).items():
        known = sorted(found, key=lambda point: place[point])
        x, means = [place[point] for point in known], [found[point] for point in known]
        if has_values(metric, means):
            lines.append(line(scheme, plain_name(scheme), x, means, look.scale))
    at = sorted(set(place.values()))
    ticks: tuple[list[float], list[str]] | None = None
    if not numeric:
        ticks = ([float(i) for i in range(len(points))], [plain(point) for point in points])
    elif _well_apart(at):
        ticks = (at, [f"{value:g}" for value in at])
    return Panel(title, xlabel, lines, ticks, look.label, percent=metric == "test_accuracy")


@dataclass(frozen=True)
class Shape:
    """What a sweep is, apart from its rows.

    Parameters
    ----------
    name
        Name of the sweep.
    axis
        The field that varies, or "".
    schemes
        Labels of the schemes, in the order of the file.
    points
        `x_label` of the points, in the order of the file.
    """

    name: str
    axis: str
    schemes: tuple[str, ...]
    points: tuple[str, ...]

    def sorted(self, rows: Sequence[Row]) -> list[Row]:
        """Rows in the order of the file: by point, then by scheme. Other schemes and points are left out."""
        points = {point: place for place, point in enumerate(self.points)}
        schemes = {scheme: place for place, scheme in enumerate(self.schemes)}
        chosen = [row for row in rows if row.x_label in points and row.scheme in schemes]
        return sorted(chosen, key=lambda row: (points[row.x_label], schemes[row.scheme]))

    def named_point(self, point: str) -> str:
        """A point of the axis as a title."""
        if not self.axis:
            return ""
        name, unit = named(self.axis)
        value = f"{float(point):g}" if point.replace(".", "", 1).removeprefix("-").isdigit() else plain(point)
        return f"{name}: {value}{f' {unit}' if unit else ''}"


def shape_of(rows: Sequence[Row], axis: str = "") -> Shape:
    """The shape of rows whose study is not known: everything in the order of the rows."""
    points = tuple(dict.fromkeys(row.x_label for row in rows))
    name = rows[0].figure if rows else ""
    return Shape(name, axis, tuple(dict.fromkeys(row.scheme for row in rows)), points)


def sweep_metrics(rows: Sequence[Row], table: FigureTable) -> tuple[str, ...]:
    """The metrics that a sweep shows. Raise InvalidInput if the rows do not have them."""
    held = sorted({row.metric for row in rows})
    for metric in table.metric:
        if rows and metric not in held:
            raise InvalidInput(f"figure.metric = {metric!r}: the rows have {', '.join(held)}")
    return table.metric or (shown_metric(rows),)


def sweep_chart(rows: Sequence[Row], shape: Shape, table: FigureTable) -> Chart | None:
    """The chart of a sweep.

    Parameters
    ----------
    rows
        Rows of the sweep.
    shape
        Axis and order.
    table
        The table [figure].

    Returns
    -------
    Chart or None
        Against the axis; without one, against rounds of training; None if there are neither.
    """
    rows = shape.sorted(rows)
    metrics = sweep_metrics(rows, table)
    if not rows:
        return None
    with_axis = len(shape.points) > 1 or bool(shape.points[0])
    over_rounds = table.over == "rounds" or not with_axis
    trained = {row.metric for row in rows if row.round > 0}
    if over_rounds and not trained >= set(metrics):
        if table.over == "rounds":
            known = ", ".join(sorted(trained)) or "none, as nothing was trained"
            raise InvalidInput(f'figure.over = "rounds": metrics with rounds are {known}')
        return None
    panels: list[Panel] = []
    for place, metric in enumerate(metrics):
        name = plain(shape.name) if table.mode == "screen" else ""
        title = name if table.title is None else table.title
        if over_rounds:
            points = {
                point: shape.named_point(point) if len(shape.points) > 1 else title for point in shape.points
            }
            found = list(rounds_chart(rows, metric, points).panels)
        else:
            name, unit = named(shape.axis) if shape.axis else ("x", "")
            name = name if table.x_label is None else table.x_label
            unit = unit if table.x_unit is None else table.x_unit
            found = [axis_panel(rows, metric, with_unit(name, unit), title if place == 0 else "")]
        panels += [_adjusted(panel, table, place) for panel in found]
    width = table.width or 0.0
    chart = Chart(
        panels=panels,
        over_rounds=over_rounds,
        columns=min(len(panels), 2 if len(panels) != 3 else 3) if width >= WIDE_IN else 1,
    )
    return formatted(chart, replace(table, order=tuple(table.in_order(shape.schemes))))


def _adjusted(panel: Panel, table: FigureTable, place: int) -> Panel:
    """A panel with the table's labels and limits for the metric at `place`."""
    if table.x_label is not None and panel.xlabel == ROUND:
        panel = replace(panel, xlabel=with_unit(table.x_label, table.x_unit or ""))
    if place < len(table.y_label):
        panel = replace(panel, ylabel=table.y_label[place])
    if place < len(table.y_limits):
        panel = replace(panel, y_limits=table.y_limits[place])
    return panel


def formatted(chart: Chart, table: FigureTable) -> Chart:
    """A chart with the size, fonts, labels, order and legend of a table [figure]."""
    panels = [
        replace(
            panel,
            x_limits=table.x_limits or panel.x_limits,
            lines=[replace(one, label=table.labels.get(one.key, one.label)) for one in panel.lines],
        )
        for panel in chart.panels
    ]
    return replace(
        chart,
        panels=panels,
        log=table.log or chart.log,
        order=table.order or chart.order,
        format=table.format(chart.format),
    )
