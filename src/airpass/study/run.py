"""`airpass reproduce` and `airpass sweep`: run trials, then write rows, pictures, provenance and a report."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.locks import folder_locks
from airpass.core.registry import Report, discard
from airpass.study.charts import WIDE_IN, sweep_chart
from airpass.study.claims import claims_of, judge
from airpass.study.findings import findings
from airpass.study.known import known_figures
from airpass.study.paper.base import PaperFigure
from airpass.study.paper.plan import Progress, progress
from airpass.study.provenance import check_folder, description, read_provenance, write_provenance
from airpass.study.replot import STUDY, sweep_tables, write_chart
from airpass.study.report import Section, render_page, report
from airpass.study.runner import Executor, Outcome, run_trials
from airpass.study.store import Store, set_aside, skip
from airpass.study.sweep import Sweep
from airpass.study.tables import Table, best, heading
from airpass.study.trial import Row, Trial
from airpass.study.values import Rows

OnDone = Callable[[Trial], None]


@contextmanager
def output_folders(
    names: Sequence[str], scale: str, folder: Callable[[str], Path], report: Report = discard
) -> Iterator[None]:
    """Lock the folders of studies. They must be free, writable, and hold no other study.

    Parameters
    ----------
    names
        Names of the studies.
    scale
        Scale of paper figures, or "".
    folder
        Folder of a study, by name; `folder("all")` is for the common report of several.
    report
        Callback for messages.
    """
    with folder_locks([folder(name) for name in (*names, *(["all"] if len(names) > 1 else []))], report):
        for name in names:
            check_folder(folder(name), name, scale)
        yield


def reproduce(
    figures: Sequence[PaperFigure],
    scale: str,
    folder: Callable[[str], Path],
    executor: Executor,
    command: str,
    on_done: OnDone,
    also: Path | None = None,
    notice: Report = discard,
) -> tuple[dict[str, Outcome], Rows]:
    """Run figures one after the other, in folders that are locked (`output_folders`).

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
    notice
        Callback for messages about damaged files.

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
        store = Store(out, set_aside(notice))
        describe = partial(write_provenance, out, name, scale, command, executor.about, trials=len(trials))
        with _kept_if_interrupted(store, trials, describe):
            outcome = run_trials(trials, store, executor, on_done, _elsewhere(scale, folder, also))
        outcomes[name], rows[name] = outcome, _merged(store, trials, outcome)
        if not rows[name]:
            continue
        sections.append(_section(figure, scale, rows[name], out, describe(outcome)))
        _write_own_page(sections[-1], rows[name], scale, command, out)
    _write_common_pages(sections, rows, scale, command, folder)
    return outcomes, rows


def redraw(
    figures: Sequence[PaperFigure],
    scale: str,
    folder: Callable[[str], Path],
    command: str,
    pages: Sequence[Path] = (),
    notice: Report = discard,
) -> Rows:
    """Merge the stored trials of figures, which may be incomplete, and write pictures and reports.

    The folders are locked (`output_folders`).

    Parameters
    ----------
    figures
        Figures; those without rows are only named in the reports.
    scale
        One of `SCALES`.
    folder
        Folder of a figure, by name; `folder("all")` is for the common report.
    command
        Command line, for the reports.
    pages
        Further common reports: Markdown if the name ends in .md, else HTML.
    notice
        Callback for messages about damaged files.

    Returns
    -------
    Rows
        Rows by figure.
    """
    rows: dict[str, Sequence[Row]] = {}
    sections: list[Section] = []
    for figure in figures:
        out = folder(figure.name)
        if not out.is_dir():
            continue
        found = Store(out, set_aside(notice)).merge(figure.trials(scale))
        if found:
            rows[figure.name] = found
            made = read_provenance(out, complete=True)
            sections.append(_section(figure, scale, found, out, made))
            _write_own_page(sections[-1], found, scale, command, out)
    missing = [figure.name for figure in figures if figure.name not in rows]
    if rows:
        _write_common_pages(sections, rows, scale, command, folder, pages, missing)
    return rows


def _section(
    figure: PaperFigure, scale: str, rows: Sequence[Row], out: Path, made: Mapping[str, Any]
) -> Section:
    """Draw a figure, and describe it. `made` is its provenance, empty if the run was stopped."""
    chart = figure.chart(rows)
    return Section(
        name=figure.name,
        title=f"{figure.name}: {figure.titled(scale)}",
        picture=write_chart(chart, out / figure.name),
        table=figure.table(rows),
        about=description(figure.trials(scale), made, plan_progress(figure, scale, rows)),
        caption=chart.trials,
        wide=chart.columns > 1,
        command=f"airpass reproduce {figure.name} --scale {scale}",
        files=_files(out, figure.name),
    )


def _write_own_page(section: Section, rows: Sequence[Row], scale: str, command: str, out: Path) -> None:
    """Write the report of one figure."""
    page = out / "report.html"
    write_atomically(page, _page([section], {section.name: rows}, scale, command, page))


def _write_common_pages(
    sections: Sequence[Section],
    rows: Rows,
    scale: str,
    command: str,
    folder: Callable[[str], Path],
    pages: Sequence[Path] = (),
    missing: Sequence[str] = (),
) -> None:
    """Write the common reports of several figures, which name figures without rows."""
    common = [folder("all") / "report.html"] if len(sections) > 1 else []
    for page in [*common, *pages]:
        write_atomically(page, _page(sections, rows, scale, command, page, missing))


def _page(
    sections: Sequence[Section],
    rows: Rows,
    scale: str,
    command: str,
    page: Path,
    missing: Sequence[str] = (),
) -> bytes:
    verdicts = judge({**rows, **dict.fromkeys(missing, ())}, scale)
    shown = [replace(one.linked(page), claims=claims_of(verdicts, one.name)) for one in sections]
    markdown = page.suffix == ".md"
    return report(shown, verdicts, scale, command, findings(rows, scale), missing, markdown=markdown)


@contextmanager
def _kept_if_interrupted(
    store: Store, trials: Sequence[Trial], describe: Callable[[Outcome], Mapping[str, Any]]
) -> Iterator[None]:
    """Context of `run_trials`. If it is interrupted, merge the trials that have finished and call `describe`,
    which writes how they were computed.
    """
    began, before = time.perf_counter(), sum(map(store.has, trials))
    try:
        yield
    except KeyboardInterrupt:
        finished = sum(map(store.has, trials))
        if finished:
            store.merge(trials)
            seconds = time.perf_counter() - began
            describe(Outcome(run=finished - before, reused=before, failures=(), seconds=seconds))
        raise


def _merged(store: Store, trials: Sequence[Trial], outcome: Outcome) -> list[Row]:
    """Merge the rows of a study. No trial that did not fail may be without rows."""
    rows = store.merge(trials)
    stored_keys = {row.key for row in rows} | {trial.key for trial, _ in outcome.failures}
    lost = [trial for trial in trials if trial.key not in stored_keys]
    if lost:
        raise InvalidInput(
            f"{store.folder}: {len(lost)} trials were lost while the study ran, such as {lost[0].name}; "
            "run the same command again"
        )
    return rows


def plan_progress(figure: PaperFigure, scale: str, rows: Sequence[Row]) -> Progress:
    """How many of the declared trials of a figure are among rows."""
    return progress(figure.trials(scale), {row.key for row in rows})


def _elsewhere(
    scale: str, folder: Callable[[str], Path], also: Path | None
) -> Callable[[Trial], list[Row] | None]:
    """Lookup of rows with the same computation in other figures: 2, 6, 7 and 8 share a point."""
    known: dict[str, tuple[Store, Trial]] = {}
    for other in known_figures().values():
        for place in {folder(other.name), also or folder(other.name)}:
            if place.is_dir():
                store = Store(place, skip)
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


def _files(out: Path, name: str) -> tuple[Path, ...]:
    """What belongs to a picture."""
    return tuple(out / file for file in (f"{name}.pdf", f"{name}.png", "rows.parquet", "provenance.json"))


def run_sweep(
    sweep: Sweep,
    out: Path,
    executor: Executor,
    command: str,
    on_done: OnDone,
    notice: Report = discard,
) -> tuple[Outcome, dict[str, Table], list[Row]]:
    """Run a user-defined sweep, and write rows, the sweep's file, picture, provenance and report.html.

    The folder is locked (`output_folders`).

    Parameters
    ----------
    sweep
        Name, axis, trials and figure.
    out
        Folder to write to.
    executor
        Where trials run.
    command
        Command line, for provenance.json.
    on_done
        Called for each trial.
    notice
        Callback for messages about damaged files.

    Returns
    -------
    outcome : Outcome
        Numbers of trials, and failures.
    tables : dict[str, Table]
        Means by metric: those of the figure; by default test accuracy if models were trained, else
        numbers of selected devices.
    rows : list[Row]
        The rows, in the order of the file.
    """
    store = Store(out, set_aside(notice))

    def describe(outcome: Outcome) -> Mapping[str, Any]:
        """Write what `airpass plot` needs beside the rows."""
        write_atomically(out / STUDY, tomli_w.dumps(sweep.tables).encode())
        return write_provenance(
            out, sweep.name, "", command, executor.about, outcome, trials=len(sweep.trials)
        )

    with _kept_if_interrupted(store, sweep.trials, describe):
        outcome = run_trials(sweep.trials, store, executor, on_done)
    rows = sweep.shape.sorted(_merged(store, sweep.trials, outcome))
    tables = sweep_tables(sweep, rows)
    if rows:
        made = describe(outcome)
        chart = sweep_chart(rows, sweep.shape, sweep.figure)
        about = description(sweep.trials, made, progress(sweep.trials, {row.key for row in rows}))
        title = sweep.figure.title or sweep.name
        sections = [
            Section(
                name="figure",
                title="Figure",
                picture=None if chart is None else write_chart(chart, out / sweep.name),
                about=about,
                caption="" if chart is None else chart.trials,
                wide=chart is not None and (chart.format.width_in or 0.0) >= WIDE_IN,
                command=made["command"],
                files=(*_files(out, sweep.name), out / STUDY),
            )
        ]
        sections += [
            Section(name=metric, title=heading(metric, sweep.axis), picture=None, table=table)
            for metric, table in tables.items()
        ]
        page = out / "report.html"
        content = render_page(
            "sweep.html",
            title=title,
            summary=[best(rows, metric, sweep.axis, sweep.figure.plain_labels) for metric in tables],
            failed=made["failed"],
            sections=[section.linked(page) for section in sections],
            command=command,
        )
        write_atomically(page, content)
    return outcome, tables, rows
