"""Figures 2 to 8: training runs of several schemes, in some figures along an axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airpass.core.display import display_name
from airpass.figures.chart import Chart
from airpass.study.charts import rounds_chart
from airpass.study.paper.base import PaperFigure, scenario
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row, Trial

ARRAYS = ("fedavg", "airpass-plus", "airpass", "mimo-mn-plus", "mimo-mn", "mimo-m")
VARIANTS = ("fedavg", "airpass-plus", "airpass", "airpass-sdr-dc", "airpass-mp")

# Options of training, and the number of trials. The paper does not give the number of rounds: after 400,
# ideal FedAvg on full MNIST is at 93 % and gains a point in a hundred more.
MNIST: Mapping[str, dict[str, Any]] = {
    "smoke": {"dataset": "mnist-mini", "rounds": 20, "evaluate_every": 4, "trials": 1},
    "lite": {"dataset": "mnist-mini", "rounds": 150, "evaluate_every": 10, "trials": 3},
    "paper": {"dataset": "mnist", "rounds": 400, "evaluate_every": 20, "trials": 3},
}
CIFAR: Mapping[str, dict[str, Any]] = {
    "smoke": {
        "dataset": "cifar10",
        "rounds": 4,
        "evaluate_every": 2,
        "trials": 1,
        "batch": 4,
        "local_steps": 1,
        "test_images": 200,
        "probe_images": 200,
    },
    # A quarter of the paper's mini-batch, as a step takes a quarter of the time; half the test set.
    "lite": {
        "dataset": "cifar10",
        "rounds": 120,
        "evaluate_every": 15,
        "trials": 3,
        "batch": 16,
        "test_images": 5000,
        "probe_images": 1000,
    },
    "paper": {"dataset": "cifar10", "rounds": 500, "evaluate_every": 20, "trials": 3},
}


@dataclass(frozen=True)
class Axis:
    """A field of the scenario that varies.

    Parameters
    ----------
    field
        Section and key.
    symbol
        Symbol in labels.
    values
        Values of the field.
    unit
        Unit of the values.
    added
        Values that the paper's figure does not have.
    """

    field: str
    symbol: str
    values: tuple[float, ...]
    unit: str = ""
    added: tuple[float, ...] = ()

    def label(self, value: float) -> str:
        """Text of the legend or title for a value."""
        text = f"{self.symbol} = {value:g} {self.unit}".rstrip()
        return f"{text} (not in the paper)" if value in self.added else text


@dataclass(frozen=True, kw_only=True)
class TrainingFigure(PaperFigure):
    """A figure whose lines are training runs.

    Parameters
    ----------
    schemes
        Names of the schemes.
    metric
        A key of `METRICS`.
    scales
        Options of training and number of trials, by scale.
    changes
        Changes of `scales` in this figure.
    size
        Devices, waveguides, antennas per waveguide.
    smoke_size
        Size at scale "smoke"; None for the same.
    snr_db
        SNR in dB, unless it is the axis.
    axis
        Field that varies, if any.
    panel_per_scheme
        Whether a panel shows a scheme, with one line per value of the axis. Otherwise it shows a
        value, with one line per scheme.
    """

    schemes: tuple[str, ...]
    metric: str
    scales: Mapping[str, dict[str, Any]]
    changes: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    size: tuple[int, int, int] = (10, 5, 5)
    smoke_size: tuple[int, int, int] | None = None
    snr_db: float = 10.0
    axis: Axis | None = None
    panel_per_scheme: bool = False

    def trials(self, scale: str) -> tuple[Trial, ...]:
        """The trials of a scale."""
        training = {**self.scales[scale], **self.changes.get(scale, {})}
        count = training.pop("trials")
        return tuple(
            Trial(
                job="train",
                figure=self.name,
                scheme=scheme,
                x=None if value is None else float(value),
                x_label="" if value is None else f"{value:g}",
                trial=number,
                seed=number,
                scenario=self._scenario(scale, value, number),
                method={"method": scheme},
                training=training,
            )
            for value in (self.axis.values if self.axis is not None else (None,))
            for number in range(count)
            for scheme in self.schemes
        )

    def _scenario(self, scale: str, value: float | None, seed: int) -> dict[str, Any]:
        size = self.smoke_size if self.smoke_size is not None and scale == "smoke" else self.size
        tables = scenario(size, self.snr_db, seed)
        if self.axis is not None and value is not None:
            section, key = self.axis.field.split(".")
            tables[section][key] = value
        return tables

    def chart(self, rows: Sequence[Row]) -> Chart:
        """The metric against rounds."""
        if self.axis is None:
            return rounds_chart(rows, self.metric, {"": self.title})
        labels = {f"{value:g}": self.axis.label(value) for value in self.axis.values}
        if not self.panel_per_scheme:
            return rounds_chart(rows, self.metric, labels)
        return rounds_chart(rows, self.metric, {name: display_name(name) for name in self.schemes}, labels)

    def table(self, rows: Sequence[Row]) -> Table:
        """The metric at the last round."""
        return by_point(rows, self.metric, "" if self.axis is None else self.axis.unit)
