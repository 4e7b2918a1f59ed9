"""HTML pages that need no other file, and the verdicts on claims as text and as plain data."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import jinja2

from airpass import __version__
from airpass.core.display import display_name
from airpass.study.claims import Verdict
from airpass.study.tables import Table

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
    return render_page("report.html", sections=sections, verdicts=verdicts, scale=scale, command=command)


def claims_text(verdicts: Sequence[Verdict]) -> str:
    """The verdicts for a terminal."""
    lines = []
    for found in verdicts:
        lines.append(f"{found.claim}  {found.verdict.upper()}: {found.text}")
        lines += [f"    {part.verdict:14} {part.what}: {part.effect}" for part in found.parts]
    return "\n".join(lines)


def summary(verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    """The verdicts as plain data."""
    return {
        found.claim: {
            "text": found.text,
            "verdict": found.verdict,
            "parts": [asdict(part) for part in found.parts],
        }
        for found in verdicts
    }
