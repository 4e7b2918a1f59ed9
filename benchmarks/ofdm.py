"""Selected devices against the bandwidth of 16 subcarriers.

    python benchmarks/ofdm.py run      # appends missing rows to docs/data/ofdm.csv (half an hour)
    python benchmarks/ofdm.py table    # prints the table of docs/howto/ofdm.md
    python benchmarks/ofdm.py figure   # draws docs/images/ofdm.png

K = 20 devices, M = N = 5, 0 dB; seeds start at 5100. Schemes: the search over all subcarriers, the
layout of the centre frequency with beams for all subcarriers, and arrays of MN antennas, an upright
plane and an upright line.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
from dataclasses import replace  # noqa: E402
from itertools import product  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Channel, Design, Scenario, design  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent / "docs"
FILE, PICTURE = DOCS / "data" / "ofdm.csv", DOCS / "images" / "ofdm.png"
FIELDS = ("rule", "bandwidth_mhz", "scheme", "seed", "selected_count", "weakest_score")
RULES = ("worst", "mean")
BANDWIDTHS_MHZ = (0.0, 1.0, 5.0, 20.0, 100.0)
SEEDS = range(5100, 5110)
SUBCARRIERS = 16
SEARCH, CENTRE, PLANE, LINE = SCHEMES = (
    "search over all subcarriers",
    "layout of the centre frequency",
    "array, upright plane",
    "array, upright line",
)


def designed(scenario: Scenario, scheme: str) -> Design:
    """The design of a scheme."""
    if scheme == SEARCH:
        return design(scenario)
    if scheme == CENTRE:
        layout = design(scenario.centre).layout
        return design(scenario, selection="hrmc+", geometry="fixed", start_layout=layout)
    return design(scenario, "mimo-mn-plus", options={"axis": "xz" if scheme == PLANE else "z"})


def stored() -> list[dict[str, str]]:
    """Rows of the file."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run(rule: str) -> None:
    """Append the rows of a rule that are missing."""
    known = {(row["rule"], float(row["bandwidth_mhz"]), row["scheme"], int(row["seed"])) for row in stored()}
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for seed, bandwidth, scheme in product(SEEDS, BANDWIDTHS_MHZ, SCHEMES):
            if (rule, bandwidth, scheme, seed) in known:
                continue
            channel = Channel(subcarriers=SUBCARRIERS, bandwidth_mhz=bandwidth, subcarrier_rule=rule)
            scenario = replace(Scenario.paper(20, 5, 5, 0.0, seed), channel=channel)
            found = designed(scenario, scheme)
            values = (rule, bandwidth, scheme, seed, found.selected_count, f"{found.weakest_score:.6g}")
            writer.writerow(dict(zip(FIELDS, values, strict=True)))
            file.flush()


def means(rule: str) -> dict[str, list[tuple[float, float, int]]]:
    """Mean, standard error and number of draws for each scheme, a list over the bandwidths."""
    counts: dict[tuple[str, float], list[int]] = {}
    for row in stored():
        if row["rule"] == rule:
            key = row["scheme"], float(row["bandwidth_mhz"])
            counts.setdefault(key, []).append(int(row["selected_count"]))
    return {
        scheme: [
            (float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))), len(values))
            for values in (counts[scheme, bandwidth] for bandwidth in BANDWIDTHS_MHZ)
        ]
        for scheme in SCHEMES
    }


def table(rule: str) -> None:
    """Print the means of a rule."""
    print("| |", " | ".join(f"{value:g} MHz" for value in BANDWIDTHS_MHZ), "|")
    print("|---" * (1 + len(BANDWIDTHS_MHZ)) + "|")
    for scheme, cells in means(rule).items():
        print(f"| {scheme} |", " | ".join(f"{mean:.1f} ± {error:.1f}" for mean, error, _ in cells), "|")


def figure(rule: str) -> None:
    """Draw the means of a rule."""
    import matplotlib as mpl

    from airpass.core.display import LOOKS, Look
    from airpass.figures.style import RC, new_figure, save

    looks: dict[str, Look] = {
        SEARCH: LOOKS["airpass-plus"],
        CENTRE: LOOKS["airpass-lasting"],
        PLANE: LOOKS["mimo-mn-plus-xz"],
        LINE: LOOKS["mimo-mn-plus-z"],
    }
    place = np.arange(len(BANDWIDTHS_MHZ))
    with mpl.rc_context(RC):
        drawing = new_figure(6.4, 3.6)
        axes = drawing.subplots()
        for scheme, cells in means(rule).items():
            look = looks[scheme]
            mean, error, _ = np.array(cells).T
            axes.errorbar(
                place,
                mean,
                2.0 * error,
                label=scheme,
                color=look.colour,
                linestyle=look.dash,
                marker=look.marker,
                markersize=5.0,
                linewidth=1.4,
                capsize=2.5,
            )
        axes.set_xticks(place, [f"{value:g}" for value in BANDWIDTHS_MHZ])
        axes.set(xlabel="bandwidth, MHz", ylabel="selected devices of 20", ylim=(0.0, 21.0))
        axes.set_yticks(range(0, 21, 5))
        axes.grid(axis="y")
        axes.legend(loc="lower left")
        axes.set_title(f"{SUBCARRIERS} subcarriers, 0 dB; mean of {len(SEEDS)} draws ± 2 standard errors")
    save(drawing, PICTURE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("run", "table", "figure"))
    parser.add_argument("--rule", choices=RULES, default="worst")
    arguments = parser.parse_args()
    {"run": run, "table": table, "figure": figure}[arguments.job](arguments.rule)
