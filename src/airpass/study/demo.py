"""The guided tour: the paper's small set-up by every fast scheme, designed and trained, with a report."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from airpass import __version__
from airpass.core.files import write_atomically
from airpass.designs.api import Design, design
from airpass.documents import design_document, encode
from airpass.figures.room import draw_design
from airpass.figures.style import render
from airpass.figures.training import draw_training
from airpass.learning import FEDAVG
from airpass.learning.compare import OnEnd, OnSchemeRound, OnStart, compare
from airpass.learning.training import TrainingRun, TrainOptions, prepare
from airpass.scenario import Scenario

DATASET = "mnist-mini"
ROUNDS = 100
SCHEMES = {
    FEDAVG: "ideal: everyone takes part, nothing is lost on the air",
    "airpass-plus": "devices, beam and antennas in one search",
    "airpass": "devices and beam by HRMC, antennas moved by HAGO (the paper's method)",
    "mimo-m": "a co-located array of M = 5 antennas, with HRMC",
    "mimo-mn": "a co-located array of M x N = 25 antennas, each with a receive chain, with HRMC",
}


@dataclass(frozen=True)
class Row:
    """One line of the demo's table, as text."""

    scheme: str
    selected: str
    weakest_score: str
    mse: str
    accuracy: str
    what: str


def run(
    out: Path,
    seed: int,
    rounds: int,
    on_start: OnStart | None = None,
    on_round: OnSchemeRound | None = None,
    on_end: OnEnd | None = None,
) -> list[Row]:
    """Design and train every scheme; write JSON, pictures and report.html under `out`."""
    options = TrainOptions(rounds=rounds, evaluate_every=max(1, rounds // 20))
    scenario, data = prepare(Scenario.paper(seed=seed), DATASET, options, seed)
    results = {name: design(scenario, name, seed=seed) for name in SCHEMES if name != FEDAVG}
    pictures = []
    for name, result in results.items():
        picture = render(draw_design(result), "png")
        write_atomically(out / f"{name}.png", picture)
        write_atomically(out / f"{name}.json", encode(design_document(result)))
        pictures.append((name, _inline(picture)))
    runs = compare(
        scenario,
        [results.get(name, FEDAVG) for name in SCHEMES],
        data,
        options,
        seed,
        folder=out / "training",
        on_start=on_start,
        on_round=on_round,
        on_end=on_end,
    )
    rows = [_row(done, results.get(done.scheme)) for done in runs]
    page = _TEMPLATE.render(
        rows=rows,
        curves=_inline(render(draw_training(runs), "png")),
        pictures=pictures,
        rounds=_rounds(runs),
        seed=seed,
        version=__version__,
    )
    write_atomically(out / "report.html", page.encode())
    return rows


def _rounds(runs: Sequence[TrainingRun]) -> int:
    return runs[0].history[-1].round


def _inline(picture: bytes) -> str:
    return base64.b64encode(picture).decode()


def _row(run: TrainingRun, link: Design | None) -> Row:
    last = run.history[-1]
    served = link is not None and link.selected_count > 0
    return Row(
        scheme=run.scheme,
        selected=f"{last.selected_count} of {run.devices}",
        weakest_score=f"{link.weakest_score:.3f}" if link is not None else "-",
        mse=f"{last.measured_mse:.4f}" if served else "-",
        accuracy=f"{100 * last.test_accuracy:.1f} %",
        what=SCHEMES[run.scheme],
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
the limit of 0.03 with it. Every device holds three of ten digits of a small part of MNIST; all schemes
see the same devices, data, initial weights and noise, and train for {{ rounds }} rounds.</p>
<table>
<thead><tr><th>scheme</th><th>selected</th><th>weakest score</th><th>measured MSE</th><th>test accuracy</th>
<th>what it is</th></tr></thead>
<tbody>
{% for row in rows %}<tr><td>{{ row.scheme }}</td><td>{{ row.selected }}</td><td>{{ row.weakest_score }}</td>
<td>{{ row.mse }}</td><td>{{ row.accuracy }}</td><td>{{ row.what }}</td></tr>
{% endfor %}</tbody></table>
<h2>Learning</h2>
<img alt="Test accuracy and training loss against rounds, a line for each scheme"
src="data:image/png;base64,{{ curves }}">
{% for name, picture in pictures %}<h2>{{ name }}</h2>
<img alt="Room from above with the antennas of {{ name }}, and the score of every device"
src="data:image/png;base64,{{ picture }}">
{% endfor %}<footer>airpass {{ version }}, seed {{ seed }}</footer>
</html>
"""
)
