"""`airpass reproduce`, `airpass sweep` and `airpass plot`."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airpass.cli.options import json_option
from airpass.cli.output import console, write_json
from airpass.cli.root import cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.study.paper.base import PaperFigure
    from airpass.study.runner import Executor, Outcome
    from airpass.study.tables import Table
    from airpass.study.trial import Trial

workers_option = click.option(
    "--workers", type=int, help="Local processes, one compute thread each.  [default: one per processor]"
)
dask_option = click.option(
    "--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler, tcp://host:8786."
)


@cli.command()
@click.argument("figures", nargs=-1, metavar="FIG...")
@click.option(
    "--scale",
    type=click.Choice(["smoke", "lite", "paper"]),
    default="smoke",
    show_default=True,
    help="Size: a minute per figure, minutes to an hour, or the paper's.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: runs/FIG-SCALE for each]")
@workers_option
@dask_option
@click.option("--claims", is_flag=True, help="Only judge the paper's claims on stored rows.")
@json_option
def reproduce(
    figures: Sequence[str],
    scale: str,
    out: Path | None,
    workers: int | None,
    dask: str | None,
    claims: bool,
    json_path: str | None,
) -> None:
    """Reproduce figures of the paper: fig2 ... fig9, table1, or all.

    Finished trials are stored and reused, so an interrupted run continues where it stopped.
    """
    from airpass.study import run as study
    from airpass.study.claims import judge
    from airpass.study.paper import figures as known
    from airpass.study.provenance import check_folder
    from airpass.study.report import claims_text, summary

    chosen = _chosen(figures or (("all",) if claims else ()), known())

    def folder(name: str) -> Path:
        if out is None:
            return Path("runs") / f"{name}-{scale}"
        many = len(chosen) > 1 or (out / name).is_dir()  # a run of several figures used it
        return out / name if many and name != "all" else out

    if claims:
        rows = study.stored(chosen, scale, folder, out)
        if not rows:
            raise InvalidInput("no rows are stored: run airpass reproduce first, with the same --scale")
        failed: dict[str, str] = {}
    else:
        for figure in chosen:
            check_folder(folder(figure.name), figure.name, scale)
        trials = [trial for figure in chosen for trial in figure.trials(scale)]
        where = executor(workers, dask, trials)
        announce(chosen, scale)
        with progress(len(trials)) as on_done:
            outcomes, rows = study.reproduce(chosen, scale, folder, where, command_line(), on_done, out)
        failed = failures(outcomes.values())
        for name, outcome in outcomes.items() if json_path != "-" else ():
            console().print(
                f"{name}: {outcome.run} trials run, {outcome.reused} reused, "
                f"{outcome.seconds:.0f} s; results in {folder(name)}",
                soft_wrap=True,
            )
    verdicts = judge(rows, scale)
    plans = {one.name: study.plan_progress(one, scale, rows.get(one.name, ())) for one in chosen}
    write_json(
        json_path,
        lambda: {
            "claims": summary(verdicts),
            "trials": {name: asdict(plan) for name, plan in plans.items()},
            "failed": failed,
        },
    )
    if json_path != "-":
        console().print(claims_text(verdicts), soft_wrap=True)
        stored = [f"{name}: {plan}" for name, plan in plans.items()]
        console().print("Stored of the declared numbers: " + ". ".join(stored) + ".", soft_wrap=True)
    report_failures(failed)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="STUDY.toml")
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: runs/NAME]")
@workers_option
@dask_option
@json_option
def sweep(path: Path, out: Path | None, workers: int | None, dask: str | None, json_path: str | None) -> None:
    """Run a study from a TOML file: schemes x values of a field x trials (docs/studies.md)."""
    from airpass.study.run import run_sweep
    from airpass.study.sweep import load
    from airpass.study.tables import numbers

    study = load(path)
    target = out or Path("runs") / study.name
    where = executor(workers, dask, study.trials)
    with progress(len(study.trials)) as on_done:
        outcome, tables, rows = run_sweep(study, target, where, command_line(), on_done)
    failed = failures([outcome])
    order = study.figure.in_order(study.shape.schemes)
    write_json(
        json_path,
        lambda: {
            "axis": study.axis or None,
            "means": numbers(rows, list(tables), order),
            "failed": failed,
            "folder": str(target),
        },
    )
    if json_path != "-":
        for metric, table in tables.items():
            if len(tables) > 1:
                console().print(f"\n{metric}", markup=False)
            print_table(table)
        console().print(
            f"\n{outcome.run} trials run, {outcome.reused} reused, {outcome.seconds:.0f} s; "
            f"results in {target}",
            soft_wrap=True,
        )
    report_failures(failed)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="ROWS|RUN")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FIG.toml", help="File with a table [figure]."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Picture, .png, .pdf or .svg.  [default: .pdf and .png beside the rows]",
)
def plot(path: Path, config: Path | None, out: Path | None) -> None:
    """Draw the figure of stored rows again: rows.parquet, or the folder of a sweep or figure."""
    from airpass.figures.style import checked_format
    from airpass.study.replot import redraw, stem_of, write_chart

    kinds = ("pdf", "png") if out is None else (checked_format(out),)
    chart = redraw(path, config)
    stem = stem_of(path) if out is None else out.with_suffix("")
    write_chart(chart, stem, kinds)
    written = " and ".join(f"{stem}.{kind}" for kind in kinds)
    caption = f" ({chart.trials})" if chart.trials else ""
    console().print(f"{written}{caption}", soft_wrap=True, markup=False)


def _chosen(names: Sequence[str], known: dict[str, "PaperFigure"]) -> list["PaperFigure"]:
    if not names:
        raise InvalidInput(f"no figure given: choose from {', '.join(known)}, or all")
    for name in names:
        checks.one_of("figure", name, (*known, "all"))
    return [figure for name, figure in known.items() if "all" in names or name in names]


def executor(workers: int | None, dask: str | None, trials: Sequence["Trial"]) -> "Executor":
    """Where trials run. For local processes, data sets are downloaded first."""
    from airpass.core.threads import processors
    from airpass.study.runner import DaskCluster, LocalProcesses

    if dask is not None:
        if workers is not None:
            raise InvalidInput("--workers cannot be combined with --dask")
        return DaskCluster(dask)
    if workers is not None:
        checks.whole("workers", workers, 1)
    gpus: tuple[str, ...] = ()
    if any(trial.job == "train" for trial in trials):
        from airpass.learning.client import gpu_names

        fetch_data(trials)
        gpus = gpu_names()
    return LocalProcesses(workers or len(gpus) or processors(), gpus)


def announce(figures: Sequence["PaperFigure"], scale: str) -> None:
    """Print the expected duration on stderr."""
    for figure in figures:
        trials = figure.trials(scale)
        gpu = "; faster with a GPU, if available" if trials[0].job == "train" else ""
        click.echo(
            f"airpass: {figure.name}: {len(trials)} trials, {figure.plan(scale).trials} declared per scheme "
            f"and point, about {figure.duration[scale]} on two cores without stored rows"
            f"{gpu if scale == 'paper' else ''}",
            err=True,
        )


def fetch_data(trials: Sequence["Trial"]) -> None:
    """Download the data sets that trials need. Trials whose data set is missing fail later."""
    from airpass.learning.data import data_source
    from airpass.learning.data.download import Download
    from airpass.learning.options import DATASET

    tables = [trial.training for trial in trials if trial.training is not None]
    needed = {(table.get("dataset"), table.get("data_dir")) for table in tables}
    for name, folder in sorted(needed, key=str):
        try:
            source = data_source(str(name or DATASET))
            if isinstance(source, Download):
                source.fetch(
                    None if folder is None else Path(folder),
                    lambda text: click.echo(f"airpass: {text}", err=True),
                )
        except InvalidInput as error:
            click.echo(f"airpass: {error}", err=True)


def command_line() -> str:
    """The command line, without the path of the program."""
    return " ".join(["airpass", *sys.argv[1:]]) if os.path.basename(sys.argv[0]) == "airpass" else "airpass"


@contextmanager
def progress(total: int) -> Iterator[Callable[["Trial"], None]]:
    """A progress bar over trials on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=screen,
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task("trials", total=total)

        def on_done(trial: "Trial") -> None:
            bar.update(task, advance=1, description=trial.name)

        yield on_done


def failures(outcomes: Iterable["Outcome"]) -> dict[str, str]:
    """Error messages by trial."""
    return {trial.name: why for outcome in outcomes for trial, why in outcome.failures}


def report_failures(failed: dict[str, str]) -> None:
    """Print the trials that failed, and exit with code 1."""
    if not failed:
        return
    for name, why in failed.items():
        click.echo(f"airpass: failed: {name}: {why}", err=True)
    click.echo(f"airpass: {len(failed)} trials failed; the same command runs them again", err=True)
    sys.exit(1)


def print_table(table: "Table") -> None:
    """Print a study's table."""
    from rich.table import Table as Sheet

    heads, cells = table
    sheet = Sheet(box=None, header_style="bold", pad_edge=False)
    for position, head in enumerate(heads):
        sheet.add_column(head, justify="left" if position == 0 else "right")
    for line in cells:
        sheet.add_row(*line)
    console().print(sheet)
