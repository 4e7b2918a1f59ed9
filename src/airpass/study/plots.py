"""The pictures of a study: lines over rounds or over a sweep's axis, with confidence bands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airpass.figures.style import LINES, RC, new_figure
from airpass.study.summary import Mean, means_by_point, means_by_round
from airpass.study.trial import Row

COLUMN_IN = 3.5  # width of a column in IEEE journals
BAND = 5  # trials from which on lines have a band of confidence
PANEL_IN = 2.5  # height of a panel,
PANEL_AXES_IN = 1.8  # and of its axes, about
# One look for a scheme in every figure.
LOOKS: dict[str, tuple[str, str, str]] = {
    "fedavg": ("#aaaaaa", "-", ""),
    "airpass-plus": LINES[1],
    "airpass": LINES[2],
    "mimo-mn-plus": LINES[0],
    "mimo-mn": LINES[3],
    "mimo-m": LINES[4],
    "airpass-sdr-dc": LINES[5],
    "airpass-mp": LINES[6],
}
NAMES = {
    "fedavg": "FedAvg (ideal)",
    "airpass-plus": "AirPASS-plus",
    "airpass": "AirPASS",
    "mimo-m": "co-located, M",
    "mimo-mn": "co-located, MN",
    "mimo-mn-plus": "co-located, MN, plus",
    "airpass-sdr-dc": "AirPASS-SDR-DC",
    "airpass-mp": "AirPASS-MP",
}
METRICS = {
    "test_accuracy": ("test accuracy, %", 100.0),
    "train_loss": ("training loss", 1.0),
    "selected_count": ("selected devices", 1.0),
}


def look(scheme: str, position: int) -> dict[str, Any]:
    """Colour, dash and marker."""
    colour, dash, marker = LOOKS.get(scheme, LINES[position % len(LINES)])
    style = {"color": colour, "linestyle": dash, "marker": marker, "markersize": 3.5, "linewidth": 1.2}
    if scheme == "fedavg":  # others may lie right on it
        style |= {"linewidth": 4.0}
    return style


def _order(scheme: str) -> int:
    """The same order in every legend, ideal FedAvg first and so below the others."""
    known = list(LOOKS)
    return known.index(scheme) if scheme in known else len(known)


def line(axes: Axes, x: Sequence[float], means: Sequence[Mean], scale: float, **style: Any) -> None:
    """Means with a band of 95 % confidence, where there are trials enough."""
    y = scale * np.array([mean.value for mean in means])
    half = scale * np.array([mean.half_width if mean.count >= BAND else np.nan for mean in means])
    axes.plot(x, y, markevery=max(1, len(x) // 8), **style)
    if np.isfinite(half).any():
        axes.fill_between(x, y - half, y + half, color=style["color"], alpha=0.12, linewidth=0)


@dataclass(frozen=True)
class End:
    """Where a line ends."""

    label: str
    x: float
    mean: Mean
    colour: str


def end_bars(axes: Axes, ends: Sequence[End], scale: float) -> None:
    """Confidence at the end of each line, side by side: bands of few trials would hide everything."""
    few = [end for end in ends if 1 < end.mean.count < BAND]
    for place, end in enumerate(few):
        axes.errorbar(
            end.x * (1.025 + 0.02 * place),
            scale * end.mean.value,
            scale * end.mean.half_width,
            color=end.colour,
            linewidth=1.0,
            capsize=1.5,
            capthick=1.0,
        )
    if few:
        axes.set_xlim(right=max(end.x for end in few) * (1.03 + 0.02 * len(few)))
        axes.set_xlabel(f"{axes.get_xlabel()} (bars: 95 % confidence, {few[0].mean.count} trials)")


def label_ends(axes: Axes, ends: Sequence[End], scale: float) -> None:
    """Names to the right of where lines end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 8.0 * (high - low) / (72.0 * PANEL_AXES_IN)  # a line of text
    ordered = sorted(ends, key=lambda end: end.mean.value)
    heights: list[float] = []
    for end in ordered:  # upwards, each above the one before
        heights.append(max(scale * end.mean.value, heights[-1] + gap if heights else -np.inf))
    for place in reversed(range(len(ordered))):  # and back down from the top of the axes
        above = heights[place + 1] - gap if place + 1 < len(ordered) else high
        heights[place] = min(heights[place], above)
    for end, height in zip(ordered, heights, strict=True):
        where = (end.x * (1.05 + 0.02 * len(ends)), height)
        axes.annotate(end.label, where, color=end.colour, fontsize=7, va="center", annotation_clip=False)


def _limit(axes: Axes, metric: str, values: Sequence[float]) -> None:
    """Leave out the first rounds, where all are as bad, and what no accuracy can be: bands of few trials
    go there."""
    known = [value for value in values if np.isfinite(value)]
    if metric == "train_loss" or not known:
        axes.set_ylim(bottom=0)
    elif metric == "test_accuracy":
        axes.set_ylim(max(0.0, 10.0 * np.floor(min(known) / 10.0 - 0.5)), min(100.0, max(known) + 5.0))


def frame(axes: Axes, xlabel: str, metric: str) -> None:
    """Labels and a quiet grid."""
    axes.set(xlabel=xlabel, ylabel=METRICS[metric][0])
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def legend_below(figure: Figure) -> None:
    """One legend for all panels, below them: lines may leave no room within."""
    named = {
        name: handle
        for axes in figure.axes
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2)


def over_rounds(
    rows: Sequence[Row], metric: str, panels: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Lines against rounds: one panel for each point of the axis with a line a scheme; or, with
    `labels`, one panel for each scheme with a line a point."""
    means = means_by_round(rows, metric)
    scale = METRICS[metric][1]
    with mpl.rc_context(RC | {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7}):
        figure = new_figure(COLUMN_IN, PANEL_IN * len(panels) + (0.5 if labels is None else 0.0))
        for axes, (panel, title) in zip(
            np.atleast_1d(figure.subplots(len(panels), 1)), panels.items(), strict=True
        ):
            ends: list[End] = []
            panel_means: list[list[Mean]] = []
            lines = sorted(means.items(), key=lambda item: _order(item[0][0]))
            for (scheme, point), rounds in lines:
                if panel != (point if labels is None else scheme):
                    continue
                if labels is None:
                    style = look(scheme, len(ends)) | {"label": NAMES.get(scheme, scheme)}
                else:
                    style = look("", len(ends)) | {"label": labels[point]}
                line(axes, list(rounds), list(rounds.values()), scale, **style)
                panel_means.append(list(rounds.values())[max(1, len(rounds) // 8) :])
                last, end = list(rounds.items())[-1]
                ends.append(End(style["label"], float(last), end, style["color"]))
            frame(axes, "communication round", metric)
            axes.set_title(title)
            axes.set_xlim(left=0)
            _limit(axes, metric, [scale * mean.value for m in panel_means for mean in m])
            end_bars(axes, ends, scale)
            if metric == "test_accuracy":  # a loss may be uncertain by many times the others' value
                tops = [scale * (end.mean.value + end.mean.half_width) for end in ends if end.mean.count > 1]
                axes.set_ylim(top=min(100.0, max([axes.get_ylim()[1], *(1.02 * top for top in tops)])))
            if labels is not None:  # short enough to stand beside the lines
                label_ends(axes, ends, scale)
        if labels is None:
            legend_below(figure)
    return figure


def over_axis(rows: Sequence[Row], metric: str, xlabel: str, title: str) -> Figure:
    """Lines against the sweep's axis, one a scheme."""
    means = means_by_point(rows, metric)
    with mpl.rc_context(RC | {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7}):
        figure = new_figure(COLUMN_IN, 3.3)
        axes = figure.add_subplot()
        numeric = all(row.x is not None for row in rows)
        points = list(dict.fromkeys(row.x_label for row in rows))
        ordered = sorted(means.items(), key=lambda item: _order(item[0]))
        for position, (scheme, found) in enumerate(ordered):
            known = [point for point in points if point in found]
            x = [float(point) if numeric else points.index(point) for point in known]
            style = look(scheme, position) | {"label": NAMES.get(scheme, scheme)}
            line(axes, x, [found[point] for point in known], METRICS[metric][1], **style)
        if not numeric:
            axes.set_xticks(range(len(points)), points)
        frame(axes, xlabel, metric)
        axes.set_title(title)
        axes.set_ylim(bottom=0)
        legend_below(figure)
    return figure
