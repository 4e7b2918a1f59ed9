"""The pictures of docs/howto/channels.md; `python benchmarks/channel_models.py figure` draws them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from airpass import Channel, Scenario, design
from airpass.channel.factored import FactoredUplink
from airpass.core.display import BLUE, GREY, VERMILLION
from airpass.core.types import Real
from airpass.figures.room import draw_design, draw_obstacles
from airpass.figures.style import RC, new_figure, save

DPI = 130
SMALL: Any = RC | {"savefig.dpi": DPI}
PEOPLE = {
    "model": "cylinders",
    "x_m": [9.2, 10.0, 16.0, 18.5, 25.0, 31.0],
    "y_m": [8.6, 4.0, 7.5, 5.0, 2.5, 7.0],
}
DEVICE = 3  # whose lines are drawn


def room(channel: dict[str, Any], feed: str = "left") -> Scenario:
    """The default room of `airpass design` with a channel."""
    return Scenario.from_dict({"channel": channel, "receiver": {"feed": feed}, "radio": {"snr_db": 10.0}})


def powers_db(scenario: Scenario, places: Real) -> Real:
    """|g|^2 of one antenna on the third waveguide over that without a channel model, along the waveguide."""
    rows = np.tile(places, (scenario.receiver.waveguides, 1))
    plain = replace(scenario, channel=Channel()).uplink.terms(rows, 1)
    ratio = np.abs(scenario.uplink.terms(rows, 1) / plain)[2, :, DEVICE]
    return np.asarray(20.0 * np.log10(ratio))


def draw_factors(path: Path) -> None:
    """Loss, split of power, pattern and fading, as powers in dB over the paper's."""
    with mpl.rc_context(SMALL):
        picture = new_figure(7.6, 4.6, SMALL)
        (loss, split), (pattern, fading) = picture.subplots(2, 2)
        x = np.linspace(0.0, 40.0, 401)
        for feed, colour, dash in (("left", BLUE, "-"), ("centre", VERMILLION, "--")):
            values = powers_db(room({"loss_db_per_m": 0.08}, feed), x)
            loss.plot(x, values, color=colour, ls=dash, label=f"feed {feed}")
        loss.set(title="(a) Loss, 0.08 dB/m", xlabel="antenna at x, m", ylabel="over the paper's, dB")
        n = np.arange(1, 11)
        for delta, colour, dash, marker in ((0.3, BLUE, "-", "o"), (0.5, VERMILLION, "--", "^")):
            share = 10.0 * delta**2 * (1.0 - delta**2) ** (n - 1)
            split.plot(
                n, 10.0 * np.log10(share), color=colour, ls=dash, marker=marker, ms=4, label=f"δ = {delta}"
            )
        split.axhline(0.0, color=GREY, lw=0.8)
        split.set(title="(b) Split of power, N = 10", xlabel="antenna, from the feed", xticks=n)
        for exponent, colour, dash in ((1, BLUE, "-"), (2, VERMILLION, "--")):
            values = powers_db(room({"model": "pattern", "exponent": float(exponent)}), x)
            pattern.plot(x, values, color=colour, ls=dash, label=f"q = {exponent}")
        at = room({}).devices.x_m[DEVICE]
        pattern.axvline(at, color=GREY, lw=0.8)
        pattern.set(title="(c) Pattern", xlabel="antenna at x, m", ylabel="over the paper's, dB")
        close = np.linspace(20.0, 20.5, 801)
        for k_db, colour, dash in ((10.0, BLUE, "-"), (0.0, VERMILLION, "--")):
            values = powers_db(room({"rician_k_db": k_db, "seed": 1}), close)
            fading.plot(100.0 * (close - 20.0), values, color=colour, ls=dash, label=f"K = {k_db:g} dB")
        fading.set(
            title="(d) Rician fading, λ = 12.5 cm", xlabel="antenna, cm beyond x = 20 m", ylim=(-25.0, 9.0)
        )
        places = {fading: "lower right", pattern: "upper right"}
        for axes in (loss, split, pattern, fading):
            axes.grid(alpha=0.25)
            axes.legend(loc=places.get(axes, "lower left"), handlelength=2.4)
        save(picture, path)


def draw_lines(axes: Axes, scenario: Scenario, title: str) -> None:
    """Where antennas have a free line to one device, and where not."""
    receiver, devices = scenario.receiver, scenario.devices
    x = np.arange(0.0, 40.0, 0.05) + 0.025
    uplink = scenario.uplink
    assert isinstance(uplink, FactoredUplink)
    free = np.abs(uplink.factor(np.tile(x, (receiver.waveguides, 1)))[:, :, DEVICE]) > 0.5
    for y, row in zip(receiver.waveguide_y, free, strict=True):
        axes.plot([0.0, 40.0], [y, y], color=GREY, lw=1.0, zorder=1)
        axes.plot(x, np.where(row, y, np.nan), color=BLUE, lw=3.5, solid_capstyle="butt", zorder=2)
    draw_obstacles(axes, scenario)
    where = devices.x_m[DEVICE], devices.y_m[DEVICE]
    axes.plot(*where, "o", color=VERMILLION, ms=7, mec="white", zorder=3)
    axes.plot([], [], color=BLUE, lw=3.5, label="antennas here have a free line")
    axes.plot([], [], color=GREY, lw=1.0, label="blocked")
    axes.plot([], [], "o", color=VERMILLION, ms=7, label="the device")
    axes.set(title=title, ylabel="y, m", xlim=(-1.0, 41.0), ylim=(-1.0, 10.5), aspect="equal")


def draw_blocked(path: Path) -> None:
    """Free and blocked lines of one device: at random, and by people."""
    with mpl.rc_context(SMALL):
        picture = new_figure(7.6, 5.2, SMALL)
        random, people = picture.subplots(2, 1, sharex=True)
        draw_lines(random, room({"blockage_per_m": 0.1}), "(a) Random blockage, β = 0.1 per metre")
        draw_lines(people, room(PEOPLE), "(b) Cylinders, six people of 1.8 m")
        people.set_xlabel("x, m")
        handles, labels = people.get_legend_handles_labels()
        picture.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=1.8)
        save(picture, path)


def draw_rooms(folder: Path) -> None:
    """Designs on given places, and with people in the room."""
    for name, channel in (("places", {"candidates_m": 2.0}), ("cylinders", PEOPLE)):
        picture: Any = draw_design(design(room(channel)))
        picture.settings = SMALL
        save(picture, folder / f"channel-{name}.png")


def draw(folder: Path) -> None:
    """Write all pictures into a folder."""
    draw_factors(folder / "channel-factors.png")
    draw_blocked(folder / "channel-blocked.png")
    draw_rooms(folder)
