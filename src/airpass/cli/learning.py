"""`airpass train`, `airpass data` and `airpass demo`."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from airpass.cli.channels import channels_options
from airpass.cli.motion import MotionFlags, motion_options
from airpass.cli.options import json_option, priorities_options, scenario_options
from airpass.cli.output import (
    console,
    print_training,
    write_json,
    write_training,
)
from airpass.cli.progress import (
    progress,
    training_bars,
)
from airpass.cli.root import OutputFolder, cli
from airpass.cli.streams import tell
from airpass.cli.turns import all_devices_option, move_option, turns_of, turns_option
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.cli.channels import ChannelsFile
    from airpass.designs.api import Design
    from airpass.designs.book import Book
    from airpass.designs.moving import Moving
    from airpass.designs.queues import Queues
    from airpass.learning.history import TrainingRun
    from airpass.learning.options import TrainOptions
    from airpass.scenario import Scenario


@cli.command()
@scenario_options
@channels_options(required=False)
@click.option(
    "--channel-blocks",
    type=click.Choice(["held", "per-round"]),
    help="With --channels: the first draw in all rounds, or draw (r - 1) mod T in round r with a selection "
    "for each.  [default: held]",
)
@click.option("--mse-threshold", type=float, help="Largest aggregation error ε.  [default: 0.03]")
@click.option(
    "--scheme",
    "schemes",
    help="Schemes to compare, separated by commas: fedavg (ideal), or any design of `airpass methods`; with "
    "--channels, any selection.  [default: fedavg,airpass-plus; with --channels fedavg,hrmc; none with "
    "--design]",
)
@click.option(
    "--design",
    "design_files",
    metavar="FILE,...",
    help="Stored designs, or books of `airpass schedule`, to train over, separated by commas. They keep "
    "their devices and weights.",
)
@turns_option(
    None, "Every scheme but fedavg goes through N designs by turns, as found by `airpass schedule`."
)
@move_option
@all_devices_option
@priorities_options("samples", "classes")
@click.option(
    "--policy",
    type=click.Choice(["queues"]),
    help="Which devices a round serves: queues, those that have missed the most rounds.  "
    "[default: as many as possible]",
)
@click.option(
    "--target-share",
    type=float,
    help="With --policy: share of the rounds in which every device is to take part, at most 1. A device "
    "makes up for at most 1/share rounds at once.  [default: 0.2]",
)
@click.option(
    "--round-seconds",
    type=float,
    help="Duration of a round, s: devices move meanwhile, and every scheme but fedavg tracks them as "
    "`airpass track` does.  [default: devices do not move]",
)
@motion_options("every round")
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
    "--precision",
    type=click.Choice(["single", "bfloat16"]),
    default="single",
    show_default=True,
    help="Of products in the network; bfloat16 is faster on some processors.",
)
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
@click.option("--server-beta1", type=float, help="For momentum and adam.  [default: 0.9]")
@click.option("--server-beta2", type=float, help="For adam.  [default: 0.99]")
@click.option("--server-tau", type=float, help="For adam.  [default: 0.001]")
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
    type=OutputFolder(),
    help="Folder for history, curves and checkpoints.  [default: runs/train-DATASET, numbered if it exists]",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run from its checkpoints in --out.")
@json_option
def train(
    scenario: "Scenario",
    seed: int,
    channels: "ChannelsFile | None",
    channel_blocks: str | None,
    mse_threshold: float | None,
    schemes: str | None,
    design_files: str | None,
    turns: str | None,
    move: str | None,
    all_devices: bool,
    priorities: Any,
    policy: str | None,
    target_share: float | None,
    round_seconds: float | None,
    moving: MotionFlags,
    dataset: str,
    workers: int | None,
    data_dir: Path | None,
    out: Path | None,
    resume: bool,
    json_path: str | None,
    **flags: Any,
) -> None:
    """Train a model by federated learning over a designed link, or over given channels.

    All schemes see the same devices, data split, initial weights, mini-batches and noise.
    """
    from airpass.learning.checkpoint import OtherRun
    from airpass.learning.compare import compare, compare_channels
    from airpass.learning.pool import WorkersLost

    options = train_options(flags)
    rounds_move = _moving(round_seconds, moving, seed)
    queues = _queues(policy, target_share)
    given: dict[str, Any] = {}
    if design_files is not None:
        if priorities is not None:
            raise InvalidInput("--priorities cannot be combined with --design, which has its own devices")
        given = stored_designs(design_files)
        scenario = next(iter(given.values())).scenario
        if _flag("seed") is None:
            seed = scenario.seed
        if channels is not None:
            raise InvalidInput("--channels cannot be combined with --design, which has its own channels")
    elif schemes is None:
        schemes = "fedavg,airpass-plus" if channels is None else "fedavg,hrmc"
    named = [] if schemes is None else [name.strip() for name in schemes.split(",")]
    if workers is not None:
        checks.whole("workers", workers, 1)
    if mse_threshold is not None:
        scenario = scenario.with_radio(mse_threshold=mse_threshold)
    folder = out if out is not None else run_folder(Path("runs") / f"train-{Path(dataset).stem}", resume)
    if (folder / "provenance.json").exists():
        raise InvalidInput(f"{folder}: holds a study, not training runs: give another --out")
    run: Callable[..., list[TrainingRun]]
    if channels is None:
        if channel_blocks is not None:
            raise InvalidInput("--channel-blocks requires --channels")
        if move is not None and turns is None and policy is None:
            raise InvalidInput("--move requires --turns or --policy")
        by_turns = None if turns is None else turns_of(turns)
        for flag, value in (("--turns", turns), ("--policy", policy), ("--round-seconds", round_seconds)):
            if all_devices and value is not None:
                raise InvalidInput(f"--all-devices cannot be combined with {flag}")
        run = partial(
            compare,
            scenario,
            turns=by_turns,
            move=move or "antennas",
            all_devices=all_devices,
            moving=rounds_move,
            policy=queues,
        )
    else:
        _check_no_scenario()
        if turns is not None or move is not None:
            raise InvalidInput("--turns cannot be combined with --channels")
        if all_devices:
            raise InvalidInput("--all-devices cannot be combined with --channels")
        run = partial(
            compare_channels,
            channels.draws,
            snr_db=scenario.radio.snr_db,
            mse_threshold=scenario.radio.mse_threshold,
            weights=channels.weights,
            blocks=channel_blocks or "held",
            policy=queues,
        )
    try:
        # A user's model may print; standard output is for results.
        with training_bars(options.rounds) as bars, redirect_stdout(sys.stderr):
            runs = run(
                {name: name for name in named} | given if given else named,
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
                priorities=priorities,
            )
    except OtherRun as error:
        raise InvalidInput(f"{error}; use another --out, or omit --resume") from None
    except KeyboardInterrupt:
        _stop("interrupted", folder, 130)
    except WorkersLost as error:
        _stop(str(error), folder, 1)
    from airpass.documents import training_document

    write_json(json_path, lambda: training_document(runs))
    if json_path != "-":
        print_training(runs, folder)
    report_divergence(runs)
    if runs[-1].interrupted or runs[-1].stopped:
        _stop(f"{runs[-1].scheme} {runs[-1].status}", folder, 130 if runs[-1].interrupted else 1)
    if any(run.diverged for run in runs):
        sys.exit(1)


def _stop(reason: str, folder: Path, code: int) -> NoReturn:
    """Say how to continue a run that was not finished, and end."""
    tell(f"{reason}; continue with --resume --out {shlex.quote(str(folder))}")
    sys.exit(code)


def _queues(policy: str | None, share: float | None) -> "Queues | None":
    """The policy; None if as many devices as possible are served. Flags that exclude it are refused."""
    if policy is None:
        if share is not None:
            raise InvalidInput("--target-share requires --policy")
        return None
    others = {"design_files": "--design", "turns": "--turns", "redraw_every": "--redraw-every"}
    for name, flag in others.items():
        if _flag(name) is not None:
            raise InvalidInput(f"{flag} cannot be combined with --policy, which finds a link per round")
    from airpass.designs.queues import Queues

    if share is None:
        return Queues()
    if checks.positive("target_share", share) > 1.0:
        raise InvalidInput(f"--target-share = {share:g}: must be <= 1")
    return Queues(share=share)


def _moving(round_seconds: float | None, flags: MotionFlags, seed: int) -> "Moving | None":
    """Devices that move during training; None if they rest. Flags that exclude it are refused."""
    if round_seconds is None:
        if flags.given is not None:
            raise InvalidInput(f"{flags.given} requires --round-seconds")
        return None
    checks.positive("round_seconds", round_seconds)
    others = {
        "channels_path": "--channels",
        "design_files": "--design",
        "turns": "--turns",
        "move": "--move",
        "redraw_every": "--redraw-every",
    }
    for name, flag in others.items():
        if _flag(name) is not None:
            raise InvalidInput(f"{flag} cannot be combined with --round-seconds, in which devices move")
    if flags.time_limit_s is not None and _flag("resume"):
        raise InvalidInput(
            "--time-limit-s cannot be combined with --resume: antennas would move in another way; omit one"
        )
    from airpass.designs.moving import Moving

    every = flags.layout_every_ms
    if every is not None:
        checks.positive("layout_every_ms", every)
    return Moving(
        flags.model(seed),
        round_seconds,
        layout_every_s=None if every is None else 1e-3 * every,
        **flags.antennas(),
    )


def report_divergence(runs: Sequence["TrainingRun"]) -> None:
    """Print the schemes that diverged, a line each."""
    for run in runs:
        if run.diverged:
            last = run.history[-1].round
            kept = f"model after round {last}" if last else "initial model"
            tell(
                f"{run.scheme} {run.status}: its numbers are no longer finite. The {kept} is kept; "
                "a smaller --learning-rate may help"
            )


def run_folder(base: Path, resume: bool) -> Path:
    """The folder of a run without --out: the last one to resume, else one that is not used yet."""
    used = base if base.exists() else None
    number = 2
    while (numbered := base.with_name(f"{base.name}-{number}")).exists():
        used, number = numbered, number + 1
    if used is None or resume:
        return used or base
    return numbered


def stored_designs(files: str) -> dict[str, "Design | Book"]:
    """The designs and books of `train --design`, named after their methods, or else after their files."""
    from airpass.designs.api import Design
    from airpass.designs.book import Book
    from airpass.results import load

    for flag in ("scenario_path", "preset", "devices", "waveguides", "antennas", "snr_db", "overrides"):
        if _flag(flag) is not None:
            option = {"scenario_path": "scenario", "overrides": "set"}.get(flag, flag.replace("_", "-"))
            raise InvalidInput(f"--{option} cannot be combined with --design, which has its own scenario")
    paths = [Path(text.strip()) for text in files.split(",")]
    found = [load(path) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if not isinstance(one, Design | Book):
            raise InvalidInput(f"--design {path}: holds no design; give a file of airpass design --json")
        count, first = one.scenario.devices.count, found[0].scenario.devices.count
        if count != first:
            raise InvalidInput(
                f"--design {path}: has {count} devices, {paths[0]} has {first}; "
                "give designs for the same devices"
            )
    for names in ([one.method.name for one in found], [path.stem for path in paths]):
        if len(set(names)) == len(names):
            return dict(zip(names, found, strict=True))
    raise InvalidInput(f"--design {files}: two files have the same name and the same method")


def _flag(name: str) -> Any:
    """The value of a flag of the current command, if it was given."""
    context = click.get_current_context()
    return context.params[name] if context.get_parameter_source(name) == ParameterSource.COMMANDLINE else None


def _check_no_scenario() -> None:
    """Refuse flags that describe a receiver or devices, which given channels replace."""
    flags = {
        "scenario_path": "--scenario",
        "preset": "--preset",
        "devices": "--devices",
        "waveguides": "--waveguides",
        "antennas": "--antennas",
        "overrides": "--set",
        "redraw_every": "--redraw-every",
    }
    context = click.get_current_context()
    for name, flag in flags.items():
        if context.params.get(name):
            raise InvalidInput(f"{flag} cannot be combined with --channels: channels are given, not computed")


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
    type=OutputFolder(),
    default="runs/demo",
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
    screen.print("To change the receiver by hand in the browser: airpass explore", soft_wrap=True)
