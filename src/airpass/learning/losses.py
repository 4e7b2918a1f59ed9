"""Losses, and whether a model's output fits them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference, load_reference
from airpass.learning.data.base import CLASSIFICATION, REGRESSION, Dataset
from airpass.learning.models import described, model_errors, one_line

# A name, `file.py:Name`, or a function or module of outputs and targets that gives the mean over the samples.
Loss: TypeAlias = str | Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
CROSS_ENTROPY, MSE = "cross-entropy", "mse"
LOSSES = {CROSS_ENTROPY: CLASSIFICATION, MSE: REGRESSION}  # the kind of targets of each


def default_loss(task: str) -> str:
    """The loss of a kind of task."""
    return CROSS_ENTROPY if task == CLASSIFICATION else MSE


def task_of(loss: Loss | None) -> str | None:
    """The kind of targets that a loss needs; None if it takes those of the data."""
    return LOSSES.get(loss) if isinstance(loss, str) else None


def check_loss(loss: Loss) -> None:
    """Refuse what is not a loss."""
    if isinstance(loss, str) and not is_reference(loss):
        checks.one_of("loss", loss, [*LOSSES, "file.py:Name"])
    elif not (isinstance(loss, str) or callable(loss)):
        raise InvalidInput(f"loss = {loss!r}: must be one of {', '.join(LOSSES)}, or a function")


@dataclass(frozen=True)
class Objective:
    """A loss with the kind of its targets."""

    loss: Any  # a name of LOSSES, or a function
    task: str

    @classmethod
    def of(cls, loss: Loss, task: str) -> "Objective":
        """Import the loss if it is named by a reference."""
        found: Any = loss
        if isinstance(loss, str) and loss not in LOSSES:
            found = load_reference("loss", loss)
        if isinstance(found, type):  # nn.L1Loss in place of nn.L1Loss()
            found = found()
        return cls(found, task)

    def mean(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean loss."""
        if self.loss == CROSS_ENTROPY:
            return functional.cross_entropy(outputs, targets)
        if self.task == REGRESSION and outputs.numel() == targets.numel():
            outputs = outputs.reshape(targets.shape)  # (count, 1) for (count,), which would be broadcast
        if self.loss == MSE:
            return functional.mse_loss(outputs, targets)
        value: torch.Tensor = self.loss(outputs, targets)
        return value

    def total(self, outputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Sum of the losses of the samples."""
        if self.loss == CROSS_ENTROPY:
            return float(functional.cross_entropy(outputs, targets, reduction="sum"))
        return len(targets) * float(self.mean(outputs, targets))

    def right(self, outputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Number of correct answers; NaN if there are no classes to answer with."""
        if self.task != CLASSIFICATION or outputs.dim() != 2 or outputs.shape[1] < 2:
            return nan
        return int((outputs.argmax(1) == targets).sum())


def check_fit(
    model: nn.Module,
    name: str,
    data: Dataset,
    objective: Objective,
    samples: torch.Tensor,
    targets: torch.Tensor,
) -> None:
    """Try a model on a few samples, so that a mismatch shows in one line before training.

    The model is changed: it is set to training, and its running statistics see the samples.

    Parameters
    ----------
    model
        The network.
    name
        Its name, for error messages.
    data
        The data set.
    objective
        The loss.
    samples, targets
        Some of the training samples.
    """
    shape = tuple(samples.shape)
    state = torch.random.get_rng_state()
    model.eval()
    try:
        outputs = model(samples)
    except (Exception, SystemExit) as error:  # a user's network can raise any error
        raise InvalidInput(
            f"model = {name}: fails on an input of shape {shape} ({one_line(error)}); "
            f"its first layer must take samples of shape {data.sample_shape}"
        ) from None
    finally:
        torch.random.set_rng_state(state)
    if not isinstance(outputs, torch.Tensor):
        raise InvalidInput(f"model = {name}: returns a {type(outputs).__name__}; must return a tensor")
    got = tuple(outputs.shape)
    fits = {
        CROSS_ENTROPY: len(got) == 2 and got[0] == len(samples) and got[1] >= data.outputs,
        MSE: outputs.numel() == targets.numel(),
    }
    if not fits.get(objective.loss, True):
        raise InvalidInput(
            f"model = {name}: gives {got} for an input of shape {shape}; {objective.loss} needs "
            f"{(len(samples), data.outputs)}, so its last layer must have {data.outputs} outputs"
        )
    if not torch.isfinite(outputs).all():
        raise InvalidInput(
            f"model = {name}: gives numbers that are not finite before training; "
            "check its initial weights, or scale the samples"
        )
    try:
        value = objective.mean(outputs, targets)
        if value.dim() != 0:
            raise ValueError(f"it gives {tuple(value.shape)}, not one number, the mean over the samples")
        if not value.requires_grad:
            raise ValueError("it cannot be differentiated")
    except (Exception, SystemExit) as error:  # so can a user's loss
        raise InvalidInput(
            f"loss = {described(objective.loss)}: fails for outputs of shape {got} and targets of shape "
            f"{tuple(targets.shape)} ({one_line(error)})"
        ) from None
    parameters = [value for value in model.parameters() if value.requires_grad]
    try:
        with model_errors(name, "training"):
            value = objective.mean(model.train()(samples), targets)
            torch.autograd.grad(value, parameters, materialize_grads=True)
    finally:
        torch.random.set_rng_state(state)
