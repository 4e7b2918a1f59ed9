"""Time of a round of Flower and pfl, with and without aggregation over the air.

    make test-bridges                     # sets up the environments .venv-flower and .venv-pfl
    python benchmarks/bridges.py [--model mnist-cnn] [--rounds 20] [--repeats 5] [--json FILE]

All programs train the same network on the same data with the same mini-batches. A repeat runs each of them
once, in turn, so that all see the same state of the machine. The link selects all clients: with it, as many
train as without. The first round of a program is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOOPS = ROOT / "benchmarks" / "loops"
DATA = ROOT / "src" / "airpass" / "learning" / "data" / "mnist_mini.npz"
PROGRAMS = {
    "Flower": [".venv-flower", "flower_loop.py"],
    "Flower over the air": [".venv-flower", "flower_loop.py", "--air"],
    "pfl": [".venv-pfl", "pfl_loop.py"],
    "pfl over the air": [".venv-pfl", "pfl_loop.py", "--air"],
}


def measured(name: str, words: list[str]) -> dict[str, Any]:
    """Run a program once and return its report."""
    environment, loop, *flags = PROGRAMS[name]
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{environment} is missing: run make test-bridges")
    done = subprocess.run(  # noqa: S603
        [str(python), str(LOOPS / loop), *flags, *words], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def main() -> None:
    """Measure all programs in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="mnist-cnn", choices=("mnist-cnn", "cifar-cnn"))
    parser.add_argument("--data", type=Path, default=DATA, help=".npz file with x_train and y_train")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=ROOT / "runs" / "bridges.json")
    told = parser.parse_args()
    given = {
        "model": told.model,
        "data": told.data,
        "batch": 32,
        "learning-rate": 0.01,
        "clients": told.clients,
        "rounds": told.rounds,
    }
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    reports: dict[str, list[dict[str, Any]]] = {name: [] for name in PROGRAMS}
    for repeat in range(told.repeats):
        for name in PROGRAMS:
            reports[name].append(measured(name, words))
            print(f"repeat {repeat + 1} of {told.repeats}: {name}", file=sys.stderr)
    medians = {
        name: [statistics.median(report["round_s"]) for report in found] for name, found in reports.items()
    }
    print(f"{'':22}{'ms a round':>12}{'least':>9}{'most':>9}{'extra ms':>10}")
    for name, times in medians.items():
        without = medians[name.removesuffix(" over the air")]
        extra = statistics.median(a - b for a, b in zip(times, without, strict=True))
        row = [statistics.median(times), min(times), max(times)]
        cells = [f"{1e3 * value:{width}.1f}" for value, width in zip(row, (12, 9, 9), strict=True)]
        print(f"{name:22}{''.join(cells)}{1e3 * extra if times is not without else 0.0:10.1f}")
    told.json.parent.mkdir(parents=True, exist_ok=True)
    content = {"given": given | {"data": told.data.name}, "processors": os.cpu_count()}
    told.json.write_text(json.dumps({**content, "reports": reports}, indent=1) + "\n")


if __name__ == "__main__":
    main()
