"""Table I: the cost of device selection, as the paper has it and as measured.

Selection at the uniform layout, along K for M = 10 receive chains and along M for K = 50 devices. The SNR
is such that some, but not all devices can be selected at every size.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np

from airpass.figures.style import RC, new_figure
from airpass.study.figure import PaperFigure, Table
from airpass.study.plots import COLUMN_IN, look
from airpass.study.summary import means_by_point
from airpass.study.trial import SECONDS, Row, Trial

PAPER = {
    "hrmc": "(I₁+I₂)·K·M²",
    "sdr-dc": "K(M²+K)³ + K·M⁶",
    "mp": "K²·M²",
    "hrmc+": "not in the paper",
}
# Devices at M = 10, chains at K = 50, trials; and the same for sdr-dc.
Sizes = tuple[tuple[int, ...], tuple[int, ...], int]
SCALES: dict[str, tuple[Sizes, Sizes]] = {
    "smoke": (((10, 40, 160), (4, 8, 16), 2), ((10, 20), (4, 8), 1)),
    "lite": (((10, 50, 250, 1250), (4, 8, 16, 32), 5), ((10, 20, 40), (4, 8, 12), 2)),
    "paper": (((10, 50, 250, 1250, 6250), (4, 8, 16, 32, 64), 20), ((10, 20, 40, 80), (4, 8, 12, 16), 5)),
}


def trials(scale: str) -> tuple[Trial, ...]:
    """Every method at every size."""
    found = []
    for method in PAPER:
        by_devices, by_chains, count = SCALES[scale][method == "sdr-dc"]
        sizes = [("K", k, 10) for k in by_devices] + [("M", 50, m) for m in by_chains]
        for letter, devices, chains in sizes:
            for number in range(count):
                # With equal weights 1/K the threshold is harder the fewer the devices: 20 log10(50/K) dB.
                snr_db = round(
                    20.0 * float(np.log10(50.0 / devices)) + 10.0 * float(np.log10(10.0 / chains)), 2
                )
                found.append(
                    Trial(
                        figure="table1",
                        scheme=method,
                        x=float(devices if letter == "K" else chains),
                        x_label=f"{letter}={devices if letter == 'K' else chains}",
                        trial=number,
                        seed=number,
                        scenario={
                            "receiver": {"waveguides": chains, "antennas": 10},
                            "radio": {"snr_db": snr_db},
                            "devices": {"count": devices, "seed": number},
                        },
                        method={"method": method},
                        repeats=1 if method == "sdr-dc" else 3,
                    )
                )
    return tuple(found)


def exponent(rows: Sequence[Row], method: str, letter: str) -> float:
    """Slope of log time over log size, larger half of the sizes."""
    points = sorted(
        (float(label.split("=")[1]), mean.value)
        for label, mean in means_by_point(rows, SECONDS).get(method, {}).items()
        if label.startswith(letter)
    )
    upper = points[len(points) // 2 :] if len(points) > 2 else points
    if len(upper) < 2:
        return float("nan")
    sizes, seconds = np.log(np.array(upper)).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def draw(rows: Sequence[Row]) -> Any:
    """Time against K and against M."""
    means = means_by_point(rows, SECONDS)
    with mpl.rc_context(RC | {"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7}):
        figure = new_figure(COLUMN_IN, 4.6)
        for axes, letter, title in zip(
            figure.subplots(2, 1), "KM", ("M = 10 receive chains", "K = 50 devices"), strict=True
        ):
            ticks: list[float] = []
            for position, (method, found) in enumerate(means.items()):
                points = sorted(
                    (float(label.split("=")[1]), mean.value)
                    for label, mean in found.items()
                    if label.startswith(letter)
                )
                if not points:
                    continue
                axes.loglog(*zip(*points, strict=True), label=method, **look("", position + 1))
                ticks = max(ticks, [size for size, _ in points], key=len)
            axes.set(xlabel="devices K" if letter == "K" else "receive chains M", ylabel="seconds")
            axes.set_xticks(ticks, [f"{size:g}" for size in ticks])
            axes.minorticks_off()
            axes.set_title(title)
            axes.grid(True, color="#dddddd", linewidth=0.6)
            if ticks:
                axes.legend(loc="best")
    return figure


def tabulate(rows: Sequence[Row]) -> Table:
    """The paper's orders beside fitted exponents."""
    means = means_by_point(rows, SECONDS)
    cells = []
    for method, order in PAPER.items():
        typical = means.get(method, {}).get("M=8")
        cells.append(
            [
                method,
                order,
                f"{exponent(rows, method, 'K'):.2f}",
                f"{exponent(rows, method, 'M'):.2f}",
                "-" if typical is None else f"{1e3 * typical.value:.3g} ms",
            ]
        )
    return ["method", "paper, O(·)", "exponent in K", "exponent in M", "time at K=50, M=8"], cells


FIGURE = PaperFigure(
    "table1",
    "The cost of device selection",
    trials,
    draw,
    tabulate,
    {"smoke": "10 seconds", "lite": "2 minutes", "paper": "6 minutes"},
)
