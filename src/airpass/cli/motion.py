"""`airpass track`: a receiver over time, for devices that move."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import (
    check_picture,
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
from airpass.cli.root import OutputFile, cli
from airpass.core import checks
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.designs.track import Track
    from airpass.scenario import Motion, Scenario

MODELS = ("waypoints", "lines")


@dataclass(frozen=True)
class MotionFlags:
    """Motion of devices and antennas as a user gave it; None where nothing was given."""

    speed_m_s: float | None
    motion: str | None
    pause_s: float | None
    paths: Path | None
    layout_every_ms: float | None
    layout_delay_ms: float | None
    lead_ms: float | None
    antenna_speed_m_s: float | None
    time_limit_s: float | None
    update: str | None

    @property
    def given(self) -> str | None:
        """The first flag that was given."""
        names = [item.name for item in fields(self) if getattr(self, item.name) is not None]
        return f"--{names[0].replace('_', '-')}" if names else None

    def model(self, seed: int) -> "Motion":
        """The model of motion."""
        from airpass.scenario import RandomWaypoint, StraightLines, read_paths

        if self.paths is not None:
            given = {"--motion": self.motion, "--speed-m-s": self.speed_m_s, "--pause-s": self.pause_s}
            for flag, value in given.items():
                if value is not None:
                    raise InvalidInput(f"{flag} cannot be combined with --paths")
            return read_paths(self.paths)
        speed = 1.0 if self.speed_m_s is None else self.speed_m_s
        if self.motion == "lines":
            if self.pause_s is not None:
                raise InvalidInput("--pause-s requires --motion waypoints")
            return StraightLines(speed, seed)
        return RandomWaypoint(speed, 0.0 if self.pause_s is None else self.pause_s, seed)

    def antennas(self) -> dict[str, Any]:
        """Arguments of `track` and of `Moving`, without the time between layouts."""
        return {
            "layout_delay_s": 1e-3 * checks.at_least("layout_delay_ms", self.layout_delay_ms or 0.0, 0.0),
            "lead_s": 1e-3 * checks.at_least("lead_ms", self.lead_ms or 0.0, 0.0),
            "antenna_speed_m_s": self.antenna_speed_m_s,
            "time_limit_s": self.time_limit_s,
            "update": self.update or "redesign",
        }


def motion_options(layout_every: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of motion; the command receives `moving`, the flags.

    Parameters
    ----------
    layout_every
        Default of --layout-every-ms, for its help.

    Returns
    -------
    callable
        A decorator.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("--speed-m-s", type=float, help="Speed of the devices, m/s.  [default: 1]")
        @click.option(
            "--motion",
            type=click.Choice(MODELS),
            help="Random waypoints, or straight lines with reflection at the walls.  [default: waypoints]",
        )
        @click.option("--pause-s", type=float, help="Rest at each waypoint, s.  [default: 0]")
        @click.option(
            "--paths",
            type=click.Path(path_type=Path),
            help="Paths of the devices instead: CSV with time_s, device, x_m, y_m and, if heights change, "
            "z_m.",
        )
        @click.option(
            "--layout-every-ms",
            type=float,
            help=f"Time between new layouts, ms.  [default: {layout_every}]",
        )
        @click.option(
            "--layout-delay-ms",
            type=float,
            help="Time until antennas are told new positions, ms.  [default: 0]",
        )
        @click.option(
            "--lead-ms",
            type=float,
            help="Find new positions for where devices will be after this time, extrapolated from two "
            "steps, ms.  [default: 0]",
        )
        @click.option(
            "--antenna-speed-m-s", type=float, help="Largest speed of an antenna, m/s.  [default: no limit]"
        )
        @click.option("--time-limit-s", type=float, help="Time limit of every redesign.")
        @click.option(
            "--update",
            type=click.Choice(["redesign", "follow"]),
            help="Antennas may go anywhere (redesign), or make small moves only (follow).  "
            "[default: redesign]",
        )
        @wraps(command)
        def with_motion(**given: Any) -> None:
            own = {item.name: given.pop(item.name) for item in fields(MotionFlags)}
            command(moving=MotionFlags(**own), **given)

        return with_motion

    return add


@cli.command()
@scenario_options
@click.option("--seconds", type=float, help="Duration, s.  [default: 1, or the end of --paths]")
@click.option(
    "--beam-every-ms", type=float, default=10.0, show_default=True, help="Time between new beams, ms."
)
@motion_options("100")
@click.option(
    "--method", help="Design method: a name from `airpass methods`, or file.py:Name.  [default: airpass-plus]"
)
@option_option
@json_option
@figure_option
@click.option(
    "--animation",
    "animation_path",
    type=OutputFile(),
    help="Draw the room over time to a .gif file.",
)
@click.option(
    "--page",
    "page_path",
    type=OutputFile(),
    help="Write a self-contained page with the figure to a .html file.",
)
def track(
    scenario: "Scenario",
    seed: int,
    seconds: float | None,
    beam_every_ms: float,
    moving: MotionFlags,
    method: str | None,
    changes: Sequence[str],
    json_path: str | None,
    figure_path: Path | None,
    animation_path: Path | None,
    page_path: Path | None,
) -> None:
    """Track devices that move: re-solve the beam at every step, and the layout every so often."""
    check_picture(figure_path)
    if animation_path is not None:
        from airpass.figures.motion import checked_animation

        checked_animation(animation_path)
    checks.positive("beam_every_ms", beam_every_ms)
    layout_every_ms = 100.0 if moving.layout_every_ms is None else moving.layout_every_ms
    checks.at_least("layout_every_ms", layout_every_ms, beam_every_ms)
    model, antennas = moving.model(seed), moving.antennas()
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
            method=method,
            options=nested(changes, "option"),
            seed=seed,
            report=report,
            **antennas,
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
