"""Local training of a device: start from the global model, take SGD steps, return the change.

One thread, and random numbers keyed on seed, round and device: the update of a device does not depend on the
process that computes it. A GPU is used if there is one. Its results differ from those of a processor in
rounding.
"""

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from airpass.core.randomness import Purpose, stream
from airpass.core.types import Single
from airpass.learning.data.base import Bytes, Dataset
from airpass.learning.data.partition import Indices, Samples

CHUNK = 1000  # images evaluated at a time


@dataclass(frozen=True)
class LocalWork:
    """Local training: `epochs` passes over the device's data if given, else `steps` mini-batch steps."""

    steps: int
    epochs: int | None
    batch: int
    learning_rate: float


@dataclass(frozen=True)
class EvaluationSet:
    """Images on which a model is evaluated: indices of test images, and of training images."""

    tests: Indices
    probe: Indices

    @property
    def test_chunks(self) -> int:
        """Number of chunks of test images. Chunks of training images follow."""
        return -(-self.tests.size // CHUNK)

    @property
    def chunks(self) -> int:
        """Number of all chunks."""
        return self.test_chunks - (-self.probe.size // CHUNK)


def evaluation_set(
    dataset: Dataset, samples: Samples, test_images: int | None, probe_images: int, seed: int
) -> EvaluationSet:
    """Choose the images for evaluation.

    Parameters
    ----------
    dataset
        The data set.
    samples
        Indices of training images, per device.
    test_images
        Number of test images, evenly spaced; None for all.
    probe_images
        Number of training images, drawn from those of all devices. The loss on them estimates
        F(w) = sum_k |D_k|/D F_k(w), eq. (1).
    seed
        Seed of the draw.

    Returns
    -------
    EvaluationSet
        Indices of the images.
    """
    held = np.concatenate(samples)
    rng = stream(seed, Purpose.PARTITION, 1)
    probe = np.sort(rng.choice(held, min(probe_images, held.size), replace=False))
    return EvaluationSet(evenly_spaced(dataset.y_test.size, test_images), probe)


def evenly_spaced(count: int, wanted: int | None) -> Indices:
    """Indices of `wanted` out of `count` images, evenly spaced; all of them for None.

    The first half of MNIST's test set is easier than the second, so a prefix would be biased.
    """
    if wanted is None or wanted >= count:
        return np.arange(count)
    return np.arange(wanted) * count // wanted


class Images:
    """Images as bytes, which take a quarter of the memory of floats. They are standardised on access."""

    def __init__(self, images: Bytes, dataset: Dataset, device: torch.device) -> None:
        self._bytes = torch.from_numpy(np.ascontiguousarray(images)).to(device)
        self._mean = torch.tensor(dataset.mean, device=device)
        self._deviation = torch.tensor(dataset.deviation, device=device)

    def __getitem__(self, chosen: torch.Tensor | slice) -> torch.Tensor:
        """Standardised images as floats, channels first in shape, last in memory."""
        standard = self._bytes[chosen].float().div_(255.0).sub_(self._mean).div_(self._deviation)
        return standard.permute(0, 3, 1, 2)


def computing_device() -> torch.device:
    """Device used by PyTorch."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def gpu_names() -> tuple[str, ...]:
    """Names of the available GPUs, as in CUDA_VISIBLE_DEVICES."""
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

    def read(self) -> Single:
        """The state as a vector."""
        return torch.cat([value.reshape(-1) for value in self.state]).cpu().numpy()

    def write(self, vector: Single) -> None:
        """Set the state from a vector."""
        parts = torch.split(torch.from_numpy(vector), self.sizes)
        for value, part in zip(self.state, parts, strict=True):
            value.copy_(part.view(value.shape))
        for variance in self._variances:  # receiver noise can make a small one negative
            variance.clamp_(min=0.0)


class Trainer:
    """Trains and evaluates one model on the data of all devices, in one thread."""

    def __init__(
        self,
        dataset: Dataset,
        samples: Samples,
        model: nn.Module,
        work: LocalWork,
        evaluation: EvaluationSet,
        seed: int,
    ) -> None:
        self.device = computing_device()
        self.flat = FlatModel(model.to(self.device))
        self.work = work
        self.seed = seed
        self.samples = samples
        self.test_chunks = evaluation.test_chunks
        self.probe = torch.from_numpy(evaluation.probe).to(self.device)
        self.images = Images(dataset.x_train, dataset, self.device)
        self.labels = torch.from_numpy(dataset.y_train.astype(np.int64)).to(self.device)
        self.test_images = Images(dataset.x_test[evaluation.tests], dataset, self.device)
        labels = dataset.y_test[evaluation.tests].astype(np.int64)
        self.test_labels = torch.from_numpy(labels).to(self.device)

    def update(self, start: Single, round_number: int, device: int) -> tuple[Single, float]:
        """Local training of a device.

        Parameters
        ----------
        start
            State of the global model.
        round_number, device
            Round and device; together with the seed they fix mini-batches and dropout.

        Returns
        -------
        tuple of Single and float
            Change of the state, and mean training loss.
        """
        rng = stream(self.seed, Purpose.BATCHES, round_number, device)
        batches = draw_batches(self.samples[device], self.work, rng)
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
        # torch.manual_seed also seeds every kind of accelerator, which takes as long as a small layer.
        if self.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    @torch.no_grad()
    def evaluate(self, state: Single, chunk: int) -> tuple[int, float]:
        """Correct answers and summed loss on one chunk of the evaluation set."""
        self.flat.write(state)
        self.flat.model.eval()
        images, labels = self._chunk(chunk)
        answers = self.flat.model(images)
        loss = functional.cross_entropy(answers, labels, reduction="sum")
        return int((answers.argmax(1) == labels).sum()), float(loss)

    def _chunk(self, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        beyond = chunk - self.test_chunks
        if beyond < 0:
            here = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            return self.test_images[here], self.test_labels[here]
        chosen = self.probe[beyond * CHUNK : (beyond + 1) * CHUNK]
        return self.images[chosen], self.labels[chosen]


def draw_batches(samples: Indices, work: LocalWork, rng: np.random.Generator) -> list[Indices]:
    """Mini-batches. No sample is drawn again before all others were drawn."""
    batch = min(work.batch, samples.size)
    if work.epochs is not None:
        rounds = [rng.permutation(samples) for _ in range(work.epochs)]
        return [order[i : i + batch] for order in rounds for i in range(0, order.size - batch + 1, batch)]
    needed = work.steps * batch
    orders = [rng.permutation(samples) for _ in range(-(-needed // samples.size))]
    flat = np.concatenate(orders)[:needed]
    return list(flat.reshape(work.steps, batch))
