"""Line charts as plain data. This module does not import matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from airpass.core.display import display_name
from airpass.core.text import LONGEST_NAME, one_line

Limits = tuple[float, float]

WIDTHS_IN = {"ieee-1": 3.5, "ieee-2": 7.16}  # one and two columns of IEEE journals
FONTS = ("sans", "times")
MODES = ("screen", "paper")
LOGS = ("", "x", "y", "xy")
INSIDE = ("best", "upper left", "upper right", "lower left", "lower right", "center left", "center right")
LEGENDS = ("below", "ends", "none", *INSIDE)


@dataclass(frozen=True)
class Line:
    """Means over trials along an axis.

    Parameters
    ----------
    key
        Name that decides the look, see `airpass.core.display`.
    label
        Text of the legend.
    x, value
        Points of the line.
    half_width
        Half the width of the 95 % confidence interval at each point; NaN if unknown.
    count
        Number of trials at each point.
    """

    key: str
    label: str
    x: Sequence[float]
    value: Sequence[float]
    half_width: Sequence[float]
    count: Sequence[int]


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Parameters
    ----------
    title
        Title above the axes; in a paper, text beside the letter below them.
    xlabel, ylabel
        Labels of the axes.
    lines
        The lines, in the order in which they get their looks.
    ticks
        Positions and texts of ticks on x; None leaves them to matplotlib.
    percent
        Whether values are percentages.
    x_limits, y_limits
        Ends of the axes; None for ends that follow from the means.
    """

    title: str
    xlabel: str
    lines: Sequence[Line]
    ticks: tuple[Sequence[float], Sequence[str]] | None = None
    ylabel: str = ""
    percent: bool = False
    x_limits: Limits | None = None
    y_limits: Limits | None = None


@dataclass(frozen=True)
class Format:
    """Size, fonts and legend of a chart.

    Parameters
    ----------
    width_in, height_in
        Size in inches. None: 3.5 per column of panels; as high as panels and legend need.
    font
        "sans", or "times" for a serif like Times, also in formulas.
    mode
        "screen", or "paper": no titles, panels marked (a), (b) below, all text in 8 points, and no line
        with the number of trials, which belongs in the caption.
    legend
        "below", "ends" for labels beside the ends of lines, "none", or a place inside the axes.
    """

    width_in: float | None = None
    height_in: float | None = None
    font: str = "sans"
    mode: str = "screen"
    legend: str = "below"


@dataclass(frozen=True)
class Chart:
    """Panels below each other, or in rows.

    Parameters
    ----------
    panels
        The panels, from the top, row by row.
    over_rounds
        Whether x counts communication rounds.
    log
        Logarithmic axes: "", "x", "y" or "xy".
    columns
        Number of panels in a row.
    row_legends
        Whether every row has a legend of its own. Otherwise all panels share one.
    order
        Keys of lines in the order of the legend; others follow in the order of `looks`.
    format
        Size, fonts and legend.
    """

    panels: Sequence[Panel]
    over_rounds: bool = False
    log: str = ""
    columns: int = 1
    row_legends: bool = False
    order: Sequence[str] = ()
    format: Format = field(default_factory=Format)

    @property
    def trials(self) -> str:
        """How many trials the means are over; "" if there are none."""
        counts = {count for panel in self.panels for line in panel.lines for count in line.count if count}
        if not counts:
            return ""
        if counts == {1}:
            return "one trial"
        fewest, most = min(counts), max(counts)
        text = f"mean of {most} trials" if fewest == most else f"mean of {fewest} to {most} trials"
        return f"{text} with 95 % confidence interval"


def plain(text: str) -> str:
    """Text of a user, such as a label, as matplotlib needs it: a printable line, and not a formula."""
    return one_line(text, LONGEST_NAME).replace("$", r"\$")


def plain_name(label: str) -> str:
    """Name of a scheme or method in a picture."""
    return plain(display_name(label))
