"""The preset `indoor-28ghz`: selected devices and time of all receivers, and position errors.

    python benchmarks/link_budget.py run      # appends missing rows to docs/data/link-budget.csv
    python benchmarks/link_budget.py table    # prints the tables of docs/howto/link-budget.md

Seeds from 9100 on, which nothing was tuned on. Times are processor times of one thread, without compilation.
Rows are stored one by one; a run that was interrupted continues.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import csv  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, design, tolerance  # noqa: E402
from airpass.designs.alternating import Airpass  # noqa: E402
from airpass.designs.base import DesignMethod  # noqa: E402
from airpass.designs.colocated import MimoMnPlus, MimoMPlus  # noqa: E402
from airpass.designs.distributed import DistributedMn  # noqa: E402
from airpass.designs.plus import AirpassPlus  # noqa: E402

PRESET = "indoor-28ghz"
FILE = Path(__file__).parent.parent / "docs" / "data" / "link-budget.csv"
SEEDS = range(9100, 9110)
POWERS_DBM = (-20, -15, -12, -10, -5, 0, 10)
ERRORS_MM = (0.1, 0.3, 1.0)
SHAPES = ("x", "y", "z", "xy", "xz", "yz")
FIELDS = ("power_dbm", "seed", "scheme", "error_mm", "selected", "median_snr_db", "sdr_db", "seconds")
RECEIVERS = ("as designed", "rescaled", "re-solved")
COUNTS = tuple(f"{name} count" for name in RECEIVERS)
PLUS, FAST, ROBUST = "airpass-plus", "airpass-plus, fast", "airpass-plus, robust"
ARRAY = "MN array xz, hrmc+"


def schemes() -> dict[str, DesignMethod]:
    """Label and method."""
    return {
        PLUS: AirpassPlus(threads=1),
        FAST: AirpassPlus(effort="fast", threads=1),
        "airpass": Airpass(),
        **{f"MN array {shape}, hrmc+": MimoMnPlus(axis=shape) for shape in SHAPES},
        "M array z, hrmc+": MimoMPlus(axis="z"),
        "MN distributed, hrmc+": DistributedMn(),
    }


def cases() -> Iterator[tuple[float, int, str, float, DesignMethod]]:
    """Power, seed, label, position error and method of every row."""
    for seed in SEEDS:
        for power in POWERS_DBM:
            for label, method in schemes().items():
                yield power, seed, label, 0.0, method
        for error in ERRORS_MM:
            yield -10, seed, PLUS, error, AirpassPlus(threads=1)
            yield -10, seed, ROBUST, error, AirpassPlus(threads=1, tolerance_mm=error)
            yield -10, seed, ARRAY, error, MimoMnPlus(axis="xz")


def rows() -> list[dict[str, str]]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def row(power: float, seed: int, label: str, error: float, method: DesignMethod) -> dict[str, Any]:
    """Design, and measure position errors if there are any."""
    scenario = Scenario.preset(PRESET, seed=seed).with_radio(power_dbm=power)
    began = time.process_time()
    found = design(scenario, method)
    seconds = max(0.0, time.process_time() - began - found.compile_seconds)
    counts: list[Any] = [""] * len(RECEIVERS)
    if error > 0.0:
        outcomes = tolerance(found, position_mm=error).outcomes
        counts = [f"{outcomes[name].mean:.3f}" for name in RECEIVERS]
    values = (found.selected_count, f"{found.median_snr_db:.3f}", f"{found.sdr_db:.3f}", f"{seconds:.4f}")
    return dict(zip((*FIELDS, *COUNTS), (power, seed, label, error, *values, *counts), strict=True))


def run() -> None:
    """Compute what is missing."""
    done = {tuple(one[name] for name in FIELDS[:4]) for one in rows()}
    fresh = not FILE.exists()
    for method in schemes().values():  # compile
        design(Scenario.preset(PRESET, 5, 2, 2), method)
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, (*FIELDS, *COUNTS), lineterminator="\n")
        if fresh:
            writer.writeheader()
        for case in cases():
            if tuple(map(str, case[:4])) not in done:
                writer.writerow(row(*case))
                file.flush()


def table() -> None:
    """Means over the seeds."""
    found: dict[tuple[float, str, float], list[dict[str, str]]] = {}
    for one in rows():
        found.setdefault((float(one["power_dbm"]), one["scheme"], float(one["error_mm"])), []).append(one)

    def mean(key: tuple[float, str, float], name: str) -> float:
        return float(np.mean([float(one[name]) for one in found[key]]))

    print("| | " + " | ".join(f"{power} dBm" for power in POWERS_DBM) + " | time at -10 dBm |")
    print("|---" * (len(POWERS_DBM) + 2) + "|")
    for label in schemes():
        cells = [f"{mean((power, label, 0.0), 'selected'):.1f}" for power in POWERS_DBM]
        times = [float(one["seconds"]) for one in found[-10, label, 0.0]]
        print(f"| {label} | " + " | ".join(cells) + f" | {min(times):.2f} to {max(times):.2f} s |")
    for label in (PLUS, FAST):
        best = max(
            (name for name in schemes() if "array" in name),
            key=lambda name: mean((-10, name, 0.0), "selected"),
        )
        pairs = zip(found[-10, label, 0.0], found[-10, best, 0.0], strict=True)
        gain = [float(one["selected"]) - float(other["selected"]) for one, other in pairs]
        error = np.std(gain, ddof=1) / np.sqrt(len(gain))
        print(f"\n{label} minus {best} at -10 dBm: {np.mean(gain):.1f} ± {error:.1f} (standard error)")
    snr = mean((-10, PLUS, 0.0), "median_snr_db")
    print(
        f"median device of {PLUS} at -10 dBm: {snr:.1f} dB; SDR {mean((-10, PLUS, 0.0), 'sdr_db'):.1f} dB\n"
    )
    print("| error | design | nominal | " + " | ".join(RECEIVERS) + " |")
    print("|---" * 6 + "|")
    for error_mm in ERRORS_MM:
        for label in (PLUS, ROBUST, ARRAY):
            key = (-10.0, label, error_mm)
            cells = [f"{mean(key, name):.1f}" for name in ("selected", *COUNTS)]
            print(f"| {error_mm:g} mm | {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]]()
