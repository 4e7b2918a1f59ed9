"""Table I: the cost of device selection, as in the paper and as measured.

Selection at the uniform layout, along K for M = 10 receive chains and along M for K = 50 devices. At the
SNR chosen, some but not all devices can be selected at every size.
"""

from collections.abc import Sequence

import numpy as np

from airpass.core.display import display_name
from airpass.figures.chart import Chart, Panel
from airpass.study.charts import line
from airpass.study.paper.base import PaperFigure, scenario
from airpass.study.summary import Mean, means_by_point
from airpass.study.tables import Table
from airpass.study.trial import SECONDS, Row, Trial

PAPER = {
    "hrmc": "(I₁+I₂)·K·M²",
    "sdr-dc": "K(M²+K)³ + K·M⁶",
    "mp": "K²·M²",
    "hrmc+": "not in the paper",
}
# Devices at M = 10, chains at K = 50; and the same for sdr-dc.
Sizes = tuple[tuple[int, ...], tuple[int, ...]]
SCALES: dict[str, tuple[Sizes, Sizes]] = {
    "smoke": (((10, 40, 160), (4, 8, 16)), ((10, 20), (4, 8))),
    "lite": (((10, 50, 250, 1250), (4, 8, 16, 32)), ((10, 20, 40), (4, 8, 12))),
    "paper": (((10, 50, 250, 1250, 6250), (4, 8, 16, 32, 64)), ((10, 20, 40, 80), (4, 8, 12, 16))),
}


def exponent(rows: Sequence[Row], method: str, letter: str) -> float:
    """Slope of log time over log size, fitted to the larger half of the sizes."""
    points = _times(rows, letter).get(method, [])
    upper = points[len(points) // 2 :] if len(points) > 2 else points
    if len(upper) < 2:
        return float("nan")
    sizes, seconds = np.log([(size, mean.value) for size, mean in upper]).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def _times(rows: Sequence[Row], letter: str) -> dict[str, list[tuple[float, Mean]]]:
    """Sizes with mean times by method, along K or M."""
    return {
        method: sorted(
            (
                (float(label.partition("=")[2]), mean)
                for label, mean in points.items()
                if label.startswith(letter)
            ),
            key=lambda point: point[0],
        )
        for method, points in means_by_point(rows, SECONDS).items()
    }


class SelectionCost(PaperFigure):
    """Time of device selection against K and against M."""

    def trials(self, scale: str) -> tuple[Trial, ...]:
        """Every method at every size."""
        found, plan = [], self.plan(scale)
        for method in PAPER:
            by_devices, by_chains = SCALES[scale][method == "sdr-dc"]
            sizes = [("K", k, k, 10) for k in by_devices] + [("M", m, 50, m) for m in by_chains]
            for letter, size, devices, chains in sizes:
                # With equal weights 1/K, fewer devices need more SNR: 20 log10(50/K) dB.
                snr_db = round(
                    20.0 * float(np.log10(50.0 / devices)) + 10.0 * float(np.log10(10.0 / chains)), 2
                )
                found += [
                    Trial(
                        job="select",
                        figure=self.name,
                        scheme=method,
                        x=float(size),
                        x_label=f"{letter}={size}",
                        trial=number,
                        seed=seed,
                        scenario=scenario((devices, chains, 10), snr_db, seed),
                        method={"method": method},
                        repeats=1 if method == "sdr-dc" else 3,
                    )
                    for number, seed in plan.seeds()
                    if number < plan.count(method)
                ]
        return tuple(sorted(found, key=lambda trial: trial.trial))

    def chart(self, rows: Sequence[Row]) -> Chart:
        """Time against K and against M."""
        panels = []
        for letter, xlabel, title in (
            ("K", "devices K", "M = 10 receive chains"),
            ("M", "receive chains M", "K = 50 devices"),
        ):
            times = {method: points for method, points in _times(rows, letter).items() if points}
            lines = [
                line(method, display_name(method), [size for size, _ in points], [time for _, time in points])
                for method, points in times.items()
            ]
            ticks = max((list(one.x) for one in lines), key=len, default=[])
            panels.append(Panel(title, xlabel, lines, (ticks, [f"{size:g}" for size in ticks]), "seconds"))
        return Chart(panels=panels, log="xy")

    def table(self, rows: Sequence[Row]) -> Table:
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
                    "-"
                    if typical is None
                    else f"{1e3 * typical.value:,.3g} ms"
                    if typical.value < 1.0
                    else f"{typical.value:.3g} s",
                ]
            )
        return ["method", "paper, O(·)", "exponent in K", "exponent in M", "time at K=50, M=8"], cells


FIGURE = SelectionCost(
    name="table1",
    title="The cost of device selection",
    duration={"smoke": "10 seconds", "lite": "2 minutes", "paper": "3 minutes"},
)
