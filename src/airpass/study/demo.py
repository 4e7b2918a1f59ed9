"""`airpass demo`: design and train the paper's small set-up with all fast schemes, and write a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airpass.core.display import display_name
from airpass.core.files import write_atomically
from airpass.core.locks import folder_lock
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
from airpass.study.report import Section, render_page

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
        Folder to write to, locked meanwhile.
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
    with folder_lock(out):
        return _made(out, seed, rounds, on_start, on_round, on_end)


def _made(
    out: Path,
    seed: int,
    rounds: int,
    on_start: OnStart | None,
    on_round: OnSchemeRound | None,
    on_end: OnEnd | None,
) -> list[Row]:
    options = TrainOptions(rounds=rounds, evaluate_every=max(1, rounds // 20))
    scenario, data = prepare(Scenario.paper(seed=seed), DATASET, options, seed)
    results = {name: design(scenario, name, seed=seed) for name in SCHEMES if name != FEDAVG}
    sections = []
    for name, result in results.items():
        for kind in ("pdf", "png"):
            picture = render(draw_design(result), kind)
            write_atomically(out / f"{name}.{kind}", picture)
        write_atomically(out / f"{name}.json", encode(design_document(result)))
        files = tuple(out / f"{name}.{kind}" for kind in ("pdf", "png", "json"))
        caption = "Room from above with antennas and devices, and the score of every device"
        sections.append(Section(name, display_name(name), picture, caption=caption, wide=True, files=files))
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
    for kind in ("pdf", "png"):
        curves = render(draw_training(runs), kind)
        write_atomically(out / f"curves.{kind}", curves)
    files = tuple(out / f"curves.{kind}" for kind in ("pdf", "png"))
    caption = "Test accuracy and training loss against rounds, one trial"
    learning = Section("learning", "Learning", curves, caption=caption, wide=True, files=files)
    page = out / "report.html"
    content = render_page(
        "demo.html",
        rows=rows,
        summary=summary(runs),
        sections=[section.linked(page) for section in (learning, *sections)],
        rounds=runs[0].history[-1].round,
        seed=seed,
    )
    write_atomically(page, content)
    return rows


def summary(runs: Sequence[TrainingRun]) -> list[str]:
    """What the demo shows, in two sentences."""
    by_count: dict[int, list[str]] = {}
    for run in runs:
        if run.scheme != FEDAVG:
            by_count.setdefault(run.history[-1].selected_count, []).append(display_name(run.scheme))
    counts = [f"{count} with {', '.join(by_count[count])}" for count in sorted(by_count, reverse=True)]
    accuracies = [
        f"{100 * run.history[-1].test_accuracy:.1f} % with {display_name(run.scheme)}"
        for run in sorted(runs, key=lambda run: -run.history[-1].test_accuracy)
    ]
    return [
        f"Selected of {runs[0].devices} devices: {'; '.join(counts)}.",
        f"Test accuracy after {runs[0].history[-1].round} rounds: {'; '.join(accuracies)}.",
        "One draw of devices and one run of training: a demonstration, not a comparison.",
    ]


def _row(run: TrainingRun, link: Design | None) -> Row:
    last = run.history[-1]
    served = link is not None and link.selected_count > 0
    return Row(
        scheme=run.scheme,
        selected=f"{last.selected_count} of {run.devices}",
        weakest_score=f"{link.weakest_score:.3f}" if link is not None and served else "-",
        mse=f"{last.measured_mse:.4f}" if served else "-",
        accuracy=f"{100 * last.test_accuracy:.1f} %",
        what=SCHEMES[run.scheme],
    )
