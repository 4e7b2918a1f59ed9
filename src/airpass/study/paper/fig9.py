"""Figure 9: selected devices against SNR, every scheme.

The three comparisons have a row of panels each. On the left the weights are shares, as in all other
figures; on the right, an addition, they are such that the error threshold is the distortion-to-signal ratio.
"""

from collections.abc import Sequence

from airpass.core.fields import named, with_unit
from airpass.figures.chart import Chart
from airpass.study.charts import axis_panel
from airpass.study.paper.base import ENERGY, PaperFigure, Point, scenario, snr_point
from airpass.study.paper.schemes import COMPARISONS, METHODS
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row, Trial

SNRS_DB = (-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0)
ENERGY_SNRS_DB = (-5.0, 0.0, 5.0, 10.0, 15.0, 20.0)
SCHEMES = tuple(scheme for comparison in COMPARISONS for scheme in comparison.schemes)
# Devices, waveguides, antennas; SNRs with shares, and with the other rule.
SCALES = {
    "smoke": ((12, 3, 3), (0.0, 5.0, 10.0, 15.0), (10.0, 20.0)),
    "lite": ((50, 10, 10), SNRS_DB, ENERGY_SNRS_DB),
    "paper": ((50, 10, 10), SNRS_DB, ENERGY_SNRS_DB),
}


def points(scale: str) -> tuple[Point, ...]:
    """The points of a scale."""
    _, shares, energies = SCALES[scale]
    return (*(snr_point(snr_db) for snr_db in shares), *(snr_point(snr_db, ENERGY) for snr_db in energies))


def of_rule(rows: Sequence[Row], energy: bool) -> list[Row]:
    """The rows of one of the two rules for the weights."""
    return [row for row in rows if row.x_label.endswith(ENERGY) == energy]


class SelectedDevices(PaperFigure):
    """Selected devices against SNR."""

    def trials(self, scale: str) -> tuple[Trial, ...]:
        """Every scheme on the same draws; slow schemes on the first few."""
        size, plan = SCALES[scale][0], self.plan(scale)
        return tuple(
            Trial(
                job="design",
                figure=self.name,
                scheme=scheme,
                x=point.x,
                x_label=point.label,
                trial=number,
                seed=seed,
                scenario=scenario(size, point.x, seed, point.tables),
                method=METHODS[scheme],
            )
            for number, seed in plan.seeds()
            for point in points(scale)
            for scheme in SCHEMES
            if number < plan.count(scheme)
        )

    def chart(self, rows: Sequence[Row]) -> Chart:
        """A row of panels per comparison."""
        panels, xlabel = [], with_unit(*named("radio.snr_db"))
        for comparison in COMPARISONS:
            shown = [row for row in rows if row.scheme in comparison.schemes]
            for energy, rule in ((False, "share"), (True, "energy")):
                title = f"{comparison.title}\nweights: {rule}"
                panels.append(axis_panel(of_rule(shown, energy), "selected_count", xlabel, title))
        return Chart(panels=panels, columns=2, row_legends=True)

    def table(self, rows: Sequence[Row]) -> Table:
        """The same as numbers."""
        titles = {
            point.label: point.title
            for rule in ("share", ENERGY)
            for point in (snr_point(snr_db, rule) for snr_db in sorted({row.x or 0.0 for row in rows}))
        }
        return by_point(rows, "selected_count", titles)


FIGURE = SelectedDevices(
    name="fig9",
    title="Selected devices against SNR. K = 50, M = N = 10",
    duration={"smoke": "15 seconds", "lite": "8 minutes", "paper": "three quarters of an hour"},
)
