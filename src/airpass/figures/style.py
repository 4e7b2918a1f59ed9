"""One look for every picture: colours that colour-blind readers tell apart, and safe saving."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically

# Okabe & Ito, "Color Universal Design" (2008).
BLUE = "#0072B2"
VERMILLION = "#D55E00"
# Colour, dash and marker together, so that lines differ in print and for every eye.
LINES = (
    ("black", "-", "s"),
    (BLUE, "-", "o"),
    (VERMILLION, "--", "^"),
    ("#009E73", "-.", "D"),
    ("#CC79A7", ":", "v"),
    ("#E69F00", "--", "P"),
    ("#56B4E9", "-.", "X"),
)

RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}

FORMATS = ("png", "pdf", "svg")


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure that lays itself out and needs no display."""
    return Figure(figsize=(width_in, height_in), layout="constrained")


def checked_format(path: Path) -> str:
    """The picture format that a file name asks for."""
    suffix = path.suffix.lstrip(".").lower()
    if suffix not in FORMATS:
        raise InvalidInput(f"figure = {str(path)!r}: must end in .{', .'.join(FORMATS)}")
    return suffix


def render(figure: Figure, format_name: str) -> bytes:
    """The picture as bytes."""
    buffer = BytesIO()
    with mpl.rc_context(RC):
        # Without its date a PDF of the same rows is the same file.
        undated = {"CreationDate": None} if format_name == "pdf" else None
        figure.savefig(buffer, format=format_name, metadata=undated)
    return buffer.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture in one step, in the format that its name asks for."""
    write_atomically(path, render(figure, checked_format(path)))
