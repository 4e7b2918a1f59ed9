"""Output of commands: tables and JSON."""

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite, isnan, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.progress import COMPILED
from airpass.cli.root import is_quiet, json_output
from airpass.core.text import LONGEST_NAME, one_line

if TYPE_CHECKING:
    from airpass.aircomp import Link
    from airpass.designs.api import Design
    from airpass.designs.bounds import LayoutCertificate
    from airpass.designs.fresh import Counts, FreshDraws
    from airpass.designs.life import Life
    from airpass.designs.tolerance import Tolerance
    from airpass.designs.track import Track
    from airpass.learning.history import TrainingRun
    from airpass.selection.api import Selection
    from airpass.selection.certificate import Certificate

MOST_ROWS = 20  # longer tables are cut, unless all rows are asked for; the JSON has all

SET_VERDICTS = {
    "feasible": "feasible (a beam was found)",
    "infeasible": "infeasible (proved)",
    "undecided": "undecided (no beam found, infeasibility not proved)",
}


def console() -> Any:
    """Standard output with tables; nothing is printed with `--quiet`. Texts are printed as they are."""
    from airpass.cli.screen import Screen

    return Screen(quiet=is_quiet())


def print_heading(name: str, text: str) -> None:
    """A name in bold, and a text."""
    from rich.text import Text

    console().print(Text.assemble((one_line(name, LONGEST_NAME), "bold"), f"  {text}"), soft_wrap=True)


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


def _number(value: float, form: str) -> str:
    """A number as text; a dash if there is none, as for the error of ideal FedAvg in dB."""
    return format(value, form) if isfinite(value) else "-"


def print_training(runs: Sequence["TrainingRun"], folder: Path | None, status: bool = False) -> None:
    """Print the last evaluated round of each scheme, the folder, and, if asked, what was not finished."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("scheme", no_wrap=True, overflow="fold")
    for name in ("selected", "rounds", "accuracy", "loss", "MSE", "measured", "SDR, dB", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        last = run.history[-1]
        counts = sorted({record.selected_count for record in run.history[1:]}) or [last.selected_count]
        table.add_row(
            one_line(run.scheme, LONGEST_NAME),
            f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0]),
            str(last.round),
            "-" if isnan(last.test_accuracy) else f"{100 * last.test_accuracy:.2f} %",
            _number(last.test_loss, ".4g" if last.test_loss >= 1e4 else ".4f"),
            _number(last.predicted_mse, ".4g"),
            _number(last.measured_mse, ".4g"),
            _number(last.measured_sdr_db, ".1f"),
            f"{last.seconds:.0f}",
        )
    screen = console()
    screen.print(f"{runs[0].dataset}, {runs[0].devices} devices; MSE: predicted, then measured\n")
    screen.print(table)
    limits = [run.link.mse_threshold for run in runs if run.link is not None and run.link.mse_threshold]
    limit = max(limits, default=inf)
    if any(record.predicted_mse > 1.0001 * limit for run in runs for record in run.history):
        screen.print(
            f"\nThe MSE exceeds the design's limit of {limit:g} in some rounds: devices with larger updates "
            "than the others would need more power than they have "
            "(documentation: Learning over the air, Steps of a round).",
            soft_wrap=True,
        )
    ended = [f"{run.scheme} {run.status}" for run in runs if run.status != "done"]
    if ended and status:
        screen.print(f"\nNot all rounds were run: {', '.join(ended)}.", soft_wrap=True)
    if folder is not None:
        screen.print(f"\nHistory, curves and checkpoints: {folder}", soft_wrap=True)


def write_json(path: str | None, build: Callable[[], dict[str, Any]]) -> None:
    """Write the document that `build` returns to a file, or to standard output for "-"."""
    if path is None:
        return
    from airpass.core.files import write_atomically
    from airpass.documents import encode

    content = encode(build())
    if (output := json_output()) is not None:
        output.write(content)
    else:
        write_atomically(Path(path), content)


def flat(options: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested options as names with dots."""
    for name, value in options.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def print_design(
    design: "Design",
    certificate: "Certificate | None" = None,
    layout_certificate: "LayoutCertificate | None" = None,
    every: bool = False,
) -> None:
    """Summary with bounds, layout and devices of a design, all rows if `every`."""
    from rich.table import Table

    screen = console()
    receiver, radio = design.scenario.receiver, design.scenario.radio
    print_heading(
        design.method.name,
        f"M={receiver.waveguides} waveguides, N={receiver.antennas} antennas "
        f"each, K={design.scenario.devices.count} devices, {radio.summary}",
    )
    if (count := design.scenario.channel.subcarriers) > 1:
        screen.print(
            f"{count} subcarriers in {design.scenario.bandwidth_mhz:g} MHz; the "
            f"{design.scenario.channel.subcarrier_rule} error over the subcarriers must meet the limit",
            soft_wrap=True,
        )
    if (given := radio.link_budget) is not None:
        median, gain_db = design.median_snr_db, 20.0 * log10(radio.path_gain)
        screen.print(
            f"wavelength {1e3 * radio.wavelength_m:.4g} mm, path gain {gain_db:.1f} dB at 1 m; "
            f"median device received with {median + given.noise_power_dbm:.1f} dBm, SNR {median:.1f} dB",
            soft_wrap=True,
        )
    bounds = [_value(design)] if design.scenario.devices.has_priorities else []
    if certificate is not None:
        kind = "array" if design.layout is None else "layout"
        bounds.append(f"at most {certificate.at_most} by any beam on this {kind}")
    if layout_certificate is not None:
        bounds.append(f"at most {layout_certificate.at_most} by any beam and any layout")
        if hopeless := int(layout_certificate.unservable.sum()):
            noun = "device" if hopeless == 1 else "devices"
            bounds.append(f"{hopeless} {noun} cannot be selected by any design")
    _print_summary(screen, design, bounds)
    if design.layout is not None:
        table = Table("waveguide", "antenna positions, m", box=None, header_style="bold", pad_edge=False)
        shown = design.layout if every else design.layout[:MOST_ROWS]
        for m, positions in enumerate(shown):
            table.add_row(str(m), " ".join(f"{value:6.3f}" for value in positions))
        screen.print(table)
        if len(shown) < receiver.waveguides:
            screen.print(f"... and {receiver.waveguides - len(shown)} more waveguides; see --all or --json")
        screen.print()
    devices = design.scenario.devices
    columns = [("x, m", devices.x_m), ("y, m", devices.y_m)]
    if devices.z_m.any():
        columns.append(("z, m", devices.z_m))
    _print_devices(screen, design, columns, every)


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
    errors = []
    if tolerance.position_mm or not tolerance.displacement_mm:
        errors.append(f"position error {tolerance.position_mm:g} mm")
    if tolerance.displacement_mm:
        errors.append(f"displacement of devices {tolerance.displacement_mm:g} mm")
    text = " and ".join(errors)
    screen.print(
        f"\n{text[0].upper()}{text[1:]} (standard deviation){knowledge}, "
        f"{tolerance.draws} draws; {tolerance.nominal} devices without errors",
        soft_wrap=True,
    )
    screen.print(table)


def print_fresh_draws(fresh: "FreshDraws") -> None:
    """Selected devices on fresh draws, with standard errors."""
    from rich.table import Table

    from airpass.designs.fresh import EVEN

    def cell(counts: "Counts") -> str:
        return f"{counts.mean:.2f} ± {counts.standard_error:.2f}"

    screen = console()
    screen.print(f"\nMean number of selected devices on {fresh.draws} fresh draws, ± standard error")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("receiver", no_wrap=True)
    for name in ("selected", f"above {EVEN}"):
        table.add_column(name, justify="right")
    for name, counts in fresh.fresh.items():
        table.add_row(name, cell(counts), "" if name == EVEN else cell(counts.above(fresh.fresh[EVEN])))
    screen.print(table)
    if fresh.searched is not None:
        screen.print(f"on the {fresh.searched.counts.size} draws of the search: {cell(fresh.searched)}")


def print_life(life: "Life") -> None:
    """Aligned devices against displacement."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("displacement", justify="right", no_wrap=True)
    table.add_column("wavelengths", justify="right")
    for name in life.counts:
        table.add_column(name, justify="right")
    for at, distance in enumerate(life.distances_m):
        table.add_row(
            f"{1e3 * distance:.3g} mm" if distance < 0.1 else f"{distance:.3g} m",
            f"{distance / life.wavelength_m:.3g}",
            *(f"{life.mean(name)[at]:.1f}" for name in life.counts),
        )
    screen = console()
    screen.print(f"\nAligned devices after every device has moved, {life.draws} draws", soft_wrap=True)
    screen.print(table)
    found = []
    for name in life.counts:
        distance = life.coherence_m(name)
        words = f"{1e3 * distance:.3g} mm ({distance / life.wavelength_m:.2g} wavelengths)"
        found.append(f"{name}: {'none, it keeps its devices' if isnan(distance) else words}")
    screen.print(f"Coherence distance, half of the gain lost: {'; '.join(found)}", soft_wrap=True)


def print_track(track: "Track") -> None:
    """Summary and some rows of a track."""
    from rich.table import Table

    screen = console()
    receiver, radio = track.scenario.receiver, track.scenario.radio
    devices = track.scenario.devices.count
    print_heading(
        track.method.name,
        f"M={receiver.waveguides} waveguides, N={receiver.antennas} antennas "
        f"each, K={devices} devices, {radio.summary}",
    )
    counts = [row.selected_count for row in track.rows[1:]] or [track.rows[0].selected_count]
    screen.print(
        f"selected {track.mean_count:.1f} of {devices} on average over {track.rows[-1].time_s:g} s, "
        f"{min(counts)} to {max(counts)}; {track.rows[0].selected_count} at the start\n",
        soft_wrap=True,
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = ("time, s", "selected", "weakest score", "beam, ms", "layout, ms", "age, ms", "travel, m")
    for name in heads:
        table.add_column(name, justify="right")
    every = -(-len(track.rows) // MOST_ROWS)
    for row in track.rows[::every]:
        table.add_row(
            f"{row.time_s:.3f}",
            str(row.selected_count),
            f"{row.weakest_score:.3g}" if row.selected_count else "-",
            f"{1e3 * row.beam_seconds:.2f}",
            _number(1e3 * row.layout_seconds, ".1f"),
            f"{1e3 * row.layout_age_s:.0f}",
            f"{row.travel_m:.4f}",
        )
    screen.print(table)
    if every > 1:
        screen.print(f"... one of {every} steps is shown; --json writes all {len(track.rows)}")


def print_selection(selection: "Selection", certificate: "Certificate | None", every: bool = False) -> None:
    """Summary and devices of a selection, all rows if `every`."""
    screen = console()
    chains, count = selection.channels.shape
    print_heading(selection.method.name, f"{chains} receive chains, {count} devices")
    bounds = [] if selection.priorities is None else [_value(selection)]
    if certificate is not None:
        of_value = "" if selection.priorities is None else "value "
        bounds.append(f"{of_value}at most {certificate.at_most:.4g} by any beam")
    _print_summary(screen, selection, bounds)
    _print_devices(screen, selection, [], every)


def print_set(devices: Sequence[int], verdict: str) -> None:
    """The verdict on a set of devices."""
    console().print(f"\nset {','.join(map(str, devices))}: {SET_VERDICTS[verdict]}")


def print_draws(
    selections: Sequence["Selection"], bounds: Sequence[float], verdicts: Sequence[str], every: bool
) -> None:
    """A summary of the selections for a stack of draws, and a row for each."""
    from statistics import mean

    from rich.table import Table

    screen = console()
    first = selections[0]
    chains, devices = first.channels.shape
    counts = [selection.selected_count for selection in selections]
    print_heading(first.method.name, f"{len(selections)} draws, {chains} receive chains, {devices} devices")
    screen.print(f"selected {mean(counts):.1f} of {devices} on average, {min(counts)} to {max(counts)}\n")
    table = Table(box=None, header_style="bold", pad_edge=False)
    valued = first.priorities is not None
    limit = ["value at most" if valued else "at most"] if bounds else []
    more = [*(["value"] if valued else []), *limit, *(["set"] if verdicts else [])]
    for name in ("draw", "selected", *more, "weakest score", "MSE", "SDR", "seconds"):
        table.add_column(name, justify="right")
    for t, selection in enumerate(selections if every else selections[:MOST_ROWS]):
        known = bool(selection.selected_count) and selection.mse_threshold is not None
        table.add_row(
            str(t),
            str(counts[t]),
            *([f"{selection.value:.4g}"] if valued else []),
            *([f"{bounds[t]:.4g}"] if bounds else []),
            *([verdicts[t]] if verdicts else []),
            f"{selection.weakest_score:.4g}" if counts[t] else "-",
            f"{selection.mse:.4g}" if known else "-",
            f"{selection.sdr_db:z.1f} dB" if known else "-",
            f"{selection.seconds:.3g}",
        )
    screen.print(table)
    if len(selections) > MOST_ROWS and not every:
        screen.print(f"... and {len(selections) - MOST_ROWS} more rows; use --all or --json")


def _value(found: "Design | Selection") -> str:
    """Sum of the selected devices' priorities."""
    return f"value {found.value:.4g}"


def _print_summary(screen: Any, selection: "Design | Selection", bounds: Sequence[str]) -> None:
    from airpass.aircomp import named_score

    count = selection.selected_count
    parts, more = [f"selected {count} of {selection.scores.size}", *bounds], []
    parts.append(f"{named_score(count, selection.weakest_score, '.4g')} (threshold 1)")
    if count and selection.mse_threshold is not None:
        more.append(
            f"MSE {selection.mse:.4g} (limit {selection.mse_threshold:.4g}), SDR {selection.sdr_db:z.1f} dB"
        )
    more.append(f"{selection.seconds:.3g} s")
    ctx = click.get_current_context(silent=True)
    if ctx is not None and ctx.meta.get(COMPILED):
        more.append(f"and {selection.compile_seconds:.3g} s to compile")
    if len(more) == 1:  # only the time
        parts, more = [*parts, *more], []
    for line in filter(None, (parts, more)):
        screen.print(", ".join(line), soft_wrap=True)
    if selection.status not in ("done", "converged"):
        screen.print(f"status: {selection.status}")
    screen.print()


def _print_devices(screen: Any, selection: "Link", columns: list[tuple[str, Any]], every: bool) -> None:
    """Devices in order; if there are too many, only the strongest, which are the selected ones first."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ["device", *(name for name, _ in columns), "weight φ", "score z", "|b|²", "selected"]:
        table.add_column(name, justify="right")
    power = abs(selection.transmit) ** 2
    if power.ndim > 1:  # of all subcarriers together
        power = power.sum(axis=0)
    count = selection.scores.size
    rows = list(range(count))
    if count > MOST_ROWS and not every:
        rows = (-selection.scores).argsort(kind="stable")[:MOST_ROWS].tolist()
    for k in rows:
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
    if len(rows) < count:
        screen.print(
            f"... the strongest {len(rows)} of {count} devices; --all prints all, --json writes all",
            soft_wrap=True,
        )
