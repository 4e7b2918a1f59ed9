"""Charts of a study's rows, as plain data for `airpass.figures.study`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from airpass.core.display import display_name
from airpass.figures.chart import Chart, Line, Panel
from airpass.study.summary import Mean, means_by_point, means_by_round
from airpass.study.trial import Row


class Shown(NamedTuple):
    """How a metric is shown."""

    label: str
    scale: float  # from the value in rows to the value shown
    digits: int


METRICS = {
    "test_accuracy": Shown("test accuracy, %", 100.0, 1),
    "train_loss": Shown("training loss", 1.0, 3),
    "selected_count": Shown("selected devices", 1.0, 1),
}


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
        A key of `METRICS`.
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
    shown = METRICS[metric]
    found: dict[str, list[Line]] = {panel: [] for panel in panels}
    for (scheme, point), rounds in means.items():
        panel, key, label = (
            (point, scheme, display_name(scheme)) if labels is None else (scheme, point, labels[point])
        )
        found[panel].append(line(key, label, list(rounds), list(rounds.values()), shown.scale))
    return Chart(
        panels=[Panel(panels[key], "communication round", lines) for key, lines in found.items()],
        ylabel=shown.label,
        over_rounds=True,
        percent=metric == "test_accuracy",
        label_ends=labels is not None,
    )


def axis_panel(rows: Sequence[Row], metric: str, xlabel: str, title: str) -> Panel:
    """A metric at the last round against the sweep's axis, with one line per scheme."""
    shown = METRICS[metric]
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
        lines.append(line(scheme, display_name(scheme), x, means, shown.scale))
    return Panel(title, xlabel, lines, None if numeric else (list(range(len(points))), points))


def axis_chart(rows: Sequence[Row], metric: str, xlabel: str, title: str) -> Chart:
    """A chart of one `axis_panel`."""
    return Chart(panels=[axis_panel(rows, metric, xlabel, title)], ylabel=METRICS[metric].label)
