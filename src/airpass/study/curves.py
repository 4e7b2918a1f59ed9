"""What figures 2 to 8 have in common: training runs of some schemes, perhaps over an axis."""

from collections.abc import Mapping, Sequence
from typing import Any

from airpass.study.figure import PaperFigure, Table
from airpass.study.plots import METRICS, NAMES, over_rounds
from airpass.study.tables import by_point
from airpass.study.trial import Row, Trial

# Data set, rounds, rounds between tests, trials. The paper does not say how many rounds: after 400, ideal
# FedAvg on full MNIST is at 93 % and gains a point in a hundred more.
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


def training_figure(
    name: str,
    title: str,
    *,
    size: tuple[int, int, int],
    snr_db: float,
    schemes: Sequence[str],
    metric: str,
    scales: Mapping[str, dict[str, Any]],
    duration: Mapping[str, str],
    axis: str = "",
    values: Sequence[float] = (),
    unit: str = "",
    letter: str = "",
    panel_by: str = "point",
    changes: Mapping[str, dict[str, Any]] | None = None,
    smoke_size: tuple[int, int, int] | None = None,
    ours: Sequence[float] = (),
) -> PaperFigure:
    """A figure whose lines are training runs.

    `axis` is the scenario's field that takes the `values`, called `letter` and counted in `unit`;
    `panel_by` says whether a panel is a point or a scheme. `changes` override the scales' training;
    `smoke_size` is for that scale, where the figure's own takes too long; `ours` are values that the
    paper's figure does not have.
    """

    def trials(scale: str) -> tuple[Trial, ...]:
        here = smoke_size if smoke_size is not None and scale == "smoke" else size
        training = {**scales[scale], **(changes or {}).get(scale, {})}
        count = training.pop("trials")
        return tuple(
            Trial(
                figure=name,
                scheme=scheme,
                x=None if value is None else float(value),
                x_label="" if value is None else f"{value:g}",
                trial=number,
                seed=number,
                scenario=_scenario(here, snr_db, axis, value, number),
                method={"method": scheme},
                training=training,
            )
            for value in values or (None,)
            for number in range(count)
            for scheme in schemes
        )

    def draw(rows: Sequence[Row]) -> Any:
        points = [f"{value:g}" for value in values] or [""]
        labels = {point: f"{letter} = {point} {unit}".strip() for point in points}
        for value in ours:
            labels[f"{value:g}"] += " (not in the paper)"
        if panel_by == "point":
            heads = {point: f"{labels[point]}" if values else title for point in points}
            return over_rounds(rows, metric, heads)
        return over_rounds(rows, metric, {scheme: NAMES[scheme] for scheme in schemes}, labels)

    def tabulate(rows: Sequence[Row]) -> Table:
        digits = 1 if metric == "test_accuracy" else 3
        return by_point(rows, metric, unit, METRICS[metric][1], digits)

    return PaperFigure(name, title, trials, draw, tabulate, duration)


def _scenario(
    size: tuple[int, int, int], snr_db: float, axis: str, value: float | None, seed: int
) -> dict[str, Any]:
    devices, waveguides, antennas = size
    tables: dict[str, Any] = {
        "receiver": {"waveguides": waveguides, "antennas": antennas},
        "radio": {"snr_db": snr_db},
        "devices": {"count": devices, "seed": seed},
    }
    if value is not None:
        section, key = axis.split(".")
        tables[section][key] = value
    return tables
