"""Local training of a device: start from the global model, take steps, return the change.

One thread, and random numbers keyed on seed, round and device: the update of a device does not depend on the
process that computes it. A GPU is used if there is one. Its results differ from those of a processor in
rounding.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from airpass.core.randomness import Purpose, stream
from airpass.core.types import Mask, Single
from airpass.learning.data.base import CLASSIFICATION, Bytes, Dataset
from airpass.learning.data.partition import Indices, Samples
from airpass.learning.losses import Objective, default_loss
from airpass.learning.models import model_errors
from airpass.learning.optimisers import LocalOptimiser

CHUNK = 1000  # samples evaluated at a time
# Of products in a network. Weights, sums and updates are in single precision with both.
SINGLE, BFLOAT16 = PRECISIONS = ("single", "bfloat16")


@dataclass(frozen=True)
class LocalWork:
    """Local training: `epochs` passes over the device's data if given, else `steps` mini-batch steps."""

    steps: int
    epochs: int | None
    batch: int
    learning_rate: float
    optimiser: str = "sgd"
    momentum: float = 0.0
    precision: str = SINGLE


@dataclass(frozen=True)
class EvaluationSet:
    """Samples on which a model is evaluated: indices of test samples, and of training samples."""

    tests: Indices
    probe: Indices

    @property
    def test_chunks(self) -> int:
        """Number of chunks of test samples. Chunks of training samples follow."""
        return -(-self.tests.size // CHUNK)

    @property
    def chunks(self) -> int:
        """Number of all chunks."""
        return self.test_chunks - (-self.probe.size // CHUNK)


def evaluation_set(
    dataset: Dataset, samples: Samples, test_images: int | None, probe_images: int, seed: int
) -> EvaluationSet:
    """Choose the samples for evaluation.

    Parameters
    ----------
    dataset
        The data set.
    samples
        Indices of training samples, per device.
    test_images
        Number of test samples, evenly spaced; None for all.
    probe_images
        Number of training samples, drawn from those of all devices. The loss on them estimates
        F(w) = sum_k |D_k|/D F_k(w), eq. (1).
    seed
        Seed of the draw.

    Returns
    -------
    EvaluationSet
        Indices of the samples.
    """
    held = np.concatenate(samples)
    rng = stream(seed, Purpose.PARTITION, 1)
    probe = np.sort(rng.choice(held, min(probe_images, held.size), replace=False))
    return EvaluationSet(evenly_spaced(len(dataset.y_test), test_images), probe)


def evenly_spaced(count: int, wanted: int | None) -> Indices:
    """Indices of `wanted` out of `count` samples, evenly spaced; all of them for None.

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


def inputs(samples: NDArray[Any], dataset: Dataset, device: torch.device) -> Images | torch.Tensor:
    """Samples as a network sees them, by index."""
    if dataset.images:
        return Images(samples, dataset, device)
    return torch.from_numpy(np.ascontiguousarray(samples)).to(device)


def targets(values: NDArray[Any], task: str, device: torch.device) -> torch.Tensor:
    """Targets as a loss sees them."""
    kind = np.int64 if task == CLASSIFICATION else np.float32
    return torch.from_numpy(np.asarray(values).astype(kind)).to(device)


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

    That is its parameters and, with batch normalisation, the running statistics. Parameters that do not
    require gradients are not part of it.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters: list[torch.Tensor] = [value for value in model.parameters() if value.requires_grad]
        given = dict(model.named_parameters(remove_duplicate=False))
        named = {
            name: value
            for name, value in model.state_dict().items()
            if value.is_floating_point() and (name not in given or given[name].requires_grad)
        }
        self.state = list(named.values())
        self._variances = [value for name, value in named.items() if name.endswith("running_var")]
        self.sizes = [value.numel() for value in self.state]
        self._trained = [name in given for name in named]

    @property
    def weights(self) -> Mask:
        """Entries of the vector that are parameters; the others are running statistics."""
        return np.repeat(self._trained, self.sizes)

    def read(self) -> Single:
        """The state as a vector."""
        # Weights are in single precision; a buffer may be in another one.
        return torch.cat([value.reshape(-1).float() for value in self.state]).cpu().numpy()

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
        objective: Objective | None = None,
        name: str = "model",
    ) -> None:
        self.name = name  # of the model, for error messages
        self.objective = objective or Objective(default_loss(dataset.task), dataset.task)
        self.device = computing_device()
        self.flat = FlatModel(model.to(self.device))
        self.work = work
        self.seed = seed
        self.samples = samples
        self.test_chunks = evaluation.test_chunks
        self.probe = torch.from_numpy(evaluation.probe).to(self.device)
        self.inputs = inputs(dataset.x_train, dataset, self.device)
        self.targets = targets(dataset.y_train, dataset.task, self.device)
        self.test_inputs = inputs(dataset.x_test[evaluation.tests], dataset, self.device)
        self.test_targets = targets(dataset.y_test[evaluation.tests], dataset.task, self.device)

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
        work = self.work
        optimiser = LocalOptimiser(work.optimiser, parameters, work.learning_rate, work.momentum)
        losses = []
        with model_errors(self.name, f"training, round {round_number}, device {device}"):
            for batch in batches:
                chosen = torch.from_numpy(batch).to(self.device)
                loss = self.objective.mean(self._outputs(self.inputs[chosen]), self.targets[chosen])
                optimiser.step(torch.autograd.grad(loss, parameters, materialize_grads=True))
                losses.append(loss.detach())
        with torch.no_grad():
            change = self.flat.read() - start
        return change, float(torch.stack(losses).mean())

    def _outputs(self, samples: torch.Tensor) -> torch.Tensor:
        """What the model gives, in single precision."""
        half = self.work.precision == BFLOAT16
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            found: torch.Tensor = self.flat.model(samples)
        return found.float() if half else found

    def _seed_dropout(self, seed: int) -> None:
        # torch.manual_seed also seeds every kind of accelerator, which takes as long as a small layer.
        if self.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    @torch.no_grad()
    def evaluate(self, state: Single, chunk: int) -> tuple[float, float]:
        """Correct answers, NaN without classes, and summed loss on one chunk of the evaluation set."""
        self.flat.write(state)
        self.flat.model.eval()
        samples, truth = self._chunk(chunk)
        with model_errors(self.name, "evaluation"):
            outputs = self._outputs(samples)
            return self.objective.right(outputs, truth), self.objective.total(outputs, truth)

    def _chunk(self, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        beyond = chunk - self.test_chunks
        if beyond < 0:
            here = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            return self.test_inputs[here], self.test_targets[here]
        chosen = self.probe[beyond * CHUNK : (beyond + 1) * CHUNK]
        return self.inputs[chosen], self.targets[chosen]


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
