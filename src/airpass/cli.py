"""The `airpass` command. Every command imports what it needs when it runs."""

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass import checks
from airpass.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.certificates import Certificate
    from airpass.designing import Design
    from airpass.designs.base import Step
    from airpass.learning.training import TrainingRun
    from airpass.scenario import Scenario
    from airpass.selecting import Selection
    from airpass.training_session import Bars

DEVICE_ROWS = 60  # longer tables are cut on the terminal; the JSON has all

SET_VERDICTS = {
    "feasible": "fits one beam (a beam was found)",
    "infeasible": "fits no beam (proved)",
    "undecided": "no beam found, but no proof that there is none",
}

json_option = click.option(
    "--json", "json_path", metavar="PATH", help="Write the result as JSON to PATH ('-' for standard output)."
)
figure_option = click.option(
    "--figure",
    "figure_path",
    type=click.Path(path_type=Path),
    help="Draw the result to a .png, .pdf or .svg file.",
)
option_option = click.option(
    "--option",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change an option of the method, e.g. selection.starts=16. May be repeated; "
    "`airpass methods --options` lists them.",
)


def scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that describe a scenario; the command gets `scenario` and `seed`."""

    @click.option("--scenario", "scenario_path", type=click.Path(path_type=Path), help="TOML file.")
    @click.option("--devices", type=int, help="Number of devices K.  [default: 10]")
    @click.option("--waveguides", type=int, help="Number of waveguides M.  [default: 5]")
    @click.option("--antennas", type=int, help="Antennas on each waveguide N.  [default: 5]")
    @click.option("--snr-db", type=float, help="Transmit power over noise power P0/σ², dB.  [default: 10]")
    @click.option(
        "--seed",
        type=int,
        help="Seed of everything random, the devices too where they are drawn.  [default: 0]",
    )
    @click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Change a value of the scenario, e.g. receiver.length_m=20. May be repeated.",
    )
    @wraps(command)
    def with_scenario(
        scenario_path: Path | None,
        devices: int | None,
        waveguides: int | None,
        antennas: int | None,
        snr_db: float | None,
        seed: int | None,
        overrides: Sequence[str],
        **others: Any,
    ) -> None:
        shorthand = {
            "devices.count": devices,
            "receiver.waveguides": waveguides,
            "receiver.antennas": antennas,
            "radio.snr_db": snr_db,
        }
        scenario = _scenario(scenario_path, shorthand, seed, overrides)
        command(scenario=scenario, seed=checks.whole("seed", seed or 0, 0), **others)

    return with_scenario


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="airpass", message="airpass %(version)s")
def cli() -> None:
    """Over-the-air federated learning with pinching-antenna receivers."""


@cli.command()
@scenario_options
@click.option("--method", help="Design method; see `airpass methods`.  [default: airpass]")
@click.option("--selection", help="Instead of --method: Algorithm 3 with this selection method.")
@click.option("--geometry", help="Instead of --method: Algorithm 3 with this geometry method.")
@option_option
@json_option
@figure_option
def design(
    scenario: "Scenario",
    seed: int,
    method: str | None,
    selection: str | None,
    geometry: str | None,
    changes: Sequence[str],
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Choose devices, receive beam and antenna layout for one scenario.

    The scenario is the paper's (all lengths in metres, gains relative) unless --scenario
    gives a file; the shorthand options and --set change single values of either.
    """
    _check_outputs(json_path, figure_path)
    from airpass.designing import design as run

    with _progress("Designing") as report:

        def on_step(step: "Step") -> None:
            report(
                f"round {step.iteration}: {step.selected_count} selected, weakest {step.weakest_score:.3g}"
            )

        result = run(
            scenario,
            method,
            selection=selection,
            geometry=geometry,
            options=_nested(changes, "option"),
            seed=seed,
            on_step=on_step,
            report=report,
        )
    from airpass.documents import design_document

    _write_json(json_path, lambda: design_document(result))
    if figure_path is not None:
        from airpass.figures.room import draw_design
        from airpass.figures.style import save

        save(draw_design(result), figure_path)
    if json_path != "-":
        _print_design(result)


@cli.command()
@click.option(
    "--channels",
    "channels_path",
    type=click.Path(path_type=Path),
    required=True,
    help="Complex channel matrix of shape (M, K), one column a device: .npy, or MATLAB .mat.",
)
@click.option("--variable", help="Name of the channel matrix, where a .mat file holds several.")
@click.option(
    "--weights",
    "weights_path",
    type=click.Path(path_type=Path),
    help="Weights φ_k, one for each device (.npy or .mat).  [default: 1/K each]",
)
@click.option("--weights-variable", help="Name of the weights, where a .mat file holds several variables.")
@click.option("--budget", type=float, help="Γ = P0 ε/σ². Or give --snr-db with --mse-threshold.")
@click.option("--snr-db", type=float, help="Transmit power over noise power P0/σ², dB.")
@click.option("--mse-threshold", type=float, help="Largest aggregation error ε.")
@click.option("--power", type=float, default=1.0, show_default=True, help="Largest transmit power P0.")
@click.option("--method", default="hrmc", show_default=True, help="Selection method; see `airpass methods`.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@click.option("--certify", is_flag=True, help="Also prove how many devices any beam can select at most.")
@click.option(
    "--check-set",
    metavar="K,K,...",
    help="Also say whether these devices fit one beam: a beam for them, or a proof that there is none.",
)
@option_option
@json_option
@figure_option
def select(
    channels_path: Path,
    variable: str | None,
    weights_path: Path | None,
    weights_variable: str | None,
    budget: float | None,
    snr_db: float | None,
    mse_threshold: float | None,
    power: float,
    method: str,
    seed: int,
    certify: bool,
    check_set: str | None,
    changes: Sequence[str],
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Choose devices and receive beam for channels of your own."""
    _check_outputs(json_path, figure_path)
    from airpass import certificates
    from airpass.arrays import read_array
    from airpass.certificates import parse_set
    from airpass.selecting import checked_channels, checked_weights
    from airpass.selecting import select as run

    channels = checked_channels(read_array(channels_path, variable), str(channels_path))
    suspects = None if check_set is None else parse_set(check_set, channels.shape[1])
    weights = None
    if weights_path is not None:
        read = read_array(weights_path, weights_variable, "--weights-variable")
        weights = checked_weights(read, channels.shape[1], str(weights_path))
    with _progress("Selecting") as report:
        result = run(
            channels,
            weights,
            budget,
            method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            power=power,
            options=_nested(changes, "option"),
            seed=seed,
            report=report,
        )
        certificate = checked = None
        if certify:
            report("proving a bound")
            certificate = certificates.upper_bound(result.effective)
        if suspects is not None:
            report("checking the set")
            checked = certificates.check_set(result.effective, suspects, seed)
    from airpass.documents import certificate_document, selection_document, set_document

    def document() -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if certificate is not None:
            extra["certificate"] = certificate_document(certificate)
        if checked is not None and suspects is not None:
            extra["set"] = set_document(suspects, checked)
        return selection_document(result) | extra

    _write_json(json_path, document)
    if figure_path is not None:
        from airpass.figures.room import draw_selection
        from airpass.figures.style import save

        save(draw_selection(result), figure_path)
    if json_path != "-":
        _print_selection(result, certificate)
        if checked is not None:
            _console().print(f"\nset {check_set}: {SET_VERDICTS[checked.verdict]}", highlight=False)


@cli.command()
@click.option("--options", "with_options", is_flag=True, help="List every method's options with defaults.")
@json_option
def methods(with_options: bool, json_path: str | None) -> None:
    """List every selection, geometry and design method."""
    from airpass import designs, geometry, selection
    from airpass.registry import options_dict

    kinds: list[tuple[str, Any]] = [
        ("selection", selection.methods()),
        ("geometry", geometry.methods()),
        ("design", designs.methods()),
    ]
    rows = [
        {
            "kind": kind,
            "name": found.name,
            "summary": found.summary,
            "options": options_dict(found.options()),
        }
        for kind, group in kinds
        for found in group.values()
    ]
    _write_json(json_path, lambda: {"methods": rows})
    if json_path == "-":
        return
    from rich.table import Table

    table = Table("kind", "name", "what it does", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["kind"], row["name"], row["summary"])
        if with_options:
            for name, value in _flat(row["options"]):
                table.add_row("", "", f"  {name} = {value}")
    _console().print(table)


@cli.command()
@scenario_options
@click.option(
    "--scheme",
    "schemes",
    default="fedavg,airpass",
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
    with _bars() as bars:
        runs = session.run_all(
            scenario, names, dataset, options, seed, folder, resume, workers, data_dir, bars
        )
    from airpass.documents import training_document

    _write_json(json_path, lambda: training_document(runs))
    if json_path != "-":
        _print_training(runs, folder)
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

    with _progress("Fetching") as report:
        paths = [download.fetch(name, data_dir, report) for name in names]
    for path in paths:
        _console().print(str(path), soft_wrap=True)


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
    _write_json(json_path, lambda: {"datasets": rows, "directory": str(download.data_directory(data_dir))})
    if json_path == "-":
        return
    from rich.table import Table

    table = Table("name", "state", "what it is", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["state"], f"{row['summary']}. {row['cite']}")
    _console().print(table)


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
        _console().print(f"{name}: {state}", soft_wrap=True)
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
    from airpass.demo import run

    with _bars() as bars:
        rows = run(out, checks.whole("seed", seed, 0), checks.whole("rounds", rounds, 1), bars)
    from rich.table import Table

    table = Table("scheme", box=None, header_style="bold", pad_edge=False)
    for name in ("selected", "weakest score", "MSE", "test accuracy"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.scheme, row.selected, row.weakest_score, row.mse, row.accuracy)
    console = _console()
    console.print(table)
    console.print(f"\nReport, figures and JSON: {out / 'report.html'}", soft_wrap=True)


# Input ------------------------------------------------------------------------------


def _scenario(
    path: Path | None, shorthand: dict[str, Any], seed: int | None, overrides: Sequence[str]
) -> "Scenario":
    """The scenario of a file or of the paper, with single values changed."""
    from airpass.scenario import Scenario, read_tables

    tables = read_tables(path) if path is not None else {}
    given = [f"{key}={value}" for key, value in shorthand.items() if value is not None]
    _merge(tables, _nested(given, "set"))
    _merge(tables, _nested(overrides, "set"))
    devices = tables.get("devices", {})
    if (
        seed is not None
        and isinstance(devices, dict)
        and not {"x_m", "y_m", "gain", "samples"} & set(devices)
    ):
        tables.setdefault("devices", {})["seed"] = seed
    return Scenario.from_dict(tables)


def _nested(assignments: Sequence[str], flag: str) -> dict[str, Any]:
    """{"a": {"b": value}} from "a.b=value"; values are TOML, but text for --option."""
    tree: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        keys = name.strip().split(".")
        if not equals or not all(keys):
            raise InvalidInput(f"--{flag} {text!r}: must have the form NAME=VALUE")
        branch = tree
        for key in keys[:-1]:
            branch = branch.setdefault(key, {})
            if not isinstance(branch, dict):
                raise InvalidInput(f"--{flag} {text!r}: {key} already has a value")
        branch[keys[-1]] = _toml_value(value.strip()) if flag != "option" else value.strip()
    return tree


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and key in into:
            if not isinstance(into[key], dict):
                raise InvalidInput(f"{key} = {into[key]!r}: must be a table of keys")
            _merge(into[key], value)
        else:
            into[key] = value


def _check_outputs(json_path: str | None, figure_path: Path | None) -> None:
    """Refuse an output that cannot be written before any work is done."""
    if figure_path is not None:
        from airpass.figures.style import checked_format

        checked_format(figure_path)
    for path in (json_path, figure_path):
        if path is not None and str(path) != "-" and Path(path).is_dir():
            raise InvalidInput(f"{path}: is a directory; give the name of a file")


# Output -----------------------------------------------------------------------------


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[str], None]]:
    """A spinner with elapsed time on stderr; nothing where stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(f"{label} (the first run compiles for about half a minute)")
        yield lambda text: progress.update(task, description=f"{label}: {text}")


@contextmanager
def _bars() -> Iterator["Bars"]:
    """A progress bar for every training run, on stderr; nothing where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from airpass.training_session import Bars

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        yield Bars(progress)


def _print_training(runs: Sequence["TrainingRun"], folder: Path) -> None:
    from rich.table import Table

    table = Table("scheme", box=None, header_style="bold", pad_edge=False)
    for name in ("selected", "rounds", "test accuracy", "test loss", "MSE predicted", "measured", "seconds"):
        table.add_column(name, justify="right")
    for run in runs:
        last = run.history[-1]
        table.add_row(
            run.scheme,
            f"{last.selected_count} of {run.scenario.devices.count}",
            str(last.round),
            f"{100 * last.test_accuracy:.2f} %",
            f"{last.test_loss:.4f}",
            f"{last.predicted_mse:.4g}",
            f"{last.measured_mse:.4g}",
            f"{last.seconds:.0f}",
        )
    console = _console()
    console.print(table)
    console.print(f"\nHistory, curves and checkpoints: {folder}", soft_wrap=True)


def _write_json(path: str | None, build: Callable[[], dict[str, Any]]) -> None:
    if path is None:
        return
    from airpass.documents import encode
    from airpass.files import write_atomically

    content = encode(build())
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_atomically(Path(path), content)


def _flat(options: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _print_design(design: "Design") -> None:
    from rich.table import Table

    console = _console()
    receiver, radio = design.scenario.receiver, design.scenario.radio
    console.print(
        f"[bold]{design.method}[/]  M={receiver.waveguides} waveguides, N={receiver.antennas} antennas each, "
        f"K={design.scenario.devices.count} devices, {radio.snr_db:g} dB"
    )
    _print_summary(console, design.selection, design.seconds)
    if design.layout is not None:
        table = Table("waveguide", "antenna positions, m", box=None, header_style="bold", pad_edge=False)
        for m, positions in enumerate(design.layout):
            table.add_row(str(m), " ".join(f"{value:6.3f}" for value in positions))
        console.print(table)
        console.print()
    devices = design.scenario.devices
    _print_devices(console, design.selection, [("x, m", devices.x_m), ("y, m", devices.y_m)])


def _print_selection(selection: "Selection", certificate: "Certificate | None") -> None:
    console = _console()
    chains, count = selection.channels.shape
    console.print(f"[bold]{selection.method}[/]  {chains} receive chains, {count} devices")
    _print_summary(console, selection, selection.seconds, certificate)
    _print_devices(console, selection, [])


def _print_summary(
    console: Any, selection: "Selection", seconds: float, certificate: "Certificate | None" = None
) -> None:
    count = selection.selected_count
    parts = [f"selected {count} of {selection.scores.size}"]
    if certificate is not None:
        parts.append(f"at most {certificate.at_most} by any beam")
    label = "weakest score" if count else "best score"
    parts.append(f"{label} {selection.weakest_score:.4g} (1 is needed)")
    if count and selection.mse_threshold is not None:
        parts.append(f"MSE {selection.mse:.4g} (limit {selection.mse_threshold:g})")
    parts.append(f"{seconds:.3g} s")
    console.print(", ".join(parts))
    if selection.status not in ("done", "converged"):
        console.print(f"ended by: {selection.status}")
    console.print()


def _print_devices(console: Any, selection: "Selection", columns: list[tuple[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ["device", *(name for name, _ in columns), "weight φ", "score z", "|b|²", "selected"]:
        table.add_column(name, justify="right")
    power = abs(selection.aggregation.transmit) ** 2
    for k in range(min(selection.scores.size, DEVICE_ROWS)):
        chosen = bool(selection.selected[k])
        table.add_row(
            str(k),
            *(f"{values[k]:.2f}" for _, values in columns),
            f"{selection.weights[k]:.4g}",
            f"{selection.scores[k]:.4g}",
            f"{power[k]:.3g}" if chosen else "",
            "yes" if chosen else "-",
        )
    console.print(table)
    if selection.scores.size > DEVICE_ROWS:
        console.print(f"... and {selection.scores.size - DEVICE_ROWS} more; --json has all")


# Entry ------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors end in one line on stderr and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Greek letters shows "?"
    try:
        cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="airpass",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "airpass"
        _fail(f"{error.format_message()} (see {where} --help)")
    except click.ClickException as error:
        _fail(error.format_message())
    except InvalidInput as error:
        _fail(str(error))
    except MemoryError:
        _fail("not enough memory for a problem of this size")
    except (KeyboardInterrupt, click.Abort):
        click.echo("airpass: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe (head, less) went away: not our error. Keep Python from
        # complaining when it flushes standard output on the way out.
        sys.stdout = None
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}")


def _fail(message: str) -> None:
    click.echo("airpass: " + " ".join(message.split()), err=True)
    sys.exit(2)
