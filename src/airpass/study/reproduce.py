"""`airpass reproduce` and `airpass sweep`: run trials, then write rows, pictures, provenance and a report."""

import base64
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2

from airpass import __version__
from airpass.figures.style import render
from airpass.files import write_atomically
from airpass.study.claims import Rows, Verdict, judge
from airpass.study.figure import PaperFigure, Table
from airpass.study.figure import figures as all_figures
from airpass.study.plots import over_axis, over_rounds
from airpass.study.runner import Backend, Outcome, run_trials
from airpass.study.store import Store
from airpass.study.sweep import Sweep
from airpass.study.tables import by_point
from airpass.study.trial import Row, Trial

LIBRARIES = ("numpy", "numba", "scipy", "scs", "pyarrow")


@dataclass(frozen=True)
class Page:
    """A figure as the report shows it."""

    name: str
    title: str
    picture: bytes  # PNG
    table: Table
    trials: int
    seconds: float


def reproduce(
    figures: Sequence[PaperFigure],
    scale: str,
    folder: Callable[[str], Path],
    backend: Backend,
    command: str,
    on_done: Callable[[Trial], None] | None = None,
) -> tuple[dict[str, Outcome], list[Verdict]]:
    """Run figures one after the other, each into its folder with a report of its own."""
    outcomes: dict[str, Outcome] = {}
    rows: dict[str, Sequence[Row]] = {}
    pages: list[Page] = []
    for figure in figures:
        out = folder(figure.name)
        trials = figure.trials(scale)
        store = Store(out)
        outcomes[figure.name] = run_trials(trials, store, backend, on_done, _elsewhere(scale, folder))
        rows[figure.name] = store.merge(trials)
        if not rows[figure.name]:
            continue
        page = _page(figure, rows[figure.name], outcomes[figure.name], out)
        pages.append(page)
        _provenance(out, figure.name, scale, command, outcomes[figure.name], len(trials))
        verdicts = judge({figure.name: rows[figure.name]})
        write_atomically(out / "report.html", report([page], verdicts, scale, command))
    verdicts = judge(rows)
    if len(pages) > 1:
        write_atomically(folder("all") / "report.html", report(pages, verdicts, scale, command))
    return outcomes, verdicts


def _elsewhere(scale: str, folder: Callable[[str], Path]) -> Callable[[Trial], list[Row] | None]:
    """Rows that another figure has of the same work: figures 2, 6, 7 and 8 have a point in common."""
    known: dict[str, tuple[Store, Trial]] = {}
    for other in all_figures().values():
        if not folder(other.name).is_dir():
            continue
        store = Store(folder(other.name))
        known |= {trial.work: (store, trial) for trial in other.trials(scale) if store.has(trial)}

    def rows(trial: Trial) -> list[Row] | None:
        found = known.get(trial.work)
        return None if found is None else found[0].read([found[1]])

    return rows


def stored(figures: Sequence[PaperFigure], scale: str, folder: Callable[[str], Path]) -> Rows:
    """Rows that are there already, by figure."""
    found = {figure.name: Store(folder(figure.name)).read(figure.trials(scale)) for figure in figures}
    return {name: rows for name, rows in found.items() if rows}


def run_sweep(
    sweep: Sweep, out: Path, backend: Backend, command: str, on_done: Callable[[Trial], None] | None = None
) -> tuple[Outcome, Table]:
    """A sweep of the user's own, and its table."""
    store = Store(out)
    outcome = run_trials(sweep.trials, store, backend, on_done)
    rows = store.merge(sweep.trials)
    trained = any(trial.training is not None for trial in sweep.trials)
    metric, scale = ("test_accuracy", 100.0) if trained else ("selected_count", 1.0)
    table = by_point(rows, metric, "", scale)
    if rows:
        if sweep.axis:
            picture = over_axis(rows, metric, sweep.axis, sweep.name)
        elif trained:
            picture = over_rounds(rows, metric, {"": sweep.name})
        else:
            picture = None
        if picture is not None:
            for kind in ("png", "pdf"):
                write_atomically(out / f"{sweep.name}.{kind}", render(picture, kind))
        _provenance(out, sweep.name, "", command, outcome, len(sweep.trials))
    return outcome, table


def _page(figure: PaperFigure, rows: Sequence[Row], outcome: Outcome, out: Path) -> Page:
    drawn = figure.draw(rows)
    pictures = {kind: render(drawn, kind) for kind in ("png", "pdf")}
    for kind, content in pictures.items():
        write_atomically(out / f"{figure.name}.{kind}", content)
    return Page(
        figure.name,
        figure.title,
        pictures["png"],
        figure.tabulate(rows),
        len({row.key for row in rows}),
        outcome.seconds,
    )


def _provenance(out: Path, name: str, scale: str, command: str, outcome: Outcome, trials: int) -> None:
    """Versions, host and time, beside the rows. Times add up over interruptions."""
    path = out / "provenance.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    document = {
        "study": name,
        "scale": scale,
        "command": command,
        "airpass": __version__,
        "python": platform.python_version(),
        "libraries": {library: version(library) for library in LIBRARIES},
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "trials": trials,
        "failed": {trial.name: why for trial, why in outcome.failures},
        "seconds": round(before.get("seconds", 0.0) + outcome.seconds, 1),
    }
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())


def report(pages: Sequence[Page], verdicts: Sequence[Verdict], scale: str, command: str) -> bytes:
    """One page that needs nothing else."""
    text = _TEMPLATE.render(
        pages=[(page, base64.b64encode(page.picture).decode()) for page in pages],
        verdicts=verdicts,
        scale=scale,
        command=command,
        version=__version__,
        cores=os.cpu_count(),
    )
    return text.encode()


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
            "parts": [{"what": p.what, "verdict": p.verdict, "effect": p.effect} for p in found.parts],
        }
        for found in verdicts
    }


_TEMPLATE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>airpass: reproduction</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
  table { border-collapse: collapse; margin: 1rem 0; font-size: .9rem; }
  th, td { padding: .25rem .8rem; border-bottom: 1px solid #ccc; text-align: right; vertical-align: top; }
  th:first-child, td:first-child, .words td, .words th { text-align: left; }
  img { width: 100%; max-width: 34rem; height: auto; display: block; }
  .verdict { font-weight: 600; white-space: nowrap; }
  footer { color: #666; margin-top: 2rem; font-size: .9rem; }
</style>
<h1>AirPASS: reproduction at scale “{{ scale }}”</h1>
{% if verdicts %}<h2>Claims</h2>
<table class="words"><thead><tr><th>claim</th><th>verdict</th><th>measured</th></tr></thead><tbody>
{% for found in verdicts %}<tr><td>{{ found.claim }}: {{ found.text }}</td>
<td class="verdict">{{ found.verdict }}</td>
<td>{% for part in found.parts %}{{ part.what }}: {{ part.effect }}, {{ part.verdict }}<br>
{% endfor %}</td></tr>
{% endfor %}</tbody></table>
<p>Differences are taken within trials; ± is half of a 95 % confidence interval.</p>{% endif %}
{% for page, picture in pages %}<h2 id="{{ page.name }}">{{ page.name }}: {{ page.title }}</h2>
<img alt="{{ page.title }}" src="data:image/png;base64,{{ picture }}">
<table><thead><tr>{% for head in page.table[0] %}<th>{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for line in page.table[1] %}<tr>{% for cell in line %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p>{{ page.trials }} trials.</p>
{% endfor %}<footer>airpass {{ version }}, {{ cores }} cores, <code>{{ command }}</code></footer>
</html>
"""
)
