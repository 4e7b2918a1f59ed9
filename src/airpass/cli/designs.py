"""`airpass design`, `airpass select` and `airpass methods`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from airpass.cli.channels import channels_options
from airpass.cli.options import (
    all_option,
    check_picture,
    figure_option,
    json_option,
    nested,
    option_option,
    priorities_options,
    scenario_options,
    with_sample_priorities,
)
from airpass.cli.output import (
    console,
    flat,
    print_design,
    print_draws,
    print_fresh_draws,
    print_life,
    print_selection,
    print_set,
    print_tolerance,
    write_json,
)
from airpass.cli.progress import (
    progress,
)
from airpass.cli.root import OutputFile, cli
from airpass.cli.turns import all_devices_option, move_option, run_schedule, turns_option
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.cli.channels import ChannelsFile
    from airpass.designs.base import DesignMethod, Step
    from airpass.scenario import Scenario
    from airpass.selection.api import Selection
    from airpass.selection.certificate import Certificate, SetCheck


@cli.command()
@scenario_options
@click.option(
    "--method", help="Design method: a name from `airpass methods`, or file.py:Name.  [default: airpass-plus]"
)
@click.option("--selection", help="Instead of --method: Algorithm 3 with this selection method.")
@click.option("--geometry", help="Instead of --method: Algorithm 3 with this geometry method.")
@click.option(
    "--effort",
    type=click.Choice(["fast", "default", "thorough"]),
    help="Search effort of airpass-plus.  [default: default]",
)
@click.option(
    "--time-limit-s", type=float, help="Stop airpass-plus after this time and return its best design."
)
@click.option(
    "--tolerance-mm",
    type=float,
    help="Evaluate the design under antenna position errors with this standard deviation, mm.",
)
@click.option(
    "--displacement-mm",
    type=float,
    help="Evaluate the design with devices displaced in x and y by normal errors of this standard "
    "deviation, mm.",
)
@click.option(
    "--channel-error",
    type=float,
    help="With --tolerance-mm or --displacement-mm: channel estimation error variance, relative to the mean "
    "power.  [default: 0]",
)
@click.option(
    "--draws",
    type=int,
    help="With --tolerance-mm, --displacement-mm or --life: number of draws.  [default: 500; 20 for --life]",
)
@click.option(
    "--life",
    "with_life",
    is_flag=True,
    help="Evaluate the design after its devices have moved, and report its coherence distance.",
)
@click.option(
    "--life-figure",
    type=OutputFile(),
    help="With --life: draw devices against displacement to a .png, .pdf or .svg file.",
)
@click.option(
    "--robust",
    is_flag=True,
    help="Make the design tolerate the errors of --tolerance-mm and --displacement-mm.",
)
@click.option(
    "--for-draws",
    type=int,
    metavar="D",
    help="Search a layout for D draws of the devices (airpass-lasting), and check it on fresh draws.",
)
@click.option(
    "--start",
    "start_path",
    type=click.Path(path_type=Path),
    help="Stored design to continue from, such as one for the same devices before they moved (JSON).",
)
@click.option(
    "--certify",
    is_flag=True,
    help="Also compute upper bounds on the number of devices, for this layout and for all layouts.",
)
@turns_option(None, "Find N designs that serve the devices by turns, as `airpass schedule` does.")
@move_option
@all_devices_option
@priorities_options("samples")
@option_option
@all_option
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
    displacement_mm: float | None,
    channel_error: float | None,
    draws: int | None,
    with_life: bool,
    life_figure: Path | None,
    robust: bool,
    for_draws: int | None,
    start_path: Path | None,
    certify: bool,
    turns: str | None,
    move: str | None,
    all_devices: bool,
    priorities: Any,
    changes: Sequence[str],
    every: bool,
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Choose devices, receive beam and antenna layout for one scenario.

    The scenario is the paper's (all lengths in metres, gains relative) unless --scenario
    or --preset gives another; the shorthand options and --set change single values.
    """
    check_picture(figure_path)
    if method is not None and (selection is not None or geometry is not None):
        raise InvalidInput("--method cannot be combined with --selection or --geometry")
    check_picture(life_figure)
    scenario = with_sample_priorities(scenario, priorities)
    if life_figure is not None and not with_life:
        raise InvalidInput("--life-figure requires --life")
    errors = _errors(tolerance_mm, displacement_mm, channel_error, draws, robust, with_life)
    if for_draws is not None:
        checks.whole("for_draws", for_draws, 1)
        if method is selection is geometry is None:
            method = "airpass-lasting"
    from airpass.aircomp import named_score
    from airpass.designs.api import design as run
    from airpass.designs.api import design_method
    from airpass.designs.together import design_for_all

    flags = {
        "--effort": ("effort", effort),
        "--time-limit-s": ("time_limit_s", time_limit_s),
        **_robust_flags(tolerance_mm, displacement_mm, robust),
        "--for-draws": ("draws", for_draws),
    }
    chosen = _with_flags(
        design_method(method, selection, geometry, nested(changes, "option")), changes, flags
    )
    if turns is not None:
        single = {
            "--tolerance-mm": tolerance_mm,
            "--displacement-mm": displacement_mm,
            "--life": with_life or None,
            "--for-draws": for_draws,
            "--start": start_path,
            "--certify": certify or None,
            "--all-devices": all_devices or None,
        }
        for flag, value in single.items():
            if value is not None:
                raise InvalidInput(f"{flag} cannot be combined with --turns")
        run_schedule(scenario, turns, move, chosen, seed, json_path, figure_path)
        return
    if move is not None:
        raise InvalidInput("--move requires --turns")
    if all_devices:
        for flag, value in {"--start": start_path, "--for-draws": for_draws}.items():
            if value is not None:
                raise InvalidInput(f"{flag} cannot be combined with --all-devices")
    narrow = {
        "--tolerance-mm": tolerance_mm,
        "--displacement-mm": displacement_mm,
        "--life": with_life or None,
        "--certify": certify or None,
        "--for-draws": for_draws,
        "--all-devices": all_devices or None,
    }
    for flag, value in narrow.items():
        if value is not None:
            scenario.require_one_carrier(flag)
    start = _start(start_path, chosen, scenario)
    measured, lived, bound, everywhere, fresh = None, None, None, None, None
    with progress("Designing") as report:

        def on_step(step: "Step") -> None:
            score = named_score(step.selected_count, step.weakest_score)
            report(f"{step.phase} {step.iteration}: {step.selected_count} selected, {score}")

        if all_devices:
            result = design_for_all(scenario, chosen, seed=seed, report=report)
        else:
            result = run(scenario, chosen, seed=seed, on_step=on_step, report=report, **start)
        if tolerance_mm is not None or displacement_mm is not None:
            from airpass.designs.tolerance import tolerance

            measured = tolerance(result, **errors, seed=seed, report=report)
        if for_draws is not None:
            from airpass.designs.fresh import fresh_draws

            fresh = fresh_draws(result, seed=seed, report=report)
        if with_life:
            from airpass.designs.life import life

            count: dict[str, Any] = {} if draws is None else {"draws": draws}
            lived = life(result, **count, seed=seed, report=report)
        if certify:
            from airpass.designs.bounds import certify_design

            bound, everywhere = certify_design(result, report=report)
    from airpass import documents

    def document() -> dict[str, Any]:
        extra = {} if measured is None else {"tolerance": documents.tolerance_document(measured)}
        if fresh is not None:
            extra["fresh_draws"] = documents.fresh_draws_document(fresh)
        if lived is not None:
            extra["life"] = documents.life_document(lived)
        if bound is not None:
            extra["certificate"] = documents.certificate_document(bound)
        if everywhere is not None:
            extra["layout_certificate"] = documents.layout_certificate_document(everywhere)
        return documents.design_document(result) | extra

    write_json(json_path, document)
    if figure_path is not None:
        from airpass.figures.room import draw_design
        from airpass.figures.style import save

        save(draw_design(result), figure_path)
    if json_path != "-":
        print_design(result, bound, everywhere, every)
        if measured is not None:
            print_tolerance(measured)
        if fresh is not None:
            print_fresh_draws(fresh)
        if lived is not None:
            print_life(lived)
    if lived is not None and life_figure is not None:
        lived.plot(life_figure)


def _start(path: Path | None, method: "DesignMethod", scenario: "Scenario") -> dict[str, Any]:
    """Arguments of `design` from a stored design; without its beam if there are subcarriers."""
    if path is None:
        return {}
    from airpass.designs.api import Design
    from airpass.results import load

    stored = load(path)
    if not isinstance(stored, Design) or stored.layout is None:
        raise InvalidInput(f"--start {path}: must be a stored design with a layout")
    given: dict[str, Any] = {"start_layout": stored.layout}
    one_carrier = max(scenario.channel.subcarriers, stored.scenario.channel.subcarriers) == 1
    return given | {"start_beam": stored.beam} if method.uses_start_beam and one_carrier else given


def _errors(
    tolerance_mm: float | None,
    displacement_mm: float | None,
    channel_error: float | None,
    draws: int | None,
    robust: bool,
    with_life: bool,
) -> dict[str, Any]:
    """Arguments of `tolerance` from the flags of `design`."""
    dependent = {"--robust": robust or None, "--channel-error": channel_error}
    for flag, value in dependent.items():
        if value is not None and tolerance_mm is None and displacement_mm is None:
            raise InvalidInput(f"{flag} requires --tolerance-mm or --displacement-mm")
    if draws is not None and tolerance_mm is None and displacement_mm is None and not with_life:
        raise InvalidInput("--draws requires --tolerance-mm, --displacement-mm or --life")
    if robust and not tolerance_mm and not displacement_mm:
        raise InvalidInput("--robust requires --tolerance-mm or --displacement-mm > 0")
    errors: dict[str, Any] = {
        "position_mm": checks.at_least("tolerance_mm", tolerance_mm or 0.0, 0.0),
        "displacement_mm": checks.at_least("displacement_mm", displacement_mm or 0.0, 0.0),
        "channel_error": checks.at_least("channel_error", channel_error or 0.0, 0.0),
    }
    return errors if draws is None else errors | {"draws": checks.whole("draws", draws, 1)}


def _robust_flags(
    tolerance_mm: float | None, displacement_mm: float | None, robust: bool
) -> dict[str, tuple[str, Any]]:
    """Options of the method that --robust sets."""
    return {
        "--robust": ("tolerance_mm", tolerance_mm if robust else None),
        "--robust with --displacement-mm": ("displacement_mm", displacement_mm if robust else None),
    }


def _with_flags(
    method: "DesignMethod", changes: Sequence[str], flags: Mapping[str, tuple[str, Any]]
) -> "DesignMethod":
    """The method, changed by the options with dedicated flags."""
    from airpass.core.registry import with_options

    given = {flag: option for flag, option in flags.items() if option[1] is not None}
    for flag, (name, _) in given.items():
        if not hasattr(method, name):
            owner = "airpass-lasting" if flag == "--for-draws" else "airpass-plus"
            raise InvalidInput(f"{flag}: {method.name} has no option {name}; --method {owner} has")
        if name in nested(changes, "option"):
            raise InvalidInput(f"{flag} cannot be combined with --option {name}=...")
    changed: DesignMethod = with_options(method, dict(given.values()))
    return changed


@cli.command()
@channels_options(required=True)
@click.option("--draw", type=int, help="Select for this draw of a stack only, counted from 0.")
@click.option("--budget", type=float, help="Γ = P0 ε/σ². Or give --snr-db with --mse-threshold.")
@click.option("--snr-db", type=float, help="Transmit power over noise power P0/σ², dB.")
@click.option("--mse-threshold", type=float, help="Largest aggregation error ε.")
@click.option("--power", type=float, default=1.0, show_default=True, help="Largest transmit power P0.")
@click.option(
    "--method",
    default="hrmc",
    show_default=True,
    help="Selection method: a name from `airpass methods`, or file.py:Name.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@click.option(
    "--certify",
    is_flag=True,
    help="Also compute an upper bound on the number of devices, valid for every beam.",
)
@click.option(
    "--check-set",
    metavar="K,K,...",
    help="Also check whether one beam can serve all of these devices.",
)
@priorities_options()
@option_option
@all_option
@json_option
@figure_option
def select(
    channels: "ChannelsFile",
    draw: int | None,
    budget: float | None,
    snr_db: float | None,
    mse_threshold: float | None,
    power: float,
    method: str,
    seed: int,
    certify: bool,
    check_set: str | None,
    priorities: Any,
    changes: Sequence[str],
    every: bool,
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Choose devices and receive beam for given channels.

    For a stack of draws, this is done for each of them, unless --draw names one.
    """
    check_picture(figure_path)
    from airpass.selection import certificate
    from airpass.selection.api import select_draws

    numbers = _draw_numbers(channels, draw)
    if figure_path is not None and draw is None and channels.stacked:
        raise InvalidInput("--figure shows one draw of a stack: give --draw")
    count = channels.draws.shape[2]
    suspects = None if check_set is None else certificate.parse_set(check_set, count)
    found: list[_Found] = []
    with progress("Selecting") as report:
        results = select_draws(
            channels.draws,
            channels.weights,
            budget,
            method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            power=power,
            options=nested(changes, "option"),
            seed=seed,
            report=report,
            priorities=priorities,
        )
        for t in numbers:
            if len(numbers) > 1:
                report(f"draw {t}, the last is {numbers[-1]}")
            result, bound, checked = results[t], None, None
            if certify:
                report("computing the upper bound")
                bound = certificate.upper_bound(result.effective, result.priorities)
            if suspects is not None:
                report("checking the set")
                checked = certificate.check_set(result.effective, suspects, seed)
            found.append(_Found(t, result, bound, checked))
    from airpass.documents import certificate_document, draws_document, selection_document, set_document

    def document(one: _Found) -> dict[str, Any]:
        extra: dict[str, Any] = {"draw": one.draw} if channels.stacked else {}
        if one.bound is not None:
            extra["certificate"] = certificate_document(one.bound)
        if one.checked is not None and suspects is not None:
            extra["set"] = set_document(suspects, one.checked)
        return selection_document(one.selection) | extra

    many = channels.stacked and draw is None
    write_json(
        json_path,
        lambda: draws_document([document(one) for one in found]) if many else document(found[0]),
    )
    if figure_path is not None:
        from airpass.figures.room import draw_selection
        from airpass.figures.style import save

        save(draw_selection(found[0].selection), figure_path)
    if json_path == "-":
        return
    if many:
        bounds = [one.bound.at_most for one in found if one.bound is not None]
        verdicts = [one.checked.verdict for one in found if one.checked is not None]
        print_draws([one.selection for one in found], bounds, verdicts, every)
        return
    print_selection(found[0].selection, found[0].bound, every)
    if found[0].checked is not None and suspects is not None:
        print_set(suspects, found[0].checked.verdict)


class _Found(NamedTuple):
    """What `select` found for one draw."""

    draw: int
    selection: "Selection"
    bound: "Certificate | None"
    checked: "SetCheck | None"


def _draw_numbers(channels: "ChannelsFile", draw: int | None) -> list[int]:
    """The draws to select for."""
    count = len(channels.draws)
    if draw is None:
        return list(range(count))
    if not 0 <= draw < count:
        raise InvalidInput(f"--draw {draw}: the file holds {count} draws; must be 0 to {count - 1}")
    return [draw]


@cli.command()
@click.option("--options", "with_options", is_flag=True, help="List every method's options with defaults.")
@json_option
def methods(with_options: bool, json_path: str | None) -> None:
    """List every selection, geometry and design method, and every channel model."""
    from airpass import channel, designs, geometry, selection
    from airpass.core.registry import options_dict

    kinds: list[tuple[str, Any]] = [
        ("selection", selection.METHODS.methods()),
        ("geometry", geometry.METHODS.methods()),
        ("design", designs.METHODS.methods()),
        ("channel", channel.MODELS.methods()),
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
