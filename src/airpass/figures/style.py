"""Settings of matplotlib shared by all figures, and saving."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from airpass.core.display import Look
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.text import shown

RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,  # enough to tell dashes apart
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}

FORMATS = ("png", "pdf", "svg")
FAMILIES: Any = {
    "sans": {"font.family": ["DejaVu Sans"], "mathtext.fontset": "dejavusans"},
    "times": {"font.family": ["STIXGeneral", "DejaVu Sans"], "mathtext.fontset": "stix"},
}


def typeset(text: str) -> str:
    """Text for a picture: a hyphen before a number becomes a minus sign, as matplotlib has it at ticks."""
    return re.sub(r"(?<![\w\-])-(?=\.?\d)", "\N{MINUS SIGN}", text)


class Drawing(Figure):
    """A figure with the settings that it is drawn with, as ticks get their fonts when it is saved."""

    settings: Any = RC


@contextmanager
def any_glyphs() -> Iterator[None]:
    """No warnings for characters that the font does not have, such as Chinese ones; boxes are drawn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_figure(width_in: float, height_in: float, settings: Any = RC) -> Drawing:
    """An empty figure with constrained layout that needs no display."""
    figure = Drawing(figsize=(width_in, height_in), layout="constrained")
    figure.settings = settings
    return figure


def check_formula(field: str, text: str) -> None:
    """Raise InvalidInput if matplotlib cannot draw the formulas in a text."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"{field} = {shown(text)}: what is between dollar signs is not a formula that matplotlib can draw"
        ) from None


def plot(axes: Axes, look: Look, x: Any, y: Any, label: str, place: int = 0, lines: int = 1) -> Line2D:
    """Draw a line with about eight markers.

    Parameters
    ----------
    axes
        Axes to draw on.
    look
        Colour, dash, marker and width.
    x, y
        Points of the line.
    label
        Text of the legend.
    place, lines
        Position of the line among all `lines` of the axes. Markers of different lines are at
        different points, so that lines that coincide can be seen.

    Returns
    -------
    Line2D
        The line, for a legend.
    """
    step = max(1, len(x) // 8, min(lines, len(x) // 3) if lines > 1 else 1)
    (line,) = axes.plot(
        x,
        y,
        label=label,
        color=look.colour,
        linestyle=look.dash,
        linewidth=look.width,
        marker=look.marker,
        markersize=6.5 if look.marker == "*" else 4.0,
        markerfacecolor=look.colour if look.filled else "white",
        markevery=(place % step, step),
        zorder=2.5 - 0.1 * look.width,  # wide lines are below others
    )
    return line


def checked_format(path: Path) -> str:
    """The picture format of a file name."""
    suffix = path.suffix.lstrip(".").lower()
    if suffix not in FORMATS:
        raise InvalidInput(f"figure = {shown(str(path))}: must end in .{', .'.join(FORMATS)}")
    return suffix


def render(figure: Figure, format_name: str) -> bytes:
    """The picture as bytes. The same figure gives the same PDF, as no date is stored in it."""
    buffer = BytesIO()
    settings = figure.settings if isinstance(figure, Drawing) else RC
    with mpl.rc_context(settings), any_glyphs():
        undated = {"CreationDate": None} if format_name == "pdf" else None
        figure.savefig(buffer, format=format_name, metadata=undated)
    return buffer.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture atomically, in the format of the file's suffix."""
    write_atomically(path, render(figure, checked_format(path)))
