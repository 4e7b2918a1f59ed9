"""`airpass reproduce`, `airpass sweep` and `airpass plot`."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from airpass.cli.options import json_option
from airpass.cli.output import (
    console,
    write_json,
)
from airpass.cli.progress import (
    note,
    trial_bar,
)
from airpass.cli.root import OutputFolder, cli
from airpass.cli.streams import tell
from airpass.core.errors import InvalidInput
from airpass.core.text import LONGEST_NAME, one_line

if TYPE_CHECKING:
    from airpass.study.paper.base import PaperFigure
    from airpass.study.tables import Table

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
    help="Size: a minute per figure or less, minutes to an hour, or the paper's.",
)
@click.option("--out", type=OutputFolder(), help="Folder.  [default: runs/FIG-SCALE for each]")
@workers_option
@dask_option
@click.option("--claims", is_flag=True, help="Only judge the paper's claims on stored rows.")
@click.option(
    "--redraw", is_flag=True, help="Only write figures and reports from stored rows, which may be incomplete."
)
@click.option(
    "--page",
    "pages",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="With --redraw: also write the common report to this file, .html or .md. Repeatable.",
)
@json_option
def reproduce(
    figures: Sequence[str],
    scale: str,
    out: Path | None,
    workers: int | None,
    dask: str | None,
    claims: bool,
    redraw: bool,
    pages: tuple[Path, ...],
    json_path: str | None,
) -> None:
    """Reproduce figures of the paper: fig2 ... fig9, table1, or all of these.

    Figures that are not in the paper: devices-chains, devices-k, devices-threshold, energy-k, life, time-k,
    tolerance, turns-snr, or added for all of these.

    Finished trials are stored and reused, so an interrupted run continues where it stopped.
    """
    from airpass.study import run as study
    from airpass.study.api import executor, failures, named_figures
    from airpass.study.claims import judge
    from airpass.study.report import claims_text, summary

    if claims and redraw:
        raise InvalidInput("--claims cannot be combined with --redraw")
    if pages and not redraw:
        raise InvalidInput("--page requires --redraw")
    for page in pages:
        if page.suffix not in (".html", ".md"):
            raise InvalidInput(f"--page {page}: the name must end in .html or .md")
    chosen = named_figures(figures or (("all",) if claims or redraw else ()))

    def folder(name: str) -> Path:
        if out is None:
            return Path("runs") / f"{name}-{scale}"
        many = len(chosen) > 1 or (out / name).is_dir()  # a run of several figures used it
        return out / name if many and name != "all" else out

    failed: dict[str, str] = {}
    if claims or redraw:
        if claims:
            rows = study.stored(chosen, scale, folder, out)
        else:
            there = [figure for figure in chosen if folder(figure.name).is_dir()]
            with study.output_folders([figure.name for figure in there], scale, folder, note):
                rows = study.redraw(chosen, scale, folder, command_line(), pages, note)
        if not rows:
            raise InvalidInput("no rows are stored: run airpass reproduce first, with the same --scale")
    else:
        trials = [trial for figure in chosen for trial in figure.trials(scale)]
        with study.output_folders([figure.name for figure in chosen], scale, folder, note):
            where = executor(workers, dask, trials, note)
            announce(chosen, scale)
            with trial_bar(len(trials)) as bar:
                outcomes, rows = study.reproduce(
                    chosen, scale, folder, where(bar.notice), command_line(), bar.advance, out, note
                )
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
@click.option("--out", type=OutputFolder(), help="Folder.  [default: runs/NAME]")
@workers_option
@dask_option
@json_option
def sweep(path: Path, out: Path | None, workers: int | None, dask: str | None, json_path: str | None) -> None:
    """Run a study from a TOML file: schemes x values of a field x trials."""
    from airpass.study.api import executor, failures
    from airpass.study.run import output_folders, run_sweep
    from airpass.study.sweep import load
    from airpass.study.tables import heading, numbers

    study = load(path)
    target = out or Path("runs") / study.name
    with output_folders([study.name], "", lambda _: target, note):
        where = executor(workers, dask, study.trials, note)
        with trial_bar(len(study.trials)) as bar:
            outcome, tables, rows = run_sweep(
                study, target, where(bar.notice), command_line(), bar.advance, note
            )
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
            console().print(f"{heading(metric, study.axis)}\n", soft_wrap=True)
            print_table(table)
            console().print()
        console().print(
            f"{outcome.run} trials run, {outcome.reused} reused, {outcome.seconds:.0f} s; "
            f"results in {target}",
            soft_wrap=True,
        )
    report_failures(failed)


def announce(figures: Sequence["PaperFigure"], scale: str) -> None:
    """Print the expected duration on stderr."""
    for figure in figures:
        trials = figure.trials(scale)
        gpu = "; faster with a GPU, if available" if trials[0].job == "train" else ""
        note(
            f"{figure.name}: {len(trials)} trials, {figure.plan(scale).trials} declared per scheme "
            f"and point, about {figure.duration[scale]} on two cores without stored rows"
            f"{gpu if scale == 'paper' else ''}"
        )


def command_line() -> str:
    """The command line, without the path of the program."""
    return " ".join(["airpass", *sys.argv[1:]]) if os.path.basename(sys.argv[0]) == "airpass" else "airpass"


def report_failures(failed: dict[str, str]) -> None:
    """Print the trials that failed, and exit with code 1."""
    if not failed:
        return
    causes: dict[str, list[str]] = {}
    for name, why in failed.items():
        causes.setdefault(why, []).append(name)
    for why, names in causes.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        tell(f"failed: {names[0]}{more}: {why}")
    tell(f"{len(failed)} trials failed; the same command runs them again")
    sys.exit(1)


def print_table(table: "Table") -> None:
    """Print a study's table."""
    from rich.table import Table as Sheet

    heads, cells = table
    sheet = Sheet(box=None, header_style="bold", pad_edge=False)
    for position, head in enumerate(heads):
        sheet.add_column(
            one_line(head, LONGEST_NAME), justify="left" if position == 0 else "right", no_wrap=position == 0
        )
    for line in cells:
        sheet.add_row(*(one_line(text, LONGEST_NAME) for text in line))
    console().print(sheet)
