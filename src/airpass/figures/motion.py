"""Devices that move: the life of a design, a track over time, and its animation."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from airpass.core.display import BLUE, GREEN, VERMILLION, looks
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.figures.chart import plain_name
from airpass.figures.style import RC, new_figure, plot, typeset

if TYPE_CHECKING:
    from airpass.designs.life import Life
    from airpass.designs.track import Track

MOST_FRAMES = 150  # of an animation; of longer tracks some steps are left out
FRAME_MS = 80  # time that a frame is shown
ANIMATION_DPI = 80
ROOM_WIDTH_IN = 8.2


def draw_life(life: "Life") -> Figure:
    """Draw aligned devices against displacement, a line per receiver.

    Parameters
    ----------
    life
        The life of a design.

    Returns
    -------
    Figure
        A matplotlib figure.
    """
    with mpl.rc_context(RC):
        figure = new_figure(6.0, 3.6)
        axes = figure.subplots()
        moved = life.distances_m > 0.0
        distances = life.distances_m[moved]
        for place, (name, look) in enumerate(looks(life.counts).items()):
            plot(axes, look, distances, life.mean(name)[moved], name, place, len(life.counts))
        start = float(life.mean("as designed")[0])
        axes.axhline(start, color="black", lw=0.8, ls=":")
        axes.annotate(
            "without displacement",
            (1.0, start),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        coherence = life.coherence_m("re-solved")
        if np.isfinite(coherence):
            axes.axvline(coherence, color="black", lw=0.8, ls="--")
            axes.annotate(
                typeset(f"{1e3 * coherence:.3g} mm = {coherence / life.wavelength_m:.2g} λ"),
                (coherence, 0.78),
                xycoords=("data", "axes fraction"),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=8,
            )
        axes.set_xscale("log")
        axes.set(
            xlabel="displacement of every device, m",
            ylabel=f"aligned devices of {life.devices}",
            xlim=(distances[0], distances[-1]),
        )
        axes.set_ylim(0.0, 1.12 * max(1.0, *(float(life.mean(name).max()) for name in life.counts)))
        wavelength: Any = life.wavelength_m
        upper = axes.secondary_xaxis("top", functions=(lambda x: x / wavelength, lambda x: x * wavelength))
        upper.set_xlabel("wavelengths")
        axes.grid(True)
        axes.set_title(typeset(f"{plain_name(life.method)}, {life.draws} draws"), pad=10)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def draw_track(track: "Track") -> Figure:
    """Draw the selected devices over time, and the computing time of every step.

    Parameters
    ----------
    track
        A track.

    Returns
    -------
    Figure
        A matplotlib figure.
    """
    with mpl.rc_context(RC):
        figure = new_figure(7.2, 4.6)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.0, 2.0])
        _draw_counts(upper, track)
        upper.set_title(typeset(_title(track)))
        times = track.times_s
        beam_ms = 1e3 * np.array([row.beam_seconds for row in track.rows])
        layout_ms = 1e3 * np.array([row.layout_seconds for row in track.rows])
        # The first step holds the first design, which is made before the devices move.
        lower.plot(times[1:], beam_ms[1:], ".", color=BLUE, ms=3.0, label="beam")
        if np.isfinite(layout_ms[1:]).any():
            name = "layout" if track.layouts_m is not None else "search for a beam"
            lower.plot(times[1:], layout_ms[1:], "x", color=VERMILLION, ms=4.0, label=name)
        lower.set_yscale("log")
        lower.set(xlabel="time, s", ylabel="computing time, ms")
        lower.grid(True)
        if len(times) > 1:
            lower.legend(loc="upper right", fontsize=8, ncols=2)
    return figure


def _title(track: "Track") -> str:
    parts = [plain_name(track.method.name)]
    if track.layouts_m is not None:
        word = "followed" if track.update == "follow" else "redesigned"
        parts.append(f"layout {word} every {1e3 * track.layout_every_s:g} ms")
        if track.antenna_speed_m_s is not None:
            parts.append(f"antennas at most {track.antenna_speed_m_s:g} m/s")
    return ", ".join(parts)


def _draw_counts(axes: Axes, track: "Track") -> None:
    """Selected devices over time."""
    end = track.rows[-1].time_s + track.beam_every_s
    axes.step([*track.times_s, end], [*track.counts, track.counts[-1]], where="post", color=BLUE, lw=1.2)
    axes.set(ylabel="selected devices", ylim=(0.0, track.scenario.devices.count * 1.05))
    axes.set_xlim(0.0, end)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(True)


def checked_animation(path: Path) -> None:
    """Raise InvalidInput if a file name does not end in .gif."""
    if path.suffix.lower() != ".gif":
        raise InvalidInput(f"animation = {str(path)!r}: must end in .gif")


def save_animation(track: "Track", path: Path) -> None:
    """Write the animation of a track.

    Parameters
    ----------
    track
        A track.
    path
        File that ends in .gif.
    """
    checked_animation(path)
    write_atomically(path, animation(track))


def animation(track: "Track") -> bytes:
    """The room over time, with antennas and devices, above the number of selected devices; as GIF.

    Parameters
    ----------
    track
        A track.

    Returns
    -------
    bytes
        The picture.
    """
    from PIL import Image

    steps = np.unique(np.linspace(0, len(track.rows) - 1, min(len(track.rows), MOST_FRAMES)).astype(int))
    with mpl.rc_context(RC):
        scene = _Scene(track)
        frames = [Image.fromarray(scene.frame(int(step))) for step in steps]
    # One palette for all frames, so that colours do not flicker.
    palette = frames[len(frames) // 2].convert("RGB").quantize(128)
    flat = [frame.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = BytesIO()
    flat[0].save(
        buffer, format="GIF", save_all=True, append_images=flat[1:], duration=FRAME_MS, loop=0, optimize=False
    )
    return buffer.getvalue()


class _Scene:
    """The artists of an animation."""

    def __init__(self, track: "Track") -> None:
        self.track = track
        receiver = track.scenario.receiver
        places = track.places_m
        left = min(0.0, float(places[..., 0].min())) - 1.0
        right = max(float(receiver.lengths.max()), float(places[..., 0].max())) + 1.0
        bottom = min(float(receiver.waveguide_y.min()), float(places[..., 1].min())) - 1.0
        top = max(float(receiver.waveguide_y.max()), float(places[..., 1].max())) + 1.0
        room_height = ROOM_WIDTH_IN * min((top - bottom) / (right - left), 2.0) + 0.8
        self.figure = new_figure(9.0, room_height + 1.8)
        canvas: Any = FigureCanvasAgg(self.figure)
        self.canvas = canvas
        self.figure.set_dpi(ANIMATION_DPI)
        room, counts = self.figure.subplots(2, 1, height_ratios=[room_height, 1.8])
        room.set(xlim=(left, right), ylim=(bottom, top), xlabel="x, m", ylabel="y, m", aspect="equal")
        room.xaxis.set_minor_locator(NullLocator())
        style: Any = {"color": "black", "zorder": 2}
        self.antennas: list[Any] = []
        if track.layouts_m is not None:
            for y, length, positions in zip(
                receiver.waveguide_y, receiver.lengths, track.layouts_m[0], strict=True
            ):
                room.plot([0.0, length], [y, y], lw=0.8, **style)
                (line,) = room.plot(positions, np.full(positions.size, y), "|", ms=9, mew=1.8, **style)
                self.antennas.append(line)
        elif track.array_m is not None:
            room.plot(track.array_m[:, 0], track.array_m[:, 1], "|", ms=9, mew=1.0, **style)
        (self.outside,) = room.plot([], [], "X", color=VERMILLION, ms=7, mec="white", mew=0.8, zorder=4)
        (self.inside,) = room.plot([], [], "o", color=BLUE, ms=7, mec="white", mew=0.8, zorder=4)
        self.title = room.set_title("0")
        room.legend(
            [self.inside, self.outside],
            ["selected", "not selected"],
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=2,
            handlelength=1.0,
            borderaxespad=0.1,
        )
        _draw_counts(counts, track)
        counts.set_xlabel("time, s")
        self.cursor = counts.axvline(0.0, color=GREEN, lw=1.5)
        self.canvas.draw()
        self.figure.set_layout_engine("none")

    def frame(self, step: int) -> Any:
        """The pixels of one step."""
        track = self.track
        if track.layouts_m is not None:
            for line, positions in zip(self.antennas, track.layouts_m[step], strict=True):
                line.set_xdata(positions)
        chosen, places = track.selected[step], track.places_m[step]
        self.inside.set_data(places[chosen, 0], places[chosen, 1])
        self.outside.set_data(places[~chosen, 0], places[~chosen, 1])
        row = track.rows[step]
        self.cursor.set_xdata([row.time_s, row.time_s])
        self.title.set_text(
            typeset(f"{plain_name(track.method.name)}, {row.time_s:.2f} s: {row.selected_count} selected")
        )
        self.canvas.draw()
        return np.array(self.canvas.buffer_rgba())
