"""All schemes of the paper's comparison on the same draws.

Run: python benchmarks/baselines.py SECTION...

Sections: selection, designs, ratio, subarray, growth (all by default). Prints the Markdown tables of
docs/science/baselines.md. Seeds 0-9; only the starts of mimo-* were chosen on them. `selection` and `designs`
distribute draws over --workers processes of one thread each; times in their tables are per scheme and
draw.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterable, Mapping  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, certify, design, select  # noqa: E402

SEEDS = range(10)
SIZES = ((10, 5, 5), (50, 10, 10))
SNRS_DB = (-10.0, -5.0, 0.0, 5.0, 10.0, 15.0)
Case = tuple[int, int, int, float, int]

SELECTIONS: Mapping[str, dict[str, Any]] = {
    "hrmc": {"method": "hrmc"},
    "hrmc, 16 starts": {"method": "hrmc", "options": {"starts": 16}},
    "sdr-dc": {"method": "sdr-dc"},
    "mp": {"method": "mp"},
    "mp-backward": {"method": "mp-backward"},
    "random": {"method": "random"},
    "exhaustive": {"method": "exhaustive"},
}
DESIGNS: Mapping[str, dict[str, Any]] = {
    "hrmc+fixed": {"selection": "hrmc", "geometry": "fixed"},
    "airpass": {"method": "airpass"},
    "airpass-sdr-dc": {"method": "airpass-sdr-dc"},
    "airpass-mp": {"method": "airpass-mp"},
    "hrmc+elementwise": {"selection": "hrmc", "geometry": "elementwise"},
    "mimo-m, one start": {"method": "mimo-m", "options": {"selection": {"starts": 1}}},
    "mimo-m": {"method": "mimo-m"},
    "mimo-mn, one start": {"method": "mimo-mn", "options": {"selection": {"starts": 1}}},
    "mimo-mn": {"method": "mimo-mn"},
}
Row = dict[str, tuple[int, float]]


def selection_case(case: Case) -> Row:
    """Number of selected devices and seconds of all selection methods at the uniform layout."""
    scenario = Scenario.paper(*case)
    channels = scenario.channels(scenario.uniform_layout())
    row: Row = {}
    for name, how in SELECTIONS.items():
        if name == "exhaustive" and case[0] > 12:
            continue
        select(channels, scenario.weights, scenario.budget, **how) if name != "sdr-dc" else None
        picked = select(channels, scenario.weights, scenario.budget, **how)
        row[name] = (picked.selected_count, picked.seconds)
    began = time.perf_counter()
    bound = int(certify(channels, scenario.weights, budget=scenario.budget).at_most)
    row["upper bound (certificate)"] = (bound, time.perf_counter() - began)
    return row


def design_case(case: Case) -> Row:
    """Number of selected devices and seconds of all named designs."""
    scenario = Scenario.paper(*case)
    row: Row = {}
    for name, how in DESIGNS.items():
        result = design(scenario, **how, seed=0)
        row[name] = (result.selected_count, result.seconds)
    return row


def tables(title: str, measure: Callable[[Case], Row], workers: int) -> None:
    """Print one table per size: mean selected devices by scheme and SNR, and mean seconds over all SNRs."""
    measure((4, 2, 2, 10.0, 0))  # compile
    with ProcessPoolExecutor(workers) as pool:
        for size in SIZES:
            cases = [(*size, snr_db, seed) for snr_db in SNRS_DB for seed in SEEDS]
            rows: list[Row] = []
            for row in pool.map(measure, cases):
                rows.append(row)
                print(f"\r{len(rows)} of {len(cases)}", end="", file=sys.stderr, flush=True)
            print(f"\n### {title}, K={size[0]}, M={size[1]}, N={size[2]}\n")
            print("| scheme | " + " | ".join(f"{snr_db:g} dB" for snr_db in SNRS_DB) + " | seconds |")
            print("|---" * (len(SNRS_DB) + 2) + "|")
            for name in rows[0]:
                counts = np.array([row[name][0] for row in rows]).reshape(len(SNRS_DB), len(SEEDS))
                seconds = np.mean([row[name][1] for row in rows])
                cells = " | ".join(f"{mean:.1f}" for mean in counts.mean(axis=1))
                print(f"| {name} | {cells} | {seconds:.2g} |", flush=True)


def ratio(_: int) -> None:
    """Time HRMC and SDR-DC alternately on the same channels."""
    print("\n### HRMC against SDR-DC, one after the other on the same channels\n")
    print("| K, M, N, SNR | HRMC ms | SDR-DC ms | median ratio (range) | HRMC selects | SDR-DC selects |")
    print("|---|---|---|---|---|---|")
    for case in ((50, 10, 10, -5.0), (50, 10, 10, 0.0), (50, 10, 10, 5.0), (10, 5, 5, 10.0)):
        ours, theirs, counts = [], [], []
        for seed in SEEDS:
            scenario = Scenario.paper(*case, seed)
            channels = scenario.channels(scenario.uniform_layout())
            select(channels, scenario.weights, scenario.budget)
            fast = [select(channels, scenario.weights, scenario.budget) for _ in range(5)]
            slow = select(channels, scenario.weights, scenario.budget, "sdr-dc")
            ours.append(np.median([picked.seconds for picked in fast]))
            theirs.append(slow.seconds)
            counts.append((fast[0].selected_count, slow.selected_count))
        ratios = np.array(theirs) / np.array(ours)
        hrmc, sdr_dc = np.mean(counts, axis=0)
        print(
            f"| {case[0]}, {case[1]}, {case[2]}, {case[3]:g} dB | {1e3 * np.median(ours):.2f} "
            f"| {1e3 * np.median(theirs):.0f} | {np.median(ratios):.0f} ({ratios.min():.0f} to "
            f"{ratios.max():.0f}) | {hrmc:.1f} | {sdr_dc:.1f} |",
            flush=True,
        )


def subarray(_: int) -> None:
    """Count how often HRMC selects fewer devices on the whole array than on a part of it."""
    print("\n### A whole co-located array (M x N = 100) against the M = 10 antennas in its middle\n")
    print("| SNR | starts | part | whole | draws of 20 where the whole selects fewer |")
    print("|---|---|---|---|---|")
    for snr_db in (-10.0, -5.0, 0.0):
        for starts in (1, 2, 4, 16, 64):
            parts: list[int] = []
            wholes: list[int] = []
            for seed in range(20):
                scenario = Scenario.paper(50, 10, 10, snr_db, seed)
                channels = scenario.colocated(100).channels()
                for rows, counts in ((channels[45:55], parts), (channels, wholes)):
                    picked = select(rows, scenario.weights, scenario.budget, options={"starts": starts})
                    counts.append(picked.selected_count)
            short = int((np.array(wholes) < np.array(parts)).sum())
            print(f"| {snr_db:g} dB | {starts} | {np.mean(parts):.1f} | {np.mean(wholes):.1f} | {short} |")


def growth(_: int) -> None:
    """Fit exponents of matching pursuit's time in K and M; for HRMC see suite/growth.py."""
    print("\n### Fitted exponents of the run time\n")
    print("| method | in K (M = 10) | in M (K = 200) |")
    print("|---|---|---|")
    for method in ("mp", "mp-backward"):
        exponents = []
        for sizes in ([(10, k) for k in (400, 800, 1600, 3200)], [(m, 200) for m in (16, 32, 64, 128)]):
            axis, seconds = [], []
            for chains, count in sizes:
                # All devices are feasible, so that matching pursuit schedules all K.
                rng = np.random.default_rng(0)
                line = rng.standard_normal(chains) + 1j * rng.standard_normal(chains)
                spread = rng.standard_normal((chains, count)) + 1j * rng.standard_normal((chains, count))
                channels = line[:, None] + 0.05 * spread
                if method == "mp-backward":
                    channels = spread  # few devices are feasible: nearly all are dropped
                budget = 100.0 / chains if method != "mp-backward" else 1.0 / chains
                results = [select(channels, np.ones(count), budget, method) for _ in range(4)][1:]
                seconds.append(np.median([picked.seconds for picked in results]))
                axis.append(chains if count == 200 and len({c for _, c in sizes}) == 1 else count)
            exponents.append(np.polyfit(np.log(axis), np.log(seconds), 1)[0])
        print(f"| {method} | {exponents[0]:.2f} | {exponents[1]:.2f} |", flush=True)


SECTIONS: Mapping[str, Callable[[int], None]] = {
    "selection": lambda workers: tables("Selection at the uniform layout", selection_case, workers),
    "designs": lambda workers: tables("Complete designs", design_case, workers),
    "ratio": ratio,
    "subarray": subarray,
    "growth": growth,
}


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the requested sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sections", nargs="*", choices=[*SECTIONS, []], help="sections to measure (default: all)"
    )
    parser.add_argument("--workers", type=int, default=2, help="number of processes for the tables")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    for section in chosen.sections or SECTIONS:
        SECTIONS[section](chosen.workers)


if __name__ == "__main__":
    main()
