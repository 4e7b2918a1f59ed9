"""Selected devices with waveguides cut into segments.

    python benchmarks/segments.py run      # appends missing rows to docs/data/segments.csv
    python benchmarks/segments.py table    # prints means with standard errors
    python benchmarks/segments.py figure   # draws docs/images/segments.png

K = 50, M = N = 10, 0.08 dB per metre, `airpass-plus` with effort fast, SEEDS draws that no default was tuned
on. Rows are stored one by one; a run that was interrupted continues. Segments that are too short for all
antennas of a waveguide cannot be selected.
"""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

from airpass import Channel, InvalidInput, Scenario, design
from airpass.core.display import BLUE, GREEN, VERMILLION
from airpass.figures.style import RC, new_figure

ROOT = Path(__file__).parent.parent / "docs"
FILE, IMAGE = ROOT / "data" / "segments.csv", ROOT / "images" / "segments.png"
SEEDS = range(5000, 5010)
SNRS_DB = (-10.0, -5.0)
PARTS = (1, 2, 4, 10)
MODES = ("summed", "selected")
FIELDS = ("snr_db", "segments", "mode", "seed", "selected")


def scenario(snr_db: float, segments: int, mode: str, seed: int) -> Scenario:
    """One draw."""
    options = {"segments": segments, "segment_mode": mode} if segments > 1 else {}
    channel = Channel(loss_db_per_m=0.08, **options)  # type: ignore[arg-type]
    return replace(Scenario.paper(50, 10, 10, snr_db, seed), channel=channel)


def rows() -> list[dict[str, str]]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Compute what is missing."""
    done = {tuple(row[name] for name in FIELDS[:-1]) for row in rows()}
    fresh = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(FIELDS)
        for snr_db in SNRS_DB:
            for segments in PARTS:
                for mode in MODES[: 1 if segments == 1 else 2]:
                    for seed in SEEDS:
                        key = (f"{snr_db:g}", str(segments), mode, str(seed))
                        if key in done:
                            continue
                        try:
                            room = scenario(snr_db, segments, mode, seed)
                        except InvalidInput:
                            break
                        found = design(room, options={"effort": "fast"}, seed=seed)
                        writer.writerow((*key, found.selected_count))
                        file.flush()


def counts(snr_db: float, segments: int, mode: str) -> np.ndarray:
    """Selected devices, one entry per draw; none if the segments are too short."""
    key = (f"{snr_db:g}", str(segments), mode if segments > 1 else MODES[0])
    chosen = [row for row in rows() if (row["snr_db"], row["segments"], row["mode"]) == key]
    return np.array([int(row["selected"]) for row in sorted(chosen, key=lambda row: row["seed"])])


def table() -> None:
    """Print means with standard errors, as a table in Markdown."""
    print("| segments, mode | " + " | ".join(f"{snr:g} dB" for snr in SNRS_DB) + " |")
    print("|---" * (1 + len(SNRS_DB)) + "|")
    for mode in MODES:
        for segments in PARTS[0 if mode == MODES[0] else 1 :]:
            cells = []
            for snr_db in SNRS_DB:
                values = counts(snr_db, segments, mode)
                error = values.std(ddof=1) / np.sqrt(values.size) if values.size else 0.0
                spread = f" ± {error:.1f}" if error else ""
                cells.append(f"{values.mean():.1f}{spread}" if values.size else "too short")
            name = "1" if segments == 1 else f"{segments}, {mode}"
            print(f"| {name} | " + " | ".join(cells) + " |")


def figure() -> None:
    """Draw the means at the lowest SNR, and distances to the feeds."""
    with mpl.rc_context(RC):
        drawn = new_figure(7.5, 3.1)
        left, right = drawn.subplots(1, 2)
        for mode, colour, marker in ((MODES[0], BLUE, "o"), (MODES[1], VERMILLION, "s")):
            values = [(q, counts(SNRS_DB[0], q, mode)) for q in PARTS]
            known = [(q, found) for q, found in values if found.size]
            means = [found.mean() for _, found in known]
            errors = [found.std(ddof=1) / np.sqrt(found.size) for _, found in known]
            left.errorbar(
                [q for q, _ in known], means, errors, color=colour, marker=marker, capsize=2, label=mode
            )
        left.set(
            xscale="log",
            xlabel="segments per waveguide Q",
            ylabel=f"selected of 50 devices, {SNRS_DB[0]:g} dB",
        )
        left.set_xticks(PARTS, [str(q) for q in PARTS])
        left.minorticks_off()
        left.legend()
        places = np.linspace(0.0, 40.0, 4001)
        for parts, colour in ((1, "black"), (4, BLUE), (10, GREEN)):
            length = 40.0 / parts
            guide = places - length * np.minimum(np.floor(places / length), parts - 1)
            guide[1:][np.diff(guide) < 0.0] = np.nan  # not connected across borders
            right.plot(places, -0.08 * guide, color=colour, label=f"Q = {parts}")
        right.set(xlabel="place of the antenna, m", ylabel="gain of the waveguide, dB")
        right.legend()
        drawn.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    {"run": run, "table": table, "figure": figure}[sys.argv[1]]()
