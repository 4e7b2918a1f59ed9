"""Selected devices of fixed arrays, and of movable antennas on the same draws.

    python benchmarks/arrays.py run      # appends missing rows to docs/data/arrays.csv
    python benchmarks/arrays.py table    # prints means and paired differences

K = 50, M = N = 10, SEEDS draws that no default was tuned on. Rows are stored one by one; a run that was
interrupted continues. `share` and `energy` are the normalisations of the weights.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from airpass import Scenario, design
from airpass.designs.alternating import Airpass
from airpass.designs.base import DesignMethod
from airpass.designs.colocated import MimoM, MimoMn, MimoMnPlus
from airpass.designs.distributed import DistributedM, DistributedMn
from airpass.designs.plus import AirpassPlus
from airpass.geometry.hago import Hago
from airpass.selection.hrmc import Hrmc

FILE = Path(__file__).parent.parent / "docs" / "data" / "arrays.csv"
SEEDS = range(5000, 5020)
SNRS_DB = {"share": (-20, -15, -10, -5, 0, 5), "energy": (-5, 0, 5, 10, 15, 20)}
FIELDS = ("normalisation", "snr_db", "seed", "scheme", "selected", "sdr_db", "status", "seconds")
# One start each, as in the paper; 16 starts each.
PAIRS = (
    ("airpass", "MN array x, hrmc"),
    ("airpass", "MN array z, hrmc"),
    ("airpass", "M array x, hrmc"),
    ("airpass, 16 starts", "MN array x, hrmc 16"),
    ("airpass, 16 starts", "MN array z, hrmc 16"),
)
SHAPES = ("x", "y", "z", "xy", "xz", "yz")


def schemes() -> dict[str, DesignMethod]:
    """Label and method."""
    return {
        **{f"MN array {shape}, hrmc+": MimoMnPlus(axis=shape) for shape in SHAPES},
        **{f"MN array {shape}, hrmc": MimoMn(axis=shape, selection=Hrmc()) for shape in ("x", "z")},
        **{f"MN array {shape}, hrmc 16": MimoMn(axis=shape) for shape in ("x", "z")},
        "M array x, hrmc": MimoM(selection=Hrmc()),
        "MN distributed, hrmc+": DistributedMn(),
        "M distributed, hrmc+": DistributedM(),
        "airpass": Airpass(),
        "airpass, 16 starts": Airpass(selection=Hrmc(starts=16)),
        "airpass, quasi-Newton": Airpass(geometry=Hago(memory=8)),
        "airpass, quasi-Newton, 16 starts": Airpass(selection=Hrmc(starts=16), geometry=Hago(memory=8)),
        "airpass, at most 100 steps": Airpass(max_iterations=40, geometry=Hago(max_iterations=100)),
        "airpass-plus": AirpassPlus(threads=1),
    }


def rows() -> list[dict[str, str]]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Compute what is missing."""
    done = {(row["normalisation"], row["snr_db"], row["seed"], row["scheme"]) for row in rows()}
    fresh = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if fresh:
            writer.writeheader()
        for seed in SEEDS:
            for normalisation, snrs in SNRS_DB.items():
                for snr_db in snrs:
                    tables = {
                        "receiver": {"waveguides": 10, "antennas": 10},
                        "radio": {"snr_db": float(snr_db)},
                        "devices": {"count": 50, "seed": seed},
                        "weights": {"normalisation": normalisation},
                    }
                    scenario = Scenario.from_dict(tables)
                    for label, method in schemes().items():
                        if (normalisation, str(snr_db), str(seed), label) in done:
                            continue
                        found = design(scenario, method, seed=seed)
                        values = (found.selected_count, f"{found.sdr_db:.3f}", found.status)
                        writer.writerow(
                            dict(
                                zip(
                                    FIELDS,
                                    (normalisation, snr_db, seed, label, *values, f"{found.seconds:.4f}"),
                                    strict=True,
                                )
                            )
                        )
                        file.flush()


def table() -> None:
    """Means with half-widths of 95 % confidence intervals, and airpass-plus minus the best array."""
    from scipy import stats

    found: dict[tuple[str, int, str], dict[int, float]] = {}
    for row in rows():
        key = (row["normalisation"], int(row["snr_db"]), row["scheme"])
        found.setdefault(key, {})[int(row["seed"])] = float(row["selected"])

    def mean(values: list[float]) -> str:
        if len(values) < 2:
            return "-"
        half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
        return f"{np.mean(values):.1f} ± {half:.1f}"

    for normalisation, snrs in SNRS_DB.items():
        print(f"\n| {normalisation} | " + " | ".join(f"{snr} dB" for snr in snrs) + " |")
        print("|---" * (len(snrs) + 1) + "|")
        for label in schemes():
            cells = [mean(list(found.get((normalisation, snr, label), {}).values())) for snr in snrs]
            print(f"| {label} | " + " | ".join(cells) + " |")
        for first, second in PAIRS:
            pairs = [
                [found.get((normalisation, snr, label), {}) for label in (first, second)] for snr in snrs
            ]
            cells = [mean([one[seed] - other[seed] for seed in one if seed in other]) for one, other in pairs]
            print(f"| {first} minus {second} | " + " | ".join(cells) + " |")
        cells, names = [], []
        for snr in snrs:
            arrays = {
                label: found[normalisation, snr, label]
                for label in schemes()
                if "array" in label and (normalisation, snr, label) in found
            }
            plus = found.get((normalisation, snr, "airpass-plus"), {})
            if not arrays or not plus:
                continue
            best = max(arrays, key=lambda label: float(np.mean(list(arrays[label].values()))))
            names.append(best)
            cells.append(mean([plus[seed] - arrays[best][seed] for seed in plus if seed in arrays[best]]))
        print("| airpass-plus minus the best array | " + " | ".join(cells) + " |")
        print("| best array | " + " | ".join(names) + " |")
    for label in schemes():
        statuses = [row["status"] for row in rows() if row["scheme"] == label]
        limited = sum("limit" in status for status in statuses)
        if limited:
            print(f"\n{label}: {limited} of {len(statuses)} designs reached an iteration limit")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]]()
