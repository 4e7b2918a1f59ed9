"""Line charts of a study, with confidence intervals."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from airpass.core.display import Look, looks
from airpass.core.errors import InvalidInput
from airpass.core.types import Real
from airpass.figures.chart import INSIDE, WIDTHS_IN, Chart, Limits, Line, Panel
from airpass.figures.style import FAMILIES, RC, Drawing, any_glyphs, new_figure, plot, render, typeset

FEW_DECADES = 40.0  # ratio of the ends of a logarithmic axis below which 2 and 5 have ticks, too
PANEL_IN = 2.4  # height of a panel
LEGEND_LINE_IN = 0.17  # height of a line of the legend
NOTE_IN = 0.18  # height of the line with the number of trials
MOST_BANDS = 4  # with more lines in a panel, confidence intervals are bars
WIDEST_BAND = 0.3  # so are those that on average take more than this part of the height
REACH = 0.35  # confidence intervals extend the axes by at most this part of the range of the means
LEGEND_MARGIN_PT = 10.0  # left free beside a legend, on both sides together
TITLE_MARGIN_PT = 60.0  # left of a title: ticks and label of the axis
LEAST_POINTS = 2.0  # smallest range of an axis of percentages
COLUMN_GAP = 1.2  # between columns of a legend, in units of the size of its text
LINE_PT = 8.0  # distance between labels at the ends of lines
BAR_PT, BARS_PT = 2.2, 14.0  # largest distance of the bars of two lines, and of all, at a point
LEAST_BAR_PT = 4.0  # shorter bars beside points are left out: half of them would be hidden by a marker
AXES_PT = 72.0 * 0.72 * PANEL_IN  # height of axes, about
NBSP = "\N{NO-BREAK SPACE}"
TOGETHER = re.compile(r" (?==)|(?<==) |(?<=\d) (?=dB\b)")  # spaces at which titles are not wrapped


def draw_chart(chart: Chart) -> Drawing:
    """Draw a chart.

    Parameters
    ----------
    chart
        Panels, lines, labels and size.

    Returns
    -------
    Drawing
        A matplotlib figure.
    """
    rows = [
        chart.panels[first : first + chart.columns] for first in range(0, len(chart.panels), chart.columns)
    ]
    blocks = rows if chart.row_legends else [list(chart.panels)]  # panels that share a legend
    styles = _styles(chart)
    width = chart.format.width_in or WIDTHS_IN["ieee-1"] * chart.columns
    settings = _settings(chart)
    note = chart.trials if chart.format.mode == "screen" else ""
    with mpl.rc_context(settings), any_glyphs():
        heights = [_height(chart, block, width) for block in blocks]
        needed = sum(heights) + (NOTE_IN if note else 0.0)
        figure = new_figure(width, chart.format.height_in or needed, settings)
        ratios = [*heights, *([NOTE_IN] if note else [])]
        parts = figure.subfigures(len(ratios), 1, squeeze=False, height_ratios=ratios)[:, 0]
        first = 0
        for part, block in zip(parts, blocks, strict=False):
            _block(part, chart, block, styles, width, first)
            first += len(block)
        if note:
            parts[-1].text(0.5, 0.55, note, ha="center", va="center", fontsize=6.5, color="#555555")
    return figure


def render_chart(chart: Chart, format_name: str) -> bytes:
    """A chart as a picture. The same chart gives the same bytes."""
    return render(draw_chart(chart), format_name)


def _settings(chart: Chart) -> Any:
    paper = chart.format.mode == "paper"
    sizes = {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 8 if paper else 7}
    return RC | FAMILIES[chart.format.font] | sizes


def _styles(chart: Chart) -> dict[str, Look]:
    """Looks by key, in the order of the legend."""
    found = looks(line.key for panel in chart.panels for line in panel.lines)
    order = [key for key in chart.order if key in found]
    return {key: found[key] for key in (*order, *(key for key in found if key not in order))}


def _legend_columns(chart: Chart, block: Sequence[Panel], width: float) -> int:
    """Largest number of columns of a legend that fit into the width of the figure."""
    size = mpl.rcParams["legend.fontsize"]
    font = FontProperties(size=size)
    texts = {line.key: typeset(line.label) for panel in block for line in panel.lines}
    ordered = [texts[key] for key in _styles(chart) if key in texts]
    # An entry: handle, gap and text, as matplotlib sets them.
    entries = [
        size * (RC["legend.handlelength"] + mpl.rcParams["legend.handletextpad"])
        + text_to_path.get_text_width_height_descent(text, font, ismath="$" in text)[0]
        for text in ordered
    ]
    for columns in range(len(entries), 1, -1):
        rows = -(-len(entries) // columns)
        if columns > 1 and -(-len(entries) // (columns - 1)) == rows:
            continue  # as many rows with fewer columns
        # Columns are filled one after the other; the first ones are longer if the entries do not divide.
        extra = len(entries) - (len(entries) // columns) * columns
        lengths = [len(entries) // columns + (place < extra) for place in range(columns)]
        ends = np.cumsum(lengths)
        widest = [max(entries[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
        if sum(widest) + COLUMN_GAP * size * (columns - 1) <= 72.0 * width - LEGEND_MARGIN_PT:
            return columns
    return 1


def _height(chart: Chart, block: Sequence[Panel], width: float) -> float:
    """Height of panels that share a legend, with the legend, in inches."""
    entries = len({line.key for panel in block for line in panel.lines})
    legend = 0.0
    if chart.format.legend == "below":
        legend = 0.15 + LEGEND_LINE_IN * -(-entries // _legend_columns(chart, block, width))
    letters = 0.15 if chart.format.mode == "paper" and len(chart.panels) > 1 else 0.0
    return (PANEL_IN + letters) * -(-len(block) // chart.columns) + legend


def _block(
    figure: SubFigure, chart: Chart, block: Sequence[Panel], styles: dict[str, Look], width: float, first: int
) -> None:
    """Draw panels that share a legend; `first` is the number of panels before them."""
    handles: dict[str, Line2D] = {}
    grid = figure.subplots(-(-len(block) // chart.columns), chart.columns, squeeze=False).ravel()
    for axes in grid[len(block) :]:
        axes.set_axis_off()
    for place, (axes, panel) in enumerate(zip(grid, block, strict=False)):
        handles |= _panel(axes, chart, panel, styles)
        _name_panel(axes, chart, panel, first + place, width / chart.columns)
    shown = [handles[key] for key in styles if key in handles]
    if not shown:
        return
    if chart.format.legend == "below":
        columns = _legend_columns(chart, block, width)
        figure.legend(handles=shown, loc="outside lower center", ncols=columns, columnspacing=COLUMN_GAP)
    elif chart.format.legend in INSIDE:
        grid[0].legend(
            handles=shown, loc=chart.format.legend, frameon=True, framealpha=0.85, edgecolor="none"
        )


def _wrapped(title: str, width: float) -> str:
    """A title in lines that fit into the width in inches, three at most; one with formulas as it is."""
    if "$" in title:
        return title
    font = FontProperties(size=mpl.rcParams["axes.titlesize"])
    lines = []
    for line in title.splitlines():
        length = text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]
        letters = max(8, int(len(line) * (72.0 * width - TITLE_MARGIN_PT) / max(length, 1.0)))
        lines += [one.replace(NBSP, " ") for one in textwrap.wrap(TOGETHER.sub(NBSP, line), letters)]
    return "\n".join(lines[:3]) + ("..." if len(lines) > 3 else "")


def _name_panel(axes: Axes, chart: Chart, panel: Panel, number: int, width: float) -> None:
    """The title of a panel, or in a paper the letter below it; `width` is that of the panel in inches."""
    axes.set(xlabel=typeset(panel.xlabel), ylabel=typeset(panel.ylabel))
    if chart.format.mode == "screen":
        axes.set_title(_wrapped(typeset(panel.title), width))
    elif len(chart.panels) > 1:
        letter = chr(ord("a") + number % 26)
        axes.set_xlabel(typeset(f"{panel.xlabel}\n({letter}) {panel.title}".rstrip()))


def _panel(axes: Axes, chart: Chart, panel: Panel, styles: dict[str, Look]) -> dict[str, Line2D]:
    """Draw a panel; its lines by key."""
    if not panel.lines:
        axes.text(0.5, 0.5, "no values", ha="center", va="center", color="#555555")
        axes.set(xticks=[], yticks=[])
        return {}
    lines = sorted(panel.lines, key=lambda line: list(styles).index(line.key))
    handles = {}
    for place, line in enumerate(lines):
        spread = (place, len(lines)) if chart.over_rounds else ()
        handles[line.key] = plot(axes, styles[line.key], line.x, line.value, typeset(line.label), *spread)
    axes.grid(True)
    axes.set(xscale="log" if "x" in chart.log else "linear", yscale="log" if "y" in chart.log else "linear")
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name in chart.log:
            if name == "y" or not chart.over_rounds:  # round 0 is left out
                _check_positive(name, panel)
            axis.set_minor_locator(NullLocator())
    if panel.ticks is not None:
        positions, texts = panel.ticks
        axes.set_xticks(positions, [typeset(text) for text in texts])
    elif chart.over_rounds and "x" not in chart.log:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 2.5, 5, 10]))
    elif "x" not in chart.log and all(float(at).is_integer() for line in lines for at in line.x):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    if chart.over_rounds and "x" not in chart.log:
        axes.set_xlim(left=0)
    if "y" not in chart.log:  # no ticks at 2.5 and 7.5 devices
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axes.set_xlim(*(panel.x_limits or axes.get_xlim()))  # what is drawn from here on does not move them
    axes.set_ylim(*(panel.y_limits or _limits(chart, panel)))
    for name, axis, (low, high) in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        if name in chart.log and panel.ticks is None and high < FEW_DECADES * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if len(lines) <= MOST_BANDS and all(_taken(axes, line) <= WIDEST_BAND for line in lines):
        for line in lines:
            _band(axes, styles[line.key], line)
    elif chart.over_rounds:
        _end_bars(axes, styles, lines, panel.x_limits is None)
    else:
        step = min(BAR_PT, BARS_PT / (len(lines) - 1)) if len(lines) > 1 else 0.0
        for place, line in enumerate(lines):
            offset = step * (place - (len(lines) - 1) / 2.0)
            _bars(axes, styles[line.key].colour, line, offset, LEAST_BAR_PT)
    if chart.format.legend == "ends":
        _label_ends(axes, styles, lines)
    return handles


def _check_positive(name: str, panel: Panel) -> None:
    """Refuse a logarithmic axis for values that it cannot show."""
    values = [value for line in panel.lines for value in (line.x if name == "x" else line.value)]
    if min((value for value in values if np.isfinite(value)), default=1.0) <= 0.0:
        what = panel.xlabel if name == "x" else panel.ylabel
        raise InvalidInput(f'figure.log = "{name}": {what} has values <= 0; use a linear axis')


def _limits(chart: Chart, panel: Panel) -> Limits:
    """Ends of the vertical axis, from the means; confidence intervals extend them a little at most."""
    means, ends = [], []
    for line in panel.lines:
        skip = max(1, len(line.value) // 8) if chart.over_rounds and panel.percent else 0
        value, half = np.array(line.value, dtype=float), np.array(line.half_width, dtype=float)
        means += value[skip:].tolist()
        ends += [*(value - half)[skip:], *(value + half)[skip:]]
    if chart.over_rounds and not panel.percent:  # one round with a large loss does not hide the others
        late = [
            v for line in panel.lines for v in (line.value[0], *line.value[max(1, len(line.value) // 8) :])
        ]
        largest = 1.5 * max((v for v in late if np.isfinite(v)), default=np.inf)
        means = [value for value in means if value <= largest]
    known = [value for value in means if np.isfinite(value) and (value > 0.0 or "y" not in chart.log)]
    if not known:
        return (0.1, 1.0) if "y" in chart.log else (0.0, 1.0)
    low, high = min(known), max(known)
    if chart.over_rounds and panel.percent:
        high = max([high, *(line.value[0] for line in panel.lines if np.isfinite(line.value[0]))])
    if "y" in chart.log:
        return low / 1.6, high * 1.6
    span = (high - low) or 0.1 * abs(high) or 1.0
    reached = [value for value in ends if np.isfinite(value)]
    least = max(low - REACH * span, min([low, *reached]))
    most = min(high + REACH * span, max([high, *reached]))
    margin = 0.05 * (most - least or span)
    bottom, top = least - margin, most + margin
    if panel.percent and top - bottom < LEAST_POINTS:  # differences of an answer or two are not enlarged
        middle = min(max((bottom + top) / 2.0, LEAST_POINTS / 2.0), 101.0 - LEAST_POINTS / 2.0)
        return middle - LEAST_POINTS / 2.0, middle + LEAST_POINTS / 2.0
    if low >= 0.0 and bottom < 0.4 * top:
        bottom = 0.0
    return (max(0.0, bottom), min(101.0, top)) if panel.percent else (bottom, top)


def _interval(axes: Axes, line: Line) -> tuple[Real, Real, Real, Real]:
    """Ends of the confidence intervals, and the same within the axes."""
    bottom, top = axes.get_ylim()
    value, half = np.array(line.value, dtype=float), np.array(line.half_width, dtype=float)
    low, high = value - half, value + half
    return low, high, np.clip(low, bottom, top), np.clip(high, bottom, top)


def _taken(axes: Axes, line: Line) -> float:
    """Mean part of the height that the confidence intervals of a line take."""
    *_, low, high = _interval(axes, line)
    known = np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return 0.0
    place = axes.transScale + axes.transLimits
    x = np.array(line.x, dtype=float)[known]
    ends = [place.transform(np.column_stack([x, end[known]]))[:, 1] for end in (low, high)]
    return float(np.mean(ends[1] - ends[0]))


def _band(axes: Axes, look: Look, line: Line) -> None:
    """Confidence intervals as a band."""
    *_, low, high = _interval(axes, line)
    if np.isfinite(low).any():
        axes.fill_between(line.x, low, high, color=look.colour, alpha=0.14, linewidth=0, zorder=1.0)


def _bars(axes: Axes, colour: str, line: Line, offset_pt: float, least_pt: float = 0.0) -> None:
    """Confidence intervals as thin bars beside the points, if they are long enough.

    A triangle marks one that is cut at the axes.
    """
    low, high, shown_low, shown_high = _interval(axes, line)
    figure = axes.get_figure(root=True)
    assert figure is not None
    beside = axes.transData + ScaledTranslation(offset_pt / 72.0, 0.0, figure.dpi_scale_trans)
    known = np.isfinite(low) & (shown_low < shown_high)
    if least_pt > 0.0:
        known &= _height_pt(axes, line.x, shown_low, shown_high) >= least_pt
    x = np.array(line.x, dtype=float)
    ends = zip(x[known], shown_low[known], shown_high[known], strict=True)
    bars = [[(at, one), (at, other)] for at, one, other in ends]
    axes.add_collection(
        LineCollection(bars, colors=colour, linewidths=0.8, transform=beside, zorder=1.5), autolim=False
    )
    for cut, at, triangle in (
        (known & (low < shown_low), shown_low, "v"),
        (known & (high > shown_high), shown_high, "^"),
    ):
        if cut.any():
            axes.scatter(
                x[cut], at[cut], 7.0, color=colour, marker=triangle, linewidth=0, clip_on=False,
                transform=beside, zorder=1.5,
            )  # fmt: skip


def _height_pt(axes: Axes, x: Sequence[float], low: Real, high: Real) -> Real:
    """Lengths of vertical bars in points, about; NaN where an end is."""
    place = axes.transScale + axes.transLimits
    at = np.asarray(x, dtype=float)
    bottom, top = (place.transform(np.column_stack([at, end]))[:, 1] for end in (low, high))
    lengths: Real = AXES_PT * (top - bottom)
    return lengths


def _end_bars(axes: Axes, styles: dict[str, Look], lines: Sequence[Line], widen: bool) -> None:
    """Confidence intervals at the ends of lines as bars, side by side to their right."""
    shown = [line for line in lines if line.count[-1] > 1]
    for place, line in enumerate(shown):
        part = slice(len(line.x) - 1, len(line.x))
        x = [line.x[-1] * (1.03 + 0.022 * place)]
        end = Line(line.key, line.label, x, line.value[part], line.half_width[part], line.count[part])
        _bars(axes, styles[line.key].colour, end, 0.0)
    if shown and widen:
        last = max(line.x[-1] for line in shown)
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= last])  # none among the bars
        axes.set_xlim(right=last * (1.04 + 0.022 * len(shown)))


def _label_ends(axes: Axes, styles: dict[str, Look], lines: Sequence[Line]) -> None:
    """Labels to the right of the ends of lines, moved apart where they would overlap."""
    gap = LINE_PT / AXES_PT
    place_of = axes.transScale + axes.transLimits  # from data to a part of the axes
    ends = [float(place_of.transform((line.x[-1], line.value[-1]))[1]) for line in lines]
    ordered = sorted((float(np.clip(end, 0.0, 1.0)), line.key) for end, line in zip(ends, lines, strict=True))
    heights: list[float] = []
    for end, _ in ordered:  # upwards, each at least a gap above the one before
        heights.append(max(end, heights[-1] + gap if heights else 0.0))
    for place in reversed(range(len(ordered))):  # downwards from the top of the axes
        above = heights[place + 1] - gap if place + 1 < len(ordered) else 1.0
        heights[place] = min(heights[place], above)
    texts = {line.key: typeset(line.label) for line in lines}
    for (_, key), height in zip(ordered, heights, strict=True):
        axes.annotate(
            texts[key],
            (1.02, height),
            xycoords="axes fraction",
            color=styles[key].colour,
            fontsize=7,
            va="center",
            annotation_clip=False,
        )
