"""Layouts for many draws of the devices, and designs that tolerate displaced devices.

Run: python benchmarks/lasting.py SECTION...

    layouts       airpass-lasting for 1 to 64 draws, on fresh draws, next to other receivers (seeds 8400 on)
    phases        single antennas and caution in airpass-lasting (seeds 100 on)
    displacement  robust and non-robust designs under displacements of the devices (seeds 8400 on)
    tables        print the measurements as Markdown tables

Measurements are appended to docs/data/lasting-*.csv, one row per seed and receiver; existing ones are not
repeated. Everything runs on one thread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, design, fresh_draws, tolerance  # noqa: E402

DATA = Path(__file__).parent.parent / "docs" / "data"
SETUPS = (
    (50, 10, 10, -10.0),
    (50, 10, 10, -5.0),
    (50, 10, 10, 0.0),
    (10, 5, 5, 0.0),
    (10, 5, 5, 5.0),
)
FIRST_SEED, TUNING_SEED = 8400, 100
SEEDS = 5  # searches for each number of draws
FRESH = 32  # draws for each
SCHEMES: dict[str, dict[str, Any]] = {f"D = {draws}": {"draws": draws} for draws in (1, 4, 16, 64)} | {
    f"D = {draws}; single antennas": {"draws": draws, "antennas": True, "caution": 0.0} for draws in (1, 16)
}
PHASES: dict[str, dict[str, Any]] = {"waveguides": {}} | {
    f"antennas; caution {caution}": {"antennas": True, "caution": float(caution)} for caution in (0, 1, 2)
}
DISPLACEMENTS_MM = (1.0, 3.0, 10.0)
DISPLACED_SEEDS = 10
ERROR_DRAWS = 200
Row = dict[str, Any]


def path_of(section: str) -> Path:
    """The file of a section."""
    return DATA / f"lasting-{section}.csv"


def read(section: str) -> list[dict[str, str]]:
    """The rows of a section."""
    path = path_of(section)
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def append(section: str, rows: Sequence[Row]) -> None:
    """Append rows to the file of a section."""
    path = path_of(section)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def key_of(setup: Sequence[Any], seed: int) -> Row:
    """The columns that say what was measured."""
    return dict(zip(("devices", "waveguides", "antennas", "snr_db"), setup, strict=True)) | {"seed": seed}


def known(section: str, key: Row) -> bool:
    """Whether a measurement is in the file."""
    return any(all(row[name] == str(value) for name, value in key.items()) for row in read(section))


def lasting_row(key: Row, label: str, options: Row, compare: bool) -> Iterator[Row]:
    """One search, checked on fresh draws; with `compare`, also the other receivers on these."""
    scenario = Scenario.paper(
        *(key[name] for name in ("devices", "waveguides", "antennas", "snr_db", "seed"))
    )
    found = design(scenario, "airpass-lasting", options=options)
    measured = fresh_draws(found, draws=FRESH, compare=compare)
    assert measured.searched is not None
    for receiver, counts in measured.fresh.items():
        own = receiver == "this layout"
        if own or compare:
            yield key | {
                "scheme": label if own else receiver,
                "searched": f"{measured.searched.mean:.4f}" if own else "",
                "fresh": f"{counts.mean:.4f}",
                "seconds": f"{found.seconds:.2f}" if own else "",
            }


def layouts() -> None:
    """Searches for different numbers of draws."""
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        for setup in SETUPS:
            key = key_of(setup, seed)
            for label, options in SCHEMES.items():
                if known("layouts", key | {"scheme": label}):
                    continue
                append("layouts", list(lasting_row(key, label, options, compare=label == "D = 1")))
                print(key, label, flush=True)


def phases() -> None:
    """Parts of the method, on seeds of their own."""
    for seed in range(TUNING_SEED, TUNING_SEED + 3):
        for setup in SETUPS[:3]:
            for label, options in PHASES.items():
                key = key_of(setup, seed)
                if known("phases", key | {"scheme": label}):
                    continue
                append("phases", list(lasting_row(key, label, options, compare=False)))
                print(key, label, flush=True)


def displacement() -> None:
    """Robust and non-robust designs under displacements of the devices."""
    for seed in range(FIRST_SEED, FIRST_SEED + DISPLACED_SEEDS):
        scenario = Scenario.paper(50, 10, 10, -10.0, seed)
        plain = design(scenario, "airpass-plus", options={"threads": 1})
        for error_mm in DISPLACEMENTS_MM:
            for scheme in ("non-robust", "robust"):
                key = key_of((50, 10, 10, -10.0), seed) | {"scheme": scheme, "displacement_mm": error_mm}
                if known("displacement", key):
                    continue
                found = plain
                if scheme == "robust":
                    options = {"threads": 1, "displacement_mm": error_mm}
                    found = design(scenario, "airpass-plus", options=options)
                measured = tolerance(found, displacement_mm=error_mm, draws=ERROR_DRAWS)
                row = key | {"nominal": measured.nominal}
                for receiver, outcome in measured.outcomes.items():
                    row[receiver] = f"{outcome.mean:.3f}"
                    row[f"{receiver}: 5 %"] = f"{outcome.quantiles[0]:.1f}"
                row["misaligned"] = f"{measured.outcomes['as designed'].misalignment:.4f}"
                append("displacement", [row])
                print(key, measured.nominal, flush=True)


def mean_and_error(values: Sequence[float], digits: int = 1) -> str:
    """Mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print("|", " | ".join(heads), "|")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("|", " | ".join(row), "|")
    print()


def tables() -> None:
    """Print all measurements."""
    for section in ("layouts", "phases"):
        rows = read(section)
        schemes = list(dict.fromkeys(row["scheme"] for row in rows))
        setups = list(
            dict.fromkeys((row["devices"], row["waveguides"], row["antennas"], row["snr_db"]) for row in rows)
        )
        printed = []
        for scheme in schemes:
            cells = []
            for setup in setups:
                here = [
                    row
                    for row in rows
                    if row["scheme"] == scheme
                    and (row["devices"], row["waveguides"], row["antennas"], row["snr_db"]) == setup
                ]
                fresh = mean_and_error([float(row["fresh"]) for row in here], 2) if here else ""
                searched = [float(row["searched"]) for row in here if row["searched"]]
                seconds = [float(row["seconds"]) for row in here if row["seconds"]]
                more = f" (search {np.mean(searched):.2f}, {np.mean(seconds):.0f} s)" if searched else ""
                cells.append(f"{fresh}{more}")
            printed.append([scheme, *cells])
        print(section, len(rows))
        table(["receiver", *(f"K={k}, M={m}, N={n}, {snr} dB" for k, m, n, snr in setups)], printed)
    rows = read("displacement")
    printed = []
    columns = ("nominal", "rescaled", "rescaled: 5 %", "re-solved", "as designed", "misaligned")
    for error_mm in DISPLACEMENTS_MM:
        for scheme in ("non-robust", "robust"):
            here = [
                row for row in rows if row["scheme"] == scheme and float(row["displacement_mm"]) == error_mm
            ]
            if here:
                cells = [mean_and_error([float(row[name]) for row in here]) for name in columns[:-1]]
                misaligned = 100.0 * np.mean([float(row["misaligned"]) for row in here])
                printed.append([f"{error_mm:g} mm", scheme, *cells, f"{misaligned:.1f} %"])
    print("displacement", len(rows))
    table(["displacement", "design", *columns], printed)


SECTIONS = {"layouts": layouts, "phases": phases, "displacement": displacement, "tables": tables}


def main() -> None:
    """Run the given sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    for section in parser.parse_args().sections:
        SECTIONS[section]()


if __name__ == "__main__":
    main()
