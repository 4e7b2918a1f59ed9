"""Compare the results of two versions of the package, bit by bit.

    python benchmarks/same_results.py OTHER/src [--python OTHER/.venv/bin/python]

runs the same selections, designs and training runs with this version and with the one in
OTHER/src, each in its own process, and lists all cases whose numbers differ. Numbers are
compared by the SHA-256 of their bytes. Cases marked "rounding" are expected to differ in the last
digits; they are compared with a relative tolerance.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SEEDS = (11, 12)
SMALL, LARGE, LOW = (10, 5, 5, 10.0), (50, 10, 10, 0.0), (50, 10, 10, -10.0)


def digest(*arrays: Any) -> str:
    """Truncated SHA-256 of the bytes of the arrays."""
    import numpy as np

    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def selections() -> Iterator[tuple[str, Any]]:
    """Results of all selection methods at several sizes."""
    import numpy as np

    import airpass

    methods: tuple[tuple[str, dict[str, Any]], ...] = (
        ("hrmc", {}),
        ("hrmc", {"starts": 4}),
        ("hrmc+", {}),
        ("mp", {}),
        ("mp-backward", {}),
        ("random", {}),
    )
    for seed in SEEDS:
        for size in (SMALL, LARGE):
            scenario = airpass.Scenario.paper(*size, seed)
            channels = scenario.channels(scenario.uniform_layout())
            for method, options in methods:
                picked = airpass.select(
                    channels, scenario.weights, scenario.budget, method, options=options, seed=seed
                )
                yield f"select {method} {options} K={size[0]} seed {seed}", digest(picked.beam, picked.scores)
        for method in ("exhaustive", "sdr-dc"):
            scenario = airpass.Scenario.paper(8, 4, 3, 8.0, seed)
            channels = scenario.channels(scenario.uniform_layout())
            picked = airpass.select(channels, scenario.weights, scenario.budget, method, seed=seed)
            yield f"select {method} K=8 seed {seed}", digest(picked.beam, picked.scores)
    for count in (1000, 5000, 20000):
        rng = np.random.default_rng(count)
        channels = rng.standard_normal((16, count)) + 1j * rng.standard_normal((16, count))
        for method, options in (("hrmc", {}), ("hrmc+", {"starts": 1})):
            picked = airpass.select(channels, np.ones(count), 0.5 / np.log(2.0), method, options=options)
            yield f"select {method} K={count}", digest(picked.beam, picked.scores)


def designs() -> Iterator[tuple[str, Any]]:
    """Results of all design methods, and of Algorithm 3 with other building blocks."""
    import airpass

    named = ("airpass", "airpass-mp", "airpass-plus", "mimo-m", "mimo-mn", "mimo-m-plus", "mimo-mn-plus")
    for seed in SEEDS:
        for size in (SMALL, LARGE, LOW):
            scenario = airpass.Scenario.paper(*size, seed)
            for method in named:
                found = airpass.design(scenario, method, seed=seed)
                where = found.layout if found.layout is not None else found.array
                yield (
                    f"design {method} K={size[0]} {size[3]:g} dB seed {seed}",
                    digest(found.beam, found.scores, where, found.channels),
                )
        scenario = airpass.Scenario.paper(*SMALL, seed)
        for selection, geometry in (("hrmc+", "elementwise"), ("mp", "fixed")):
            found = airpass.design(scenario, selection=selection, geometry=geometry, seed=seed)
            yield f"design {selection} with {geometry} seed {seed}", digest(found.beam, found.layout)
        found = airpass.design(scenario, "airpass-sdr-dc", seed=seed, options={"max_iterations": 2})
        yield f"design airpass-sdr-dc seed {seed}", digest(found.beam, found.layout)
        first = airpass.design(scenario, "airpass-plus", seed=seed, options={"effort": "fast"})
        again = airpass.design(
            airpass.Scenario.paper(*SMALL, seed + 1), "airpass-plus", seed=seed, start_layout=first.layout
        )
        yield f"design airpass-plus from a layout, seed {seed}", digest(again.beam, again.layout)
        found = airpass.design(
            airpass.Scenario.paper(*LOW, seed), seed=seed, options={"tolerance_mm": 2.0, "effort": "fast"}
        )
        yield f"rounding: design airpass-plus for 2 mm, seed {seed}", found.scores.tolist()
        errors = airpass.tolerance(found, position_mm=2.0, channel_error=0.01, draws=50, seed=0)
        counts = [outcome.counts.tolist() for outcome in errors.outcomes.values()]
        yield f"rounding: tolerance of it, seed {seed}", counts


def trainings() -> Iterator[tuple[str, Any]]:
    """Training histories on mnist-mini; their convolutions may round differently."""
    import airpass
    from airpass import TrainOptions
    from airpass.learning.aggregation import LinkOptions

    scenario = airpass.Scenario.paper(seed=3)
    design = airpass.design(scenario, "airpass", seed=3)
    cases = {
        "fedavg": (None, TrainOptions(rounds=4, evaluate_every=2)),
        "airpass": (design, TrainOptions(rounds=4, evaluate_every=2)),
        "airpass with errors": (
            design,
            TrainOptions(
                rounds=4, evaluate_every=2, link=LinkOptions(channel_error=0.1, phase_error_deg=5.0)
            ),
        ),
        "airpass, devices drawn anew": (design, TrainOptions(rounds=4, evaluate_every=2, redraw_every=2)),
    }
    for name, (link, options) in cases.items():
        for workers in (1, 2):
            run = airpass.train(
                link, dataset="mnist-mini", seed=3, scenario=scenario, options=options, workers=workers
            )
            last = run.history[-1]
            values = [last.test_loss, last.train_loss, last.predicted_mse, last.measured_mse]
            yield f"rounding: train {name}, {workers} workers", values


def child() -> None:
    """Print all results of the version on the import path as JSON."""
    found: dict[str, Any] = {}
    for kind in (selections, designs, trainings):
        for name, value in kind():
            found[name] = value
            print(name, file=sys.stderr)
    print(json.dumps(found))


def run(source: Path, python: str) -> dict[str, Any]:
    """All results of one version."""
    command = [python, str(HERE), "--child"]
    done = subprocess.run(  # noqa: S603
        command,
        env=os.environ | {"PYTHONPATH": str(source.resolve())},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def largest_difference(first: Any, second: Any) -> float:
    """Largest relative difference of two nested lists of numbers."""
    import numpy as np

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.shape != y.shape:
        return float("inf")
    both_nan = np.isnan(x) & np.isnan(y)
    scale = np.maximum(np.maximum(np.abs(x), np.abs(y)), 1e-12)
    return float(np.max(np.where(both_nan, 0.0, np.abs(x - y) / scale), initial=0.0))


def main() -> None:
    """Run both versions and list the differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", nargs="?", type=Path, help="src folder of the other version")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the other version")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child()
        return
    if given.other is None:
        parser.error("the src folder of the other version is missing")
    here = run(HERE.parent.parent / "src", sys.executable)
    other = run(given.other, given.python)
    same = 0
    for name in here:
        if name.startswith("rounding"):
            print(f"{name}: relative difference {largest_difference(here[name], other[name]):.1e}")
        elif here[name] == other[name]:
            same += 1
        else:
            print(f"{name}: DIFFERS")
    exact = sum(not name.startswith("rounding") for name in here)
    print(f"{same} of {exact} results agree to the last bit")
    sys.exit(same != exact)


if __name__ == "__main__":
    main()
