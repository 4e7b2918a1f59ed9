"""Line charts as plain data. This module does not import matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass


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
    """One pair of axes. `ticks` are the positions and texts of ticks on x; None leaves them to matplotlib."""

    title: str
    xlabel: str
    lines: Sequence[Line]
    ticks: tuple[Sequence[float], Sequence[str]] | None = None


@dataclass(frozen=True)
class Chart:
    """Panels below each other, or in rows.

    Parameters
    ----------
    panels
        The panels, from the top, row by row.
    ylabel
        Label of all vertical axes.
    over_rounds
        Whether x counts communication rounds. The uncertainty of few trials is then shown at the end
        of the lines only.
    percent
        Whether values are percentages.
    logarithmic
        Whether both axes are logarithmic.
    label_ends
        Whether labels are written beside the ends of lines instead of in a legend.
    columns
        Number of panels in a row. If there are several, every row has a legend of its own.
    """

    panels: Sequence[Panel]
    ylabel: str
    over_rounds: bool = False
    percent: bool = False
    logarithmic: bool = False
    label_ends: bool = False
    columns: int = 1
