"""Federated training over a link: rounds of local steps, aggregation and evaluation.

Random numbers are keyed on seed, round and device. So all schemes of a comparison see the same data
partition, initial weights, mini-batches and noise, and an interrupted run resumes to the same numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from airpass.aircomp import Link
from airpass.core import checks, text
from airpass.core.errors import InvalidInput
from airpass.core.registry import Report, discard
from airpass.core.threads import processors
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.learning import losses
from airpass.learning.air_rounds import round_links
from airpass.learning.client import (
    computing_device,
)
from airpass.learning.data import Data, data_source
from airpass.learning.data.base import Dataset
from airpass.learning.data.partition import FederatedData, Split, checked_split, partition
from airpass.learning.history import TrainingRun
from airpass.learning.options import DATASET, TrainOptions
from airpass.learning.pool import check_picklable
from airpass.learning.progress import RoundLine
from airpass.learning.rounds import OnRound, Rounds, check_fit, scheme_name
from airpass.scenario import Scenario
from airpass.selection.api import checked_weights


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
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
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
    link: Link | Book | Sequence[Link] | None,
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
        that of `select_draws` or `Moving.links`: the channels change from round to round, and round r = 1, 2,
        ... uses link (r - 1) mod T. A book of `schedule`: the same with its designs, and with weights that
        make the average over a cycle unbiased. None: ideal FedAvg with the weights of `scenario`, or with
        `weights`. `prepare` gives a scenario whose weights match the data.
    dataset
        As for `prepare`, or the data from `prepare`.
    rounds
        Communication rounds; replaces that of `options`.
    seed
        Seed of data partition, initial weights, mini-batches and noise. Default: the seed that the devices of
        the design or the scenario were drawn with, or 0.
    scenario
        The devices of ideal FedAvg. A design and a book have their own.
    weights
        phi_k of ideal FedAvg, shape (K,), instead of those of `scenario`.
    options
        Options of training.
    workers
        Number of processes with one thread each, at most one per device. Default: one per available
        processor, and one with a GPU. Results do not depend on it.
    data_dir
        Folder of downloaded data sets.
    checkpoint
        File to which the run is saved at every evaluation, and when it is interrupted.
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
        History and global model. After Ctrl-C, those of the rounds so far; before the first evaluation
        KeyboardInterrupt is raised. The same holds if worker processes are killed repeatedly, with
        `WorkersLost`. If a loss, an update or the model
        is not finite in a round, training ends with the model of the round before, and `diverged` is true.
    """
    if link is not None and not isinstance(link, Link | Book | Sequence):
        raise InvalidInput(
            f"link = {text.shown(link)}: must be a Link, such as a design, a Book, a list of links, or None"
        )
    options = options or TrainOptions()
    if rounds is not None:
        options = replace(options, rounds=rounds)
    if isinstance(link, Design | Book):
        scenario = link.scenario
    if seed is None:
        seed = 0 if scenario is None else scenario.seed
    checks.whole("seed", seed, 0)
    links = round_links(link)
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
        workers = processors() if computing_device().type == "cpu" else 1
    workers = min(checks.whole("workers", workers, 1), phi.size)
    options = options.filled(dataset.source, dataset.dataset)
    if workers > 1:
        check_picklable("model", options.model)
        check_picklable("loss", options.loss)
    ideal = None if weights is None else phi
    run = Rounds(links, scenario, ideal, dataset, options, seed, checkpoint, name)
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
    return replace(run.result(), book=link) if isinstance(link, Book) else run.result()


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
    check_fit(fitting, options, seed)
