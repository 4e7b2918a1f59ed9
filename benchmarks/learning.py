"""Rounds per second against a plain PyTorch loop. Run: python benchmarks/learning.py [DATASET...]

Both sides train the same network on the same split with the same batch size, learning rate and
local steps, all ten devices, and are timed in turn in this one run. The plain loop is what people
write: a copy of the model, a DataLoader and torch's SGD for each client, torch's default threads.
"""

import copy
import statistics
import sys
import time
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from airpass import Scenario
from airpass.learning.aggregation import weighted_mean
from airpass.learning.client import to_tensor
from airpass.learning.conv_pool import ConvPoolReLU
from airpass.learning.pool import Pool
from airpass.processes import one_blas_thread
from airpass.learning.training import TrainOptions, _model, _trainer, prepare

REPEATS = 5
ROUNDS = {"mnist": 10, "mnist-mini": 10, "cifar10": 1}


def plain(model: nn.Module) -> nn.Module:
    """The network from PyTorch's own layers, with the same weights."""
    layers: list[nn.Module] = []
    for layer in model.children():
        if isinstance(layer, ConvPoolReLU):
            convolution = nn.Conv2d(layer.in_channels, layer.out_channels, 3, padding=1)
            convolution.load_state_dict(layer.state_dict())
            layers += [convolution, nn.MaxPool2d(2), nn.ReLU()]
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


class PlainLoop:
    """Federated averaging as it is usually written."""

    def __init__(self, dataset: str, options: TrainOptions) -> None:
        scenario, data, samples = prepare(Scenario.paper(), dataset, options, 0)
        self.options = options
        self.model = plain(_model(data, options, 0))
        everything = TensorDataset(
            to_tensor(data.x_train, data).contiguous(), torch.from_numpy(data.y_train.astype(np.int64))
        )
        assert options.batch is not None
        self.loaders = [
            DataLoader(Subset(everything, share.tolist()), batch_size=options.batch, shuffle=True)
            for share in samples
        ]
        self.weights = scenario.weights

    def round(self) -> None:
        """One round over all clients."""
        assert self.options.learning_rate is not None
        start = self.model.state_dict()
        total = {name: torch.zeros_like(value, dtype=torch.float32) for name, value in start.items()}
        for loader, weight in zip(self.loaders, self.weights, strict=True):
            client = copy.deepcopy(self.model)
            client.train()
            optimiser = torch.optim.SGD(client.parameters(), lr=self.options.learning_rate)
            batches = iter(loader)
            for _ in range(self.options.local_steps):
                images, labels = next(batches)
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(client(images), labels)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            for name, value in client.state_dict().items():
                total[name] += float(weight) * value
        self.model.load_state_dict({name: value.to(start[name].dtype) for name, value in total.items()})


def compare(dataset: str) -> None:
    """Time both sides in turn."""
    options = TrainOptions().filled(dataset)
    scenario, _, _ = prepare(Scenario.paper(), dataset, options, 0)
    plain = PlainLoop(dataset, options)
    state = np.concatenate(
        [v.numpy().ravel() for v in plain.model.state_dict().values() if v.is_floating_point()]
    )
    rounds = ROUNDS[dataset]
    ours, theirs = [], []
    devices = range(scenario.devices.count)
    with Pool(partial(_trainer, dataset, None, options, 0, len(devices)), 2) as pool:
        pool.updates(state, 0, devices)
        plain.round()
        for repeat in range(REPEATS):
            time.sleep(0.5)
            began = time.perf_counter()
            for number in range(rounds):
                results = pool.updates(state, 1 + number + repeat * rounds, devices)
                with one_blas_thread():
                    state = state + weighted_mean(np.stack([change for change, _ in results]), scenario.weights)
            ours.append((time.perf_counter() - began) / rounds)
            time.sleep(0.5)
            began = time.perf_counter()
            for _ in range(rounds):
                plain.round()
            theirs.append((time.perf_counter() - began) / rounds)
    ratios = np.array(theirs) / np.array(ours)
    print(
        f"{dataset}: ours {1e3 * statistics.median(ours):.0f} ms a round, plain loop "
        f"{1e3 * statistics.median(theirs):.0f} ms, median ratio {np.median(ratios):.2f} "
        f"(from {ratios.min():.2f} to {ratios.max():.2f}), {torch.get_num_threads()} threads in the loop"
    )


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["mnist", "cifar10"]:
        compare(chosen)
