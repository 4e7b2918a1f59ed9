"""The guided tour: the paper's small set-up by every fast scheme, with a report to open."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jinja2

from airpass import __version__
from airpass.designing import Design, design
from airpass.documents import design_document, encode
from airpass.figures.room import draw_design
from airpass.figures.style import render
from airpass.files import write_atomically
from airpass.scenario import Scenario

# What is compared: the paper's method, and its selection alone on antennas that stay put.
SCHEMES: tuple[tuple[str, dict[str, str]], ...] = (
    ("hrmc+fixed", {"selection": "hrmc", "geometry": "fixed"}),
    ("airpass", {"method": "airpass"}),
)
WHAT = {
    "hrmc+fixed": "devices and beam by HRMC, antennas evenly spaced",
    "airpass": "devices and beam by HRMC, antennas moved by HAGO (the paper's method)",
}


@dataclass(frozen=True)
class Row:
    """One line of the demo's table, as text."""

    scheme: str
    selected: str
    weakest_score: str
    mse: str
    seconds: str


def run(out: Path, seed: int, report: Callable[[str], None]) -> list[Row]:
    """Design by every scheme; write JSON, pictures and report.html under `out`."""
    scenario = Scenario.paper(seed=seed)
    design(scenario, options={"max_iterations": 1})  # compile before anything is timed
    results: list[tuple[str, Design]] = []
    for name, how in SCHEMES:
        report(name)
        results.append((name, design(scenario, seed=seed, **how)))  # type: ignore[arg-type]
    pictures = []
    for name, result in results:
        picture = render(draw_design(result), "png")
        write_atomically(out / f"{name}.png", picture)
        write_atomically(out / f"{name}.json", encode(design_document(result)))
        pictures.append((name, base64.b64encode(picture).decode()))
    rows = [_row(name, result) for name, result in results]
    page = _TEMPLATE.render(rows=rows, pictures=pictures, what=WHAT, seed=seed, version=__version__)
    write_atomically(out / "report.html", page.encode())
    return rows


def _row(name: str, result: Design) -> Row:
    count = result.selected_count
    return Row(
        scheme=name,
        selected=f"{count} of {result.scenario.devices.count}",
        weakest_score=f"{result.selection.weakest_score:.3f}",
        mse=f"{result.mse:.4f}" if count else "-",
        seconds=f"{result.seconds:.3f}",
    )


_TEMPLATE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>airpass demo</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
  table { border-collapse: collapse; margin: 1rem 0; }
  th, td { padding: .3rem .9rem; border-bottom: 1px solid #ccc; text-align: right; }
  th:first-child, td:first-child, td:last-child, th:last-child { text-align: left; }
  td:first-child { white-space: nowrap; }
  img { width: 100%; height: auto; }
  footer { color: #666; margin-top: 2rem; font-size: .9rem; }
</style>
<h1>airpass demo</h1>
<p>Ten devices, five waveguides with five antennas each, 10 dB: the set-up of the paper's figures 2
and 3. A device takes part if its score is at least 1, that is, if the aggregation error stays under
the limit of 0.03 with it.</p>
<table>
<thead><tr><th>scheme</th><th>selected</th><th>weakest score</th><th>MSE</th><th>seconds</th>
<th>what it does</th></tr></thead>
<tbody>
{% for row in rows %}<tr><td>{{ row.scheme }}</td><td>{{ row.selected }}</td><td>{{ row.weakest_score }}</td>
<td>{{ row.mse }}</td><td>{{ row.seconds }}</td><td>{{ what[row.scheme] }}</td></tr>
{% endfor %}</tbody></table>
{% for name, picture in pictures %}<h2>{{ name }}</h2>
<img alt="Room from above with the layout of {{ name }}, and the score of every device"
src="data:image/png;base64,{{ picture }}">
{% endfor %}<footer>airpass {{ version }}, seed {{ seed }}</footer>
</html>
"""
)
