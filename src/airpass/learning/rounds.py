"""The rounds of training: local steps, aggregation, the server's step and evaluation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from airpass.learning.aggregation import weighted_mean
from airpass.learning.air_rounds import send
from airpass.learning.checkpoint import RunState, restore, save
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
from airpass.learning.fingerprints import blocks_digest, code_digest, digest, start_digest
from airpass.learning.history import DIVERGED, DONE, INTERRUPTED, STOPPED, Record, TrainingRun
from airpass.learning.losses import Objective
from airpass.learning.optimisers import Server
from airpass.learning.options import TrainOptions
from airpass.learning.pool import Pool, WorkersLost
from airpass.scenario import Scenario

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
        options.precision,
    )
    chosen = evaluation_set(dataset, samples, options.test_images, options.probe_images, seed)
    model, objective = build_model(dataset, options, seed), objective_of(dataset, options)
    name = models.described(options.model)
    return Trainer(dataset, samples, model, work, chosen, seed, objective, name)


def build_model(data: Dataset, options: TrainOptions, seed: int) -> nn.Module:
    """The model with its initial weights; `options` are filled."""
    assert options.model is not None
    torch_seed = int(stream(seed, Purpose.INITIAL_WEIGHTS).integers(2**63))
    return models.build(options.model, data.sample_shape, data.outputs, torch_seed)


def objective_of(data: Dataset, options: TrainOptions) -> Objective:
    """The loss."""
    return Objective.of(options.loss or losses.default_loss(data.task), data.task)


def check_fit(data: FederatedData, options: TrainOptions, seed: int) -> None:
    """Try the model on two samples; `options` are filled."""
    few = np.concatenate(data.samples)[:2]
    here = torch.device("cpu")
    losses.check_fit(
        build_model(data.dataset, options, seed),
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
        check_fit(data, options, seed)
        self.flat = FlatModel(build_model(data.dataset, options, seed))
        state = self.flat.read()
        self.run = RunState(state, Server.start(options.server, self.flat.weights))
        self._reported = 0  # last round that `on_round` was called for
        self.period = 0  # number of the draw of devices
        self.status = DONE
        # A run can only be resumed with the same values.
        self.config = {
            **options.to_dict(),
            "seed": seed,
            "scheme": name or scheme_name(self.link),
            "dataset": data.source.name,
            "data_sha256": data.digest,
            "model_sha256": start_digest(options.model, self.flat.model, state),
            "scenario_sha256": "" if scenario is None else digest(scenario.to_dict()),
            "design_sha256": blocks_digest(links),
        }
        if code := code_digest(options.model, options.loss):
            self.config["code_sha256"] = code
        if isinstance(self.link, TurnLink):
            self.config["turns"] = len(links)
        if isinstance(links, RoundLinks):
            self.config |= links.config
        if ideal is not None:
            self.config["weights_sha256"] = digest({"weights": ideal.tolist()})

    @property
    def done(self) -> bool:
        """Whether all rounds are done and evaluated."""
        return self.run.round >= self.options.rounds and not self._to_evaluate

    @property
    def _to_evaluate(self) -> bool:
        """Whether the last round is to be evaluated, and is not yet."""
        done, history = self.run.round, self.run.history
        if history and history[-1].round == done:
            return False
        return done % self.options.evaluate_every == 0 or done >= self.options.rounds

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
        """Train until all rounds are done, the run diverges, or it cannot go on.

        After Ctrl-C, and if worker processes are killed again and again, the run is saved as it was after
        the last round. A run without any evaluated round has no result: the error is raised.

        Parameters
        ----------
        workers
            Number of processes.
        on_round
            Callback after every round.
        """
        try:
            self._go(workers, on_round)
        except (KeyboardInterrupt, WorkersLost) as error:
            where = f"in round {min(self.run.round + 1, self.options.rounds)}"
            lost = isinstance(error, WorkersLost)
            self.status = f"{STOPPED} {where}: {error}" if lost else f"{INTERRUPTED} {where}"
            self._save()
            if not self.run.history:
                raise

    def _go(self, workers: int, on_round: OnRound) -> None:
        data = self.data.dataset if workers == 1 else self.data.dataset.in_shared_memory()
        make = partial(make_trainer, data, self.data.samples, self.options, self.seed)
        began = now() - self.run.seconds
        with Pool(make, workers, self.devices, self.run.state.size) as pool:
            while True:
                if self._to_evaluate:
                    self._evaluate(pool, began)
                    self._save()
                if self.run.round and self._reported < self.run.round:
                    self._reported = self.run.round
                    on_round(self.run.round, self._latest())
                if self.done:
                    return
                self._next_block(self.run.round)
                self._redraw(self.run.round)
                if not self._round(pool, began):
                    self.status = f"{DIVERGED} in round {self.run.round + 1}"
                    if self.run.since:
                        self._evaluate(pool, began)
                    self._save()
                    return

    def _round(self, pool: Pool, began: float) -> bool:
        """Train for a round. If a loss, the update or the new model is not finite, nothing is kept of it."""
        run, link, number = self.run, self.link, self.run.round + 1
        chosen = np.full(self.devices, True) if link is None else link.selected
        if not chosen.any():  # the global model does not change
            since = (*run.since, (nan, nan, nan, nan, nan))
            self.run = replace(run, round=number, since=since, seconds=now() - began)
            return True
        updates, losses = pool.updates(run.state, number, np.flatnonzero(chosen).tolist())
        if not (np.isfinite(updates).all() and np.isfinite(losses).all()):
            return False
        weights = self.weights[chosen]
        # A sum of finite updates may be too large for a single-precision number, which is checked below.
        # Idle BLAS threads would spin and slow the workers down.
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            if link is None:
                change, predicted, measured, largest = weighted_mean(updates, weights), 0.0, 0.0, nan
            else:
                sent = send(updates, self.flat.sizes, link, self.options.link, self.seed, number)
                change, predicted, measured = sent.update, sent.predicted_mse, sent.measured_mse
                largest = float(sent.power.max())
            state, server = run.server.step(run.state, change)
        if not (np.isfinite(state).all() and np.isfinite(server.moments).all()):
            return False
        loss, signal = float(weights @ losses / weights.sum()), float(np.sum(weights**2))
        since = (*run.since, (loss, predicted, measured, signal, largest))
        self.run = replace(run, state=state, server=server, round=number, since=since, seconds=now() - began)
        return True

    def _next_block(self, done: int) -> None:
        """Take the link of the round after `done` others, if links change from round to round."""
        if len(self.links) > 1:
            self.link = self.links[done % len(self.links)]

    def _redraw(self, done: int) -> None:
        """Draw new devices if it is time, and repeat the design from the last layout."""
        every = self.options.redraw_every
        period = 0 if every is None else done // every
        if period == self.period:
            return
        assert self.scenario is not None
        old = self.scenario.devices
        assert old.drawn_from is not None
        fresh = replace(old.drawn_from, seed=self.seed).draw(period)
        drawn = replace(self.scenario, devices=replace(fresh, samples=old.samples, priority=old.priority))
        link = self.link
        if isinstance(link, Design):
            link = design(drawn, link.method, seed=self.seed, start_layout=link.layout)
        self.scenario, self.link, self.period = drawn, link, period

    def _evaluate(self, pool: Pool, began: float) -> None:
        run = self.run
        results = pool.evaluate(run.state, self.evaluation.chunks)
        first = self.evaluation.test_chunks
        tests, probes = results[:first], results[first:]
        test_count, probe_count = self.evaluation.tests.size, self.evaluation.probe.size
        rows = np.array(run.since or [(nan, nan, nan, nan, nan)])
        known = ~np.isnan(rows[:, 0])
        means = rows[known].mean(axis=0) if known.any() else np.full(5, nan)
        local, predicted, measured, signal, _ = (float(value) for value in means)
        record = Record(
            round=run.round,
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
            seconds=run.seconds,
            turn=self.link.turn if isinstance(self.link, TurnLink) and run.round else 0,
        )
        self.run = replace(run, history=(*run.history, record), since=(), seconds=now() - began)

    def _latest(self) -> dict[str, float]:
        last = self.run.history[-1]
        train_loss, measured = last.local_loss, last.measured_mse
        if self.run.since:
            train_loss, _, measured, _, _ = self.run.since[-1]
        return {
            "accuracy": last.test_accuracy,
            "loss": train_loss,
            "selected": self._selected_count,
            "mse": measured,
        }

    def _save(self) -> None:
        if self.checkpoint is not None:
            save(self.checkpoint, self.config, self.run)

    def restore(self) -> None:
        """Continue from the checkpoint, if it exists."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        saved = restore(self.checkpoint, self.config, self.run)
        if self.options.redraw_every is not None:
            # A design depends on the layout of the one before: repeat all draws.
            for start in range(0, saved.round, self.options.redraw_every):
                self._redraw(start)
        if saved.round:
            self._next_block(saved.round - 1)  # the link of the last round
        self.run, self._reported = saved, saved.round

    def result(self) -> TrainingRun:
        """The run so far."""
        self.flat.write(self.run.state)
        return TrainingRun(
            scheme=str(self.config["scheme"]),
            dataset=self.data.source.name,
            devices=self.devices,
            scenario=self.scenario,
            link=_as_designed(self.link),
            config=self.config | {"version": __version__},
            parameters=int(self.run.state.size),
            history=self.run.history,
            state=self.run.state,
            finished=self.done and self.status == DONE,
            status=self.status,
            model=self.flat.model.eval(),
        )
