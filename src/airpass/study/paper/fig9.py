"""Figure 9: selected devices against SNR, every scheme."""

from collections.abc import Sequence

from airpass.figures.chart import Chart
from airpass.study.charts import axis_chart
from airpass.study.paper.base import PaperFigure, scenario
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row, Trial

SNRS_DB = (-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0)
# The paper's schemes, airpass-plus, and the array of M x N antennas with the best selection.
SCHEMES = (
    "airpass-plus",
    "airpass",
    "airpass-sdr-dc",
    "airpass-mp",
    "mimo-mn-plus",
    "mimo-mn",
    "mimo-m",
)
SLOW = "airpass-sdr-dc"
# Devices, waveguides, antennas; points; trials; trials of the slow scheme.
SCALES = {
    "smoke": ((12, 3, 3), (0.0, 5.0, 10.0, 15.0), 2, 1),
    "lite": ((50, 10, 10), SNRS_DB, 5, 1),
    "paper": ((50, 10, 10), SNRS_DB, 20, 5),
}


class SelectedDevices(PaperFigure):
    """Selected devices against SNR."""

    def trials(self, scale: str) -> tuple[Trial, ...]:
        """Every scheme on the same draws; the slow scheme on the first few."""
        size, snrs, count, slow = SCALES[scale]
        return tuple(
            Trial(
                job="design",
                figure=self.name,
                scheme=scheme,
                x=snr_db,
                x_label=f"{snr_db:g}",
                trial=number,
                seed=number,
                scenario=scenario(size, snr_db, number),
                method={"method": scheme},
            )
            for snr_db in snrs
            for number in range(count)
            for scheme in SCHEMES
            if scheme != SLOW or number < slow
        )

    def chart(self, rows: Sequence[Row]) -> Chart:
        """Selected devices against SNR."""
        return axis_chart(rows, "selected_count", "P0/σ², dB", "Selected devices against SNR")

    def table(self, rows: Sequence[Row]) -> Table:
        """The same as numbers."""
        return by_point(rows, "selected_count", "dB")


FIGURE = SelectedDevices(
    name="fig9",
    title="Selected devices against SNR. K = 50, M = N = 10",
    duration={"smoke": "10 seconds", "lite": "4 minutes", "paper": "a quarter of an hour"},
)
