"""Time two versions of the package side by side.

    python benchmarks/against.py OTHER/src [--python OTHER/.venv/bin/python] [--turns 15]

starts one process per version and runs the same selections, designs and training rounds in them,
alternately. Prints the median time of both and the ratio of this version to the other: medians of
the ratios of neighbouring turns, with the range of the middle half.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SOURCE = HERE.parent.parent / "src"


def cases() -> dict[str, Callable[[], float]]:
    """Name and a function that returns the seconds of one execution."""
    import airpass
    from airpass import TrainOptions

    def selection(size: tuple[int, int, int, float], method: str, repeats: int) -> Callable[[], float]:
        scenarios = [airpass.Scenario.paper(*size, seed) for seed in range(10)]
        channels = [scenario.channels(scenario.uniform_layout()) for scenario in scenarios]

        def call() -> float:
            began = time.perf_counter()
            for _ in range(repeats):
                for scenario, matrix in zip(scenarios, channels, strict=True):
                    airpass.select(matrix, scenario.weights, scenario.budget, method)
            return (time.perf_counter() - began) / (10 * repeats)

        return call

    def design(
        size: tuple[int, int, int, float], method: str, seeds: int, **options: Any
    ) -> Callable[[], float]:
        scenarios = [airpass.Scenario.paper(*size, seed) for seed in range(seeds)]

        def call() -> float:
            began = time.perf_counter()
            for scenario in scenarios:
                airpass.design(scenario, method, options=options, seed=0)
            return (time.perf_counter() - began) / seeds

        return call

    def rounds(workers: int) -> Callable[[], float]:
        scenario = airpass.Scenario.paper(seed=1)
        options = TrainOptions(rounds=40, evaluate_every=40)

        def call() -> float:
            run = airpass.train(
                None, dataset="mnist-mini", seed=1, scenario=scenario, options=options, workers=workers
            )
            first, last = run.history[0], run.history[-1]
            return (last.seconds - first.seconds) / 40

        return call

    def large(count: int) -> Callable[[], float]:
        import numpy as np

        rng = np.random.default_rng(count)
        channels = rng.standard_normal((16, count)) + 1j * rng.standard_normal((16, count))
        weights, budget = np.ones(count), 0.5 / np.log(2.0)

        def call() -> float:
            began = time.perf_counter()
            airpass.select(channels, weights, budget)
            return time.perf_counter() - began

        return call

    return {
        "hrmc, K = 50": selection((50, 10, 10, 0.0), "hrmc", 10),
        "hrmc, K = 1,000": large(1000),
        "hrmc, K = 100,000": large(100_000),
        "hrmc+, K = 50": selection((50, 10, 10, 0.0), "hrmc+", 1),
        "mp, K = 50": selection((50, 10, 10, 0.0), "mp", 10),
        "airpass, K = 10": design((10, 5, 5, 10.0), "airpass", 10),
        "airpass, K = 50": design((50, 10, 10, 0.0), "airpass", 3),
        "airpass-plus, K = 10": design((10, 5, 5, 10.0), "airpass-plus", 10),
        "airpass-plus fast, K = 50, -10 dB": design((50, 10, 10, -10.0), "airpass-plus", 2, effort="fast"),
        "mimo-mn-plus, K = 50": design((50, 10, 10, -5.0), "mimo-mn-plus", 2),
        "round, mnist-mini, 1 worker": rounds(1),
        f"round, mnist-mini, {os.cpu_count()} workers": rounds(os.cpu_count() or 1),
    }


def child() -> None:
    """Execute the cases that are named on standard input, and print their seconds."""
    known = cases()
    print(*known, sep=";", flush=True)
    for line in sys.stdin:
        print(known[line.strip()](), flush=True)


class Version:
    """One version of the package in a process of its own."""

    def __init__(self, source: Path, python: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [python, str(HERE), "--child"],
            env=os.environ | {"PYTHONPATH": str(source.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.cases = self._read().split(";")

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a version ended early")
        return line.strip()

    def seconds(self, case: str) -> float:
        """Execute a case once."""
        assert self._process.stdin is not None
        print(case, file=self._process.stdin, flush=True)
        return float(self._read())


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", nargs="?", type=Path, help="src folder of the other version")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the other version")
    parser.add_argument("--turns", type=int, default=15, help="executions of each case")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child()
        return
    if given.other is None:
        parser.error("the src folder of the other version is missing")
    import numpy as np

    here, other = Version(SOURCE, sys.executable), Version(given.other, given.python)
    print(f"{'case':36}{'this':>12}{'other':>12}{'ratio':>8}   middle half")
    for case in here.cases:
        if given.only not in case:
            continue
        pairs = []
        for turn in range(given.turns + 1):
            order = (here, other) if turn % 2 else (other, here)
            taken = {version: version.seconds(case) for version in order}
            if turn:  # the first execution may compile
                pairs.append((taken[here], taken[other]))
        ours, theirs = np.array(pairs).T
        low, middle, high = np.quantile(ours / theirs, (0.25, 0.5, 0.75))
        print(
            f"{case:36}{1e3 * np.median(ours):9.3g} ms{1e3 * np.median(theirs):9.3g} ms{middle:8.3f}"
            f"   {low:.3f} to {high:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
