"""Federated rounds of airpass, a plain PyTorch loop, Flower's simulation and pfl, as separate programs."""

import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airpass import Scenario, TrainOptions
from airpass.core.errors import InvalidInput
from airpass.core.threads import one_blas_thread, processors
from airpass.core.types import Single
from airpass.learning.aggregation import weighted_mean
from airpass.learning.client import Trainer
from airpass.learning.data.cifar10 import Cifar10
from airpass.learning.data.mnist import Mnist
from airpass.learning.pool import Make, Pool
from airpass.learning.rounds import make_trainer
from airpass.learning.training import prepare
from suite.limits import Step, peak_of_all_cores
from suite.measure import Comparison, Section, Table, duration, in_turn

LOOPS = Path(__file__).parent.parent / "loops"
PEERS = LOOPS.parent.parent / ".venv-peers" / "bin"
WORKLOADS: dict[str, dict[str, Any]] = {
    "MNIST": {
        "data": Mnist(),
        "repeats": 7,
        "shape": ("mnist-cnn", 1, 28, 32),
        "told": {"model": "mnist-cnn", "batch": 32, "learning-rate": 0.01, "rounds": 40},
    },
    "CIFAR-10": {
        "data": Cifar10(),
        "repeats": 3,
        "shape": ("cifar-cnn", 3, 32, 64),
        "told": {"model": "cifar-cnn", "batch": 64, "learning-rate": 0.02, "rounds": 4},
    },
}


def _command(side: str, told: dict[str, Any]) -> list[str]:
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    programs = {
        "airpass": [sys.executable, str(LOOPS / "airpass_loop.py")],
        "plain loop": [sys.executable, str(LOOPS / "plain_loop.py")],
        "Flower": [str(PEERS / "python"), str(LOOPS / "flower_loop.py")],
        "pfl, one process": [
            str(PEERS / "python"),
            str(LOOPS / "pfl_loop.py"),
            "--threads",
            str(processors()),
        ],
        "pfl": [str(PEERS / "torchrun"), "--nproc_per_node", str(processors()), str(LOOPS / "pfl_loop.py")],
    }
    return [*programs[side], *words]


def _measure(side: str, told: dict[str, Any]) -> dict[str, Any]:
    """Run one program and return its report."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if side == "pfl":
        environment["OMP_NUM_THREADS"] = "1"  # per process
    found = subprocess.run(  # noqa: S603
        _command(side, told), env=environment, capture_output=True, text=True, check=False
    )
    lines = [line for line in found.stdout.splitlines() if line.startswith("{")]
    if found.returncode != 0 or not lines:
        raise RuntimeError(f"{side}: {found.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


class _Echo(Trainer):
    """A trainer that takes no steps, to time the data transfer of a round."""

    def update(self, start: Single, round_number: int, device: int) -> tuple[Single, float]:
        """Return a dummy update."""
        return start + np.float32(device), 0.0


def _echo(make: Make) -> Trainer:
    trainer = make()
    trainer.__class__ = _Echo
    return trainer


def _parts(data: Path) -> Table:
    """Time of a round of the MNIST network and of its parts, measured alternately."""
    options = TrainOptions(test_images=1, probe_images=1).filled("mnist")
    _, held = prepare(Scenario.paper(10), "mnist", options, 0, data.parent)
    make = partial(make_trainer, held.dataset.in_shared_memory(), held.samples, options, 0)
    trainer = make()
    torch.set_num_threads(1)
    state, share = trainer.flat.read(), 10 // processors()
    rounds = iter(range(10_000))
    changes = np.stack([state] * 10)

    def steps() -> None:
        number = next(rounds)
        for device in range(share):
            trainer.update(state, number, device)

    def average() -> None:
        with one_blas_thread():
            weighted_mean(changes, np.ones(10))

    size = (processors(), 10, state.size)
    with Pool(make, *size) as pool, Pool(partial(_echo, make), *size) as idle:

        def whole() -> None:
            pool.updates(state, next(rounds), range(10))
            average()

        calls = {
            f"local steps of the {share} devices of one process, running alone": steps,
            "transfer of models and updates between processes": lambda: idle.updates(state, 0, range(10)),
            "averaging": average,
            "complete round": whole,
        }
        parts = {name: statistics.median(times) for name, times in in_turn(calls, 15).items()}
    together = parts.pop("complete round")
    parts["remainder: waiting and contention between processes"] = together - sum(parts.values())
    parts["complete round"] = together
    return Table(
        "Time of a round of the MNIST network",
        ("part", "time", "share"),
        [(name, duration(part), f"{100 * part / together:.0f} %") for name, part in parts.items()],
        "Flower and pfl take the same steps with PyTorch's own layers, whose convolutions are "
        "fast already. The speed-up over pfl with one process per core is therefore limited to what the "
        "fused layers save. The remainder is due to the other cores: processes slow each other down, and "
        "a round ends with the slowest.",
    )


def run() -> Section:
    """Measure all workloads, alternating between the programs."""
    comparisons, rows, bounds = [], [], []
    peak = peak_of_all_cores()
    for name, workload in WORKLOADS.items():
        path = workload["data"].stored_path()
        if not path.exists():
            raise InvalidInput(f"{path}: missing; run airpass data fetch {workload['data'].name} first")
        told = {"data": path, **workload["told"]}
        installed = (PEERS.parent / ".installed").exists()
        sides = ["airpass", "plain loop", *(["Flower", "pfl, one process", "pfl"] if installed else [])]
        found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        for _ in range(workload["repeats"]):
            for side in sides:
                found[side].append(_measure(side, told))
        # The first timed round may still include warm-up.
        steady = {
            side: [statistics.median(report["round_s"][1:]) for report in reports]
            for side, reports in found.items()
        }
        rounds = told["rounds"]
        work = 10 * 3 * Step(*workload["shape"]).operations()
        ours = statistics.median(steady["airpass"])
        bounds.append(
            (
                name,
                f"{work / 1e9:.3g} GFLOP",
                duration(work / peak),
                duration(ours),
                *(f"{statistics.median(steady[side]) * peak / work:.3g}" for side in sides[1:]),
            )
        )
        comparisons.append(Comparison(f"{name}, round of 10 devices, 3 steps each", steady))
        for side, reports in found.items():
            start = statistics.median(report["start_s"] for report in reports)
            total = statistics.median(report["start_s"] + sum(report["round_s"]) for report in reports)
            rows.append(
                (
                    name,
                    side if side == "plain loop" else f"{side} ({reports[0]['version']})",
                    f"{1.0 / statistics.median(steady[side]):.3g}",
                    f"{start:.1f} s",
                    f"{total:.1f} s ({rounds} rounds)",
                )
            )
    return Section(
        "Federated rounds",
        "Federated averaging of the paper's networks over ten devices, with the same images, batch sizes "
        "and steps and without evaluation. The programs run alternately on all cores: airpass with one "
        "process per core; the plain loop with PyTorch's threads; Flower with one actor per core and "
        "replies polled every 5 ms; pfl by default, with one process and PyTorch's threads, and with one "
        "process per core under torchrun. The time of a round is the median within a run.",
        comparisons,
        [
            Table(
                "Rounds per second and complete runs",
                ("network", "program", "rounds/s", "time to the end of the first round", "complete run"),
                rows,
            ),
            _parts(Mnist().stored_path()),
            Table(
                "Upper bounds on the ratios",
                (
                    "network",
                    "dense work per round",
                    "time at peak",
                    "airpass",
                    *(f"{side}, upper bound" for side in sides[1:]),
                ),
                bounds,
                f"The peak is that of large convolutions on all cores at once, {peak / 1e9:.0f} GFLOP/s. The "
                "last columns are the ratios for a program that runs a complete round at that peak: dense "
                "convolutions, no pooling, no data loading, no transfer between processes. The fused "
                "layers of the MNIST network avoid part of the dense work. *Efficiency* has the breakdown "
                "of a step.",
            ),
        ],
    )
