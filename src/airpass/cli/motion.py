"""`airpass track`: a receiver over time, for devices that move."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    print_track,
    write_json,
)
from airpass.cli.progress import (
    progress,
)
from airpass.cli.root import cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.designs.track import Track
    from airpass.scenario import Motion, Scenario

MODELS = ("waypoints", "lines")


@cli.command()
@scenario_options
@click.option("--speed-m-s", type=float, help="Speed of the devices, m/s.  [default: 1]")
@click.option("--seconds", type=float, help="Duration, s.  [default: 1, or the end of --paths]")
@click.option(
    "--motion",
    type=click.Choice(MODELS),
    help="Random waypoints, or straight lines with reflection at the walls.  [default: waypoints]",
)
@click.option("--pause-s", type=float, help="Rest at each waypoint, s.  [default: 0]")
@click.option(
    "--paths",
    "paths_path",
    type=click.Path(path_type=Path),
    help="Paths of the devices instead: CSV with time_s, device, x_m, y_m and, if heights change, z_m.",
)
@click.option(
    "--beam-every-ms", type=float, default=10.0, show_default=True, help="Time between new beams, ms."
)
@click.option(
    "--layout-every-ms", type=float, default=100.0, show_default=True, help="Time between new layouts, ms."
)
@click.option(
    "--layout-delay-ms",
    type=float,
    default=0.0,
    show_default=True,
    help="Time until antennas are told new positions, ms.",
)
@click.option(
    "--lead-ms",
    type=float,
    default=0.0,
    show_default=True,
    help="Find new positions for where devices will be after this time, extrapolated from two steps, ms.",
)
@click.option(
    "--antenna-speed-m-s", type=float, help="Largest speed of an antenna, m/s.  [default: no limit]"
)
@click.option("--time-limit-s", type=float, help="Time limit of every redesign.")
@click.option(
    "--update",
    type=click.Choice(["redesign", "follow"]),
    default="redesign",
    show_default=True,
    help="Antennas may go anywhere (redesign), or make small moves only (follow).",
)
@click.option(
    "--method", help="Design method: a name from `airpass methods`, or file.py:Name.  [default: airpass-plus]"
)
@option_option
@json_option
@figure_option
@click.option(
    "--animation",
    "animation_path",
    type=click.Path(path_type=Path),
    help="Draw the room over time to a .gif file.",
)
@click.option(
    "--page",
    "page_path",
    type=click.Path(path_type=Path),
    help="Write a self-contained page with the figure to a .html file.",
)
def track(
    scenario: "Scenario",
    seed: int,
    speed_m_s: float | None,
    seconds: float | None,
    motion: str | None,
    pause_s: float | None,
    paths_path: Path | None,
    beam_every_ms: float,
    layout_every_ms: float,
    layout_delay_ms: float,
    lead_ms: float,
    antenna_speed_m_s: float | None,
    time_limit_s: float | None,
    update: str,
    method: str | None,
    changes: Sequence[str],
    json_path: str | None,
    figure_path: Path | None,
    animation_path: Path | None,
    page_path: Path | None,
) -> None:
    """Track devices that move: re-solve the beam at every step, and the layout every so often."""
    check_outputs(json_path, figure_path)
    if animation_path is not None:
        from airpass.figures.motion import checked_animation

        checked_animation(animation_path)
    checks.positive("beam_every_ms", beam_every_ms)
    checks.at_least("layout_every_ms", layout_every_ms, beam_every_ms)
    checks.at_least("layout_delay_ms", layout_delay_ms, 0.0)
    checks.at_least("lead_ms", lead_ms, 0.0)
    model = _motion(motion, speed_m_s, pause_s, paths_path, seed)
    from airpass.designs.track import track as run
    from airpass.scenario import Paths

    if seconds is None:
        seconds = model.seconds if isinstance(model, Paths) else 1.0
    with progress("Tracking") as report:
        result = run(
            scenario,
            model,
            seconds=seconds,
            beam_every_s=1e-3 * beam_every_ms,
            layout_every_s=1e-3 * layout_every_ms,
            layout_delay_s=1e-3 * layout_delay_ms,
            lead_s=1e-3 * lead_ms,
            antenna_speed_m_s=antenna_speed_m_s,
            time_limit_s=time_limit_s,
            method=method,
            options=nested(changes, "option"),
            update=update,
            seed=seed,
            report=report,
        )
        if animation_path is not None:
            from airpass.figures.motion import save_animation

            report("drawing the animation")
            save_animation(result, animation_path)
    from airpass.documents import track_document

    write_json(json_path, lambda: track_document(result))
    if figure_path is not None:
        result.plot(figure_path)
    if page_path is not None:
        _write_page(result, page_path, animation_path)
    if json_path != "-":
        print_track(result)


def _motion(
    model: str | None, speed_m_s: float | None, pause_s: float | None, paths: Path | None, seed: int
) -> "Motion":
    """The model of motion that the flags describe."""
    from airpass.scenario import RandomWaypoint, StraightLines, read_paths

    if paths is not None:
        given = {"--motion": model, "--speed-m-s": speed_m_s, "--pause-s": pause_s}
        for flag, value in given.items():
            if value is not None:
                raise InvalidInput(f"{flag} cannot be combined with --paths")
        return read_paths(paths)
    speed = 1.0 if speed_m_s is None else speed_m_s
    if model == "lines":
        if pause_s is not None:
            raise InvalidInput("--pause-s requires --motion waypoints")
        return StraightLines(speed, seed)
    return RandomWaypoint(speed, 0.0 if pause_s is None else pause_s, seed)


def _write_page(result: "Track", path: Path, animation: Path | None) -> None:
    """A page with the figure, and a link to the animation."""
    from airpass.core.files import write_atomically
    from airpass.figures.motion import draw_track
    from airpass.figures.style import render
    from airpass.study.report import Section, render_page

    section = Section(
        "track",
        "Devices over time",
        render(draw_track(result), "png"),
        caption="Selected devices, and the computing time of every step",
        wide=True,
        files=() if animation is None else (animation,),
    )
    content = render_page(
        "sweep.html",
        title="Tracking devices that move",
        summary=[f"{result.mean_count:.1f} of {result.scenario.devices.count} devices selected on average."],
        sections=[section.linked(path)],
        failed={},
        command=shlex.join(["airpass", *sys.argv[1:]]),
    )
    write_atomically(path, content)
