"""Workload of Flower and pfl: networks, images, partitions and mini-batches.

The networks are those of the paper, built from PyTorch's own layers. The numbers of steps and the batch
sizes equal those of airpass. The batches of a round are a pure function of seed, round and client, so that
networks without dropout have the same final weights in all frameworks.
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

Share = tuple[torch.Tensor, torch.Tensor]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Command-line arguments of all programs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=("mnist-cnn", "cifar-cnn"), required=True)
    parser.add_argument("--data", required=True, help=".npz file with x_train and y_train")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3, help="local steps per round")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def build(name: str, seed: int) -> nn.Sequential:
    """Build a network initialised from a seed."""
    torch.manual_seed(seed)
    if name == "mnist-cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(1568, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        layers += [nn.MaxPool2d(2), nn.Dropout(0.25)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)]
    return nn.Sequential(*layers, *head)


def load_shares(path: str, clients: int, seed: int) -> list[Share]:
    """Images and labels per client: an even split of a seeded permutation."""
    with np.load(path, allow_pickle=False) as data:
        x, y = data["x_train"], data["y_train"]
    x = x[..., None] if x.ndim == 3 else x
    parts = np.array_split(np.random.default_rng(seed).permutation(len(y)), clients)
    return [
        (
            torch.from_numpy(np.ascontiguousarray(x[part].transpose(0, 3, 1, 2))).float().div_(255.0),
            torch.from_numpy(y[part].astype(np.int64)),
        )
        for part in parts
    ]


def batches(
    share: Share, seed: int, round_number: int, client: int, steps: int, batch: int
) -> Iterator[Share]:
    """Mini-batches of a client in a round."""
    x, y = share
    rng = np.random.default_rng((seed, round_number, client))
    chosen = rng.choice(len(y), size=steps * batch, replace=steps * batch > len(y))
    for one in torch.from_numpy(chosen).view(steps, batch):
        yield x[one], y[one]


def train(model: nn.Module, drawn: Iterator[Share], learning_rate: float) -> None:
    """Plain stochastic gradient descent."""
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for x, y in drawn:
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()


def air_link(clients: int) -> Any:
    """A link that selects all clients, so that as many train as without it; needs airpass."""
    from airpass import Scenario, design

    link = design(Scenario.paper(clients, snr_db=15.0, seed=0), "airpass-plus")
    if link.selected_count < clients:
        raise SystemExit(f"only {link.selected_count} of {clients} clients are selected")
    return link


def report(framework: str, version: str, began: float, ends: Sequence[float], final: dict[str, Any]) -> None:
    """Print the times of the rounds and a checksum of the model as one line of JSON."""
    moved = sum(float(value.double().abs().sum()) for value in final.values())
    rounds = [after - before for before, after in itertools.pairwise(ends)]
    print(
        json.dumps(
            {
                "framework": framework,
                "version": version,
                "torch": torch.__version__,
                "start_s": ends[0] - began,  # from program start to the end of the first round
                "round_s": rounds,
                "total_s": time.perf_counter() - began,
                "checksum": moved,
            }
        ),
        flush=True,
    )
