"""Who is served in which turn."""

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from airpass.core.display import BLUE, GREY, VERMILLION, display_name
from airpass.designs.book import Book
from airpass.figures.style import RC, new_figure, typeset

WIDTH_IN = 9.0
ROW_IN = 0.3  # height of a turn
MOST_TICKS = 60  # more devices are not all numbered
EMPTY, SERVED, HOPELESS = 0, 1, 2


def draw_book(book: Book) -> Figure:
    """Draw a chart of turns and devices, above the number of turns of every device."""
    devices = book.covered.size
    cells = np.where(np.array([one.selected for one in book.designs]), SERVED, EMPTY)
    cells[:, book.unservable] = HOPELESS
    with mpl.rc_context(RC):
        figure = new_figure(WIDTH_IN, 2.6 + ROW_IN * book.turns)
        chart, bars = figure.subplots(2, 1, sharex=True, height_ratios=[ROW_IN * book.turns + 0.4, 1.2])
        chart.imshow(
            cells,
            cmap=ListedColormap(["white", BLUE, GREY]),
            vmin=EMPTY,
            vmax=HOPELESS,
            aspect="auto",
            interpolation="nearest",
        )
        chart.set_xticks(np.arange(devices + 1) - 0.5, minor=True)
        chart.set_yticks(np.arange(book.turns + 1) - 0.5, minor=True)
        chart.grid(which="minor", color="0.85", linewidth=0.5)
        chart.grid(which="major", visible=False)
        chart.tick_params(which="minor", length=0)
        step = max(1, book.turns // 20)
        rows = np.arange(0, book.turns, step)
        chart.set_yticks(rows, [f"{t + 1} ({book.designs[t].selected_count})" for t in rows])
        chart.set_ylabel("turn (devices)")
        served = int((book.covered > 0).sum())
        hopeless = int(book.unservable.sum())
        grey = f", {hopeless} unservable (grey)" if hopeless else ""
        chart.set_title(
            typeset(
                f"{display_name(book.method.name)}, K = {devices}, {book.scenario.radio.snr_db:g} dB, "
                f"{book.move} move: {served} served{grey}"
            )
        )
        bars.bar(np.arange(devices), book.covered, color=BLUE, width=0.85)
        for k in np.flatnonzero(book.missing):
            bars.plot(k, 0.0, "x", color=VERMILLION, clip_on=False)
        bars.set(ylabel="turns", xlabel="device")
        bars.set_ylim(0, max(1, int(book.covered.max())) * 1.08)
        every = max(1, -(-devices // MOST_TICKS))
        bars.set_xticks(np.arange(0, devices, every), [str(k) for k in range(0, devices, every)], fontsize=7)
        bars.tick_params(axis="x", length=0)
        bars.yaxis.get_major_locator().set_params(integer=True)
    return figure
