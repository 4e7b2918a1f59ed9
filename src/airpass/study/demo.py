"""`airpass demo`: design and train the paper's small set-up with all fast schemes, and write a report."""

from dataclasses import dataclass
from pathlib import Path

from airpass.core.files import write_atomically
from airpass.designs.api import Design, design
from airpass.documents import design_document, encode
from airpass.figures.room import draw_design
from airpass.figures.style import render
from airpass.figures.training import draw_training
from airpass.learning import FEDAVG
from airpass.learning.compare import OnEnd, OnSchemeRound, OnStart, compare
from airpass.learning.history import TrainingRun
from airpass.learning.options import TrainOptions
from airpass.learning.training import prepare
from airpass.scenario import Scenario
from airpass.study.report import render_page

DATASET = "mnist-mini"
SCHEMES = {
    FEDAVG: "ideal: all devices, no aggregation error",
    "airpass-plus": "joint search over devices, beam and antennas",
    "airpass": "devices and beam by HRMC, antennas by HAGO (the paper's method)",
    "mimo-m": "a co-located array of M = 5 antennas, HRMC",
    "mimo-mn": "a co-located array of M x N = 25 antennas, each with a receive chain, HRMC",
}


@dataclass(frozen=True)
class Row:
    """A line of the demo's table, as text."""

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
    """Design and train every scheme, and write JSON, pictures and report.html.

    Parameters
    ----------
    out
        Folder to write to.
    seed
        Seed of devices, data split, weights and noise.
    rounds
        Communication rounds.
    on_start, on_round, on_end
        Callbacks of `compare`.

    Returns
    -------
    list[Row]
        The table of the report.
    """
    options = TrainOptions(rounds=rounds, evaluate_every=max(1, rounds // 20))
    scenario, data = prepare(Scenario.paper(seed=seed), DATASET, options, seed)
    results = {name: design(scenario, name, seed=seed) for name in SCHEMES if name != FEDAVG}
    pictures = {}
    for name, result in results.items():
        pictures[name] = render(draw_design(result), "png")
        write_atomically(out / f"{name}.png", pictures[name])
        write_atomically(out / f"{name}.json", encode(design_document(result)))
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
    page = render_page(
        "demo.html",
        rows=rows,
        curves=render(draw_training(runs), "png"),
        pictures=pictures,
        rounds=runs[0].history[-1].round,
        seed=seed,
    )
    write_atomically(out / "report.html", page)
    return rows


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
