"""Figure 9: selected devices against SNR, every scheme."""

from collections.abc import Sequence
from typing import Any

from airpass.study.figure import PaperFigure, Table
from airpass.study.plots import over_axis
from airpass.study.tables import by_point
from airpass.study.trial import Row, Trial

SNRS_DB = (-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0)
# The paper's, airpass-plus, and what that is to beat: the array of M x N antennas with the best selection.
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


def trials(scale: str) -> tuple[Trial, ...]:
    """Every scheme on the same draws; the slow one on the first few."""
    (devices, waveguides, antennas), snrs, count, slow = SCALES[scale]
    return tuple(
        Trial(
            figure="fig9",
            scheme=scheme,
            x=snr_db,
            x_label=f"{snr_db:g}",
            trial=number,
            seed=number,
            scenario={
                "receiver": {"waveguides": waveguides, "antennas": antennas},
                "radio": {"snr_db": snr_db},
                "devices": {"count": devices, "seed": number},
            },
            method={"method": scheme},
        )
        for snr_db in snrs
        for number in range(count)
        for scheme in SCHEMES
        if scheme != SLOW or number < slow
    )


def draw(rows: Sequence[Row]) -> Any:
    """Selected devices against SNR."""
    return over_axis(rows, "selected_count", "P0/σ², dB", "Selected devices against SNR")


def tabulate(rows: Sequence[Row]) -> Table:
    """The same as numbers."""
    return by_point(rows, "selected_count", "dB")


FIGURE = PaperFigure(
    "fig9",
    "Selected devices against SNR. K = 50, M = N = 10",
    trials,
    draw,
    tabulate,
    {"smoke": "10 seconds", "lite": "4 minutes", "paper": "a quarter of an hour"},
)
