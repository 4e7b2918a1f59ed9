"""Selected devices of movable antennas and of fixed arrays, for every channel model.

    python benchmarks/channel_models.py run      # appends missing rows to docs/data/channel-models.csv
    python benchmarks/channel_models.py table    # prints means with standard errors
    python benchmarks/channel_models.py cells    # prints arrays with blockage, half a stretch further on
    python benchmarks/channel_models.py figure   # draws what the models do

K = 50, M = N = 10, SEEDS draws that no default was tuned on. Rows are stored one by one; a run that was
interrupted continues. Co-located arrays have no waveguides: where a model concerns these only, the table
takes their rows of the paper's channel.
"""

import csv
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from airpass import Scenario, design
from airpass.core.types import Real
from airpass.designs.alternating import Airpass, Alternation
from airpass.designs.base import DesignMethod
from airpass.designs.colocated import MimoMnPlus
from airpass.designs.distributed import DistributedMn
from airpass.designs.plus import AirpassPlus
from airpass.geometry.elementwise import Elementwise

FILE = Path(__file__).parent.parent / "docs" / "data" / "channel-models.csv"
SEEDS = range(5000, 5010)
SNRS_DB = (-10, -5, 0)
FIELDS = ("model", "snr_db", "seed", "scheme", "selected", "sdr_db", "status", "seconds")
SHAPES = ("x", "y", "z", "xy", "xz", "yz")
PAPER = "the paper's channel"
BLOCKAGE = "blockage, β = 0.1 per metre"
SLOWEST = "hrmc, elementwise"
PEOPLE = 12
CLEARANCE_M = 0.5  # of people and devices


def people(scenario: Scenario) -> dict[str, Any]:
    """People at random where the devices are, half a metre from each of them."""
    devices = scenario.devices
    rng = np.random.default_rng(scenario.seed)
    axes: list[tuple[float, float]] = []
    while len(axes) < PEOPLE:
        x, y = rng.uniform((4.0, 2.0), (40.0, 10.0))
        if np.hypot(devices.x_m - x, devices.y_m - y).min() >= CLEARANCE_M:
            axes.append((round(x, 2), round(y, 2)))
    x_m, y_m = zip(*axes, strict=True)
    return {"model": "cylinders", "x_m": list(x_m), "y_m": list(y_m)}


# Label, and the table `channel` or a function that makes it for the devices of a scenario.
MODELS: dict[str, Any] = {
    PAPER: {},
    "loss, 0.08 dB per metre": {"loss_db_per_m": 0.08},
    "the same, 4 segments summed": {"loss_db_per_m": 0.08, "segments": 4},
    "split of power, δ = 0.3": {"power_split": "proportional", "power_split_delta": 0.3},
    "places every 0.5 m": {"candidates_m": 0.5},
    "`pattern`, q = 1": {"model": "pattern", "exponent": 1.0},
    BLOCKAGE: {"blockage_per_m": 0.1},
    "`cylinders`, 12 people": people,
    "Rician fading, Rice factor 10 dB": {"rician_k_db": 10.0},
}


def scenario_of(model: str, snr_db: float, seed: int) -> Scenario:
    """A draw with a channel model."""
    tables = {
        "receiver": {"waveguides": 10, "antennas": 10},
        "radio": {"snr_db": float(snr_db)},
        "devices": {"count": 50, "seed": seed},
    }
    table = MODELS[model]
    channel = table(Scenario.from_dict(tables)) if callable(table) else table
    return Scenario.from_dict(tables | {"channel": channel})


def schemes(scenario: Scenario) -> dict[str, DesignMethod]:
    """Label and method of all schemes whose result is not that of another row."""
    channel = scenario.channel
    moves = channel.candidates_m is None and scenario.uplink.differentiable
    alternating = {"airpass": Airpass()} if moves else {SLOWEST: Alternation(geometry=Elementwise())}
    found: dict[str, DesignMethod] = {
        **alternating,
        "airpass-plus, fast": AirpassPlus(effort="fast", threads=1),
        "airpass-plus": AirpassPlus(threads=1),
    }
    if channel.factors or not channel.to_dict():
        found |= {f"array {shape}": MimoMnPlus(axis=shape) for shape in SHAPES}
    if channel.factors or not channel.to_dict() or channel.candidates_m is not None:
        found["distributed"] = DistributedMn()
    return found


def rows() -> list[dict[str, str]]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Compute what is missing, the slowest scheme last."""
    done = {(row["model"], row["snr_db"], row["seed"], row["scheme"]) for row in rows()}
    fresh = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        for last, seed, model, snr_db in product((False, True), SEEDS, MODELS, SNRS_DB):
            scenario = scenario_of(model, snr_db, seed)
            for label, method in schemes(scenario).items():
                if (label == SLOWEST) != last or (model, str(snr_db), str(seed), label) in done:
                    continue
                found = design(scenario, method, seed=seed)
                result = (found.selected_count, f"{found.sdr_db:.3f}", found.status)
                writer.writerow((model, snr_db, seed, label, *result, f"{found.seconds:.4f}"))
                file.flush()


def counts() -> dict[tuple[str, int, str], list[float]]:
    """Selected devices in all draws, by model, SNR and scheme."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in rows():
        key = (row["model"], int(row["snr_db"]), row["scheme"])
        found.setdefault(key, []).append(float(row["selected"]))
    for model in MODELS:
        for snr in SNRS_DB:
            for label in (*(f"array {shape}" for shape in SHAPES), "distributed"):
                if (PAPER, snr, label) in found:
                    found.setdefault((model, snr, label), found[PAPER, snr, label])
    return found


def mean(values: list[float]) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    draws = f", {len(values)} draws" if len(values) < len(SEEDS) else ""
    return (f"{np.mean(values):.1f} ± {error:.1f}" if error else f"{np.mean(values):g}") + draws


def table() -> None:
    """One table per SNR. The best array is the shape with the largest mean for the model and SNR."""
    found = counts()
    columns = ("airpass", "airpass-plus, fast", "airpass-plus", "array", "distributed")
    for snr in SNRS_DB:
        print(f"\n| {snr} dB | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for model in MODELS:
            cells = []
            for column in columns:
                labels = [column]
                if column == "array":
                    labels = [f"array {shape}" for shape in SHAPES]
                elif column == "airpass" and (model, snr, column) not in found:
                    labels = [SLOWEST]
                known = {label: found[model, snr, label] for label in labels if (model, snr, label) in found}
                if not known:
                    cells.append("-")
                    continue
                best = max(known, key=lambda label: float(np.mean(known[label])))
                note = {"array": f" ({best[6:]})"}.get(column, "*" if best == SLOWEST else "")
                cells.append(mean(known[best]) + note)
            print(f"| {model} | " + " | ".join(cells) + " |")


@dataclass(frozen=True)
class Shifted(MimoMnPlus):
    """Co-located array that is moved along x."""

    name = "shifted"

    by_m: float = 0.5

    def positions(self, scenario: Scenario) -> Real:
        """Antennas, [x, y, z] in metres."""
        moved: Real = super().positions(scenario) + np.array([self.by_m, 0.0, 0.0])
        return moved


def cells() -> None:
    """Arrays with blockage whose middle is on the border of two stretches, and in the middle of one."""
    for snr, shape in product(SNRS_DB, SHAPES):
        scenarios = [scenario_of(BLOCKAGE, snr, seed) for seed in SEEDS]
        found = (
            mean(
                [
                    design(one, Shifted(axis=shape, by_m=by_m), seed=one.seed).selected_count
                    for one in scenarios
                ]
            )
            for by_m in (0.0, 0.5)
        )
        print(f"{snr} dB, {shape}:", ", moved ".join(found))


def figure() -> None:
    """Draw factors along a waveguide, lines of a device, and rooms with obstacles and places."""
    import channel_pictures

    channel_pictures.draw(FILE.parent.parent / "images")


if __name__ == "__main__":
    {"run": run, "table": table, "cells": cells, "figure": figure}[sys.argv[1]]()
