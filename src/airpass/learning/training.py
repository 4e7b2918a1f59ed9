"""Federated training over a link: rounds of local steps, aggregation and evaluation.

Random numbers are keyed on seed, round and device. So all schemes of a comparison see the same data
partition, initial weights, mini-batches and noise, and an interrupted run resumes to the same numbers.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from airpass.aircomp import Link, sdr_db
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard, result_options
from airpass.core.threads import one_blas_thread, processors
from airpass.core.types import Real, Single
from airpass.core.version import __version__
from airpass.designs.api import Design, design
from airpass.kernels.clock import now
from airpass.learning import FEDAVG, losses, models
from airpass.learning.aggregation import over_the_air, weighted_mean
from airpass.learning.checkpoint import Saved, restore, save
from airpass.learning.client import (
    FlatModel,
    LocalWork,
    Trainer,
    computing_device,
    evaluation_set,
    inputs,
    targets,
)
from airpass.learning.data import Data, data_source
from airpass.learning.data.base import Dataset
from airpass.learning.data.partition import FederatedData, Samples, Split, checked_split, partition
from airpass.learning.history import DIVERGED, Record, TrainingRun
from airpass.learning.losses import Objective
from airpass.learning.optimisers import Server
from airpass.learning.options import DATASET, TrainOptions
from airpass.learning.pool import Pool, check_picklable
from airpass.learning.progress import RoundLine
from airpass.scenario import Scenario
from airpass.selection.api import Draws, checked_weights

OnRound = Callable[[int, Mapping[str, float]], None]


def prepare(
    scenario: Scenario,
    dataset: Data = DATASET,
    options: TrainOptions | None = None,
    seed: int | None = None,
    data_dir: Path | None = None,
    *,
    split: Split | None = None,
    report: Report = discard,
) -> tuple[Scenario, FederatedData]:
    """Load a data set, split it among the devices of a scenario, and set the weights accordingly.

    Parameters
    ----------
    scenario
        The devices.
    dataset
        Name, `FILE.npz`, `file.py:Name`, `package.module:Name`, or an object such as `ArrayData`;
        (x_train, y_train, x_test, y_test); or (train, test), two `torch.utils.data.Dataset` objects.
    options
        Options of training; only `partition` and `loss` matter here.
    seed
        Seed of the partition; the same as that of `train`. Default: that of the scenario's devices.
    data_dir
        Folder of downloaded data sets.
    split
        Indices of the training samples of each device, instead of `options.partition`.
    report
        Callback for messages about loading and downloading.

    Returns
    -------
    tuple of Scenario and FederatedData
        The scenario with |D_k| samples per device, and the data for `train`.
    """
    devices = scenario.devices.count
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    data = federated(dataset, devices, options or TrainOptions(), seed, data_dir, split, report)
    return scenario.with_samples(data.counts), data


def federated(
    dataset: Data,
    devices: int,
    options: TrainOptions,
    seed: int,
    data_dir: Path | None,
    split: Split | None,
    report: Report,
) -> FederatedData:
    """Load a data set and split it among a number of devices."""
    source = data_source(dataset)
    loaded = _with_targets(source.load(data_dir, report), options)
    if split is not None:
        return FederatedData(source, loaded, checked_split(split, len(loaded.y_train), devices))
    return FederatedData(source, loaded, partition(loaded, devices, options.partition, seed))


def _with_targets(data: Dataset, options: TrainOptions) -> Dataset:
    """The data set with targets of the kind that the loss needs."""
    return data.for_task(losses.task_of(options.loss) or data.task)


def train(
    link: Link | Sequence[Link] | None,
    dataset: Data | FederatedData = DATASET,
    rounds: int | None = None,
    seed: int | None = None,
    *,
    scenario: Scenario | None = None,
    weights: Any = None,
    options: TrainOptions | None = None,
    workers: int | None = None,
    data_dir: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    on_round: OnRound | None = None,
    name: str | None = None,
    split: Split | None = None,
    report: Report = discard,
    progress: bool | None = None,
) -> TrainingRun:
    """Train a model by federated learning over a link.

    Parameters
    ----------
    link
        A design, a selection or any other link whose noise power is known. A sequence of T links, such as
        that of `select_draws`: the channels change from round to round, and round r = 1, 2, ... uses link
        (r - 1) mod T. None: ideal FedAvg with the weights of `scenario`, or with `weights`. `prepare` gives
        a scenario whose weights match the data.
    dataset
        As for `prepare`, or the data from `prepare`.
    rounds
        Communication rounds; replaces that of `options`.
    seed
        Seed of data partition, initial weights, mini-batches and noise. Default: the seed that the devices of
        the design or the scenario were drawn with, or 0.
    scenario
        The devices of ideal FedAvg. A design has its own.
    weights
        phi_k of ideal FedAvg, shape (K,), instead of those of `scenario`.
    options
        Options of training.
    workers
        Number of processes with one thread each. Default: one per available processor, and one with a GPU.
        Results do not depend on it.
    data_dir
        Folder of downloaded data sets.
    checkpoint
        File to which the run is saved at every evaluation.
    resume
        Continue from `checkpoint` if it exists.
    on_round
        Callback after every round, with its number, and accuracy, loss, selected devices and MSE.
    name
        Name of the scheme in the result. Default: that of the method that found the link.
    split, report
        As for `prepare`.
    progress
        Whether to show the last round in a line on standard error. Default: on a terminal and in a notebook,
        unless `on_round` is given.

    Returns
    -------
    TrainingRun
        History and global model. After Ctrl-C, those of the rounds so far. If a loss, an update or the model
        is not finite in a round, training ends with the model of the round before, and `diverged` is true.
    """
    options = options or TrainOptions()
    if rounds is not None:
        options = replace(options, rounds=rounds)
    if isinstance(link, Design):
        scenario = link.scenario
    if seed is None:
        seed = 0 if scenario is None else scenario.seed
    checks.whole("seed", seed, 0)
    links = _blocks(link)
    if options.redraw_every is not None:
        if not (link is None or isinstance(link, Design)):
            raise InvalidInput("redraw_every: needs a design, which is repeated for the new devices")
        if scenario is not None and scenario.devices.drawn_from is None:
            raise InvalidInput(
                "redraw_every: the devices are given one by one; give ranges to draw them from instead"
            )
    if links and weights is not None:
        raise InvalidInput("weights: are those of ideal FedAvg; a link has its own")
    if links:
        phi = links[0].weights
    elif weights is not None:
        phi = checked_weights(weights, np.size(weights))
    elif scenario is not None:
        phi = scenario.weights
    else:
        raise InvalidInput("scenario is missing: ideal FedAvg needs its weights, or weights")
    if progress is None and on_round is not None:
        progress = False
    shown = RoundLine(progress, name or scheme_name(links[0] if links else None), options.rounds)
    if isinstance(dataset, FederatedData):
        if split is not None:
            raise InvalidInput("split: the data are split already; give it to prepare")
        dataset = replace(dataset, dataset=_with_targets(dataset.dataset, options))
    else:
        told = shown.message if shown.shown and report is discard else report
        dataset = federated(dataset, phi.size, options, seed, data_dir, split, told)
    if len(dataset.samples) != phi.size:
        raise InvalidInput(f"dataset: is split among {len(dataset.samples)} devices; the link has {phi.size}")
    if workers is None:  # one process per GPU
        workers = min(processors(), phi.size) if computing_device().type == "cpu" else 1
    options = options.filled(dataset.source, dataset.dataset)
    if workers > 1:
        check_picklable("model", options.model)
        check_picklable("loss", options.loss)
    ideal = None if weights is None else phi
    run = _Run(links, scenario, ideal, dataset, options, seed, checkpoint, name)
    if resume:
        run.restore()
    if not run.done:

        def after_round(number: int, values: Mapping[str, float]) -> None:
            shown.show(number, values)
            if on_round is not None:
                on_round(number, values)

        shown.message("starting")
        try:
            run.go(workers, after_round)
        finally:
            shown.close()
    return run.result()


def _blocks(link: Link | Sequence[Link] | None) -> Sequence[Link]:
    """The links of consecutive rounds; none for ideal FedAvg."""
    if link is None:
        return ()
    links = [link] if isinstance(link, Link) else link
    if not isinstance(links, Draws):  # all draws are alike, and each is selected when it is used
        links = tuple(links)
        if not links or not all(isinstance(item, Link) for item in links):
            raise InvalidInput("link: must be a link, a sequence of links, or None for ideal FedAvg")
        if len({item.weights.size for item in links}) > 1:
            raise InvalidInput("link: all links of a sequence must have the same number of devices")
    for item in links[:1] if isinstance(links, Draws) else links:
        if item.noise_power is None:
            raise InvalidInput("link: the noise power is not known; give mse_threshold")
    return links


def make_trainer(dataset: Dataset, samples: Samples, options: TrainOptions, seed: int) -> Trainer:
    """A trainer for `Pool`.

    Parameters
    ----------
    dataset
        The data set; for worker processes, in shared memory.
    samples
        Indices of training samples, per device.
    options
        Options of training, filled with the defaults of the data set.
    seed
        Seed of initial weights, mini-batches and evaluation set.

    Returns
    -------
    Trainer
        Trains and evaluates the model.
    """
    assert options.batch is not None
    assert options.learning_rate is not None
    work = LocalWork(
        options.local_steps,
        options.epochs,
        options.batch,
        options.learning_rate,
        options.optimiser,
        options.momentum,
    )
    chosen = evaluation_set(dataset, samples, options.test_images, options.probe_images, seed)
    model, objective = _model(dataset, options, seed), _objective(dataset, options)
    return Trainer(dataset, samples, model, work, chosen, seed, objective)


def _model(data: Dataset, options: TrainOptions, seed: int) -> nn.Module:
    assert options.model is not None
    torch_seed = int(stream(seed, Purpose.INITIAL_WEIGHTS).integers(2**63))
    return models.build(options.model, data.sample_shape, data.outputs, torch_seed)


def _objective(data: Dataset, options: TrainOptions) -> Objective:
    return Objective.of(options.loss or losses.default_loss(data.task), data.task)


def check_model(data: FederatedData, options: TrainOptions, seed: int) -> None:
    """Refuse a model or a loss that does not fit the data.

    Parameters
    ----------
    data
        The data from `prepare`.
    options
        Options of training.
    seed
        Seed of the initial weights.
    """
    fitting = replace(data, dataset=_with_targets(data.dataset, options))
    options = options.filled(data.source, fitting.dataset)
    _check_fit(_model(fitting.dataset, options, seed), fitting, options)


def _check_fit(model: nn.Module, data: FederatedData, options: TrainOptions) -> None:
    """Try the model on two samples."""
    few = np.concatenate(data.samples)[:2]
    here = torch.device("cpu")
    losses.check_fit(
        model,
        models.described(options.model),
        data.dataset,
        _objective(data.dataset, options),
        inputs(data.dataset.x_train[few], data.dataset, here)[:],
        targets(data.dataset.y_train[few], data.dataset.task, here),
    )


class _Run:
    """The rounds and their state."""

    def __init__(
        self,
        links: Sequence[Link],
        scenario: Scenario | None,
        ideal: Real | None,
        data: FederatedData,
        options: TrainOptions,
        seed: int,
        checkpoint: Path | None,
        name: str | None,
    ) -> None:
        self.links = links  # of consecutive rounds; none for ideal FedAvg
        self.link = links[0] if links else None  # of the current round
        self.scenario = scenario
        self.ideal = ideal  # weights of ideal FedAvg; None: those of the scenario
        self.data = data
        self.options = options
        self.seed = seed
        self.checkpoint = checkpoint
        self.evaluation = evaluation_set(
            data.dataset, data.samples, options.test_images, options.probe_images, seed
        )
        self.flat = FlatModel(_model(data.dataset, options, seed))
        self.state = self.flat.read()
        self.server = Server.start(options.server, self.flat.weights)
        _check_fit(self.flat.model, data, options)
        self.round = 0
        self.history: list[Record] = []
        # Per round since the last record: loss, predicted and measured error, signal power, largest power.
        self.since: list[tuple[float, float, float, float, float]] = []
        self.seconds = 0.0
        self.period = 0  # number of the draw of devices
        self.status = "done"
        # A run can only be resumed with the same values.
        self.config = {
            **options.to_dict(),
            "seed": seed,
            "scheme": name or scheme_name(self.link),
            "dataset": data.source.name,
            "data_sha256": data.digest,
            "model_sha256": _start_digest(options.model, self.state),
            "scenario_sha256": "" if scenario is None else _digest(scenario.to_dict()),
            "design_sha256": blocks_digest(links),
        }
        if ideal is not None:
            self.config["weights_sha256"] = _digest({"weights": ideal.tolist()})

    @property
    def done(self) -> bool:
        return self.round >= self.options.rounds

    @property
    def devices(self) -> int:
        return len(self.data.samples)

    @property
    def weights(self) -> Real:
        if self.link is not None:
            return self.link.weights
        if self.ideal is not None:
            return self.ideal
        assert self.scenario is not None
        return self.scenario.weights

    @property
    def _selected_count(self) -> int:
        """Number of devices that take part in the current round."""
        return self.devices if self.link is None else self.link.selected_count

    def go(self, workers: int, on_round: OnRound) -> None:
        data = self.data.dataset if workers == 1 else self.data.dataset.in_shared_memory()
        make = partial(make_trainer, data, self.data.samples, self.options, self.seed)
        with Pool(make, workers, self.devices, self.state.size) as pool:
            began = now() - self.seconds
            if self.round == 0 and not self.history:
                self._evaluate(pool)
            try:
                while not self.done:
                    self._next_block()
                    self._redraw()
                    finite = self._round(pool)
                    self.seconds = now() - began
                    if not finite:
                        self._diverge(pool)
                        return
                    if self.round % self.options.evaluate_every == 0 or self.done:
                        self._evaluate(pool)
                        self.seconds = now() - began
                        self._save()
                    on_round(self.round, self._latest())
            except KeyboardInterrupt:
                # The current round is lost; the last checkpoint remains.
                self.status = f"interrupted in round {self.round + 1}"

    def _round(self, pool: Pool) -> bool:
        """Train for a round. If a loss, the update or the new model is not finite, nothing is kept of it."""
        link = self.link
        chosen = np.full(self.devices, True) if link is None else link.selected
        self.round += 1
        if not chosen.any():  # the global model does not change
            self.since.append((nan, nan, nan, nan, nan))
            return True
        updates, losses = pool.updates(self.state, self.round, np.flatnonzero(chosen).tolist())
        if not (np.isfinite(updates).all() and np.isfinite(losses).all()):
            return False
        weights = self.weights[chosen]
        # A sum of finite updates may be too large for a single-precision number, which is checked below.
        # Idle BLAS threads would spin and slow the workers down.
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            if link is None:
                change, predicted, measured, largest = weighted_mean(updates, weights), 0.0, 0.0, nan
            else:
                sent = over_the_air(
                    updates,
                    self.flat.sizes,
                    link,
                    self.options.link,
                    stream(self.seed, Purpose.NOISE, self.round),
                    stream(self.seed, Purpose.CHANNEL_ERROR, self.round),
                )
                change, predicted, measured = sent.update, sent.predicted_mse, sent.measured_mse
                largest = float(sent.power.max())
            state, server = self.server.step(self.state, change)
        if not np.isfinite(state).all():
            return False
        self.state, self.server = state, server
        loss, signal = float(weights @ losses / weights.sum()), float(np.sum(weights**2))
        self.since.append((loss, predicted, measured, signal, largest))
        return True

    def _diverge(self, pool: Pool) -> None:
        """End the run with the model of the round before."""
        self.status = f"{DIVERGED} in round {self.round}"
        self.round -= 1
        if self.history[-1].round < self.round:
            self._evaluate(pool)
        self._save()

    def _next_block(self) -> None:
        """Take the link of the next round, if links change from round to round."""
        if len(self.links) > 1:
            self.link = self.links[self.round % len(self.links)]

    def _redraw(self) -> None:
        """Draw new devices if it is time, and repeat the design from the last layout."""
        every = self.options.redraw_every
        period = 0 if every is None else self.round // every
        if period == self.period:
            return
        self.period = period
        assert self.scenario is not None
        old = self.scenario.devices
        assert old.drawn_from is not None
        fresh = replace(old.drawn_from, seed=self.seed).draw(period)
        self.scenario = replace(self.scenario, devices=replace(fresh, samples=old.samples))
        before = self.link
        if isinstance(before, Design):
            self.link = design(self.scenario, before.method, seed=self.seed, start_layout=before.layout)

    def _evaluate(self, pool: Pool) -> None:
        results = pool.evaluate(self.state, self.evaluation.chunks)
        first = self.evaluation.test_chunks
        tests, probes = results[:first], results[first:]
        test_count, probe_count = self.evaluation.tests.size, self.evaluation.probe.size
        rows = np.array(self.since or [(nan, nan, nan, nan, nan)])
        known = ~np.isnan(rows[:, 0])
        means = rows[known].mean(axis=0) if known.any() else np.full(5, nan)
        local, predicted, measured, signal, _ = (float(value) for value in means)
        self.history.append(
            Record(
                round=self.round,
                test_accuracy=sum(right for right, _ in tests) / test_count,
                test_loss=sum(loss for _, loss in tests) / test_count,
                train_loss=sum(loss for _, loss in probes) / probe_count,
                local_loss=local,
                selected_count=self._selected_count,
                predicted_mse=predicted,
                measured_mse=measured,
                predicted_sdr_db=sdr_db(signal, predicted),
                measured_sdr_db=sdr_db(signal, measured),
                largest_power=float(rows[known, 4].max()) if known.any() else nan,
                seconds=self.seconds,
            )
        )
        self.since = []

    def _latest(self) -> dict[str, float]:
        last = self.history[-1]
        train_loss, measured = last.local_loss, last.measured_mse
        if self.since:
            train_loss, _, measured, _, _ = self.since[-1]
        return {
            "accuracy": last.test_accuracy,
            "loss": train_loss,
            "selected": self._selected_count,
            "mse": measured,
        }

    def _save(self) -> None:
        if self.checkpoint is not None:
            rows = [asdict(record) for record in self.history]
            moments = self.server.moments
            save(self.checkpoint, Saved(self.config, self.round, self.seconds, rows, self.state, moments))

    def restore(self) -> None:
        """Continue from the checkpoint, if it exists."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        saved = restore(self.checkpoint, self.config, self.state.size, self.server.moments.shape)
        self.state = saved.state
        self.server = replace(self.server, moments=saved.moments)
        self.seconds = saved.seconds
        self.history = [Record(**record) for record in saved.history]
        if self.options.redraw_every is not None:
            # A design depends on the layout of the one before: repeat all draws.
            for start in range(0, saved.round, self.options.redraw_every):
                self.round = start
                self._redraw()
        if saved.round:
            self.round = saved.round - 1
            self._next_block()  # the link of the last round
        self.round = saved.round

    def result(self) -> TrainingRun:
        self.flat.write(self.state)
        return TrainingRun(
            scheme=str(self.config["scheme"]),
            dataset=self.data.source.name,
            devices=self.devices,
            scenario=self.scenario,
            link=self.link,
            config=self.config | {"version": __version__},
            parameters=int(self.state.size),
            history=tuple(self.history),
            state=self.state,
            finished=self.done,
            status=self.status,
            model=self.flat.model.eval(),
        )


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _start_digest(model: Any, state: Single) -> str:
    """Fingerprint of the initial weights of a user's model, whose name does not say what it is."""
    return "" if isinstance(model, str) and model in models.MODELS else hashlib.sha256(state.data).hexdigest()


def scheme_name(link: Link | None) -> str:
    """Name of the method that found a link; "fedavg" for None, "link" if there is no method."""
    return FEDAVG if link is None else str(getattr(getattr(link, "method", None), "name", "link"))


def blocks_digest(links: Sequence[Link]) -> str:
    """Fingerprint of the links of consecutive rounds; "" for none. Draws need not all be selected for it."""
    if not links:
        return ""
    if len(links) == 1:
        return link_digest(links[0])
    if isinstance(links, Draws):
        drawn = hashlib.sha256(links.channels.tobytes()).hexdigest()
        return _digest({"first": link_digest(links[0]), "channels": [len(links), drawn]})
    return _digest({"links": [link_digest(link) for link in links]})


def link_digest(link: Link) -> str:
    """Fingerprint of everything in a link that training depends on. Numbers of threads do not count."""
    method = getattr(link, "method", None)
    return _digest(
        {
            "selected": link.selected.tolist(),
            "channels": [link.channels.real.tolist(), link.channels.imag.tolist()],
            "beam": [link.beam.real.tolist(), link.beam.imag.tolist()],
            "weights": link.weights.tolist(),
            "powers": [link.power, link.noise_power],
            "options": {} if method is None else result_options(method),
        }
    )
