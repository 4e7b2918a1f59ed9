"""HTML pages that need no other file, and the verdicts on claims as text and as plain data."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import jinja2

from airpass import __version__
from airpass.core.display import display_name
from airpass.study.tables import Table
from airpass.study.verdicts import Part, Verdict, multiplicity

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("airpass.study"), autoescape=True, undefined=jinja2.StrictUndefined
)
_TEMPLATES.filters |= {
    "png": lambda picture: "data:image/png;base64," + base64.b64encode(picture).decode(),
    "display_name": display_name,
}


@dataclass(frozen=True)
class Section:
    """A figure in the report."""

    name: str
    title: str
    picture: bytes = field(repr=False)  # PNG
    table: Table = field(repr=False)
    about: Sequence[str] = field(repr=False)  # how it was made; the last line is the command
    wide: bool = False  # whether the picture has several columns


def render_page(template: str, **values: Any) -> bytes:
    """An HTML page from a file in `templates/`.

    Parameters
    ----------
    template
        Name of the file.
    **values
        Values of the template's variables.

    Returns
    -------
    bytes
        The page, with style sheet and pictures inside.
    """
    return _TEMPLATES.get_template(template).render(version=__version__, **values).encode()


def report(sections: Sequence[Section], verdicts: Sequence[Verdict], scale: str, command: str) -> bytes:
    """The page of `airpass reproduce`."""
    values = {"sections": sections, "verdicts": verdicts, "scale": scale, "command": command}
    return render_page("report.html", **values, multiplicity=multiplicity(verdicts))


def claims_text(verdicts: Sequence[Verdict]) -> str:
    """The verdicts for a terminal."""
    lines = []
    for found in verdicts:
        lines.append(f"{found.claim}  {found.text}")
        for comparison, verdict in found.by_comparison.items():
            lines.append(f"  {comparison}: {verdict.upper()}")
            lines += [_part_text(part) for part in found.comparisons[comparison]]
    return "\n".join([*lines, multiplicity(verdicts)])


def _part_text(part: Part) -> str:
    data = f", {part.data}" if part.data else ""
    return f"    {part.verdict:14} {part.what}{data}: {part.effect}"


def summary(verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    """The verdicts as plain data."""
    return {
        found.claim: {
            "text": found.text,
            "verdict": found.verdict,
            "comparisons": found.by_comparison,
            "parts": [asdict(part) for part in found.parts],
        }
        for found in verdicts
    }
