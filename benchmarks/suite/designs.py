"""Designs per second in a Monte Carlo study, with draws distributed over single-threaded processes."""

import multiprocessing
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from airpass import Scenario, design
from airpass.core.threads import processors
from suite.measure import Section, Table

METHODS = {"airpass": 24, "airpass-plus": 8}  # draws per repetition
REPEATS = 3


def one(method: str, snr_db: float, seed: int) -> int:
    """Number of devices selected by one design, K = 50, M = N = 10."""
    options = {"threads": 1} if method == "airpass-plus" else {}
    return design(Scenario.paper(50, 10, 10, snr_db, seed), method, options=options).selected_count


def run() -> Section:
    """Alternate between one process and one process per core."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"  # inherited by the processes
    rows = []
    cores = processors()
    context = multiprocessing.get_context("spawn")
    for method, draws in METHODS.items():
        for snr_db in (-5.0, 0.0):
            work = partial(one, method, snr_db)
            rates: tuple[list[float], list[float]] = ([], [])
            found: list[int] = []
            with ProcessPoolExecutor(1, context) as single, ProcessPoolExecutor(cores, context) as several:
                for pool in (single, several):  # warm-up: imports, and kernels from the cache
                    list(pool.map(work, range(1000, 1000 + cores)))
                for _ in range(REPEATS):
                    for pool, rate in zip((single, several), rates, strict=True):
                        began = time.perf_counter()
                        found = list(pool.map(work, range(draws)))
                        rate.append(draws / (time.perf_counter() - began))
            alone, together = map(statistics.median, rates)
            rows.append(
                (
                    method,
                    f"{snr_db:g} dB",
                    f"{statistics.mean(found):.1f}",
                    f"{alone:.3g}",
                    f"{together:.3g}",
                    f"{together / alone:.2f}",
                )
            )
    return Section(
        "Complete designs per second",
        "Devices, beam and antenna layout are optimised; K = 50, M = N = 10, seeds from 0, one thread per "
        "design.",
        tables=[
            Table(
                "Monte Carlo",
                (
                    "method",
                    "SNR",
                    "selected",
                    "designs/s, one process",
                    f"designs/s, {cores} cores",
                    "speed-up",
                ),
                rows,
            )
        ],
    )
