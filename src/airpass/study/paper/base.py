"""Base class of the paper's figures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airpass.figures.chart import Chart
from airpass.study.tables import Table
from airpass.study.trial import Row, Trial

SCALES = ("smoke", "lite", "paper")


@dataclass(frozen=True, kw_only=True)
class PaperFigure(ABC):
    """One of figures 2 to 9, or table I.

    Parameters
    ----------
    name
        Name on the command line.
    title
        Title in the report.
    duration
        Time on two cores, by scale.
    """

    name: str
    title: str
    duration: Mapping[str, str]

    @abstractmethod
    def trials(self, scale: str) -> tuple[Trial, ...]:
        """The trials of a scale."""

    @abstractmethod
    def chart(self, rows: Sequence[Row]) -> Chart:
        """The figure. `rows` may be incomplete."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> Table:
        """The same as numbers."""


def scenario(size: tuple[int, int, int], snr_db: float, seed: int) -> dict[str, dict[str, float]]:
    """Tables of a scenario with `size` = (devices, waveguides, antennas per waveguide)."""
    devices, waveguides, antennas = size
    return {
        "receiver": {"waveguides": waveguides, "antennas": antennas},
        "radio": {"snr_db": snr_db},
        "devices": {"count": devices, "seed": seed},
    }
