"""`airpass reproduce` and `airpass sweep`: run trials, then write rows, pictures, provenance and a report."""

import base64
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jinja2

from airpass import __version__
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.figures.style import render
from airpass.study.claims import Rows, Verdict, judge
from airpass.study.figure import PaperFigure, Table
from airpass.study.figure import figures as all_figures
from airpass.study.plots import over_axis, over_rounds
from airpass.study.runner import Backend, Outcome, run_trials
from airpass.study.store import Store
from airpass.study.sweep import Sweep
from airpass.study.tables import by_point
from airpass.study.trial import Row, Trial

RECEIVER = ("waveguides", "antennas")
LIBRARIES = ("numpy", "numba", "scipy", "scs", "torch", "pyarrow")


@dataclass(frozen=True)
class Page:
    """A figure as the report shows it."""

    name: str
    title: str
    picture: bytes  # PNG
    table: Table
    about: Sequence[str]  # how it was made, a line each


def reproduce(
    figures: Sequence[PaperFigure],
    scale: str,
    folder: Callable[[str], Path],
    backend: Backend,
    command: str,
    on_done: Callable[[Trial], None] | None = None,
    also: Path | None = None,
) -> tuple[dict[str, Outcome], list[Verdict]]:
    """Run figures one after the other, each into its folder with a report of its own.

    Rows that are in the folder of another figure, or in `also`, serve where the work is the same.
    """
    outcomes: dict[str, Outcome] = {}
    rows: dict[str, Sequence[Row]] = {}
    pages: list[Page] = []
    for figure in figures:
        out = folder(figure.name)
        trials = figure.trials(scale)
        store = Store(out)
        outcomes[figure.name] = run_trials(trials, store, backend, on_done, _elsewhere(scale, folder, also))
        rows[figure.name] = store.merge(trials)
        if not rows[figure.name]:
            continue
        made = _provenance(
            out, figure.name, scale, command, backend.about, outcomes[figure.name], len(trials)
        )
        page = _page(figure, rows[figure.name], out, about(trials, made))
        pages.append(page)
        verdicts = judge({figure.name: rows[figure.name]})
        write_atomically(out / "report.html", report([page], verdicts, scale, command))
    verdicts = judge(rows)
    if len(pages) > 1:
        write_atomically(folder("all") / "report.html", report(pages, verdicts, scale, command))
    return outcomes, verdicts


def _elsewhere(
    scale: str, folder: Callable[[str], Path], also: Path | None
) -> Callable[[Trial], list[Row] | None]:
    """Rows that another figure has of the same work: figures 2, 6, 7 and 8 have a point in common."""
    known: dict[str, tuple[Store, Trial]] = {}
    for other in all_figures().values():
        for place in {folder(other.name), also} - {None}:
            if place is not None and place.is_dir():
                store = Store(place)
                known |= {trial.work: (store, trial) for trial in other.trials(scale) if store.has(trial)}

    def rows(trial: Trial) -> list[Row] | None:
        found = known.get(trial.work)
        return None if found is None else found[0].read([found[1]])

    return rows


def stored(
    figures: Sequence[PaperFigure], scale: str, folder: Callable[[str], Path], also: Path | None = None
) -> Rows:
    """Rows that are there already, by figure."""
    found = {}
    for figure in figures:
        trials = figure.trials(scale)
        rows = Store(folder(figure.name)).read(trials)
        if not rows and also is not None:
            rows = Store(also).read(trials)
        if rows:
            found[figure.name] = rows
    return found


def run_sweep(
    sweep: Sweep, out: Path, backend: Backend, command: str, on_done: Callable[[Trial], None] | None = None
) -> tuple[Outcome, Table]:
    """A sweep of the user's own, and its table."""
    check_folder(out, sweep.name, "")
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
        _provenance(out, sweep.name, "", command, backend.about, outcome, len(sweep.trials))
    return outcome, table


def _page(figure: PaperFigure, rows: Sequence[Row], out: Path, lines: Sequence[str]) -> Page:
    drawn = figure.draw(rows)
    pictures = {kind: render(drawn, kind) for kind in ("png", "pdf")}
    for kind, content in pictures.items():
        write_atomically(out / f"{figure.name}.{kind}", content)
    return Page(figure.name, figure.title, pictures["png"], figure.tabulate(rows), lines)


def about(trials: Sequence[Trial], made: Mapping[str, Any]) -> list[str]:
    """What was run, on what, and for how long."""
    counts = [sum(trial.scheme == name for trial in trials) for name in {t.scheme for t in trials}]
    few, many = min(counts), max(counts)
    lines = [f"{len(trials)} trials, {few if few == many else f'{few} to {many}'} of a scheme"]
    if failed := len(made["failed"]):
        lines[0] += f"; {failed} failed"
    sizes = {
        (trial.scenario["devices"]["count"], *(trial.scenario["receiver"][name] for name in RECEIVER))
        for trial in trials
    }
    if len(sizes) == 1:
        devices, waveguides, antennas = sizes.pop()
        lines.append(f"{devices} devices, {waveguides} waveguides, {antennas} antennas on each")
    training = trials[0].training
    if training is not None:
        filled = {"dataset": "", **training}
        lines.append("training: " + ", ".join(f"{name} = {value}" for name, value in filled.items()))
    lines.append(
        f"{_duration(made['seconds'])} by {made['workers']} on {made['cores']} cores "
        f"({made['processor']}, {made['memory_gib']} GiB), airpass {made['airpass']}"
    )
    return [*lines, made["command"]]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _processor() -> str:
    """The model of the processor, where the system tells."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for entry in table.read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _memory_gib() -> int | None:
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    known = getattr(os, "sysconf_names", {})
    if not all(name in known for name in names):
        return None
    return round(os.sysconf(names[0]) * os.sysconf(names[1]) / 2**30)


def check_folder(out: Path, name: str, scale: str) -> None:
    """A folder holds one study: rows of another would be put aside, and times mixed."""
    path = out / "provenance.json"
    if not path.exists():
        return
    try:
        found = json.loads(path.read_text())
    except ValueError:
        raise InvalidInput(f"{path}: not JSON; delete it, or give another --out") from None
    held, at = found.get("study", name), found.get("scale", scale)
    if (held, at) != (name, scale):
        raise InvalidInput(
            f"{out}: holds {held}{f' at scale {at}' if at else ''}, not {name}"
            f"{f' at scale {scale}' if scale else ''}: give another --out"
        )


def _provenance(
    out: Path, name: str, scale: str, command: str, workers: str, outcome: Outcome, trials: int
) -> Mapping[str, Any]:
    """Versions, host and time, beside the rows. Times add up over runs that came to an end."""
    path = out / "provenance.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    # What only draws stored rows anew leaves time and machine as they were.
    computed = outcome.done > 0 or not before
    document = {
        "study": name,
        "scale": scale,
        "command": command,
        "airpass": __version__,
        "python": platform.python_version(),
        "libraries": {library: found for library in LIBRARIES if (found := _version(library))},
        "workers": workers,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "trials": trials,
        "failed": {trial.name: why for trial, why in outcome.failures},
        "seconds": round(before.get("seconds", 0.0) + outcome.seconds, 1),
    }
    if not computed:
        document |= before | {"command": command, "trials": trials, "failed": document["failed"]}
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())
    return document


def report(pages: Sequence[Page], verdicts: Sequence[Verdict], scale: str, command: str) -> bytes:
    """One page that needs nothing else."""
    text = _TEMPLATE.render(
        pages=[(page, base64.b64encode(page.picture).decode()) for page in pages],
        verdicts=verdicts,
        scale=scale,
        command=command,
        version=__version__,
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
  img { width: 100%; max-width: 28rem; height: auto; display: block; }
  .verdict { font-weight: 600; white-space: nowrap; }
  td ul { margin: 0; padding: 0; list-style: none; }
  td li { padding-left: 1.2rem; text-indent: -1.2rem; }
  li::before { display: inline-block; width: 1.2rem; text-indent: 0; font-weight: 600; }
  li.holds::before { content: "✓"; color: #0072B2; }
  li.does-not-hold::before { content: "✗"; color: #D55E00; }
  li.not-decided::before { content: "?"; color: #666; }
  .about { color: #555; font-size: .9rem; }
  footer { color: #666; margin-top: 2rem; font-size: .9rem; }
</style>
<h1>AirPASS: reproduction at scale “{{ scale }}”</h1>
{% if verdicts %}<h2>Claims</h2>
<table class="words"><thead>
<tr><th style="width: 30%">claim</th><th>verdict</th><th>measured</th></tr></thead><tbody>
{% for found in verdicts %}<tr><td>{{ found.claim }}: {{ found.text }}</td>
<td class="verdict">{{ found.verdict }}</td>
<td><ul>{% for part in found.parts %}<li class="{{ part.verdict.replace(' ', '-') }}">
{{- part.what }}: {{ part.effect }}</li>
{% endfor %}</ul></td></tr>
{% endfor %}</tbody></table>
<p>✓ holds, ✗ does not hold, ? is not decided. Differences are taken within trials; ± is half of a 95 %
confidence interval; with fewer than three trials nothing is decided. C1+ and so on are the same claims
with AirPASS-plus in the place of AirPASS, and the best design of the larger array as its rival.</p>
{% endif %}
{% for page, picture in pages %}<h2 id="{{ page.name }}">{{ page.name }}: {{ page.title }}</h2>
<img alt="{{ page.title }}" src="data:image/png;base64,{{ picture }}">
<table><thead><tr>{% for head in page.table[0] %}<th>{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for line in page.table[1] %}<tr>{% for cell in line %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
<p class="about">{% for text in page.about %}{% if loop.last %}<code>{{ text }}</code>{% else %}{{ text }}<br>
{% endif %}{% endfor %}</p>
{% endfor %}<footer>airpass {{ version }}, <code>{{ command }}</code></footer>
</html>
"""
)
