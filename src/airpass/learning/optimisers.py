"""Optimisers of the devices and of the server.

Devices take steps of SGD, with momentum as in PyTorch, or of Adam. Their state starts anew in every round.

With the mean update D_t of round t the server takes the step (S. Reddi et al., "Adaptive federated
optimization", ICLR 2021, algorithm 2; momentum: T.-M. H. Hsu et al., 2019)

    average     x <- x + eta D_t
    momentum    m <- beta1 m + D_t                     x <- x + eta m
    adam        m <- beta1 m + (1 - beta1) D_t
                v <- beta2 v + (1 - beta2) D_t^2       x <- x + eta m/(√v + tau)

from m = 0 and v = tau^2, without bias correction. Only weights take it; running statistics are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Mask, Real, Single

LOCAL = ("sgd", "adam")
SERVER = ("average", "momentum", "adam")
# Options of the server's step, with the steps that use them.
SERVER_OPTIONS = {
    "learning_rate": SERVER,
    "beta1": ("momentum", "adam"),
    "beta2": ("adam",),
    "tau": ("adam",),
}
SERVER_LEARNING_RATES = {"average": 1.0, "momentum": 1.0, "adam": 0.01}
SERVER_DEFAULTS = {"beta1": 0.9, "beta2": 0.99, "tau": 1e-3}
ADAM_LEARNING_RATE = 0.001  # default of the devices' Adam, as in PyTorch
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of the devices' Adam, as in PyTorch


class LocalOptimiser:
    """Steps of a device in one round.

    Parameters
    ----------
    kind
        "sgd" or "adam".
    parameters
        Weights, which are changed in place.
    learning_rate
        Learning rate.
    momentum
        Momentum of SGD.
    """

    def __init__(
        self, kind: str, parameters: Sequence[torch.Tensor], learning_rate: float, momentum: float
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.adam = kind == "adam"
        self.steps = 0
        self.means: list[torch.Tensor] = []
        self.squares: list[torch.Tensor] = []

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor]) -> None:
        """Take a step."""
        grads = list(gradients)
        self.steps += 1
        if self.adam:
            self._adam(grads)
            return
        if self.momentum:
            if self.means:
                torch._foreach_mul_(self.means, self.momentum)
                torch._foreach_add_(self.means, grads)
            else:
                self.means = [value.clone() for value in grads]
            grads = self.means
        torch._foreach_add_(self.parameters, grads, alpha=-self.learning_rate)

    def _adam(self, gradients: list[torch.Tensor]) -> None:
        (one, two), first = BETAS, not self.means
        if first:
            self.means = [torch.zeros_like(value) for value in gradients]
            self.squares = [torch.zeros_like(value) for value in gradients]
        torch._foreach_mul_(self.means, one)
        torch._foreach_add_(self.means, gradients, alpha=1.0 - one)
        torch._foreach_mul_(self.squares, two)
        torch._foreach_addcmul_(self.squares, gradients, gradients, value=1.0 - two)
        scale = torch._foreach_sqrt(self.squares)
        torch._foreach_div_(scale, sqrt(1.0 - two**self.steps))
        torch._foreach_add_(scale, EPSILON)
        torch._foreach_addcdiv_(
            self.parameters, self.means, scale, value=-self.learning_rate / (1.0 - one**self.steps)
        )


@dataclass(frozen=True)
class ServerOptions:
    """The server's step. Other than "average", none is in the paper; defaults are those of Reddi et al."""

    kind: str = "average"  # "average", "momentum" or "adam"
    learning_rate: float | None = None  # eta; None: 1, and 0.01 for adam
    beta1: float | None = None  # of momentum and adam; None: 0.9
    beta2: float | None = None  # of adam; None: 0.99
    tau: float | None = None  # of adam; None: 0.001

    def __post_init__(self) -> None:
        checks.one_of("server", self.kind, SERVER)
        for name, used_by in SERVER_OPTIONS.items():
            value = getattr(self, name)
            if value is None:
                continue
            if name in ("beta1", "beta2"):
                if checks.at_least(f"server.{name}", value, 0.0) >= 1.0:
                    raise InvalidInput(f"server.{name} = {value:g}: must be < 1")
            else:
                checks.positive(f"server.{name}", value)
            if self.kind not in used_by:
                steps = " and ".join(used_by)
                raise InvalidInput(
                    f"server.{name} = {value:g}: is used by {steps}, but server is {self.kind}"
                )

    def filled(self) -> "ServerOptions":
        """The options with defaults in place of None, where the step uses them."""
        defaults = {**SERVER_DEFAULTS, "learning_rate": SERVER_LEARNING_RATES[self.kind]}
        missing = {
            name: defaults[name]
            for name, used_by in SERVER_OPTIONS.items()
            if self.kind in used_by and getattr(self, name) is None
        }
        filled: ServerOptions = replace(self, **missing)  # type: ignore[arg-type]
        return filled


@dataclass(frozen=True, eq=False)
class Server:
    """The server's optimiser between two rounds.

    Parameters
    ----------
    options
        The step, filled.
    weights
        Entries of the model's state that are weights; the others are running statistics.
    moments
        m and v above, one row each, an entry per weight; as many rows as the step needs.
    """

    options: ServerOptions
    weights: Mask
    moments: Real

    @classmethod
    def start(cls, options: ServerOptions, weights: Mask) -> "Server":
        """The optimiser before the first round."""
        options = options.filled()
        rows: list[float] = []
        if options.kind == "momentum":
            rows = [0.0]
        elif options.kind == "adam":
            assert options.tau is not None
            rows = [0.0, options.tau**2]
        moments = np.repeat(np.array(rows)[:, None], int(weights.sum()), axis=1)
        return cls(options, weights, moments)

    def step(self, state: Single, change: Single) -> tuple[Single, "Server"]:
        """Apply a mean update.

        Parameters
        ----------
        state
            State of the global model.
        change
            Mean update of the round.

        Returns
        -------
        tuple of Single and Server
            The new state, and the optimiser for the next round.
        """
        options = self.options
        assert options.learning_rate is not None
        after: Single = state + change
        if options.kind == "average" and options.learning_rate == 1.0:
            return after, self
        update = change[self.weights].astype(np.float64)
        moments = self.moments
        if options.kind == "momentum":
            assert options.beta1 is not None
            moments = options.beta1 * moments + update
            update = moments[0]
        elif options.kind == "adam":
            assert options.beta1 is not None
            assert options.beta2 is not None
            assert options.tau is not None
            mean = options.beta1 * moments[0] + (1.0 - options.beta1) * update
            square = options.beta2 * moments[1] + (1.0 - options.beta2) * update**2
            moments = np.stack([mean, square])
            update = mean / (np.sqrt(square) + options.tau)
        after[self.weights] = (state[self.weights] + options.learning_rate * update).astype(np.float32)
        return after, replace(self, moments=moments)
