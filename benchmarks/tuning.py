"""Measurements behind the defaults that the paper does not give.

Run: python benchmarks/tuning.py > table.md

Each row changes one default. Seeds start at 1000; no reported result uses them. Prints the Markdown
tables of docs/science/tuning.md.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import time  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, design, select  # noqa: E402

SELECTION_SEEDS = range(1000, 1080)
DESIGN_SEEDS = range(1000, 1020)
SELECTION_CASES = ((50, 10, 10, -5.0), (50, 10, 10, 0.0), (50, 10, 10, 5.0), (10, 5, 5, 10.0))
DESIGN_CASES = ((50, 10, 10, -5.0), (50, 10, 10, 0.0), (10, 5, 5, 10.0))
Options = Mapping[str, Any]

HRMC: Sequence[tuple[str, Options]] = (
    ("defaults", {}),
    *((f"κ_β = {v}", {"sharpness_growth": v}) for v in (1.5, 3.0)),
    *((f"κ_μ = {v}", {"level_shrink": v}) for v in (1.05, 1.2, 1.5)),
    ("κ_β = κ_μ = 1.5", {"sharpness_growth": 1.5, "level_shrink": 1.5}),
    ("κ_β = κ_μ = 1.5, ε_w = 0.01, δ = 0.1", {
        "sharpness_growth": 1.5, "level_shrink": 1.5, "reweight_floor": 0.01, "margin": 0.1,
    }),
    *((f"ε_w = {v}", {"reweight_floor": v}) for v in (0.01, 1.0)),
    *((f"δ = {v}", {"margin": v}) for v in (0.1, 0.2, 0.4, 0.5)),
    *((f"tolerance = {v:g}", {"tolerance": v}) for v in (1e-4, 1e-5, 1e-7)),
    *((f"CG iterations per stage ≤ {v}", {"stage_iterations": v}) for v in (20, 50, 200)),
    *((f"starts = {v}", {"starts": v}) for v in (4, 16, 64)),
)  # fmt: skip

AIRPASS: Sequence[tuple[str, Options]] = (
    ("defaults", {}),
    ("τ in units of h/φ², as printed", {"geometry": {"unit": "gain"}}),
    *((f"HAGO iterations ≤ {v}", {"geometry": {"max_iterations": v}}) for v in (30, 100, 300)),
    *((f"HAGO tolerance = {v:g}", {"geometry": {"tolerance": v}}) for v in (1e-4, 1e-5)),
    *((f"HAGO with the last {v} steps (quasi-Newton)", {"geometry": {"memory": v}}) for v in (4, 8, 20)),
    *((f"rounds ≤ {v}", {"max_iterations": v}) for v in (6, 20, 40)),
    *((f"patience = {v}", {"patience": v}) for v in (3, 5, 20)),
    ("HRMC starts = 16", {"selection": {"starts": 16}}),
)


def table(
    title: str, cases: Sequence[tuple[int, int, int, float]], rows: Sequence[tuple[str, list[str]]]
) -> None:
    """Print one Markdown table."""
    names = [f"K={k}, M={m}, N={n}, {snr:g} dB" for k, m, n, snr in cases]
    print(f"\n| {title} | {' | '.join(names)} |")
    print("|---" * (len(names) + 1) + "|")
    for name, cells in rows:
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def selection_row(options: Options) -> list[str]:
    """Mean selected devices and milliseconds at the uniform layout, per case."""
    cells = []
    for case in SELECTION_CASES:
        counts, seconds = [], []
        for seed in SELECTION_SEEDS:
            scenario = Scenario.paper(*case, seed)
            channels = scenario.channels(scenario.uniform_layout())
            began = time.perf_counter()
            picked = select(channels, scenario.weights, scenario.budget, options=options)
            seconds.append(time.perf_counter() - began)
            counts.append(picked.selected_count)
        cells.append(f"{np.mean(counts):.2f} ({1e3 * np.median(seconds):.1f} ms)")
    return cells


def design_row(options: Options) -> list[str]:
    """Mean selected devices and milliseconds of complete designs, per case."""
    cells = []
    for case in DESIGN_CASES:
        results = [
            design(Scenario.paper(*case, seed), "airpass", options=options, seed=0) for seed in DESIGN_SEEDS
        ]
        count = np.mean([result.selected_count for result in results])
        cells.append(f"{count:.2f} ({1e3 * np.mean([result.seconds for result in results]):.0f} ms)")
    return cells


if __name__ == "__main__":
    design(Scenario.paper(), "airpass")  # compile
    table("HRMC at the uniform layout", SELECTION_CASES, [(name, selection_row(o)) for name, o in HRMC])
    table("AirPASS", DESIGN_CASES, [(name, design_row(o)) for name, o in AIRPASS])
