"""HAGO's gradient against automatic differentiation of the same objective, and one HAGO run."""

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from airpass import Scenario, select
from airpass.channel.field import Field
from airpass.core.types import Real
from airpass.geometry import hago
from airpass.geometry.hago import Hago
from airpass.optim.objectives import softmin
from suite.measure import Comparison, Section, Table, in_turn

TEMPERATURE = 0.1
SIZES = ((10, 5, 5), (50, 10, 10), (1_000, 10, 10))
Gradient = Callable[[Real], tuple[float, Real]]


class Problem:
    """The soft minimum of eq. (56) for all devices, at a layout and a beam."""

    def __init__(self, count: int, waveguides: int, antennas: int) -> None:
        self.scenario = Scenario.paper(count, waveguides, antennas, 5.0, 0)
        self.layout = self.scenario.uniform_layout()
        channels = self.scenario.channels(self.layout)
        self.beam = select(channels, self.scenario.weights, self.scenario.budget).beam
        self.field = self.scenario.uplink.field(antennas)
        self.scale = self.scenario.budget / self.scenario.weights**2

    def ours(self) -> Gradient:
        """By the kernels of HAGO, eqs. (56)-(68)."""
        workspace = hago.new_workspace(self.layout.shape[0], self.layout.shape[1], self.scale.size)
        gradient, pull = np.empty(self.layout.shape), np.empty(self.scale.size)
        beam, field, scale = self.beam, self.field, self.scale

        def call(layout: Real) -> tuple[float, Real]:
            hago.gains(layout, beam, field, workspace)
            levels = (workspace.gain_re**2 + workspace.gain_im**2) * scale
            value = softmin(levels, TEMPERATURE, pull)
            hago.layout_gradient(layout, beam, field, workspace, pull * scale, gradient)
            return value, gradient

        return call

    def autograd(self) -> Gradient:
        """By PyTorch, as a user would write eqs. (9)-(12) and (56)."""
        torch.set_num_threads(1)
        field = _with_arrays(self.field, torch.from_numpy)
        beam, scale = torch.from_numpy(self.beam), torch.from_numpy(self.scale)

        def call(layout: Real) -> tuple[float, Real]:
            position = torch.tensor(layout, requires_grad=True)
            value = _objective(torch, _torch_logsumexp, position, beam, field, scale)
            value.backward()
            assert position.grad is not None
            return value.item(), position.grad.numpy()

        return call

    def jitted(self) -> Gradient:
        """By JAX, compiled."""
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        jax: Any = importlib.import_module("jax")  # only here, so that tests do without it
        jax.config.update("jax_enable_x64", True)
        field = _with_arrays(self.field, jax.numpy.asarray)
        beam, scale = jax.numpy.asarray(self.beam), jax.numpy.asarray(self.scale)

        def objective(layout: Any) -> Any:
            return _objective(jax.numpy, jax.nn.logsumexp, layout, beam, field, scale)

        compiled = jax.jit(jax.value_and_grad(objective))

        def call(layout: Real) -> tuple[float, Real]:
            value, gradient = compiled(layout)
            return float(value), np.asarray(gradient)

        return call


def _with_arrays(field: Field, converted: Callable[[Real], Any]) -> Field:
    """The field with the arrays of another library."""
    names = ("device_x", "offset_square", "amplitude")
    return field._replace(**{name: converted(getattr(field, name)) for name in names})


def _torch_logsumexp(values: Any) -> Any:
    return torch.logsumexp(values, 0)


def _objective(
    library: Any, logsumexp: Callable[[Any], Any], layout: Any, beam: Any, field: Field, scale: Any
) -> Any:
    """f_tau(L) in the words of an array library."""
    dx = layout[:, :, None] - field.device_x
    distance = library.sqrt(dx * dx + field.offset_square[:, None, :])
    phase = -2.0 * np.pi * field.turns_per_m * (distance + field.refractive_index * layout[:, :, None])
    terms = field.amplitude / distance * library.exp(1j * phase)
    gain = library.einsum("m,mnk->k", library.conj(beam), terms)
    levels = library.abs(gain) ** 2 * scale
    return -TEMPERATURE * logsumexp(-levels / TEMPERATURE)


def run() -> Section:
    """Gradients in turn; then a whole run of Algorithm 2."""
    comparisons, rows = [], []
    for size in SIZES:
        problem = Problem(*size)
        calls = {"airpass": problem.ours(), "PyTorch": problem.autograd(), "JAX": problem.jitted()}
        (_, exact), *others = (call(problem.layout) for call in calls.values())
        off = max(float(np.abs(found - exact).max() / np.abs(exact).max()) for _, found in others)
        seconds = in_turn({name: _at(call, problem.layout) for name, call in calls.items()})
        case = "K = {:,}, M = {}, N = {}".format(*size)
        comparisons.append(Comparison(case, seconds))
        mask = np.ones(size[0], dtype=bool)
        rng = np.random.default_rng(0)

        def whole(problem: Problem = problem, mask: Any = mask, rng: Any = rng) -> Any:
            return Hago().move(problem.scenario, problem.layout, problem.beam, mask, rng)

        moved = whole()
        taken = float(np.median(in_turn({"run": whole})["run"]))
        work = moved.work
        rows.append(
            (
                case,
                f"{1e3 * taken:.3g} ms",
                str(work["iterations"]),
                str(work["evaluations"]),
                f"{1e6 * taken / work['evaluations']:.3g} µs",
                f"{off:.0e}",
            )
        )
    return Section(
        "HAGO's gradient against automatic differentiation",
        "Value and gradient of the soft minimum (eq. 56) with respect to all M N positions, for all K "
        "devices. PyTorch and JAX differentiate eqs. (9)-(12) as a user would write them, in double "
        "precision; JAX uses `jit`.",
        comparisons,
        [
            Table(
                "One run of Algorithm 2",
                (
                    "size",
                    "time",
                    "iterations",
                    "channel evaluations",
                    "per evaluation",
                    "gradient difference",
                ),
                rows,
            )
        ],
    )


def _at(call: Gradient, layout: Real) -> Callable[[], Any]:
    return lambda: call(layout)
