"""One trial: a scheme at a point of a sweep, for one seed. A pure function to rows.

The seed fixes devices, data split, initial weights and noise, so that all schemes and points of the
same trial number see the same ones.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from airpass import __version__
from airpass.core.errors import InvalidInput
from airpass.core.registry import with_threads
from airpass.designs.api import Design, design, design_method
from airpass.learning import FEDAVG
from airpass.scenario import Scenario
from airpass.selection import METHODS
from airpass.selection.api import select

SECONDS = "seconds"  # the one metric that differs from run to run
DESIGN_METRICS = ("selected_count", "weakest_score", "mse")
ROUND_METRICS = (
    "test_accuracy",
    "test_loss",
    "train_loss",
    "selected_count",
    "predicted_mse",
    "measured_mse",
)


@dataclass(frozen=True)
class Row:
    """One number."""

    figure: str
    scheme: str
    x: float | None  # where on the sweep's axis; None if there is none, or if it is not a number
    x_label: str
    trial: int
    round: int  # of training; 0 for what is known before
    metric: str
    value: float  # not a number where there is none, such as the error with nobody selected
    seed: int
    key: str  # of the trial


@dataclass(frozen=True)
class Trial:
    """What to compute. Everything is plain data, as it is sent to workers and kept with the rows."""

    figure: str
    scheme: str  # as rows name it
    x: float | None
    x_label: str
    trial: int
    seed: int
    scenario: Mapping[str, Any]  # tables, as in a scenario file
    method: Mapping[str, Any]  # arguments of `design`; {"method": "fedavg"} is ideal
    training: Mapping[str, Any] | None = None  # dataset, and options of `train`; None: design only
    repeats: int = 0  # if any: only selection at the uniform layout, timed so many times

    @cached_property
    def key(self) -> str:
        """A fingerprint of all that the rows depend on: what is there under it is never recomputed."""
        text = json.dumps(asdict(self) | {"version": __version__} | self._own_data(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _own_data(self) -> dict[str, str]:
        """What is in a data set of the user's own, whatever its name."""
        path = Path(str((self.training or {}).get("dataset", "")))
        if path.suffix != ".npz" or not path.is_file():
            return {}
        return {"data_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

    @cached_property
    def work(self) -> str:
        """A fingerprint of what is computed: trials that differ only in their place in a figure share it."""
        scenario = dict(self.scenario)
        if self.method.get("method") == FEDAVG:  # has no use for a receiver
            scenario = {name: scenario[name] for name in scenario if name not in ("receiver", "radio")}
        data = self._own_data()
        parts = (scenario, dict(self.method), self.training, self.repeats, self.seed, __version__, data)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """How messages call it."""
        where = f" at {self.x_label}" if self.x_label else ""
        return f"{self.figure}: {self.scheme}{where}, trial {self.trial}"

    def row(self, metric: str, value: float, round_number: int = 0) -> Row:
        """A row of this trial."""
        return Row(
            figure=self.figure,
            scheme=self.scheme,
            x=self.x,
            x_label=self.x_label,
            trial=self.trial,
            round=round_number,
            metric=metric,
            value=value,
            seed=self.seed,
            key=self.key,
        )


def relabel(rows: Iterable[Row], trial: Trial) -> list[Row]:
    """The rows of a trial that did the same work, as those of `trial`."""
    return [trial.row(row.metric, row.value, row.round) for row in rows]


def check(trial: Trial) -> None:
    """Refuse what cannot run before anything does."""
    Scenario.from_dict(trial.scenario)
    name = trial.method.get("method")
    options = trial.method.get("options", {})
    if "time_limit_s" in options:
        raise InvalidInput(
            "options.time_limit_s: rows must not depend on the speed of a machine; give effort"
        )
    if trial.repeats:
        METHODS.resolve(str(name), options)
    elif name != FEDAVG:
        design_method(**trial.method)
    elif trial.training is None:
        raise InvalidInput(f"scheme = {FEDAVG!r}: is about training; this study has none")
    if trial.training is not None:
        from airpass.learning.training import training_options

        training_options(trial.training)


def run(trial: Trial) -> list[Row]:
    """All rows of a trial, in an order that depends on nothing else."""
    scenario = Scenario.from_dict(trial.scenario)
    if trial.repeats:
        return _selection_rows(trial, scenario)
    if trial.training is None:
        return _design_rows(trial, _design(trial, scenario))
    return _training_rows(trial, scenario)


def _selection_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    """Who is selected, the work that took, and the median of the times; `method` is a selection method."""
    channels = scenario.channels(scenario.uniform_layout())
    how = dict(trial.method)
    picked = [
        select(channels, scenario.weights, scenario.budget, **how, seed=trial.seed)
        for _ in range(1 + trial.repeats)  # the first may compile
    ]
    work = {f"work_{name}": float(count) for name, count in sorted(picked[0].work.items())}
    values = {"selected_count": float(picked[0].selected_count), **work}
    rows = [trial.row(name, value) for name, value in values.items()]
    return [*rows, trial.row(SECONDS, median(one.seconds for one in picked[1:]))]


def _design(trial: Trial, scenario: Scenario) -> Design:
    # One compute thread per worker; results do not depend on it.
    return design(scenario, with_threads(design_method(**trial.method), 1), seed=trial.seed)


def _design_rows(trial: Trial, result: Design) -> list[Row]:
    values = (result.selected_count, result.weakest_score, result.mse)
    rows = [trial.row(name, float(value)) for name, value in zip(DESIGN_METRICS, values, strict=True)]
    return [*rows, trial.row(SECONDS, result.seconds)]


def _training_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    import torch

    from airpass.learning.training import prepare, train, training_options

    assert trial.training is not None
    torch.set_num_threads(1)
    dataset, options, data_dir = training_options(trial.training)
    weighted, data = prepare(scenario, dataset, options, trial.seed, data_dir)
    link = None if trial.method.get("method") == FEDAVG else _design(trial, weighted)
    done = train(link, data, seed=trial.seed, scenario=weighted, options=options, workers=1)
    if not done.finished:
        raise RuntimeError(f"training was {done.status}")
    # The number of selected devices stands with every round.
    rows = [] if link is None else _design_rows(trial, link)[1:-1]
    for record in done.history:
        for metric in ROUND_METRICS:
            rows.append(trial.row(metric, float(getattr(record, metric)), record.round))
    return [*rows, trial.row(SECONDS, done.history[-1].seconds)]
