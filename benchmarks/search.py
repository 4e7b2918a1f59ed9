"""The search of `airpass-plus`: compared with another version, by size, after motion, and by effort.

Run: python benchmarks/search.py SECTION... [--other OTHER/src]

    against    this version and another one in turn, on the same draws (seeds 8000-8039); needs --other
    sizes      many devices, many antennas, long waveguides, short wavelengths (seeds 8100-8102)
    warm       redesign after the devices have moved: from the old design, and from scratch (seeds 8200-8219)
    effort     the effort levels (seeds 3000-3005), and a run of some ten minutes (seed 3000)
    threads    wall time of one design with 1, 2 and 4 threads
    profile    where the time of a sweep goes
    tables     print the measurements as Markdown tables

Measurements are appended to docs/data/search-*.csv, one row per draw; existing draws are not repeated. All
designs except those of `threads` run on one thread. Nothing else should run on the machine.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterable, Mapping, Sequence  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Design, Scenario, aircomp, design  # noqa: E402

HERE = Path(__file__).resolve()
SOURCE = HERE.parent.parent / "src"
DATA = HERE.parent.parent / "docs" / "data"
LARGE = (50, 10, 10)
Row = dict[str, Any]

# Options of both versions in `against`. The last ones take the time of the other version's default.
SCHEMES = ("other default", "other fast", "fast", "default", "equal time", "a tenth", "a twentieth")
SHARES = {"equal time": 1.0, "a tenth": 0.1, "a twentieth": 0.05}
SNRS_DB = (-20.0, -15.0, -10.0)

# Devices, waveguides, antennas, SNR in dB, wavelength in metres, waveguide length in metres.
SIZES: Mapping[str, tuple[int, int, int, float, float, float]] = {
    "K=50": (50, 10, 10, -10.0, 0.125, 40.0),
    "K=100": (100, 10, 10, -12.0, 0.125, 40.0),
    "K=500": (500, 10, 10, -22.0, 0.125, 40.0),
    "K=2,000": (2000, 10, 10, -34.0, 0.125, 40.0),
    "M=N=20": (50, 20, 20, -18.0, 0.125, 40.0),
    "M=N=32": (50, 32, 32, -20.0, 0.125, 40.0),
    "100 m": (50, 10, 10, -8.0, 0.125, 100.0),
    "28 GHz": (50, 10, 10, -11.0, 0.0107, 40.0),
    "60 GHz": (50, 10, 10, -11.0, 0.005, 40.0),
    "100 GHz": (50, 10, 10, -11.0, 0.003, 40.0),
    "K=500, 28 GHz": (500, 10, 10, -22.0, 0.0107, 40.0),
    "K=500, M=N=20, 100 m": (500, 20, 20, -26.0, 0.125, 100.0),
}
LONG = "60,000 kicks"
MOVES_M = (0.003, 0.01, 0.03, 0.1, 1.0)


def sized(name: str, seed: int) -> Scenario:
    """A draw of one size; on long waveguides the devices are spread over their length."""
    devices, waveguides, antennas, snr_db, wavelength, length = SIZES[name]
    scenario = Scenario.paper(devices, waveguides, antennas, snr_db, seed).with_radio(wavelength_m=wavelength)
    stretched = replace(scenario.devices, x_m=scenario.devices.x_m * length / 40.0)
    return replace(scenario, receiver=replace(scenario.receiver, length_m=length), devices=stretched)


def outcome(result: Design) -> Row:
    """What is measured of a design."""
    return {
        "selected": result.selected_count,
        "weakest": f"{result.weakest_score:.6g}",
        "seconds": f"{result.seconds:.4g}",
    }


def run(scenario: Scenario, seed: int, **options: Any) -> Design:
    """One design on one thread."""
    return design(scenario, "airpass-plus", options={"threads": 1} | options, seed=seed)


def read(name: str) -> list[Row]:
    """Read the measurements of a section."""
    path = DATA / f"search-{name}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def measure(name: str, keys: Sequence[Row], work: Callable[[Row], Row]) -> None:
    """Measure the rows that are missing, and store each at once."""
    have = {tuple(str(row[part]) for part in keys[0]) for row in read(name)}
    missing = [key for key in keys if tuple(str(value) for value in key.values()) not in have]
    with open(DATA / f"search-{name}.csv", "a", newline="") as file:
        for number, key in enumerate(missing, 1):
            row = key | work(key)
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(f"\r{name}: {number} of {len(missing)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


class Version:
    """Another version of the package in a process of its own."""

    def __init__(self, source: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, str(HERE), "child"],
            env=os.environ | {"PYTHONPATH": str(source.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, snr_db: float, seed: int, **options: Any) -> Row:
        """One design."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([snr_db, seed, options]), file=self._process.stdin, flush=True)
        row: Row = json.loads(self._process.stdout.readline())
        return row


def child() -> None:
    """Design what is asked for on standard input."""
    for line in sys.stdin:
        snr_db, seed, options = json.loads(line)
        print(json.dumps(outcome(run(Scenario.paper(*LARGE, snr_db, seed), seed, **options))), flush=True)


def against(other_source: Path | None) -> None:
    """Both versions in turn on the same draws."""
    if other_source is None:
        sys.exit("against needs --other OTHER/src")
    other, this = Version(other_source), Version(SOURCE)
    for version in (other, this):
        version(-10.0, 7999, effort="fast")  # compiles
    seconds: dict[tuple[float, int], float] = {
        (float(row["snr_db"]), int(row["seed"])): float(row["seconds"])
        for row in read("against")
        if row["scheme"] == "other default"
    }

    def work(key: Row) -> Row:
        scheme, snr_db, seed = key["scheme"], key["snr_db"], key["seed"]
        if scheme.startswith("other "):
            row = other(snr_db, seed, effort=scheme.removeprefix("other "))
        elif scheme in SHARES:
            limit = SHARES[scheme] * seconds[snr_db, seed]
            row = this(snr_db, seed, effort="thorough", time_limit_s=limit)
        else:
            row = this(snr_db, seed, effort=scheme)
        if scheme == "other default":
            seconds[snr_db, seed] = float(row["seconds"])
        return row

    keys = [
        {"scheme": scheme, "snr_db": snr_db, "seed": seed}
        for snr_db in SNRS_DB
        for seed in range(8000, 8040)
        for scheme in SCHEMES
    ]
    measure("against", keys, work)


def sizes(_: Path | None) -> None:
    """Time, devices and memory by size."""

    def work(key: Row) -> Row:
        command = [sys.executable, str(HERE), "one", key["size"], key["effort"], str(key["seed"])]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603
        row: Row = json.loads(done.stdout)
        return row

    keys = [
        {"size": size, "effort": effort, "seed": seed}
        for size in SIZES
        for effort in ("fast", "default")
        for seed in range(8100, 8103)
    ]
    measure("sizes", keys, work)


def one(size: str, effort: str, seed: int) -> None:
    """One design in this process, for its memory."""
    run(Scenario.paper(8, 2, 2, 0.0, 0), 0, kicks=1)  # loads the kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = outcome(run(sized(size, seed), seed, effort=effort))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps(row | {"megabytes": round(used / 1024)}))


def moved(scenario: Scenario, distance_m: float, seed: int) -> Scenario:
    """Every device moves by a distance in a random direction."""
    angle = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, scenario.devices.count)
    devices = scenario.devices
    x_m, y_m = devices.x_m + distance_m * np.cos(angle), devices.y_m + distance_m * np.sin(angle)
    return replace(scenario, devices=replace(devices, x_m=x_m, y_m=y_m))


def warm(_: Path | None) -> None:
    """Redesign after motion."""
    first: dict[int, Design] = {}

    def work(key: Row) -> Row:
        seed = key["seed"]
        if seed not in first:
            first[seed] = run(Scenario.paper(*LARGE, -10.0, seed), seed)
        old = first[seed]
        scenario = moved(old.scenario, key["distance_m"], seed)
        if key["how"] == "as it was":
            assert old.layout is not None
            effective = aircomp.effective_channels(
                scenario.channels(old.layout), scenario.weights, scenario.budget
            )
            scores = aircomp.scores(old.beam, effective)
            return {"selected": int((scores >= 1.0).sum()), "seconds": 0.0}
        start, _, kicks = key["how"].partition(", ")
        given: dict[str, Any] = {}
        if start == "warm":
            given = {"start_layout": old.layout, "start_beam": old.beam}
        options = {"threads": 1, "kicks": int(kicks.split()[0]), "starts": 1, "polish": False}
        result = design(scenario, "airpass-plus", options=options, seed=seed + 1, **given)
        return {"selected": result.selected_count, "seconds": f"{result.seconds:.4g}"}

    run(Scenario.paper(*LARGE, -10.0, 7999), 0, effort="fast")
    hows = ("as it was", "cold, 0 kicks", "warm, 0 kicks", "cold, 5 kicks", "warm, 5 kicks")
    keys = [
        {"how": how, "distance_m": distance, "seed": seed}
        for seed in range(8200, 8220)
        for distance in MOVES_M
        for how in hows
    ]
    measure("warm", keys, work)


def effort(_: Path | None) -> None:
    """The effort levels and long runs, of some ten minutes each."""

    def work(key: Row) -> Row:
        scenario, seed = Scenario.paper(*LARGE, -10.0, key["seed"]), key["seed"]
        if key["effort"] == LONG:
            return outcome(run(scenario, seed, kicks=20_000, starts=3))
        return outcome(run(scenario, seed, effort=key["effort"]))

    keys = [
        {"effort": level, "seed": seed}
        for level in ("fast", "default", "thorough", LONG)
        for seed in range(3000, 3001 if level == LONG else 3006)
    ]
    measure("effort", keys, work)


def threads(_: Path | None) -> None:
    """Wall time with several threads; the designs are the same."""

    def work(key: Row) -> Row:
        seed = key["seed"]
        result = design(Scenario.paper(*LARGE, -10.0, seed), options={"threads": key["threads"]}, seed=seed)
        layout = "" if result.layout is None else result.layout.tobytes().hex()
        return outcome(result) | {"layout": hash_of(layout)}

    run(Scenario.paper(*LARGE, -10.0, 7999), 0, effort="fast")
    keys = [{"threads": count, "seed": seed} for seed in range(8300, 8310) for count in (1, 2, 4)]
    measure("threads", keys, work)


def hash_of(text: str) -> str:
    """Short digest."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:12]


def mean_cell(rows: Sequence[Row], base: Sequence[Row] = ()) -> str:
    """Mean devices and seconds; with a base, the paired difference and its standard error."""
    if not rows:
        return "-"
    counts = {row["seed"]: float(row["selected"]) for row in rows}
    text = f"{np.mean(list(counts.values())):.2f} in {np.mean([float(r['seconds']) for r in rows]):.3g} s"
    if base:
        pairs = np.array([counts[row["seed"]] - float(row["selected"]) for row in base])
        text += f" ({pairs.mean():+.2f} ± {pairs.std(ddof=1) / len(pairs) ** 0.5:.2f})"
    return text


def print_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n| {' | '.join(head)} |")
    print("|---" * len(head) + "|")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def tables(_: Path | None) -> None:
    """Print the measurements as Markdown tables."""

    def where(rows: Sequence[Row], **wanted: Any) -> list[Row]:
        return [row for row in rows if all(str(row[k]) == str(v) for k, v in wanted.items())]

    rows = read("against")
    print_table(
        ["K=50, M=N=10", *(f"{snr:g} dB" for snr in SNRS_DB)],
        (
            [
                scheme,
                *(
                    mean_cell(
                        where(rows, scheme=scheme, snr_db=snr),
                        where(rows, scheme="other default", snr_db=snr)
                        if not scheme.startswith("other")
                        else (),
                    )
                    for snr in SNRS_DB
                ),
            ]
            for scheme in SCHEMES
        ),
    )
    rows = read("sizes")
    print_table(
        ["size", "fast", "default", "memory, MB"],
        (
            [
                size,
                *(mean_cell(where(rows, size=size, effort=level)) for level in ("fast", "default")),
                str(max((int(row["megabytes"]) for row in where(rows, size=size)), default=0)),
            ]
            for size in SIZES
        ),
    )
    rows = read("warm")
    print_table(
        ["moved by", *dict.fromkeys(row["how"] for row in rows)],
        (
            [
                f"{distance:g} m",
                *(
                    mean_cell(where(rows, how=how, distance_m=distance))
                    for how in dict.fromkeys(row["how"] for row in rows)
                ),
            ]
            for distance in MOVES_M
        ),
    )
    rows = read("effort")
    print_table(
        ["effort", "devices, seeds 3000-3005", "mean seconds"],
        (
            [
                level,
                ", ".join(row["selected"] for row in where(rows, effort=level)),
                f"{np.mean([float(row['seconds']) for row in where(rows, effort=level)] or [0.0]):.3g}",
            ]
            for level in dict.fromkeys(row["effort"] for row in rows)
        ),
    )
    rows = read("threads")
    for count in (1, 2, 4):
        chosen = where(rows, threads=count)
        print(count, "threads:", mean_cell(chosen), "layouts", hash_of("".join(r["layout"] for r in chosen)))


def profile(_: Path | None) -> None:
    """Time of the parts of a sweep, and what the machine can do."""
    from suite.sweep_parts import report

    report()


SECTIONS: Mapping[str, Callable[[Path | None], None]] = {
    "against": against,
    "sizes": sizes,
    "warm": warm,
    "effort": effort,
    "threads": threads,
    "profile": profile,
    "tables": tables,
}


def main() -> None:
    """Run the requested sections."""
    if sys.argv[1:2] == ["child"]:
        child()
        return
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    parser.add_argument("--other", type=Path, help="source folder of the other version")
    chosen = parser.parse_args()
    for section in chosen.sections:
        began = time.perf_counter()
        SECTIONS[section](chosen.other)
        print(f"{section}: {time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
