"""Federated training over a designed link: rounds of local steps, aggregation and tests.

Everything random is keyed on seed, round and device, so that all schemes of a comparison see the
same data split, initial weights, mini-batches and noise, and a run that was interrupted goes on
to the same numbers.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from airpass import __version__
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import result_options
from airpass.core.threads import one_blas_thread
from airpass.designs.api import Design
from airpass.designs.api import design as run_design
from airpass.learning import models
from airpass.learning.aggregation import Float32, Link, LinkOptions, over_the_air, weighted_mean
from airpass.learning.checkpoint import Saved, restore, save
from airpass.learning.client import (
    FlatModel,
    LocalWork,
    Trainer,
    Watched,
    chunks,
    computing_device,
    every,
    probe,
)
from airpass.learning.datasets import Dataset
from airpass.learning.download import check_name, load
from airpass.learning.partition import Indices, PartitionOptions, partition
from airpass.learning.pool import Pool
from airpass.scenario import Scenario

FEDAVG = "fedavg"
# Section VI-A of the paper.
LEARNING_RATE = {"cifar10": 0.02}
BATCH = {"cifar10": 64}
OTHER_LEARNING_RATE = 0.01
OTHER_BATCH = 32


@dataclass(frozen=True)
class TrainOptions:
    """Sources: P is section VI-A of the paper."""

    rounds: int = 200  # ours; the paper does not say
    local_steps: int = 3  # J mini-batch steps; P
    epochs: int | None = None  # passes over a device's data instead of steps
    batch: int | None = None  # 32, for CIFAR-10 64; P
    learning_rate: float | None = None  # 0.01, for CIFAR-10 0.02; P
    model: str | None = None  # the paper's network for the data set
    evaluate_every: int = 10  # rounds between tests; ours
    test_images: int | None = None  # of the test set, evenly spaced; None is all
    probe_images: int = 5000  # training images on which the global training loss is measured; ours
    redraw_every: int | None = None  # rounds between new draws of the devices; None is never
    partition: PartitionOptions = field(default_factory=PartitionOptions)
    link: LinkOptions = field(default_factory=LinkOptions)

    def __post_init__(self) -> None:
        checks.whole("rounds", self.rounds, 1)
        checks.whole("local_steps", self.local_steps, 1)
        checks.whole("evaluate_every", self.evaluate_every, 1)
        checks.whole("probe_images", self.probe_images, 1)
        for name in ("epochs", "batch", "test_images", "redraw_every"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)

    def filled(self, dataset: str) -> "TrainOptions":
        """With every default that depends on the data set filled in."""
        check_name(dataset)
        model = self.model or models.DEFAULT_MODEL.get(dataset)
        if model is None:
            raise InvalidInput(
                f"model is missing: for {dataset} give one of {', '.join(models.MODELS)}, "
                "or package.module:callable"
            )
        return replace(
            self,
            batch=self.batch or BATCH.get(dataset, OTHER_BATCH),
            learning_rate=self.learning_rate or LEARNING_RATE.get(dataset, OTHER_LEARNING_RATE),
            model=model,
        )


@dataclass(frozen=True)
class Record:
    """One evaluated round. Errors and local loss are means over the rounds since the last."""

    round: int
    test_accuracy: float
    test_loss: float
    train_loss: float  # of the global model over what all devices hold, eq. (1)
    local_loss: float  # of the selected devices while they train; not a number if nobody trained
    selected_count: int
    predicted_mse: float  # zero for ideal FedAvg; not a number if nobody was selected
    measured_mse: float
    seconds: float  # since the run began, interruptions left out


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A training run, finished or interrupted."""

    scheme: str
    dataset: str
    scenario: Scenario
    design: Design | None  # None for ideal FedAvg
    config: Mapping[str, Any]
    parameters: int  # entries of an update: weights, and running statistics if there are any
    history: tuple[Record, ...]
    state: Float32  # the global model
    finished: bool
    status: str


OnRound = Callable[[int, Mapping[str, float]], None]


def prepare(
    scenario: Scenario, dataset: str, options: TrainOptions, seed: int, data_dir: Path | None = None
) -> tuple[Scenario, Dataset, list[Indices]]:
    """Data, who holds which samples, and the scenario with weights to match."""
    data = load(dataset, data_dir)
    samples = partition(data.y_train, scenario.devices.count, options.partition, seed)
    return scenario.with_samples([share.size for share in samples]), data, samples


def train(
    design: Design | None,
    dataset: str = "mnist",
    rounds: int | None = None,
    seed: int = 0,
    *,
    scenario: Scenario | None = None,
    options: TrainOptions | None = None,
    workers: int | None = None,
    data_dir: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    on_round: OnRound | None = None,
) -> TrainingRun:
    """Train over the link of `design`; with None, by ideal FedAvg among `scenario`'s devices.

    Weights are those that the design was made for: `prepare` gives a scenario whose weights
    match the data. With `checkpoint`, everything so far is kept in that file at every
    evaluation, and `resume` goes on from there. Ctrl-C ends early and keeps what there is.
    """
    settings = options or TrainOptions()
    if rounds is not None:
        settings = replace(settings, rounds=rounds)
    settings = settings.filled(dataset)
    checks.whole("seed", seed, 0)
    place = design.scenario if design is not None else scenario
    if place is None:
        raise InvalidInput("scenario is missing: ideal FedAvg needs one for its devices")
    if settings.redraw_every is not None and place.devices.drawn_from is None:
        raise InvalidInput(
            "redraw_every: the devices are given one by one; give ranges to draw them from instead"
        )
    _, data, samples = prepare(place, dataset, settings, seed, data_dir)
    run = _Run(design, place, dataset, data, samples, settings, seed, checkpoint)
    if resume:
        run.restore()
    if workers is None:  # a GPU is driven by one process
        alone = computing_device().type != "cpu"
        workers = 1 if alone else min(os.cpu_count() or 1, place.devices.count)
    make = partial(_trainer, dataset, data_dir, settings, seed, place.devices.count)
    if not run.done:
        with Pool(make, workers) as pool:
            run.go(pool, on_round or (lambda number, values: None))
    return run.result()


def _trainer(
    dataset: str, data_dir: Path | None, settings: TrainOptions, seed: int, devices: int
) -> tuple[Trainer, list[Indices]]:
    """What every worker holds: made in the worker, so that no data is sent to it."""
    data = load(dataset, data_dir)
    samples = partition(data.y_train, devices, settings.partition, seed)
    assert settings.batch is not None
    assert settings.learning_rate is not None
    work = LocalWork(settings.local_steps, settings.epochs, settings.batch, settings.learning_rate)
    seen = Watched(every(data.y_test.size, settings.test_images), probe(samples, settings.probe_images, seed))
    return Trainer(data, _model(data, settings, seed), work, seen, seed), samples


def _model(data: Dataset, settings: TrainOptions, seed: int) -> Any:
    assert settings.model is not None
    torch_seed = int(stream(seed, Purpose.INITIAL_WEIGHTS).integers(2**63))
    return models.build(settings.model, data.channels, data.classes, data.x_train.shape[1], torch_seed)


class _Run:
    """The loop and its state."""

    def __init__(
        self,
        design: Design | None,
        scenario: Scenario,
        dataset: str,
        data: Dataset,
        samples: list[Indices],
        settings: TrainOptions,
        seed: int,
        checkpoint: Path | None,
    ) -> None:
        self.design = design
        self.scenario = scenario
        self.dataset = dataset
        self.samples = samples
        self.settings = settings
        self.seed = seed
        self.checkpoint = checkpoint
        self.tests = every(data.y_test.size, settings.test_images).size
        self.probed = min(settings.probe_images, sum(share.size for share in samples))
        flat = FlatModel(_model(data, settings, seed))
        self.state = flat.read()
        self.sizes = flat.sizes
        self.round = 0
        self.history: list[Record] = []
        self.since: list[tuple[float, float, float]] = []  # losses and errors since the last test
        self.seconds = 0.0
        self.period = 0  # of device draws
        self.status = "done"
        # What has to be the same for a run to be the continuation of another.
        self.config = {
            **asdict(settings),
            "seed": seed,
            "scheme": FEDAVG if design is None else design.method.name,
            "dataset": dataset,
            "scenario_sha256": _digest(scenario.to_dict()),
            "design_sha256": "" if design is None else _digest(_fixed(design)),
        }

    @property
    def done(self) -> bool:
        return self.round >= self.settings.rounds

    def go(self, pool: Pool, on_round: OnRound) -> None:
        began = time.perf_counter() - self.seconds
        if self.round == 0 and not self.history:
            self._test(pool)
        try:
            while not self.done:
                self._redraw()
                self._round(pool)
                self.seconds = time.perf_counter() - began
                if self.round % self.settings.evaluate_every == 0 or self.done:
                    self._test(pool)
                    self.seconds = time.perf_counter() - began
                    self._save()
                on_round(self.round, self._latest())
        except KeyboardInterrupt:
            # The round that was cut short is lost; the last test's checkpoint stands.
            self.status = f"interrupted in round {self.round + 1}"

    def _link(self) -> Link | None:
        if self.design is None:
            return None
        picked = self.design
        assert picked.noise_power is not None
        return Link(
            picked.channels, picked.beam, picked.weights, picked.selected, picked.power, picked.noise_power
        )

    def _round(self, pool: Pool) -> None:
        link = self._link()
        count = self.scenario.devices.count
        devices = list(range(count)) if link is None else np.flatnonzero(link.selected).tolist()
        self.round += 1
        if not devices:  # nobody can send: the global model stays
            self.since.append((nan, nan, nan))
            return
        updates, losses = pool.updates(self.state, self.round, devices)
        with one_blas_thread():  # others would wait for work at full speed, and keep the devices from a core
            if link is None:
                change, predicted, measured = weighted_mean(updates, self.scenario.weights), 0.0, 0.0
                weights = self.scenario.weights
            else:
                weights = link.weights[link.selected]
                sent = over_the_air(
                    updates,
                    self.sizes,
                    link,
                    self.settings.link,
                    stream(self.seed, Purpose.NOISE, self.round),
                    stream(self.seed, Purpose.CHANNEL_ERROR, self.round),
                )
                change, predicted, measured = sent.update, sent.predicted_mse, sent.measured_mse
        self.state = self.state + change
        self.since.append((float(weights @ losses / weights.sum()), predicted, measured))

    def _redraw(self) -> None:
        """New devices every so many rounds, and a redesign that starts from the last layout."""
        every = self.settings.redraw_every
        period = 0 if every is None else self.round // every
        if period == self.period:
            return
        self.period = period
        old = self.scenario.devices
        assert old.drawn_from is not None
        fresh = replace(old.drawn_from, seed=self.seed).draw(period)
        self.scenario = replace(self.scenario, devices=replace(fresh, samples=old.samples))
        if self.design is not None:
            before = self.design
            self.design = run_design(
                self.scenario,
                before.method,
                seed=self.seed,
                start_layout=before.layout,
            )

    def _test(self, pool: Pool) -> None:
        results = pool.measures(self.state, chunks(self.tests) + chunks(self.probed))
        tested, watched = results[: chunks(self.tests)], results[chunks(self.tests) :]
        rows = np.array(self.since or [(nan, nan, nan)])
        known = ~np.isnan(rows[:, 0])
        local, predicted, measured = rows[known].mean(axis=0) if known.any() else np.full(3, nan)
        self.history.append(
            Record(
                round=self.round,
                test_accuracy=sum(right for right, _ in tested) / self.tests,
                test_loss=sum(loss for _, loss in tested) / self.tests,
                train_loss=sum(loss for _, loss in watched) / self.probed,
                local_loss=float(local),
                selected_count=(
                    self.scenario.devices.count if self.design is None else self.design.selected_count
                ),
                predicted_mse=float(predicted),
                measured_mse=float(measured),
                seconds=self.seconds,
            )
        )
        self.since = []

    def _latest(self) -> dict[str, float]:
        last = self.history[-1]
        train_loss, _, measured = self.since[-1] if self.since else (last.local_loss, nan, last.measured_mse)
        return {
            "accuracy": last.test_accuracy,
            "loss": train_loss,
            "selected": last.selected_count,
            "mse": measured,
        }

    def _save(self) -> None:
        if self.checkpoint is not None:
            rows = [asdict(record) for record in self.history]
            save(self.checkpoint, Saved(self.config, self.round, self.seconds, rows, self.state))

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one of the same run."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        saved = restore(self.checkpoint, self.config, self.state.size)
        self.state = saved.state
        self.seconds = saved.seconds
        self.history = [Record(**record) for record in saved.history]
        if self.settings.redraw_every is not None:
            # Warm-started designs depend on those before: walk through the draws again.
            for start in range(0, saved.round, self.settings.redraw_every):
                self.round = start
                self._redraw()
        self.round = saved.round

    def result(self) -> TrainingRun:
        return TrainingRun(
            scheme=str(self.config["scheme"]),
            dataset=self.dataset,
            scenario=self.scenario,
            design=self.design,
            config=self.config | {"version": __version__},
            parameters=int(self.state.size),
            history=tuple(self.history),
            state=self.state,
            finished=self.done,
            status=self.status,
        )


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _fixed(design: Design) -> dict[str, Any]:
    """What of a design the training depends on."""
    picked = design
    return {
        "selected": picked.selected.tolist(),
        "channels": [picked.channels.real.tolist(), picked.channels.imag.tolist()],
        "beam": [picked.beam.real.tolist(), picked.beam.imag.tolist()],
        "options": result_options(design.method),
    }
