"""Federated rounds: airpass, a plain PyTorch loop, Flower's simulation and pfl, each in its own process."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from airpass.errors import InvalidInput
from airpass.learning.download import stored_path
from airpass.processes import processors
from suite.limits import Step, peak_of_all_cores
from suite.measure import Comparison, Section, Table, duration

LOOPS = Path(__file__).parent.parent / "loops"
PEERS = LOOPS.parent.parent / ".venv-peers" / "bin"
REPEATS = 3
WORKLOADS: dict[str, dict[str, Any]] = {
    "MNIST": {
        "data": "mnist",
        "aims": {"plain loop": 3.0, "Flower": 5.0, "pfl": 2.0},
        "shape": ("mnist-cnn", 1, 28, 32),
        "told": {"model": "mnist-cnn", "batch": 32, "learning-rate": 0.01, "rounds": 40},
    },
    "CIFAR-10": {
        "data": "cifar10",
        "aims": {"plain loop": 1.3},
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
        "pfl": [str(PEERS / "torchrun"), "--nproc_per_node", str(processors()), str(LOOPS / "pfl_loop.py")],
    }
    return [*programs[side], *words]


def _measure(side: str, told: dict[str, Any]) -> dict[str, Any]:
    """What a run reports of itself."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if side == "pfl":
        environment["OMP_NUM_THREADS"] = "1"  # in each process
    found = subprocess.run(  # noqa: S603
        _command(side, told), env=environment, capture_output=True, text=True, check=False
    )
    lines = [line for line in found.stdout.splitlines() if line.startswith("{")]
    if found.returncode != 0 or not lines:
        raise RuntimeError(f"{side}: {found.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def run() -> Section:
    """Every workload, the sides in turn."""
    comparisons, rows, bounds = [], [], []
    peak = peak_of_all_cores()
    for name, workload in WORKLOADS.items():
        path = stored_path(workload["data"])
        if not path.exists():
            raise InvalidInput(f"{path}: missing; run airpass data fetch {workload['data']} first")
        told = {"data": path, **workload["told"]}
        installed = (PEERS.parent / ".installed").exists()
        sides = ["airpass", "plain loop", *(["Flower", "pfl"] if installed else [])]
        found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        for _ in range(REPEATS):
            for side in sides:
                found[side].append(_measure(side, told))
        # The first round that is timed may still warm up.
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
        comparisons.append(
            Comparison(f"{name}, a round of 10 devices, 3 steps each", steady, workload["aims"])
        )
        for side, reports in found.items():
            start = statistics.median(report["start_s"] for report in reports)
            total = statistics.median(report["start_s"] + sum(report["round_s"]) for report in reports)
            rows.append(
                (
                    name,
                    f"{side} {reports[0]['version']}" if side != "plain loop" else "plain loop",
                    f"{1.0 / statistics.median(steady[side]):.3g}",
                    f"{start:.1f} s",
                    f"{total:.1f} s ({rounds} rounds)",
                )
            )
    return Section(
        "Federated rounds",
        "Federated averaging of the paper's networks among ten devices: the same images, batch sizes and "
        "steps, no tests. Every side runs as a program of its own, in turn, on all cores: airpass with one "
        "process a core, the plain loop with PyTorch's threads, Flower with one actor a core, replies looked "
        "for every 5 ms, pfl with one process a core by torchrun. A round's time is the median within a run.",
        comparisons,
        [
            Table(
                "Rounds per second, and whole runs",
                ("network", "side", "rounds/s", "to the end of the first round", "whole run"),
                rows,
            ),
            Table(
                "How far it could go",
                (
                    "network",
                    "dense work of a round",
                    "at peak",
                    "airpass",
                    *(f"{side} at most" for side in sides[1:]),
                ),
                bounds,
                f"The peak is that of products of matrices on all cores at once, {peak / 1e9:.0f} GFLOP/s. "
                "The last columns are the ratios of a program that ran all of a round at that peak: dense "
                "convolutions, no pooling, no data to fetch, nothing sent between processes. The sparse "
                "backward pass spares a part of the dense work. *Distance to the limit* says where the time "
                "of a step goes.",
            ),
        ],
    )
