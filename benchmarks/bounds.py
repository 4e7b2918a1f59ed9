"""Bounds over all layouts against designs.

Run: python benchmarks/bounds.py [--draws 3] [--effort default]

Prints the first table of docs/science/bounds.md: means over draws, whose seeds start at 3000.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, design  # noqa: E402
from airpass.designs.bounds import certify_design, certify_layouts  # noqa: E402
from airpass.designs.plus import AirpassPlus  # noqa: E402

FIRST_SEED = 3000
CASES = (
    *((50, 10, 10, snr_db) for snr_db in (-22.0, -20.0, -18.0, -16.0, -15.0, -10.0, -5.0)),
    *((10, 5, 5, snr_db) for snr_db in (-5.0, -2.0, 0.0, 2.0, 5.0)),
)
ARGUMENTS = ("single", "amplitudes", "cases", "correlations")


def main() -> None:
    """Print a row per set-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--effort", default="default")
    arguments = parser.parse_args()
    certify_layouts(Scenario.paper(6, 2, 2, 0.0))  # compile
    heads = [
        "K, M=N, SNR",
        "airpass-plus",
        "any beam, its layout",
        *ARGUMENTS,
        "any beam and layout",
        "seconds",
    ]
    print("|", " | ".join(heads), "|")
    print("|---" * len(heads) + "|")
    for devices, waveguides, antennas, snr_db in CASES:
        rows = []
        for seed in range(FIRST_SEED, FIRST_SEED + arguments.draws):
            scenario = Scenario.paper(devices, waveguides, antennas, snr_db, seed)
            found = design(scenario, AirpassPlus(effort=arguments.effort))
            began = time.thread_time()
            certificate, everywhere = certify_design(found)
            seconds = time.thread_time() - began
            assert everywhere is not None
            named = [everywhere.bounds[name] for name in ARGUMENTS]
            rows.append([found.selected_count, certificate.at_most, *named, everywhere.at_most, seconds])
        table = np.array([[np.nan if value is None else value for value in row] for row in rows])
        means = ["-" if np.isnan(column).any() else f"{column.mean():.1f}" for column in table.T]
        print(f"| {devices}, {waveguides}, {snr_db:g} dB |", " | ".join(means), "|", flush=True)


if __name__ == "__main__":
    main()
