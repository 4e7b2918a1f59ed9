"""Which part of its weight a device sends in which turn."""

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from airpass.core.display import BLUE, GREY, VERMILLION
from airpass.designs.book import Book
from airpass.figures.chart import plain_name
from airpass.figures.style import RC, new_figure, typeset

WIDTH_IN = 9.0
ROW_IN = 0.3  # height of a turn
MOST_TICKS = 60  # more devices are not all numbered
LIGHT = "#e8f0f8"  # of the smallest share


def draw_book(book: Book) -> Figure:
    """Draw a chart of turns and devices, above the cycle score of every device."""
    devices, served = book.served.size, book.served
    shares = np.ma.masked_array(book.shares, np.broadcast_to(~served, book.shares.shape))
    colours = LinearSegmentedColormap.from_list("shares", [LIGHT, BLUE]).with_extremes(bad=GREY)
    with mpl.rc_context(RC):
        figure = new_figure(WIDTH_IN, 2.8 + ROW_IN * book.turns)
        chart, bars = figure.subplots(2, 1, sharex=True, height_ratios=[ROW_IN * book.turns + 0.4, 1.2])
        top = max(2.0 / book.turns, float(book.shares.max())) if book.turns > 1 else 1.0
        image = chart.imshow(
            shares, cmap=colours, vmin=0.0, vmax=min(top, 1.0), aspect="auto", interpolation="nearest"
        )
        figure.colorbar(image, ax=[chart, bars], label="share of the weight", fraction=0.03, pad=0.02)
        chart.set_xticks(np.arange(devices + 1) - 0.5, minor=True)
        chart.set_yticks(np.arange(book.turns + 1) - 0.5, minor=True)
        chart.grid(which="minor", color="0.85", linewidth=0.5)
        chart.grid(which="major", visible=False)
        chart.tick_params(which="minor", length=0)
        rows = np.arange(0, book.turns, max(1, book.turns // 20))
        chart.set_yticks(rows, [str(t + 1) for t in rows])
        chart.set_ylabel("turn")
        grey = "" if served.all() else f", {int((~served).sum())} not served (grey)"
        number = f"{book.turns} turn{'' if book.turns == 1 else 's'}"
        chart.set_title(
            typeset(
                f"{plain_name(book.method.name)}, K = {devices}, {book.scenario.radio.short_summary}, "
                f"{number}: {int(served.sum())} served{grey}"
            )
        )
        bars.bar(
            np.arange(devices),
            book.cycle_scores,
            color=[BLUE if inside else GREY for inside in served],
            width=0.85,
        )
        bars.axhline(1.0, color=VERMILLION, linewidth=1.0)
        bars.set(ylabel="cycle score", xlabel="device")
        bars.set_ylim(0, max(1.2, min(6.0, float(book.cycle_scores.max()) * 1.08)))
        every = max(1, -(-devices // MOST_TICKS))
        bars.set_xticks(np.arange(0, devices, every), [str(k) for k in range(0, devices, every)], fontsize=7)
        bars.tick_params(axis="x", length=0)
    return figure
