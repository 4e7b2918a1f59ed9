"""Line charts of a study, with confidence intervals."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from airpass.core.display import Look, looks
from airpass.figures.chart import Chart, Line, Panel
from airpass.figures.style import RC, new_figure, plot

COLUMN_IN = 3.5  # width of a column in IEEE journals
PANEL_IN = 2.4  # height of a panel
LEGEND_LINE_IN = 0.17  # height of a line of the legend
BAND = 5  # minimum number of trials for a band of confidence intervals
LINE_PT = 8.0  # distance between labels at the ends of lines


def draw_chart(chart: Chart) -> Figure:
    """Draw a chart at the width of a journal's column per panel in a row.

    Parameters
    ----------
    chart
        Panels, lines and labels.

    Returns
    -------
    Figure
        A matplotlib figure.
    """
    panels, columns = list(chart.panels), chart.columns
    # Panels that share a legend: all, or a row.
    blocks = [panels]
    if columns > 1:
        blocks = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    styles = looks(line.key for panel in panels for line in panel.lines)
    heights = [_height(chart, block) for block in blocks]
    with mpl.rc_context(RC | {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7}):
        figure = new_figure(COLUMN_IN * columns, sum(heights))
        parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, block in zip(parts, blocks, strict=True):
            _block(part, chart, block, styles)
    return figure


def _legend_rows(chart: Chart, block: Sequence[Panel]) -> int:
    keys = {line.key for panel in block for line in panel.lines}
    return -(-len(keys) // (2 * chart.columns))


def _height(chart: Chart, block: Sequence[Panel]) -> float:
    """Height of panels that share a legend, with the legend, in inches."""
    legend = 0.0 if chart.label_ends else 0.15 + LEGEND_LINE_IN * _legend_rows(chart, block)
    return PANEL_IN * -(-len(block) // chart.columns) + legend


def _block(figure: SubFigure, chart: Chart, block: Sequence[Panel], styles: dict[str, Look]) -> None:
    """Draw panels that share a legend."""
    handles: dict[str, Line2D] = {}
    grid = figure.subplots(-(-len(block) // chart.columns), chart.columns, squeeze=False).ravel()
    for axes, panel in zip(grid, block, strict=True):
        handles |= _panel(axes, chart, panel, styles)
    if handles and not chart.label_ends:
        shown = [handles[key] for key in styles if key in handles]
        figure.legend(handles=shown, loc="outside lower center", ncols=2 * chart.columns)


def _panel(axes: Axes, chart: Chart, panel: Panel, styles: dict[str, Look]) -> dict[str, Line2D]:
    """Draw a panel; its lines by key."""
    lines = sorted(panel.lines, key=lambda line: list(styles).index(line.key))
    handles = {}
    for place, line in enumerate(lines):
        spread = (place, len(lines)) if chart.over_rounds else ()
        handles[line.key] = plot(axes, styles[line.key], line.x, line.value, line.label, *spread)
    axes.set(xlabel=panel.xlabel, ylabel=chart.ylabel, title=panel.title)
    axes.grid(True)
    if chart.logarithmic:
        axes.set(xscale="log", yscale="log")
        axes.minorticks_off()
    if panel.ticks is not None:
        axes.set_xticks(*panel.ticks)
    if chart.logarithmic:
        return handles
    for line in lines:
        _band(axes, styles[line.key], line)
    if chart.over_rounds:
        axes.set_xlim(left=0)
        _limit(axes, chart.percent, lines)
        _end_bars(axes, styles, lines)
    else:
        axes.set_ylim(bottom=0)
    if chart.label_ends:
        _label_ends(axes, styles, lines)
    return handles


def _band(axes: Axes, look: Look, line: Line) -> None:
    """Confidence intervals as a band, where there are enough trials."""
    value, half = np.array(line.value), np.where(np.array(line.count) >= BAND, line.half_width, np.nan)
    if np.isfinite(half).any():
        axes.fill_between(line.x, value - half, value + half, color=look.colour, alpha=0.12, linewidth=0)


def _few(lines: Sequence[Line]) -> list[Line]:
    """The lines with an interval at their end, but too few trials for a band."""
    return [line for line in lines if 1 < line.count[-1] < BAND]


def _limit(axes: Axes, percent: bool, lines: Sequence[Line]) -> None:
    """Limit y to the values after the first eighth of the rounds, and to the intervals at the end.

    The limit of a loss is at most one and a half times the largest value.
    """
    late = [value for line in lines for value in line.value[max(1, len(line.value) // 8) :]]
    known = [value for value in late if np.isfinite(value)] or [1.0]
    several = [line for line in lines if line.count[-1] > 1]
    ends = [line.value[-1] + sign * line.half_width[-1] for line in several for sign in (-1.0, 1.0)]
    if percent:
        low = 10.0 * np.floor(min([*known, *ends]) / 10.0 - 0.2)
        axes.set_ylim(max(0.0, low), min(100.0, max([*known, *ends]) + 2.0))
    else:
        shown = max([axes.get_ylim()[1], *ends])
        axes.set_ylim(0.0, min(1.03 * shown, 1.5 * max([*known, *(line.value[0] for line in lines)])))


def _end_bars(axes: Axes, styles: dict[str, Look], lines: Sequence[Line]) -> None:
    """Confidence intervals of few trials, side by side to the right of the lines.

    A triangle marks an interval that extends beyond the axes.
    """
    few = _few(lines)
    bottom, top = axes.get_ylim()
    for place, line in enumerate(few):
        x, colour = line.x[-1] * (1.03 + 0.025 * place), styles[line.key].colour
        low, high = line.value[-1] - line.half_width[-1], line.value[-1] + line.half_width[-1]
        axes.plot([x, x], [max(low, bottom), min(high, top)], color=colour, linewidth=1.0)
        for end, cut, triangle in ((low, low < bottom, "v"), (high, high > top, "^")):
            y, marker = min(max(end, bottom), top), triangle if cut else "_"
            axes.plot(x, y, color=colour, marker=marker, markersize=4.0, linestyle="", clip_on=False)
    if few:
        axes.set_xlim(right=max(line.x[-1] for line in few) * (1.035 + 0.025 * len(few)))
        axes.set_xlabel(f"{axes.get_xlabel()} (bars: 95 % confidence, {few[0].count[-1]} trials)")


def _label_ends(axes: Axes, styles: dict[str, Look], lines: Sequence[Line]) -> None:
    """Labels to the right of the ends of lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = LINE_PT * (high - low) / (72.0 * 0.72 * PANEL_IN)  # axes take about that part of a panel
    ordered = sorted(lines, key=lambda line: line.value[-1])
    heights: list[float] = []
    for line in ordered:  # upwards, each at least a gap above the one before
        heights.append(max(line.value[-1], heights[-1] + gap if heights else -np.inf))
    for place in reversed(range(len(ordered))):  # downwards from the top of the axes
        above = heights[place + 1] - gap if place + 1 < len(ordered) else high
        heights[place] = min(heights[place], above)
    for line, height in zip(ordered, heights, strict=True):
        axes.annotate(
            line.label,
            (1.02, height),
            xycoords=("axes fraction", "data"),
            color=styles[line.key].colour,
            fontsize=7,
            va="center",
            annotation_clip=False,
        )
