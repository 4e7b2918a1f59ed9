"""Compare two versions of the package side by side.

    python benchmarks/against.py OTHER/src [--python OTHER/.venv/bin/python] [--turns 15]

starts one process per version and runs the same selections, designs and training rounds in them,
alternately. Prints the median time of both and the ratio of this version to the other: medians of
the ratios of neighbouring turns, with the range of the middle half. For selections and designs it also
prints the mean number of selected devices of both and the mean difference with its standard error over
the draws, and for draws with equal numbers the mean ratio of the weakest scores. `--first-seed` and `--draws`
set the draws, `--json` stores all values.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Outcome = dict[str, Any]  # seconds; selected devices and weakest score of every draw, if there are any

HERE = Path(__file__).resolve()
SOURCE = HERE.parent.parent / "src"


def cases(first_seed: int, draws: int | None) -> dict[str, Callable[[], Outcome]]:
    """Name and a function that runs a case once."""
    import airpass
    from airpass import TrainOptions

    def outcome(seconds: float, found: list[Any]) -> Outcome:
        return {
            "seconds": seconds,
            "selected": [one.selected_count for one in found],
            "weakest": [one.weakest_score for one in found],
        }

    def paper(size: tuple[int, int, int, float], usual: int) -> list[airpass.Scenario]:
        seeds = range(first_seed, first_seed + (usual if draws is None else draws))
        return [airpass.Scenario.paper(*size, seed) for seed in seeds]

    def selection(
        size: tuple[int, int, int, float], method: str, repeats: int, **options: Any
    ) -> Callable[[], Outcome]:
        scenarios = paper(size, 10)
        channels = [scenario.channels(scenario.uniform_layout()) for scenario in scenarios]

        def call() -> Outcome:
            began = time.thread_time()
            for _ in range(repeats):
                found = [
                    airpass.select(matrix, scenario.weights, scenario.budget, method, options=options)
                    for scenario, matrix in zip(scenarios, channels, strict=True)
                ]
            return outcome((time.thread_time() - began) / (len(scenarios) * repeats), found)

        return call

    def design(
        size: tuple[int, int, int, float], method: str, usual: int, **options: Any
    ) -> Callable[[], Outcome]:
        scenarios = paper(size, usual)

        def call() -> Outcome:
            began = time.perf_counter()
            found = [airpass.design(scenario, method, options=options, seed=0) for scenario in scenarios]
            return outcome((time.perf_counter() - began) / len(scenarios), found)

        return call

    def rounds(workers: int) -> Callable[[], Outcome]:
        scenario = airpass.Scenario.paper(seed=1)
        options = TrainOptions(rounds=40, evaluate_every=40)

        def call() -> Outcome:
            run = airpass.train(
                None, dataset="mnist-mini", seed=1, scenario=scenario, options=options, workers=workers
            )
            first, last = run.history[0], run.history[-1]
            return outcome((last.seconds - first.seconds) / 40, [])

        return call

    def large(count: int) -> Callable[[], Outcome]:
        import numpy as np

        rng = np.random.default_rng(count)
        channels = rng.standard_normal((16, count)) + 1j * rng.standard_normal((16, count))
        weights, budget = np.ones(count), 0.5 / np.log(2.0)

        def call() -> Outcome:
            began = time.perf_counter()
            found = airpass.select(channels, weights, budget)
            return outcome(time.perf_counter() - began, [found])

        return call

    return {
        "hrmc, K = 50": selection((50, 10, 10, 0.0), "hrmc", 10),
        "hrmc, K = 1,000": large(1000),
        "hrmc, K = 100,000": large(100_000),
        "hrmc+, K = 50": selection((50, 10, 10, 0.0), "hrmc+", 1),
        "hrmc+, K = 50, -5 dB": selection((50, 10, 10, -5.0), "hrmc+", 1),
        "hrmc+, K = 50, 5 dB": selection((50, 10, 10, 5.0), "hrmc+", 1),
        "hrmc+, K = 50, one start": selection((50, 10, 10, 0.0), "hrmc+", 1, starts=1),
        "hrmc+, K = 10": selection((10, 5, 5, 10.0), "hrmc+", 1),
        "hrmc+, K = 500, -15 dB": selection((500, 10, 10, -15.0), "hrmc+", 1),
        "hrmc+, K = 500, -10 dB": selection((500, 10, 10, -10.0), "hrmc+", 1),
        "mp, K = 50": selection((50, 10, 10, 0.0), "mp", 10),
        "airpass, K = 10": design((10, 5, 5, 10.0), "airpass", 10),
        "airpass, K = 50": design((50, 10, 10, 0.0), "airpass", 3),
        "airpass-plus, K = 10": design((10, 5, 5, 10.0), "airpass-plus", 10),
        "airpass-plus fast, K = 50, -10 dB": design((50, 10, 10, -10.0), "airpass-plus", 2, effort="fast"),
        "mimo-mn-plus, K = 50": design((50, 10, 10, -5.0), "mimo-mn-plus", 2),
        "mimo-mn-plus, K = 50, -10 dB": design((50, 10, 10, -10.0), "mimo-mn-plus", 2),
        "round, mnist-mini, 1 worker": rounds(1),
        f"round, mnist-mini, {os.cpu_count()} workers": rounds(os.cpu_count() or 1),
    }


def child(first_seed: int, draws: int | None) -> None:
    """Execute the cases that are named on standard input, and print their outcomes."""
    known = cases(first_seed, draws)
    print(*known, sep=";", flush=True)
    for line in sys.stdin:
        print(json.dumps(known[line.strip()]()), flush=True)


class Version:
    """One version of the package in a process of its own."""

    def __init__(self, source: Path, python: str, arguments: list[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [python, str(HERE), "--child", *arguments],
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

    def run(self, case: str) -> Outcome:
        """Execute a case once."""
        assert self._process.stdin is not None
        print(case, file=self._process.stdin, flush=True)
        outcome: Outcome = json.loads(self._read())
        return outcome


def devices(ours: Outcome, theirs: Outcome) -> str:
    """Mean numbers of devices, their difference, and the ratio of the weakest scores, as text."""
    import numpy as np

    here, there = np.array(ours["selected"]), np.array(theirs["selected"])
    if here.size < 2:
        return ""
    more = here - there
    error = np.std(more, ddof=1) / more.size**0.5
    text = f"   {here.mean():.2f} and {there.mean():.2f}: {more.mean():+.2f} ± {error:.2f}"
    same = more == 0
    if same.any():
        ratios = np.array(ours["weakest"])[same] / np.array(theirs["weakest"])[same]
        text += f", weakest {ratios.mean():.3f}"
    return text


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", nargs="?", type=Path, help="src folder of the other version")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the other version")
    parser.add_argument("--turns", type=int, default=15, help="executions of each case")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--draws", type=int, help="draws of each case; default: 2 to 10")
    parser.add_argument("--json", type=Path, help="file for all outcomes")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.first_seed, given.draws)
        return
    if given.other is None:
        parser.error("the src folder of the other version is missing")
    import numpy as np

    arguments = ["--first-seed", str(given.first_seed)]
    if given.draws is not None:
        arguments += ["--draws", str(given.draws)]
    here = Version(SOURCE, sys.executable, arguments)
    other = Version(given.other, given.python, arguments)
    outcomes: dict[str, Any] = {}
    print(f"{'case':36}{'this':>12}{'other':>12}{'ratio':>8}   middle half      devices")
    for case in here.cases:
        if given.only not in case:
            continue
        pairs = []
        for turn in range(given.turns + 1):
            order = (here, other) if turn % 2 else (other, here)
            taken = {version: version.run(case) for version in order}
            if turn:  # the first execution may compile
                pairs.append((taken[here], taken[other]))
        ours, theirs = np.array([[one["seconds"] for one in pair] for pair in pairs]).T
        low, middle, high = np.quantile(ours / theirs, (0.25, 0.5, 0.75))
        print(
            f"{case:36}{1e3 * np.median(ours):9.3g} ms{1e3 * np.median(theirs):9.3g} ms{middle:8.3f}"
            f"   {low:.3f} to {high:.3f}{devices(*pairs[-1])}",
            flush=True,
        )
        outcomes[case] = {
            "this": pairs[-1][0] | {"seconds": ours.tolist()},
            "other": pairs[-1][1] | {"seconds": theirs.tolist()},
        }
    if given.json:
        given.json.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    main()
