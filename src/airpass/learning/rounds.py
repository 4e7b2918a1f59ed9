"""The rounds of training: local steps, aggregation, the server's step and evaluation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import nan
from pathlib import Path

import numpy as np
import torch
from torch import nn

from airpass.aircomp import Link, sdr_db
from airpass.core.randomness import Purpose, stream
from airpass.core.threads import one_blas_thread
from airpass.core.types import Real
from airpass.core.version import __version__
from airpass.designs.api import Design, design
from airpass.designs.book import Book, TurnLink
from airpass.designs.queues import QueueLink
from airpass.designs.round_links import RoundLinks
from airpass.kernels.clock import now
from airpass.learning import FEDAVG, losses, models
from airpass.learning.aggregation import over_the_air, weighted_mean
from airpass.learning.checkpoint import Saved, restore, save
from airpass.learning.client import (
    FlatModel,
    LocalWork,
    Trainer,
    evaluation_set,
    inputs,
    targets,
)
from airpass.learning.data.base import Dataset
from airpass.learning.data.partition import FederatedData, Samples
from airpass.learning.fingerprints import blocks_digest, digest, start_digest
from airpass.learning.history import DIVERGED, Record, TrainingRun
from airpass.learning.losses import Objective
from airpass.learning.optimisers import Server
from airpass.learning.options import TrainOptions
from airpass.learning.pool import Pool
from airpass.learning.subcarriers import over_subcarriers
from airpass.scenario import Scenario
from airpass.wideband import WidebandLink

OnRound = Callable[[int, Mapping[str, float]], None]


def scheme_name(link: Link | Book | None) -> str:
    """Name of the method that found a link or a book; "fedavg" for None, "link" if there is no method."""
    found = link.design if isinstance(link, TurnLink) else link
    return FEDAVG if found is None else str(getattr(getattr(found, "method", None), "name", "link"))


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
    model, objective = build_model(dataset, options, seed), objective_of(dataset, options)
    return Trainer(dataset, samples, model, work, chosen, seed, objective)


def build_model(data: Dataset, options: TrainOptions, seed: int) -> nn.Module:
    """The model with its initial weights; `options` are filled."""
    assert options.model is not None
    torch_seed = int(stream(seed, Purpose.INITIAL_WEIGHTS).integers(2**63))
    return models.build(options.model, data.sample_shape, data.outputs, torch_seed)


def objective_of(data: Dataset, options: TrainOptions) -> Objective:
    """The loss."""
    return Objective.of(options.loss or losses.default_loss(data.task), data.task)


def check_fit(model: nn.Module, data: FederatedData, options: TrainOptions) -> None:
    """Try the model on two samples."""
    few = np.concatenate(data.samples)[:2]
    here = torch.device("cpu")
    losses.check_fit(
        model,
        models.described(options.model),
        data.dataset,
        objective_of(data.dataset, options),
        inputs(data.dataset.x_train[few], data.dataset, here)[:],
        targets(data.dataset.y_train[few], data.dataset.task, here),
    )


def _as_designed(link: Link | None) -> Link | None:
    """The link with the weights that it was designed for."""
    if isinstance(link, TurnLink):
        return link.design
    return link.plain if isinstance(link, QueueLink) else link


class Rounds:
    """The rounds of a training run, and their state.

    Parameters
    ----------
    links
        Links of consecutive rounds; none for ideal FedAvg.
    scenario
        The devices, if known.
    ideal
        Weights of ideal FedAvg; None for those of the scenario.
    data
        The data, split among the devices.
    options
        Options of training, filled.
    seed
        Seed of initial weights, mini-batches and noise.
    checkpoint
        File to which the run is saved at every evaluation.
    name
        Name of the scheme; None for that of the method.
    """

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
        self.flat = FlatModel(build_model(data.dataset, options, seed))
        self.state = self.flat.read()
        self.server = Server.start(options.server, self.flat.weights)
        check_fit(self.flat.model, data, options)
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
            "model_sha256": start_digest(options.model, self.state),
            "scenario_sha256": "" if scenario is None else digest(scenario.to_dict()),
            "design_sha256": blocks_digest(links),
        }
        if isinstance(self.link, TurnLink):
            self.config["turns"] = len(links)
        if isinstance(links, RoundLinks):
            self.config |= links.config
        if ideal is not None:
            self.config["weights_sha256"] = digest({"weights": ideal.tolist()})

    @property
    def done(self) -> bool:
        """Whether all rounds are done."""
        return self.round >= self.options.rounds

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.data.samples)

    @property
    def weights(self) -> Real:
        """phi_k in the current round."""
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
        """Train until all rounds are done, the run diverges, or the user interrupts it.

        Parameters
        ----------
        workers
            Number of processes.
        on_round
            Callback after every round.
        """
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
                streams = (
                    stream(self.seed, Purpose.NOISE, self.round),
                    stream(self.seed, Purpose.CHANNEL_ERROR, self.round),
                )
                if isinstance(link, WidebandLink):
                    sent = over_subcarriers(updates, self.flat.sizes, link, self.options.link, *streams)
                else:
                    sent = over_the_air(updates, self.flat.sizes, link, self.options.link, *streams)
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
        self.scenario = replace(
            self.scenario, devices=replace(fresh, samples=old.samples, priority=old.priority)
        )
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
                turn=self.link.turn if isinstance(self.link, TurnLink) and self.round else 0,
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
        """The run so far."""
        self.flat.write(self.state)
        return TrainingRun(
            scheme=str(self.config["scheme"]),
            dataset=self.data.source.name,
            devices=self.devices,
            scenario=self.scenario,
            link=_as_designed(self.link),
            config=self.config | {"version": __version__},
            parameters=int(self.state.size),
            history=tuple(self.history),
            state=self.state,
            finished=self.done,
            status=self.status,
            model=self.flat.model.eval(),
        )
