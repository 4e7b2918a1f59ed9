"""`airpass train`, `airpass data` and `airpass demo`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import json_option, scenario_options
from airpass.cli.output import console, print_training, progress, progress_bars, write_json
from airpass.cli.root import cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.scenario import Scenario


@cli.command()
@scenario_options
@click.option(
    "--scheme",
    "schemes",
    default="fedavg,airpass-plus",
    show_default=True,
    help="Schemes to compare, with commas between: fedavg (ideal), or any design of `airpass methods`.",
)
@click.option(
    "--dataset",
    default="mnist-mini",
    show_default=True,
    help="mnist-mini (in the package), mnist, cifar10, or a FILE.npz of your own.",
)
@click.option("--rounds", type=int, default=200, show_default=True, help="Communication rounds.")
@click.option("--local-steps", type=int, default=3, show_default=True, help="SGD steps J a round.")
@click.option("--epochs", type=int, help="Passes over a device's data a round, instead of --local-steps.")
@click.option("--batch", type=int, help="Mini-batch size.  [default: 32, for cifar10 64]")
@click.option("--learning-rate", type=float, help="Local learning rate.  [default: 0.01, for cifar10 0.02]")
@click.option("--model", help="mnist-cnn, cifar-cnn, cifar-cnn-group, or package.module:callable.")
@click.option(
    "--partition",
    type=click.Choice(["classes", "iid", "dirichlet"]),
    default="classes",
    show_default=True,
    help="How samples are split among devices.",
)
@click.option("--classes-per-device", type=int, default=3, show_default=True, help="For classes.")
@click.option("--concentration", type=float, default=0.5, show_default=True, help="For dirichlet.")
@click.option(
    "--normalise",
    type=click.Choice(["tensor", "vector"]),
    default="tensor",
    show_default=True,
    help="Normalise each tensor of an update by itself, or all of it at once.",
)
@click.option(
    "--channel-error",
    type=float,
    default=0.0,
    show_default=True,
    help="Variance of what devices get wrong about their channel, relative to its mean power.",
)
@click.option(
    "--phase-error-deg",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation of a device's phase, degrees.",
)
@click.option("--redraw-every", type=int, help="Draw new devices and redesign every so many rounds.")
@click.option("--evaluate-every", type=int, default=10, show_default=True, help="Rounds between tests.")
@click.option("--workers", type=int, help="Processes, one thread each.  [default: one for each core]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where data sets are kept.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Directory for history, curves and checkpoints.  [default: runs/train-DATASET]",
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted run in --out stopped.")
@json_option
def train(
    scenario: "Scenario",
    seed: int,
    schemes: str,
    dataset: str,
    workers: int | None,
    data_dir: Path | None,
    out: Path | None,
    resume: bool,
    json_path: str | None,
    **settings: Any,
) -> None:
    """Train a model by federated learning over the designed link.

    All schemes see the same devices, data split, initial weights, mini-batches and noise.
    """
    from airpass import training_session as session

    names = session.checked_schemes(schemes)
    options = session.options_from(settings)
    if workers is not None:
        checks.whole("workers", workers, 1)
    folder = out if out is not None else Path("runs") / f"train-{Path(dataset).stem}"
    with progress_bars() as bars:
        runs = session.run_all(
            scenario, names, dataset, options, seed, folder, resume, workers, data_dir, bars
        )
    from airpass.documents import training_document

    write_json(json_path, lambda: training_document(runs))
    if json_path != "-":
        print_training(runs, folder)
    if not all(run.finished for run in runs):
        click.echo(f"airpass: {runs[-1].status}; go on with --resume", err=True)
        sys.exit(130)


@cli.group()
def data() -> None:
    """Fetch, list and verify data sets."""


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Where data sets are kept.  [default: $AIRPASS_DATA, else the platform's cache directory]",
)


@data.command("fetch")
@click.argument("names", nargs=-1, required=True)
@data_dir_option
def data_fetch(names: Sequence[str], data_dir: Path | None) -> None:
    """Fetch data sets by name and check their sums."""
    from airpass.learning import download

    with progress("Fetching") as report:
        paths = [download.fetch(name, data_dir, report) for name in names]
    for path in paths:
        console().print(str(path), soft_wrap=True)


@data.command("list")
@data_dir_option
@json_option
def data_list(data_dir: Path | None, json_path: str | None) -> None:
    """List the data sets, and whether each is there and whole."""
    from airpass.learning import datasets, download

    rows = [
        {
            "name": name,
            "state": download.check(name, data_dir),
            "summary": recipe.summary,
            "cite": recipe.citation,
        }
        for name, recipe in datasets.RECIPES.items()
    ]
    write_json(json_path, lambda: {"datasets": rows, "directory": str(download.data_directory(data_dir))})
    if json_path == "-":
        return
    from rich.table import Table

    table = Table("name", "state", "what it is", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["state"], f"{row['summary']}. {row['cite']}")
    console().print(table)


@data.command("verify")
@click.argument("names", nargs=-1)
@data_dir_option
def data_verify(names: Sequence[str], data_dir: Path | None) -> None:
    """Check the sums of the data sets that are there."""
    from airpass.learning import datasets, download

    for name in names:
        checks.one_of("dataset", name, datasets.RECIPES)
    states = {name: download.check(name, data_dir) for name in names or datasets.RECIPES}
    for name, state in states.items():
        console().print(f"{name}: {state}", soft_wrap=True)
    if any(state.startswith("damaged") for state in states.values()):
        raise InvalidInput("a data set is damaged: 'airpass data fetch NAME' fetches it again")


@cli.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Directory for figures, JSON and report.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of everything random.")
@click.option("--rounds", type=int, default=100, show_default=True, help="Communication rounds of training.")
def demo(out: Path, seed: int, rounds: int) -> None:
    """Design and train the paper's K=10, M=5, N=5, 10 dB set-up by every fast scheme; write a report."""
    from airpass.study.demo import run

    with progress_bars() as bars:
        rows = run(out, checks.whole("seed", seed, 0), checks.whole("rounds", rounds, 1), bars)
    from rich.table import Table

    table = Table("scheme", box=None, header_style="bold", pad_edge=False)
    for name in ("selected", "weakest score", "MSE", "test accuracy"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.scheme, row.selected, row.weakest_score, row.mse, row.accuracy)
    screen = console()
    screen.print(table)
    screen.print(f"\nReport, figures and JSON: {out / 'report.html'}", soft_wrap=True)
