"""Selected devices against SNR, with 16 subcarriers in 5 MHz.

    python benchmarks/ofdm_snr.py run      # appends missing rows to docs/data/ofdm-snr.csv (ten minutes)
    python benchmarks/ofdm_snr.py table    # prints the table of docs/howto/ofdm.md

Size and seeds are those of `ofdm.py`. Besides its schemes there is Algorithm 3, which designs for the centre
frequency.
"""

import csv
import sys
from dataclasses import replace
from itertools import product

import numpy as np

from airpass import Channel, Scenario, design
from ofdm import DOCS, LINE, PLANE, SEARCH, SEEDS, SUBCARRIERS, designed

FILE = DOCS / "data" / "ofdm-snr.csv"
FIELDS = ("snr_db", "scheme", "seed", "selected_count", "weakest_score")
SNRS_DB = (-10.0, -5.0, 0.0)
PAPER = "airpass"
SCHEMES = (SEARCH, PAPER, PLANE, LINE)


def stored() -> list[dict[str, str]]:
    """Rows of the file."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Append the rows that are missing."""
    known = {(float(row["snr_db"]), row["scheme"], int(row["seed"])) for row in stored()}
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for seed, snr_db, scheme in product(SEEDS, SNRS_DB, SCHEMES):
            if (snr_db, scheme, seed) in known:
                continue
            channel = Channel(subcarriers=SUBCARRIERS, bandwidth_mhz=5.0)
            scenario = replace(Scenario.paper(20, 5, 5, snr_db, seed), channel=channel)
            found = design(scenario, PAPER) if scheme == PAPER else designed(scenario, scheme)
            values = (snr_db, scheme, seed, found.selected_count, f"{found.weakest_score:.6g}")
            writer.writerow(dict(zip(FIELDS, values, strict=True)))
            file.flush()


def table() -> None:
    """Print means with standard errors."""
    print("| |", " | ".join(f"{value:g} dB" for value in SNRS_DB), "|")
    print("|---" * (1 + len(SNRS_DB)) + "|")
    for scheme in SCHEMES:
        cells = []
        for snr_db in SNRS_DB:
            counts = [
                int(row["selected_count"])
                for row in stored()
                if row["scheme"] == scheme and float(row["snr_db"]) == snr_db
            ]
            error = float(np.std(counts, ddof=1)) / len(counts) ** 0.5
            cells.append(f"{np.mean(counts):.1f} ± {error:.1f} ({len(counts)})")
        print(f"| {scheme} |", " | ".join(cells), "|")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]]()
