"""Output of commands: tables, progress on stderr, JSON."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from airpass.aircomp import Link
    from airpass.designs.api import Design
    from airpass.designs.tolerance import Tolerance
    from airpass.learning.history import TrainingRun
    from airpass.selection.api import Selection
    from airpass.selection.certificate import Certificate

SHOWN_COMPILE_S = 0.05  # shorter compile times are not printed
DEVICE_ROWS = 60  # longer tables are cut on the terminal; the JSON has all rows

SET_VERDICTS = {
    "feasible": "feasible (a beam was found)",
    "infeasible": "infeasible (proved)",
    "undecided": "undecided (no beam found, infeasibility not proved)",
}


def console() -> Any:
    """Standard output with tables and bold."""
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def progress(label: str) -> Iterator[Callable[[str], None]]:
    """Spinner with elapsed time on stderr; disabled if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task(f"{label} (the first run compiles kernels for about half a minute)")
        yield lambda text: bar.update(task, description=f"{label}: {text}")


class TrainingBars:
    """A progress bar per scheme."""

    def __init__(self, progress: Any, rounds: int) -> None:
        self._progress = progress
        self._rounds = rounds
        self._bars: dict[str, Any] = {}
        self._loading: Any = None
        self._said = ""

    def report(self, text: str) -> None:
        """Show a message about loading; without a terminal, a line for each kind of message."""
        if self._progress.disable:
            label = text.partition(":")[0]
            if label != self._said:
                click.echo(f"airpass: {text}", err=True)
            self._said = label
            return
        if self._loading is None:
            self._loading = self._progress.add_task("data", total=None, note="")
        self._progress.update(self._loading, note=text)

    def start(self, scheme: str) -> None:
        """Add a bar."""
        if self._loading is not None:
            self._progress.remove_task(self._loading)
            self._loading = None
        self._bars[scheme] = self._progress.add_task(scheme, total=self._rounds, note="")

    def show(self, scheme: str, done: int, values: Mapping[str, float]) -> None:
        """Advance a bar. Accuracy is that of the last evaluation, loss and MSE those of the last round."""
        accuracy = "" if isnan(values["accuracy"]) else f"accuracy {100 * values['accuracy']:.1f} %  "
        note = (
            f"{accuracy}loss {values['loss']:.3f}  selected {values['selected']:g}  MSE {values['mse']:.3g}"
        )
        self._progress.update(self._bars[scheme], completed=done, note=note)


@contextmanager
def training_bars(rounds: int) -> Iterator[TrainingBars]:
    """A progress bar per scheme on stderr; none if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True)
    with Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=screen,
        disable=not screen.is_terminal,
    ) as bar:
        yield TrainingBars(bar, rounds)


def write_training(runs: Sequence["TrainingRun"], folder: Path) -> None:
    """Write histories as JSON and Parquet, and the curves."""
    from airpass.core.files import write_atomically
    from airpass.documents import encode, training_document, training_table
    from airpass.figures.style import render
    from airpass.figures.training import draw_training

    write_atomically(folder / "history.json", encode(training_document(runs)))
    write_atomically(folder / "history.parquet", training_table(runs))
    figure = draw_training(runs)
    for kind in ("png", "pdf"):
        write_atomically(folder / f"curves.{kind}", render(figure, kind))


def print_training(runs: Sequence["TrainingRun"], folder: Path | None) -> None:
    """Print the last evaluated round of each scheme, and the folder if there is one."""
    from rich.table import Table

    table = Table("scheme", box=None, header_style="bold", pad_edge=False)
    for name in (
        "selected",
        "rounds",
        "test accuracy",
        "test loss",
        "MSE predicted",
        "measured",
        "SDR",
        "seconds",
    ):
        table.add_column(name, justify="right")
    for run in runs:
        last = run.history[-1]
        table.add_row(
            run.scheme,
            f"{last.selected_count} of {run.devices}",
            str(last.round),
            "-" if isnan(last.test_accuracy) else f"{100 * last.test_accuracy:.2f} %",
            f"{last.test_loss:.4f}",
            f"{last.predicted_mse:.4g}",
            f"{last.measured_mse:.4g}",
            f"{last.measured_sdr_db:.1f} dB",
            f"{last.seconds:.0f}",
        )
    screen = console()
    screen.print(table)
    if folder is not None:
        screen.print(f"\nHistory, curves and checkpoints: {folder}", soft_wrap=True)


def write_json(path: str | None, build: Callable[[], dict[str, Any]]) -> None:
    """Write the document that `build` returns to a file, or to standard output for "-"."""
    if path is None:
        return
    from airpass.core.files import write_atomically
    from airpass.documents import encode

    content = encode(build())
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_atomically(Path(path), content)


def flat(options: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested options as names with dots."""
    for name, value in options.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def print_design(design: "Design") -> None:
    """Summary, layout and devices of a design."""
    from rich.table import Table

    screen = console()
    receiver, radio = design.scenario.receiver, design.scenario.radio
    screen.print(
        f"[bold]{design.method.name}[/]  M={receiver.waveguides} waveguides, N={receiver.antennas} antennas "
        f"each, K={design.scenario.devices.count} devices, {radio.snr_db:g} dB"
    )
    _print_summary(screen, design)
    if design.layout is not None:
        table = Table("waveguide", "antenna positions, m", box=None, header_style="bold", pad_edge=False)
        for m, positions in enumerate(design.layout):
            table.add_row(str(m), " ".join(f"{value:6.3f}" for value in positions))
        screen.print(table)
        screen.print()
    devices = design.scenario.devices
    _print_devices(screen, design, [("x, m", devices.x_m), ("y, m", devices.y_m)])


def print_tolerance(tolerance: "Tolerance") -> None:
    """Aligned devices under position and channel errors."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("receiver", no_wrap=True)
    for name in ("senders", "aligned", "5 %", "50 %", "95 %", "misaligned", "MSE, 95 %", "MSE ok"):
        table.add_column(name, justify="right")
    for name, outcome in tolerance.outcomes.items():
        table.add_row(
            name,
            f"{outcome.senders.mean():.1f}",
            f"{outcome.mean:.1f}",
            *(f"{value:.0f}" for value in outcome.quantiles),
            f"{100.0 * outcome.misalignment:.1f} %",
            f"{outcome.high_mse:.4g}",
            f"{100.0 * outcome.within:.1f} %",
        )
    screen = console()
    knowledge = f", channel error {tolerance.channel_error:g}" if tolerance.channel_error else ""
    screen.print(
        f"\nPosition error {tolerance.position_mm:g} mm (standard deviation){knowledge}, "
        f"{tolerance.draws} draws; {tolerance.nominal} devices without errors",
        soft_wrap=True,
    )
    screen.print(table)


def print_selection(selection: "Selection", certificate: "Certificate | None") -> None:
    """Summary and devices of a selection."""
    screen = console()
    chains, count = selection.channels.shape
    screen.print(f"[bold]{selection.method.name}[/]  {chains} receive chains, {count} devices")
    _print_summary(screen, selection, certificate)
    _print_devices(screen, selection, [])


def print_set(devices: Sequence[int], verdict: str) -> None:
    """The verdict on a set of devices."""
    console().print(f"\nset {','.join(map(str, devices))}: {SET_VERDICTS[verdict]}", highlight=False)


def print_draws(selections: Sequence["Selection"], bounds: Sequence[int], verdicts: Sequence[str]) -> None:
    """A summary of the selections for a stack of draws, and a row for each."""
    from statistics import mean

    from rich.table import Table

    screen = console()
    first = selections[0]
    chains, devices = first.channels.shape
    counts = [selection.selected_count for selection in selections]
    screen.print(
        f"[bold]{first.method.name}[/]  {len(selections)} draws, {chains} receive chains, {devices} devices"
    )
    screen.print(f"selected {mean(counts):.1f} of {devices} on average, {min(counts)} to {max(counts)}\n")
    table = Table(box=None, header_style="bold", pad_edge=False)
    more = [*(["at most"] if bounds else []), *(["set"] if verdicts else [])]
    for name in ("draw", "selected", *more, "weakest score", "MSE", "SDR", "seconds"):
        table.add_column(name, justify="right")
    for t, selection in enumerate(selections[:DEVICE_ROWS]):
        known = bool(selection.selected_count) and selection.mse_threshold is not None
        table.add_row(
            str(t),
            str(counts[t]),
            *([str(bounds[t])] if bounds else []),
            *([verdicts[t]] if verdicts else []),
            f"{selection.weakest_score:.4g}",
            f"{selection.mse:.4g}" if known else "-",
            f"{selection.sdr_db:.1f} dB" if known else "-",
            f"{selection.seconds:.3g}",
        )
    screen.print(table)
    if len(selections) > DEVICE_ROWS:
        screen.print(f"... and {len(selections) - DEVICE_ROWS} more rows; see --json")


def _print_summary(
    screen: Any, selection: "Design | Selection", certificate: "Certificate | None" = None
) -> None:
    count = selection.selected_count
    parts = [f"selected {count} of {selection.scores.size}"]
    if certificate is not None:
        parts.append(f"at most {certificate.at_most} by any beam")
    label = "weakest score" if count else "best score"
    parts.append(f"{label} {selection.weakest_score:.4g} (threshold 1)")
    if count and selection.mse_threshold is not None:
        parts.append(
            f"MSE {selection.mse:.4g} (limit {selection.mse_threshold:g}), SDR {selection.sdr_db:.1f} dB"
        )
    parts.append(f"{selection.seconds:.3g} s")
    if selection.compile_seconds > SHOWN_COMPILE_S:
        parts.append(f"and {selection.compile_seconds:.2g} s to compile")
    screen.print(", ".join(parts))
    if selection.status not in ("done", "converged"):
        screen.print(f"status: {selection.status}")
    screen.print()


def _print_devices(screen: Any, selection: "Link", columns: list[tuple[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ["device", *(name for name, _ in columns), "weight φ", "score z", "|b|²", "selected"]:
        table.add_column(name, justify="right")
    power = abs(selection.transmit) ** 2
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
    screen.print(table)
    if selection.scores.size > DEVICE_ROWS:
        screen.print(f"... and {selection.scores.size - DEVICE_ROWS} more rows; see --json")
