"""Base class of the paper's figures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airpass.figures.chart import Chart
from airpass.study.paper.plan import PLANS, Plan
from airpass.study.tables import Table
from airpass.study.trial import Row, Trial

SCALES = tuple(PLANS)
ENERGY = "energy"


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

    def titled(self, scale: str) -> str:
        """The title; without sizes at scale "smoke", which has smaller ones."""
        return self.title.partition(". K = ")[0] if scale == "smoke" else self.title

    def plan(self, scale: str) -> Plan:
        """Number of trials and their seeds."""
        return PLANS[scale][self.name]

    @abstractmethod
    def trials(self, scale: str) -> tuple[Trial, ...]:
        """The trials of a scale."""

    @abstractmethod
    def chart(self, rows: Sequence[Row]) -> Chart:
        """The figure. `rows` may be incomplete."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> Table:
        """The same as numbers."""


@dataclass(frozen=True)
class Point:
    """A point of an axis, or the setting of a panel.

    Parameters
    ----------
    x
        Position on the axis.
    label
        `x_label` of the rows; differs between the points of a figure.
    title
        Text of legends, panels and tables.
    tables
        Changes of the scenario's tables.
    """

    x: float
    label: str
    title: str
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def snr_point(snr_db: float, normalisation: str = "share", title: str = "") -> Point:
    """A value of the SNR with one of two rules for the aggregation weights.

    Parameters
    ----------
    snr_db
        SNR in dB.
    normalisation
        "share", as in all other figures, or "energy", with which the error threshold is the
        distortion-to-signal ratio.
    title
        Title; "" for the SNR and, if it is "energy", the rule.

    Returns
    -------
    Point
        Its label is the SNR, followed by ", energy" for that rule.
    """
    tables: dict[str, dict[str, Any]] = {"radio": {"snr_db": snr_db}}
    rule = ""
    if normalisation != "share":
        tables["weights"] = {"normalisation": normalisation}
        rule = f", {normalisation}"
    return Point(snr_db, f"{snr_db:g}{rule}", title or f"{snr_db:g} dB{rule}", tables)


def scenario(
    size: tuple[int, int, int],
    snr_db: float,
    seed: int,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Tables of a scenario.

    Parameters
    ----------
    size
        Devices, waveguides, antennas per waveguide.
    snr_db
        SNR in dB.
    seed
        Seed of the devices.
    changes
        Tables whose entries replace or extend those of the scenario.

    Returns
    -------
    dict[str, dict[str, Any]]
        Tables as in a scenario file.
    """
    devices, waveguides, antennas = size
    tables: dict[str, dict[str, Any]] = {
        "receiver": {"waveguides": waveguides, "antennas": antennas},
        "radio": {"snr_db": snr_db},
        "devices": {"count": devices, "seed": seed},
    }
    for name, entries in (changes or {}).items():
        tables[name] = {**tables.get(name, {}), **entries}
    return tables
