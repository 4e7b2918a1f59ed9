"""What a device does in a round: start from the global model, take local SGD steps, send the change.

One thread, and randomness keyed on seed, round and device: the update of a device is the same
wherever and in whatever company it is computed. A GPU is used if there is one; it gives slightly
different numbers than a processor, as it sums in another order.
"""

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from airpass.core.randomness import Purpose, stream
from airpass.learning.aggregation import Float32
from airpass.learning.datasets import Bytes, Dataset
from airpass.learning.partition import Indices

CHUNK = 1000  # images measured at a time


@dataclass(frozen=True)
class LocalWork:
    """How a device trains. `steps` mini-batch steps, or `epochs` passes over its data instead."""

    steps: int
    epochs: int | None
    batch: int
    learning_rate: float


@dataclass(frozen=True)
class Watched:
    """Images on which a model is measured: of the test set, and of what the devices hold."""

    tests: Indices
    probe: Indices


class Images:
    """Images as bytes, a quarter of the memory that floats would take, standardised when they are used."""

    def __init__(self, images: Bytes, dataset: Dataset, device: torch.device) -> None:
        self._bytes = torch.from_numpy(np.ascontiguousarray(images)).to(device)
        self._mean = torch.tensor(dataset.mean, device=device)
        self._deviation = torch.tensor(dataset.deviation, device=device)

    def __getitem__(self, chosen: torch.Tensor | slice) -> torch.Tensor:
        """Standardised images as floats, channels first in shape, last in memory."""
        standard = self._bytes[chosen].float().div_(255.0).sub_(self._mean).div_(self._deviation)
        return standard.permute(0, 3, 1, 2)


def computing_device() -> torch.device:
    """Where networks are trained."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def gpu_names() -> tuple[str, ...]:
    """The GPUs that processes may be given, as CUDA_VISIBLE_DEVICES has them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    named = given.split(",") if given else [str(number) for number in range(torch.cuda.device_count())]
    return tuple(named) if torch.cuda.is_available() else ()


class FlatModel:
    """A model whose floating-point state is read and written as one vector.

    That is its parameters and, with batch normalisation, the running statistics.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters: list[torch.Tensor] = list(model.parameters())
        named = {name: v for name, v in model.state_dict().items() if v.is_floating_point()}
        self.state = list(named.values())
        self._variances = [value for name, value in named.items() if name.endswith("running_var")]
        self.sizes = [value.numel() for value in self.state]

    def read(self) -> Float32:
        """The state as a vector."""
        return torch.cat([value.reshape(-1) for value in self.state]).cpu().numpy()

    def write(self, vector: Float32) -> None:
        """Set the state from a vector."""
        parts = torch.split(torch.from_numpy(vector), self.sizes)
        for value, part in zip(self.state, parts, strict=True):
            value.copy_(part.view(value.shape))
        for variance in self._variances:  # noise on the air can push a small one below zero
            variance.clamp_(min=0.0)


class Trainer:
    """Trains and tests one model on one data set, in one thread."""

    def __init__(
        self, dataset: Dataset, model: nn.Module, work: LocalWork, watched: Watched, seed: int
    ) -> None:
        self.device = computing_device()
        self.flat = FlatModel(model.to(self.device))
        self.work = work
        self.seed = seed
        self.probe = torch.from_numpy(watched.probe).to(self.device)
        self.images = Images(dataset.x_train, dataset, self.device)
        self.labels = torch.from_numpy(dataset.y_train.astype(np.int64)).to(self.device)
        self.test_images = Images(dataset.x_test[watched.tests], dataset, self.device)
        labels = dataset.y_test[watched.tests].astype(np.int64)
        self.test_labels = torch.from_numpy(labels).to(self.device)

    def update(
        self, start: Float32, samples: Indices, round_number: int, device: int
    ) -> tuple[Float32, float]:
        """The change of the state after local training, and the mean training loss."""
        rng = stream(self.seed, Purpose.BATCHES, round_number, device)
        batches = _batches(samples, self.work, rng)
        self._seed_dropout(int(rng.integers(2**63)))
        self.flat.write(start)
        model, parameters = self.flat.model, self.flat.parameters
        model.train()
        losses = []
        for batch in batches:
            chosen = torch.from_numpy(batch).to(self.device)
            loss = functional.cross_entropy(model(self.images[chosen]), self.labels[chosen])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradients, alpha=-self.work.learning_rate)
            losses.append(loss.detach())
        with torch.no_grad():
            change = self.flat.read() - start
        return change, float(torch.stack(losses).mean())

    def _seed_dropout(self, seed: int) -> None:
        # torch.manual_seed asks every kind of accelerator in turn, which takes as long as a small layer.
        if self.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    @torch.no_grad()
    def measure(self, state: Float32, chunk: int) -> tuple[int, float]:
        """Correct answers and summed loss on one chunk: first those of the test set, then of the probe."""
        self.flat.write(state)
        self.flat.model.eval()
        images, labels = self._chunk(chunk)
        answers = self.flat.model(images)
        loss = functional.cross_entropy(answers, labels, reduction="sum")
        return int((answers.argmax(1) == labels).sum()), float(loss)

    def _chunk(self, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        beyond = chunk - chunks(len(self.test_labels))
        if beyond < 0:
            here = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            return self.test_images[here], self.test_labels[here]
        chosen = self.probe[beyond * CHUNK : (beyond + 1) * CHUNK]
        return self.images[chosen], self.labels[chosen]


def chunks(count: int) -> int:
    """How many chunks `count` images make."""
    return -(-count // CHUNK)


def every(count: int, wanted: int | None) -> Indices:
    """Up to `wanted` of `count` images, evenly spaced; all of them for None.

    The first half of MNIST's test set is easier than the second.
    """
    if wanted is None or wanted >= count:
        return np.arange(count)
    return np.arange(wanted) * count // wanted


def probe(samples: list[Indices], size: int, seed: int) -> Indices:
    """A fixed sample of what all devices hold, on which the global training loss is measured.

    Drawn evenly from the union, it estimates F(w) = sum_k |D_k|/D F_k(w), eq. (1).
    """
    held = np.concatenate(samples)
    rng = stream(seed, Purpose.PARTITION, 1)
    return np.sort(rng.choice(held, min(size, held.size), replace=False))


def _batches(samples: Indices, work: LocalWork, rng: np.random.Generator) -> list[Indices]:
    """Mini-batches drawn without repetition until all samples were used, then anew."""
    batch = min(work.batch, samples.size)
    if work.epochs is not None:
        rounds = [rng.permutation(samples) for _ in range(work.epochs)]
        return [order[i : i + batch] for order in rounds for i in range(0, order.size - batch + 1, batch)]
    needed = work.steps * batch
    orders = [rng.permutation(samples) for _ in range(-(-needed // samples.size))]
    flat = np.concatenate(orders)[:needed]
    return list(flat.reshape(work.steps, batch))
