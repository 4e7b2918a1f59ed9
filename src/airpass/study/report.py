"""Pages in HTML, which need no other file, and in Markdown; verdicts on claims as text and as plain data."""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from airpass import __version__
from airpass.core.display import display_name
from airpass.core.text import printable
from airpass.study.tables import Table
from airpass.study.verdicts import Part, Verdict, multiplicity

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("airpass.study"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=lambda value: printable(value, keep="\n\t") if type(value) is str else value,
)
# Markdown: text of rows and titles is made here or checked by `printable`, and has no markup to escape.
_PLAIN = jinja2.Environment(
    loader=jinja2.PackageLoader("airpass.study"),
    autoescape=False,  # noqa: S701
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def typeset(text: str) -> str:
    """Numbers with a minus sign, and with ± between spaces at which a line does not break."""
    return re.sub(r"(?<![\w)])-(?=\d)", "\N{MINUS SIGN}", text).replace(
        " ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    )


_PLAIN.filters |= {
    "display_name": display_name,
    "typeset": typeset,
    "cell": lambda text: typeset(str(text)).replace("|", "\\|"),
}
_TEMPLATES.filters |= {
    "typeset": typeset,
    "png": lambda picture: "data:image/png;base64," + base64.b64encode(picture).decode(),
    "display_name": display_name,
}


@dataclass(frozen=True)
class Section:
    """A picture with its table in a report.

    Parameters
    ----------
    name
        Anchor in the page.
    title
        Heading.
    picture
        PNG; None if there is none.
    table
        Headings and cells; None if there is none.
    about
        How it was made.
    caption
        Text below the picture.
    wide
        Whether the picture is wider than a column of text.
    command
        Command line that made it.
    files
        Files beside the page that belong to the picture.
    claims
        Claims that the picture tests.
    links
        Text and address of links to `files`, see `linked`.
    """

    name: str
    title: str
    picture: bytes | None = field(repr=False)  # PNG
    table: Table | None = field(default=None, repr=False)
    about: Sequence[str] = field(default=(), repr=False)
    caption: str = ""
    wide: bool = False
    command: str = ""
    files: tuple[Path, ...] = ()
    claims: tuple[Verdict, ...] = field(default=(), repr=False)
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def pdf(self) -> str:
        """Address of the picture as PDF, or ""."""
        return next((way for name, way in self.links.items() if name.endswith(".pdf")), "")

    @property
    def png(self) -> str:
        """Address of the picture as PNG, or ""."""
        return next((way for name, way in self.links.items() if name.endswith(".png")), "")

    def linked(self, page: Path) -> "Section":
        """The section with links from a page to those of its files that exist."""
        links = {}
        for path in self.files:
            if path.is_file():
                try:
                    way = Path(os.path.relpath(path, page.parent)).as_posix()
                except ValueError:  # on another drive
                    continue
                links[path.name] = quote(os.fsencode(way))
        return replace(self, links=links)


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


def report(
    sections: Sequence[Section],
    verdicts: Sequence[Verdict],
    scale: str,
    command: str,
    findings: Sequence[str] = (),
    missing: Sequence[str] = (),
    *,
    markdown: bool = False,
) -> bytes:
    """The page of `airpass reproduce`.

    Parameters
    ----------
    sections
        A section per figure, with links from the page.
    verdicts
        Verdicts on the claims.
    scale
        Scale of the rows.
    command
        Command line that writes the page.
    findings
        What came out, in sentences.
    missing
        Names of figures without rows.
    markdown
        Whether the page is in Markdown, with links to the pictures. Otherwise it is in HTML, with the
        pictures inside.

    Returns
    -------
    bytes
        The page.
    """
    anchors = {claim.claim: f"{one.name}-{claim.claim}" for one in reversed(sections) for claim in one.claims}
    values = {
        "sections": sections,
        "verdicts": verdicts,
        "summary": claims_summary(verdicts),
        "scale": scale,
        "command": command,
        "multiplicity": multiplicity(verdicts),
        "findings": findings,
        "missing": missing,
        "anchors": anchors,
    }
    if markdown:
        return _PLAIN.get_template("results.md").render(version=__version__, **values).encode()
    return render_page("report.html", **values)


def claims_summary(verdicts: Sequence[Verdict]) -> dict[str, list[tuple[str, str]]]:
    """Claims by verdict, as the paper ran them: their names, each with its data set if there are several."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in verdicts:
        for part in one.verdict.split("; "):
            data, colon, verdict = part.rpartition(": ")
            found.setdefault(verdict, []).append((one.claim, data if colon else ""))
    order = ("holds", "holds, with ties", "does not hold", "tie", "not decided", "no rows")
    return {verdict: found[verdict] for verdict in sorted(found, key=lambda text: _rank(text, order))}


def _rank(verdict: str, order: Sequence[str]) -> tuple[int, bool]:
    """Place of a verdict among others; interim ones follow."""
    plain = verdict.removesuffix(" (interim)")
    return order.index(plain) if plain in order else len(order), plain != verdict


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
