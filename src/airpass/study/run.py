"""`airpass reproduce` and `airpass sweep`: run trials, then write rows, pictures, provenance and a report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from airpass.core.files import write_atomically
from airpass.figures.chart import Chart
from airpass.study.charts import axis_chart, rounds_chart
from airpass.study.claims import Rows, judge
from airpass.study.paper import figures as all_figures
from airpass.study.paper.base import PaperFigure
from airpass.study.paper.plan import Progress, progress
from airpass.study.provenance import check_folder, description, write_provenance
from airpass.study.report import Section, report
from airpass.study.runner import Executor, Outcome, run_trials
from airpass.study.store import Store
from airpass.study.sweep import Sweep
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row, Trial

OnDone = Callable[[Trial], None]


def reproduce(
    figures: Sequence[PaperFigure],
    scale: str,
    folder: Callable[[str], Path],
    executor: Executor,
    command: str,
    on_done: OnDone,
    also: Path | None = None,
) -> tuple[dict[str, Outcome], Rows]:
    """Run figures one after the other.

    Parameters
    ----------
    figures
        Figures of the paper.
    scale
        One of `SCALES`.
    folder
        Folder of a figure, by name; `folder("all")` is for the common report.
    executor
        Where trials run.
    command
        Command line, for the report.
    on_done
        Called for each trial.
    also
        Another folder with rows that may be reused.

    Returns
    -------
    outcomes : dict[str, Outcome]
        Numbers of trials and failures by figure.
    rows : Rows
        Rows by figure.
    """
    outcomes: dict[str, Outcome] = {}
    rows: dict[str, Sequence[Row]] = {}
    sections: list[Section] = []
    for figure in figures:
        name, out, trials = figure.name, folder(figure.name), figure.trials(scale)
        store = Store(out)
        outcome = run_trials(trials, store, executor, on_done, _elsewhere(scale, folder, also))
        outcomes[name], rows[name] = outcome, store.merge(trials)
        if not rows[name]:
            continue
        made = write_provenance(out, name, scale, command, executor.about, outcome, len(trials))
        chart = figure.chart(rows[name])
        picture = _write_chart(chart, out / name)
        about = description(trials, made, plan_progress(figure, scale, rows[name]))
        sections.append(
            Section(name, figure.title, picture, figure.table(rows[name]), about, chart.columns > 1)
        )
        page = report(sections[-1:], judge({name: rows[name]}, scale), scale, command)
        write_atomically(out / "report.html", page)
    if len(sections) > 1:
        page = report(sections, judge(rows, scale), scale, command)
        write_atomically(folder("all") / "report.html", page)
    return outcomes, rows


def plan_progress(figure: PaperFigure, scale: str, rows: Sequence[Row]) -> Progress:
    """How many of the declared trials of a figure are among rows."""
    return progress(figure.trials(scale), {row.key for row in rows})


def _elsewhere(
    scale: str, folder: Callable[[str], Path], also: Path | None
) -> Callable[[Trial], list[Row] | None]:
    """Lookup of rows with the same computation in other figures: 2, 6, 7 and 8 share a point."""
    known: dict[str, tuple[Store, Trial]] = {}
    for other in all_figures().values():
        for place in {folder(other.name), also or folder(other.name)}:
            if place.is_dir():
                store = Store(place)
                stored_ = [trial for trial in other.trials(scale) if store.has(trial)]
                known |= {trial.computation: (store, trial) for trial in stored_}

    def rows(trial: Trial) -> list[Row] | None:
        found = known.get(trial.computation)
        return None if found is None else found[0].read([found[1]])

    return rows


def stored(
    figures: Sequence[PaperFigure], scale: str, folder: Callable[[str], Path], also: Path | None = None
) -> Rows:
    """Stored rows by figure, from the figure's folder or from `also`."""
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
    sweep: Sweep, out: Path, executor: Executor, command: str, on_done: OnDone
) -> tuple[Outcome, Table]:
    """Run a user-defined sweep.

    Parameters
    ----------
    sweep
        Name, axis and trials.
    out
        Folder for rows, pictures and provenance.
    executor
        Where trials run.
    command
        Command line, for provenance.json.
    on_done
        Called for each trial.

    Returns
    -------
    outcome : Outcome
        Numbers of trials, and failures.
    table : Table
        Test accuracy if models were trained, else numbers of selected devices.
    """
    check_folder(out, sweep.name)
    store = Store(out)
    outcome = run_trials(sweep.trials, store, executor, on_done)
    rows = store.merge(sweep.trials)
    trained = any(trial.job == "train" for trial in sweep.trials)
    metric = "test_accuracy" if trained else "selected_count"
    if rows:
        if sweep.axis:
            _write_chart(axis_chart(rows, metric, sweep.axis, sweep.name), out / sweep.name)
        elif trained:
            _write_chart(rounds_chart(rows, metric, {"": sweep.name}), out / sweep.name)
        write_provenance(out, sweep.name, "", command, executor.about, outcome, len(sweep.trials))
    return outcome, by_point(rows, metric)


def _write_chart(chart: Chart, stem: Path) -> bytes:
    """Write a chart as PNG and PDF, and return the PNG."""
    from airpass.figures.study import draw_chart
    from airpass.figures.style import render

    drawn = draw_chart(chart)
    for kind in ("pdf", "png"):
        picture = render(drawn, kind)
        write_atomically(stem.with_name(f"{stem.name}.{kind}"), picture)
    return picture
