"""`airpass design`, `airpass select` and `airpass methods`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import (
    check_outputs,
    figure_option,
    json_option,
    nested,
    option_option,
    scenario_options,
)
from airpass.cli.output import (
    console,
    flat,
    print_design,
    print_selection,
    print_tolerance,
    progress,
    write_json,
)
from airpass.cli.root import cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.designs.base import Step
    from airpass.scenario import Scenario

SET_VERDICTS = {
    "feasible": "fits one beam (a beam was found)",
    "infeasible": "fits no beam (proved)",
    "undecided": "no beam found, but no proof that there is none",
}


@cli.command()
@scenario_options
@click.option("--method", help="Design method; see `airpass methods`.  [default: airpass-plus]")
@click.option("--selection", help="Instead of --method: Algorithm 3 with this selection method.")
@click.option("--geometry", help="Instead of --method: Algorithm 3 with this geometry method.")
@click.option(
    "--effort",
    type=click.Choice(["fast", "default", "thorough"]),
    help="How long airpass-plus searches.  [default: default]",
)
@click.option(
    "--time-limit-s", type=float, help="airpass-plus returns its best design after so many seconds."
)
@click.option(
    "--tolerance-mm",
    type=float,
    help="Also evaluate the design with antennas off by this standard deviation, mm.",
)
@click.option(
    "--channel-error",
    type=float,
    help="In that evaluation: variance of what is not known of a channel, relative to its mean power. "
    " [default: 0]",
)
@click.option("--draws", type=int, help="Draws of that evaluation.  [default: 500]")
@click.option(
    "--robust",
    is_flag=True,
    help="Let airpass-plus aim for scores that bear the position errors of --tolerance-mm.",
)
@option_option
@json_option
@figure_option
def design(
    scenario: "Scenario",
    seed: int,
    method: str | None,
    selection: str | None,
    geometry: str | None,
    effort: str | None,
    time_limit_s: float | None,
    tolerance_mm: float | None,
    channel_error: float | None,
    draws: int | None,
    robust: bool,
    changes: Sequence[str],
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Choose devices, receive beam and antenna layout for one scenario.

    The scenario is the paper's (all lengths in metres, gains relative) unless --scenario
    gives a file; the shorthand options and --set change single values of either.
    """
    check_outputs(json_path, figure_path)
    if tolerance_mm is None and (robust or channel_error is not None or draws is not None):
        flag = "--robust" if robust else "--channel-error" if channel_error is not None else "--draws"
        raise InvalidInput(f"{flag} stands without --tolerance-mm: say how far off antennas may be")
    if robust and tolerance_mm == 0.0:
        raise InvalidInput("--robust with --tolerance-mm 0: there is no error to aim for; must be > 0")
    errors: dict[str, Any] = {
        "position_mm": checks.at_least("tolerance_mm", tolerance_mm or 0.0, 0.0),
        "channel_error": checks.at_least("channel_error", channel_error or 0.0, 0.0),
    }
    if draws is not None:
        errors["draws"] = checks.whole("draws", draws, 1)
    from airpass.designs.api import design as run
    from airpass.designs.api import design_method

    options = nested(changes, "option")
    given = {
        "--effort": ("effort", effort),
        "--time-limit-s": ("time_limit_s", time_limit_s),
        "--robust": ("tolerance_mm", tolerance_mm if robust else None),
    }
    chosen = design_method(method, selection, geometry)
    for flag, (name, value) in given.items():
        if value is None:
            continue
        if not hasattr(chosen, name):
            raise InvalidInput(f"{flag}: {chosen.name} does not have this; --method airpass-plus does")
        if name in options:
            raise InvalidInput(f"{flag} stands beside --option {name}=...: give one of them")
        options[name] = value
    measured = None
    with progress("Designing") as report:

        def on_step(step: "Step") -> None:
            report(
                f"{step.phase} {step.iteration}: {step.selected_count} selected, "
                f"weakest {step.weakest_score:.3g}"
            )

        result = run(
            scenario,
            method,
            selection=selection,
            geometry=geometry,
            options=options,
            seed=seed,
            on_step=on_step,
            report=report,
        )
        if tolerance_mm is not None:
            from airpass.designs.tolerance import tolerance

            measured = tolerance(result, **errors, seed=seed, report=report)
    from airpass.documents import design_document, tolerance_document

    def document() -> dict[str, Any]:
        extra = {} if measured is None else {"tolerance": tolerance_document(measured)}
        return design_document(result) | extra

    write_json(json_path, document)
    if figure_path is not None:
        from airpass.figures.room import draw_design
        from airpass.figures.style import save

        save(draw_design(result), figure_path)
    if json_path != "-":
        print_design(result)
        if measured is not None:
            print_tolerance(measured)


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
    check_outputs(json_path, figure_path)
    from airpass.core.arrays import read_array
    from airpass.selection import certificate as certificates
    from airpass.selection.api import checked_channels, checked_weights
    from airpass.selection.api import select as run
    from airpass.selection.certificate import parse_set

    channels = checked_channels(read_array(channels_path, variable), str(channels_path))
    suspects = None if check_set is None else parse_set(check_set, channels.shape[1])
    weights = None
    if weights_path is not None:
        read = read_array(weights_path, weights_variable, "--weights-variable")
        weights = checked_weights(read, channels.shape[1], str(weights_path))
    with progress("Selecting") as report:
        result = run(
            channels,
            weights,
            budget,
            method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            power=power,
            options=nested(changes, "option"),
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

    write_json(json_path, document)
    if figure_path is not None:
        from airpass.figures.room import draw_selection
        from airpass.figures.style import save

        save(draw_selection(result), figure_path)
    if json_path != "-":
        print_selection(result, certificate)
        if checked is not None:
            console().print(f"\nset {check_set}: {SET_VERDICTS[checked.verdict]}", highlight=False)


@cli.command()
@click.option("--options", "with_options", is_flag=True, help="List every method's options with defaults.")
@json_option
def methods(with_options: bool, json_path: str | None) -> None:
    """List every selection, geometry and design method."""
    from airpass import designs, geometry, selection
    from airpass.core.registry import options_dict

    kinds: list[tuple[str, Any]] = [
        ("selection", selection.METHODS.methods()),
        ("geometry", geometry.METHODS.methods()),
        ("design", designs.METHODS.methods()),
    ]
    rows = [
        {
            "kind": kind,
            "name": found.name,
            "summary": found.summary,
            "options": options_dict(found),
        }
        for kind, group in kinds
        for found in group.values()
    ]
    write_json(json_path, lambda: {"methods": rows})
    if json_path == "-":
        return
    from rich.table import Table

    table = Table("kind", "name", "what it does", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["kind"], row["name"], row["summary"])
        if with_options:
            for name, value in flat(row["options"]):
                table.add_row("", "", f"  {name} = {value}")
    console().print(table)
