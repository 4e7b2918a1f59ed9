"""`airpass train`, `airpass data` and `airpass demo`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import json_option, scenario_options
from airpass.cli.output import (
    console,
    print_training,
    progress,
    training_bars,
    write_json,
    write_training,
)
from airpass.cli.root import cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.learning.options import TrainOptions
    from airpass.scenario import Scenario


@cli.command()
@scenario_options
@click.option(
    "--scheme",
    "schemes",
    default="fedavg,airpass-plus",
    show_default=True,
    help="Schemes to compare, separated by commas: fedavg (ideal), or any design of `airpass methods`.",
)
@click.option(
    "--dataset",
    default="mnist-mini",
    show_default=True,
    help="A name of `airpass data list`, FILE.npz, file.py:Name or package.module:Name.",
)
@click.option("--rounds", type=int, default=200, show_default=True, help="Communication rounds.")
@click.option("--local-steps", type=int, default=3, show_default=True, help="Local steps J per round.")
@click.option("--epochs", type=int, help="Passes over a device's data per round, instead of --local-steps.")
@click.option("--batch", type=int, help="Mini-batch size.  [default: that of the data set]")
@click.option(
    "--learning-rate",
    type=float,
    help="Local learning rate.  [default: that of the data set; 0.001 for adam]",
)
@click.option(
    "--optimiser",
    type=click.Choice(["sgd", "adam"]),
    default="sgd",
    show_default=True,
    help="Local optimiser. Its state starts anew in every round.",
)
@click.option("--momentum", type=float, default=0.0, show_default=True, help="For sgd.")
@click.option(
    "--model",
    help="mnist-cnn, cifar-cnn, cifar-cnn-group, mlp, linear, file.py:Name, package.module:Name.  "
    "[default: that of the data set, else mlp]",
)
@click.option(
    "--loss",
    help="cross-entropy, mse, file.py:Name, package.module:Name.  "
    "[default: cross-entropy for classes, mse for regression]",
)
@click.option(
    "--server",
    type=click.Choice(["average", "momentum", "adam"]),
    default="average",
    show_default=True,
    help="The server's step with the mean update.",
)
@click.option("--server-learning-rate", type=float, help="[default: 1; 0.01 for adam]")
@click.option("--server-beta1", type=float, default=0.9, show_default=True, help="For momentum and adam.")
@click.option("--server-beta2", type=float, default=0.99, show_default=True, help="For adam.")
@click.option("--server-tau", type=float, default=1e-3, show_default=True, help="For adam.")
@click.option(
    "--partition",
    type=click.Choice(["classes", "iid", "dirichlet", "column"]),
    help="How samples are split among devices; column: by device_train in the data.  "
    "[default: column if the data have one, else classes; iid for regression]",
)
@click.option("--classes-per-device", type=int, help="For classes.  [default: 3]")
@click.option("--concentration", type=float, default=0.5, show_default=True, help="For dirichlet.")
@click.option(
    "--normalise",
    type=click.Choice(["tensor", "vector"]),
    default="tensor",
    show_default=True,
    help="Normalise each tensor of an update separately, or the whole update at once.",
)
@click.option(
    "--statistics",
    type=click.Choice(["device", "pooled"]),
    default="device",
    show_default=True,
    help="Normalise by mean and deviation of each device, which keeps the power limit, or of all devices "
    "together, under which devices with large updates exceed it.",
)
@click.option(
    "--channel-error",
    type=float,
    default=0.0,
    show_default=True,
    help="Channel estimation error variance, relative to the mean power of an entry of the channel.",
)
@click.option(
    "--phase-error-deg",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation of the phase error per device, degrees.",
)
@click.option("--redraw-every", type=int, help="Rounds between new draws of the devices, with a new design.")
@click.option("--evaluate-every", type=int, default=10, show_default=True, help="Rounds between evaluations.")
@click.option("--workers", type=int, help="Processes, one thread each.  [default: one per processor]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of downloaded data sets.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for history, curves and checkpoints.  [default: runs/train-DATASET]",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run from its checkpoints in --out.")
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
    **flags: Any,
) -> None:
    """Train a model by federated learning over a designed link.

    All schemes see the same devices, data split, initial weights, mini-batches and noise.
    """
    from airpass.learning.checkpoint import OtherRun
    from airpass.learning.compare import compare

    options = train_options(flags)
    if workers is not None:
        checks.whole("workers", workers, 1)
    folder = out if out is not None else Path("runs") / f"train-{Path(dataset).stem}"
    try:
        with training_bars(options.rounds) as bars:
            runs = compare(
                scenario,
                [name.strip() for name in schemes.split(",")],
                dataset,
                options,
                seed,
                workers=workers,
                data_dir=data_dir,
                folder=folder,
                resume=resume,
                on_start=bars.start,
                on_round=bars.show,
                on_end=lambda done: write_training(done, folder),
                report=bars.report,
            )
    except OtherRun as error:
        raise InvalidInput(f"{error}; use another --out, or omit --resume") from None
    from airpass.documents import training_document

    write_json(json_path, lambda: training_document(runs))
    if json_path != "-":
        print_training(runs, folder)
    if not all(run.finished for run in runs):
        click.echo(f"airpass: {runs[-1].status}; continue with --resume", err=True)
        sys.exit(130)


def train_options(flags: Mapping[str, Any]) -> "TrainOptions":
    """Options of training from the flags of `airpass train`."""
    from airpass.core.registry import with_options
    from airpass.learning.options import TrainOptions

    own = dict(flags)
    tables = {
        "partition": {
            "kind": own.pop("partition"),
            **{name: own.pop(name) for name in ("classes_per_device", "concentration")},
        },
        "link": {
            name: own.pop(name) for name in ("normalise", "statistics", "channel_error", "phase_error_deg")
        },
        "server": {
            "kind": own.pop("server"),
            **{name: own.pop(f"server_{name}") for name in ("learning_rate", "beta1", "beta2", "tau")},
        },
    }
    options: TrainOptions = with_options(TrainOptions(), own | tables)
    return options


@cli.group()
def data() -> None:
    """Download, list and verify data sets."""


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Folder of downloaded data sets.  [default: $AIRPASS_DATA, else the platform's cache directory]",
)


@data.command("fetch")
@click.argument("names", nargs=-1, required=True)
@data_dir_option
def data_fetch(names: Sequence[str], data_dir: Path | None) -> None:
    """Download data sets and verify their checksums."""
    from airpass.learning.data import data_source

    sources = [data_source(name) for name in names]
    with progress("Downloading") as report:
        paths = [source.fetch(data_dir, report) for source in sources]
    for path in paths:
        console().print(str(path), soft_wrap=True)


@data.command("list")
@data_dir_option
@json_option
def data_list(data_dir: Path | None, json_path: str | None) -> None:
    """List the data sets and their state: ok, absent or damaged."""
    from airpass.learning.data import SOURCES
    from airpass.learning.data.download import data_directory

    rows = [
        {
            "name": name,
            "state": source.check(data_dir),
            "summary": source.summary,
            "cite": source.citation,
        }
        for name, source in SOURCES.methods().items()
    ]
    write_json(json_path, lambda: {"datasets": rows, "directory": str(data_directory(data_dir))})
    if json_path == "-":
        return
    from rich.table import Table

    table = Table("name", "state", "description", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["state"], f"{row['summary']}. {row['cite']}")
    console().print(table)


@data.command("verify")
@click.argument("names", nargs=-1)
@data_dir_option
def data_verify(names: Sequence[str], data_dir: Path | None) -> None:
    """Verify the checksums of stored data sets; all of them if no name is given."""
    from airpass.learning.data import SOURCES, data_source

    sources = [data_source(name) for name in names] or SOURCES.methods().values()
    states = {source.name: source.check(data_dir) for source in sources}
    for name, state in states.items():
        console().print(f"{name}: {state}", soft_wrap=True)
    if any(state.startswith("damaged") for state in states.values()):
        raise InvalidInput("a data set is damaged: 'airpass data fetch NAME' downloads it again")


@cli.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Folder for figures, JSON and report.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of everything random.")
@click.option("--rounds", type=int, default=100, show_default=True, help="Communication rounds of training.")
def demo(out: Path, seed: int, rounds: int) -> None:
    """Design and train the paper's K=10, M=5, N=5, 10 dB set-up with all fast schemes; write a report."""
    from airpass.study.demo import run

    checks.whole("seed", seed, 0)
    checks.whole("rounds", rounds, 1)
    with training_bars(rounds) as bars:
        rows = run(
            out,
            seed,
            rounds,
            on_start=bars.start,
            on_round=bars.show,
            on_end=lambda runs: write_training(runs, out / "training"),
        )
    from rich.table import Table

    table = Table("scheme", box=None, header_style="bold", pad_edge=False)
    for name in ("selected", "weakest score", "MSE", "test accuracy"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.scheme, row.selected, row.weakest_score, row.mse, row.accuracy)
    screen = console()
    screen.print(table)
    screen.print(f"\nReport, figures and JSON: {out / 'report.html'}", soft_wrap=True)
