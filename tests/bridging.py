"""What the tests of bridges to other frameworks have in common: a link, data, and local training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from airpass import Book, Design, Scenario, TrainingRun, TrainOptions, design, prepare, schedule, train
from airpass.learning.client import Trainer
from airpass.learning.data.partition import FederatedData
from airpass.learning.rounds import make_trainer

DEVICES = 10
ROUNDS = 5
SEED = 7


def normalised() -> nn.Module:
    """A small network with batch normalisation."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 13 * 13, 10),
    )


OPTIONS = TrainOptions(
    rounds=ROUNDS, local_steps=2, batch=16, learning_rate=0.05, evaluate_every=ROUNDS, probe_images=100
)


def prepared(snr_db: float = 0.0) -> tuple[Scenario, FederatedData]:
    """Ten devices with different numbers of samples."""
    split = [np.arange(400 * k, 400 * k + 100 + 20 * k) for k in range(DEVICES)]
    return prepare(Scenario.paper(devices=DEVICES, snr_db=snr_db, seed=1), "mnist-mini", OPTIONS, split=split)


def designed(scenario: Scenario) -> Design:
    """A design with at least five selected devices, but not all."""
    found = design(scenario, "airpass-plus")
    assert 5 <= found.selected_count < DEVICES
    return found


def scheduled(scenario: Scenario) -> Book:
    """Two turns with at least five devices each."""
    found = schedule(scenario, turns=2)
    assert all(one.selected_count >= 5 for one in found.links)
    assert np.abs(found.links[0].weights - found.links[1].weights).max() > 0.0
    return found


def trainer(data: FederatedData, options: TrainOptions) -> Trainer:
    """Local training as `airpass.train` does it."""
    return make_trainer(data.dataset, data.samples, options.filled(data.source, data.dataset), SEED)


def trained(link: Any, data: FederatedData, options: TrainOptions) -> TrainingRun:
    """Training by the package itself."""
    run = train(link, data, seed=SEED, options=options, workers=1, progress=False)
    assert run.finished
    return run


def flat(arrays: Any) -> NDArray[np.float32]:
    """Arrays of floating-point numbers as one vector."""
    parts = [np.asarray(array) for array in arrays]
    return np.concatenate([part.ravel() for part in parts if part.dtype.kind == "f"]).astype(np.float32)
