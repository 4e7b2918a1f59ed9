"""Efficiency of the hot kernels relative to measured hardware peaks.

Operations are counted from the formulas: an addition, multiplication, division or square root is one, a
fused multiply-add two. Memory traffic counts each array once per call. Peaks are measured in the
same run: a matrix product for arithmetic, a triad for memory.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from airpass import Scenario
from airpass.channel.pass_uplink import element
from airpass.core.threads import processors
from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel
from airpass.learning.layers.conv_pool import ConvPoolReLU
from airpass.learning.models import build
from airpass.optim import projections
from airpass.optim.objectives import Saturating, evaluate
from suite.measure import Section, Table, duration, timed

TURNS = 15
IMAGES, CHANNELS, SIDE = 8, 256, 14
OPERATIONS = 2.0 * IMAGES * SIDE**2 * 9 * CHANNELS**2  # of `_convolution`
# Operations of an exponential, a logarithm, and a sine with cosine; see airpass.kernels.math.
EXP, LOG, COS_SIN = 32, 31, 52


@kernel
def triad(a: Real, b: Real, c: Real, times: int) -> None:
    """a = b + 3 c."""
    for _ in range(times):
        for i in range(a.size):
            a[i] = b[i] + 3.0 * c[i]


@kernel
def _projections(times: int, re: Real, im: Real, point: Complex, a: Real, b: Real) -> None:
    for _ in range(times):
        projections.projections(re, im, point, a, b)


@kernel
def _gradient(
    times: int, re: Real, im: Real, slopes: Real, a: Real, b: Real, scratch: projections.Scratch, out: Complex
) -> None:
    for _ in range(times):
        projections.gradient(re, im, slopes, a, b, scratch, out)


@kernel
def _saturating(times: int, scores: Real, weights: Real, slopes: Real, terms: Real) -> float:
    total = 0.0
    for _ in range(times):
        total += evaluate(Saturating(weights, 10.0, 0.08), 0, scores, slopes, terms)
    return total


@kernel
def _element(times: int, position: float, field: Any, distance: Real, re: Real, im: Real) -> None:
    for _ in range(times):
        element(position, 0, 0, field, distance, re, im)


def _fastest(call: Callable[[int], Any], enough_s: float = 0.02) -> float:
    """Seconds per call: the minimum over several repetitions."""
    call(1)
    times = max(1, round(enough_s / max(timed(lambda: call(1)), 1e-7)))
    return min(timed(lambda: call(times)) for _ in range(TURNS)) / times


def _convolution() -> Callable[[], Any]:
    """A convolution, 3 x 3.

    oneDNN uses the widest instructions of all processors, which libraries of matrix products do not on some.
    """
    maps = torch.randn(IMAGES, CHANNELS, SIDE, SIDE).to(memory_format=torch.channels_last)
    weights = torch.randn(CHANNELS, CHANNELS, 3, 3).to(memory_format=torch.channels_last)
    return lambda: functional.conv2d(maps, weights, padding=1)


def peaks() -> dict[str, float]:
    """Peak operations and bytes per second on one thread."""
    torch.set_num_threads(1)
    found = {}
    call = _convolution()
    found["single"] = OPERATIONS / _fastest(lambda times: [call() for _ in range(times)])
    found["double"] = found["single"] / 2.0  # numbers are twice as long
    long = np.ones(10_000_000)
    other = np.ones(10_000_000)
    found["read"] = 16.0 * long.size / _fastest(lambda times: [long @ other for _ in range(times)])
    for name, size in (("cache", 4_000), ("memory", 10_000_000)):
        a, b, c = np.ones((3, size))
        seconds = _fastest(lambda times, a=a, b=b, c=c: triad(a, b, c, times))  # type: ignore[misc]
        found[name] = 24.0 * size / seconds
    return found


def _single_rate(_: int) -> float:
    """Operations per second of convolutions in this process, measured for one second."""
    torch.set_num_threads(1)
    call = _convolution()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < 1.0:
        call()
        done += 1
    return done * OPERATIONS / (time.perf_counter() - began)


def peak_of_all_cores() -> float:
    """Total single-precision operations per second with one process per core."""
    cores = processors()
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_single_rate, range(cores)))  # warm-up
        return sum(pool.map(_single_rate, range(cores)))


def kernels(peak: dict[str, float]) -> list[tuple[str, ...]]:
    """Table rows of the solver kernels, for arrays inside and outside the cache."""
    rows: list[tuple[str, ...]] = []
    for count, size in ((50, 10), (1_000, 16), (100_000, 16)):
        rng = np.random.default_rng(0)
        re, im = rng.standard_normal((2, size, count))
        slopes, a, b, terms = rng.standard_normal((4, count))
        scores, weights = np.abs(rng.standard_normal(count)), np.ones(count)
        point = np.full(size, size**-0.5 + 0j)
        scratch = projections.new_scratch(count)
        field = Scenario.paper(count, size, 10, 0.0, 0).uplink.field(10)
        where = f"K = {count:,}, M = {size}"
        work: list[tuple[str, float, float, float]] = [
            (
                "projections h^H d",
                8.0 * count * size,
                16.0 * count * size,
                _fastest(lambda times: _projections(times, re, im, point, a, b)),  # noqa: B023
            ),
            (
                "gradient",
                8.0 * count * size,
                16.0 * count * size,
                _fastest(lambda times: _gradient(times, re, im, slopes, a, b, scratch, point)),  # noqa: B023
            ),
            (
                "objective and slopes",
                (2 * EXP + LOG + 16.0) * count,
                32.0 * count,
                _fastest(lambda times: _saturating(times, scores, weights, slopes, terms)),  # noqa: B023
            ),
            (
                "channel of an antenna",
                (COS_SIN + 9.0) * count,
                48.0 * count,
                _fastest(lambda times: _element(times, 3.0, field, terms, a, b)),  # noqa: B023
            ),
        ]
        # The second-level cache has at least half a mebibyte on common machines.
        for name, operations, bytes_moved, seconds in work:
            bandwidth = peak["cache"] if bytes_moved < 2**19 else max(peak["memory"], peak["read"])
            bound = max(operations / peak["double"], bytes_moved / bandwidth)
            limit = "arithmetic" if bound == operations / peak["double"] else "memory"
            rows.append(
                (
                    name,
                    where,
                    duration(seconds),
                    f"{operations / seconds / 1e9:.1f}",
                    f"{bytes_moved / seconds / 1e9:.1f}",
                    limit,
                    f"{100.0 * bound / seconds:.0f} %",
                )
            )
    return rows


class Step:
    """One local training step of a network, and its profile."""

    def __init__(self, model: str, channels: int, side: int, batch: int) -> None:
        self.model = build(model, (channels, side, side), 10, 0)
        self.model.train()
        shape = (batch, channels, side, side)
        self.x = torch.randn(shape).contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (batch,))
        self.parameters: list[torch.Tensor] = list(self.model.parameters())

    def __call__(self) -> None:
        """Forward pass, backward pass and parameter update."""
        loss = functional.cross_entropy(self.model(self.x), self.y)
        gradients = torch.autograd.grad(loss, self.parameters)
        with torch.no_grad():
            torch._foreach_add_(self.parameters, gradients, alpha=-0.01)

    def operations(self) -> float:
        """Dense operations of convolutions and linear layers.

        Counts the forward pass, the gradient in the weights and, except for the first layer, in the input.
        """
        total = 0.0
        first = True

        def count(layer: Any, given: tuple[torch.Tensor], made: torch.Tensor) -> None:
            nonlocal total, first
            pooled = 4 if isinstance(layer, ConvPoolReLU) else 1
            per_entry = layer.weight[0].numel()
            total += 2.0 * made.numel() * pooled * per_entry * (2 if first else 3)
            first = False

        layers = [
            item for item in self.model.modules() if isinstance(item, torch.nn.Conv2d | torch.nn.Linear)
        ]
        hooks = [layer.register_forward_hook(count) for layer in layers]
        with torch.no_grad():
            self.model(self.x)
        for hook in hooks:
            hook.remove()
        return total

    def profile(self) -> list[tuple[str, float]]:
        """Share of the time per operation, largest first."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for _ in range(20):
                self()
        times = {item.key: item.self_cpu_time_total for item in profiler.key_averages()}
        total = sum(times.values())
        return sorted(((name, time / total) for name, time in times.items()), key=lambda item: -item[1])[:6]


NAMES = {
    "aten::mkldnn_convolution": "convolution forward (oneDNN)",
    "aten::convolution_backward": "convolution backward (oneDNN)",
    "_Fused": "fused layers forward",
    "_FusedBackward": "fused layers backward",
    "aten::mm": "linear layers backward",
    "aten::addmm": "linear layers forward",
    "aten::copy_": "copies",
    "aten::native_batch_norm": "batch normalisation forward",
    "aten::native_batch_norm_backward": "batch normalisation backward",
    "aten::max_pool2d_with_indices": "max-pooling forward",
    "aten::max_pool2d_with_indices_backward": "max-pooling backward",
    "aten::threshold_backward": "ReLU backward",
    "aten::clamp_min": "ReLU forward",
    "aten::mkldnn_convolution_backward": "convolution backward (oneDNN)",
}


def run() -> Section:
    """Measure peaks, solver kernels and training steps."""
    peak = peaks()
    steps = {
        "MNIST network, batch 32": Step("mnist-cnn", 1, 28, 32),
        "CIFAR-10 network, batch 64": Step("cifar-cnn", 3, 32, 64),
    }
    learning = []
    for name, step in steps.items():
        seconds = _fastest(lambda times, step=step: [step() for _ in range(times)])  # type: ignore[misc]
        rate = step.operations() / seconds
        spent = ", ".join(f"{NAMES.get(key, key)} {100 * share:.0f} %" for key, share in step.profile())
        learning.append(
            (
                name,
                duration(seconds),
                f"{step.operations() / 1e9:.3g}",
                f"{rate / 1e9:.0f}",
                f"{100 * rate / peak['single']:.0f} %",
                spent,
            )
        )
    measured = [
        ("convolution, single precision", f"{peak['single'] / 1e9:.1f} GFLOP/s"),
        ("half of it, for double precision", f"{peak['double'] / 1e9:.1f} GFLOP/s"),
        (
            f"convolution, single precision, all {processors()} cores",
            f"{peak_of_all_cores() / 1e9:.1f} GFLOP/s",
        ),
        ("triad, in cache", f"{peak['cache'] / 1e9:.1f} GB/s"),
        ("triad, in memory", f"{peak['memory'] / 1e9:.1f} GB/s"),
        ("inner product, in memory", f"{peak['read'] / 1e9:.1f} GB/s"),
    ]
    return Section(
        "Efficiency",
        "Arithmetic and memory traffic of the hot kernels relative to the peaks of the same run, on one "
        "thread. Arithmetic peaks are those of a large convolution by oneDNN. The lower bound on the time is "
        "the larger of the two times at peak; the last column is this bound divided by the measured time.",
        tables=[
            Table("Peaks", ("operation", "measured"), measured),
            Table(
                "Solver kernels",
                ("kernel", "size", "time", "GFLOP/s", "GB/s", "bound by", "bound/time"),
                kernels(peak),
                "If the columns exceed the cache (K = 100,000), projections and gradient run near memory "
                "speed. At K = 50 most of the time of a call is prologue and epilogue: sums across SIMD "
                "lanes, and the devices after the last full vector. Exponential, logarithm, sine and "
                "cosine are chains of dependent operations, which the processor overlaps only partly.",
            ),
            Table(
                "Local training step",
                ("network", "time", "dense GFLOP", "GFLOP/s", "share of peak", "breakdown"),
                learning,
                "Dense work counts the operations of layers without shortcuts. The second convolution of "
                "the MNIST network needs fewer: its backward pass skips at least three quarters of the "
                "products. The remaining time is memory traffic: pooling, normalisation and copies have "
                "almost no arithmetic.",
            ),
        ],
    )
