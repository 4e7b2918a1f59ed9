"""`airpass-plus` compared with all other designs, and its ablation.

Run: python benchmarks/plus.py SECTION...

    compare    every design on the same draws (seeds 0-19), equal and unequal weights
    slow       the slow designs (seeds 0-9)
    ablation   airpass-plus with a part removed or changed (seeds 1000-1019)
    selection  hrmc+ against hrmc at the uniform layout (seeds 0-19)
    tolerance  robust and non-robust designs under position errors (seeds 0-9)
    tables     print the measurements as Markdown tables
    figures    plot the measurements

Measurements are appended to docs/data/plus-*.csv, one row per draw; existing draws are not
repeated. All designs run on one thread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterable, Mapping, Sequence  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from functools import partial  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from pathlib import Path  # noqa: E402
from tempfile import TemporaryDirectory  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Scenario, design, select, tolerance  # noqa: E402
from airpass.designs.joint import chain, sweep  # noqa: E402

ROOT = Path(__file__).parent.parent / "docs"
SMALL, LARGE = (10, 5, 5), (50, 10, 10)
SNRS_DB = (-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0)
ONE_THREAD = {"threads": 1}
PLUS = {"method": "airpass-plus"}
FAST: Mapping[str, dict[str, Any]] = {
    "airpass-plus": {**PLUS, "options": ONE_THREAD},
    "airpass-plus, fast": {**PLUS, "options": ONE_THREAD | {"effort": "fast"}},
    "airpass": {"method": "airpass"},
    "airpass-mp": {"method": "airpass-mp"},
    "hrmc+fixed": {"selection": "hrmc", "geometry": "fixed"},
    "mimo-m-plus": {"method": "mimo-m-plus"},
    "mimo-mn-plus": {"method": "mimo-mn-plus"},
    "mimo-mn-plus, 256 starts": {"method": "mimo-mn-plus", "options": {"selection": {"starts": 256}}},
    "mimo-m": {"method": "mimo-m"},
    "mimo-m, 256 starts": {"method": "mimo-m", "options": {"selection": {"starts": 256}}},
    "mimo-mn": {"method": "mimo-mn"},
    "mimo-mn, 256 starts": {"method": "mimo-mn", "options": {"selection": {"starts": 256}}},
}
SLOW: Mapping[str, dict[str, Any]] = {
    "airpass-plus, thorough": {**PLUS, "options": ONE_THREAD | {"effort": "thorough"}},
    "airpass-sdr-dc": {"method": "airpass-sdr-dc"},
    "hrmc+elementwise": {"selection": "hrmc", "geometry": "elementwise"},
}
# Options of airpass-plus, and constants of its modules, that each row of the ablation changes.
ABLATION: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one chain, 20 kicks": ({}, {}),
    "no kicks": ({"kicks": 0}, {}),
    "five kicks (fast)": ({"kicks": 5}, {}),
    "80 kicks": ({"kicks": 80}, {}),
    "4 chains of 5 kicks": ({"starts": 4, "kicks": 5}, {}),
    "kicks of two waveguides": ({}, {"chain.KICKED": 2}),
    "kicks of five waveguides": ({}, {"chain.KICKED": 5}),
    "kicks must gain a device": ({}, {"chain.ACCEPT": 1}),
    "growing instead of racing": ({}, {"chain.Chain.raced": lambda self, found, target: self.grown(found)}),
    "no finish": ({}, {"chain.FINISH": ()}),
    "no growing, no racing": ({"grow": False}, {}),
    "no annealing": ({}, {"chain.ANNEAL": ()}),
    "annealing at p = 4 only": ({}, {"chain.ANNEAL": (2,)}),
    "antennas stay between their neighbours": ({"across": False}, {}),
    "one candidate per antenna": ({}, {"sweep.TRIES": 1}),
    "eight candidates per antenna": ({}, {"sweep.TRIES": 8}),
    "slopes of the scan at full p": ({}, {"sweep.FLATTEST": 6}),
    "grid λ/4": ({"grid_wavelengths": 0.25}, {}),
    "grid λ/16": ({"grid_wavelengths": 0.0625}, {}),
    "no polish": ({"polish": False}, {}),
    "polish by sweeps only": ({}, {"chain.LAST": ()}),
}
SELECTIONS: Mapping[str, dict[str, Any]] = {
    "hrmc": {"method": "hrmc"},
    "hrmc, 16 starts": {"method": "hrmc", "options": {"starts": 16}},
    "hrmc, 64 starts": {"method": "hrmc", "options": {"starts": 64}},
    "hrmc+, one start": {"method": "hrmc+", "options": {"starts": 1}},
    "hrmc+, one outsider": {"method": "hrmc+", "options": {"outsiders": 1}},
    "hrmc+": {"method": "hrmc+"},
    "hrmc+, 64 starts": {"method": "hrmc+", "options": {"starts": 64}},
}
ERRORS_MM = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0)
Row = dict[str, Any]


def scenario_of(size: tuple[int, int, int], snr_db: float, seed: int, weights: str) -> Scenario:
    """The paper's set-up; unequal weights correspond to 100 to 900 samples per device, drawn uniformly."""
    scenario = Scenario.paper(*size, snr_db, seed)
    if weights == "equal":
        return scenario
    samples = np.random.default_rng(seed).integers(100, 901, size[0])
    return scenario.with_samples(samples)


def design_row(key: Row, how: Mapping[str, Any]) -> Row:
    """Run one design."""
    size = (key["devices"], key["waveguides"], key["antennas"])
    result = design(scenario_of(size, key["snr_db"], key["seed"], key["weights"]), **how, seed=key["seed"])
    return key | {
        "selected": result.selected_count,
        "weakest": f"{result.weakest_score:.6g}",
        "seconds": f"{result.seconds:.3g}",
    }


def named_row(key: Row) -> Row:
    """Run one design by name."""
    return design_row(key, {**FAST, **SLOW}[key["scheme"]])


def change_constants(scheme: str) -> None:
    """Change constants in a new process, before kernels are compiled with them."""
    modules = {"chain": chain, "sweep": sweep}
    for name, value in ABLATION[scheme][1].items():
        module, _, rest = name.partition(".")
        owner: Any = modules[module]
        *path, last = rest.split(".")
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, value)


def ablation_row(key: Row) -> Row:
    """Run airpass-plus with one part changed."""
    options = {"starts": 1, "kicks": 20} | ABLATION[key["scheme"]][0]
    return design_row(key, {**PLUS, "options": ONE_THREAD | options})


def selection_row(key: Row) -> Row:
    """Run one selection at the uniform layout."""
    scenario = Scenario.paper(key["devices"], key["waveguides"], key["antennas"], key["snr_db"], key["seed"])
    channels = scenario.channels(scenario.uniform_layout())
    how = SELECTIONS[key["scheme"]]
    picked = [select(channels, scenario.weights, scenario.budget, **how) for _ in range(3)]
    return key | {
        "selected": picked[0].selected_count,
        "weakest": f"{picked[0].weakest_score:.6g}",
        "seconds": f"{np.median([one.seconds for one in picked]):.3g}",
    }


def tolerance_row(key: Row) -> Row:
    """Evaluate one design under position errors."""
    scenario = Scenario.paper(*LARGE, key["snr_db"], key["seed"])
    margin = key["error_mm"] if key["scheme"] == "robust" else 0.0
    result = design(scenario, "airpass-plus", options=ONE_THREAD | {"tolerance_mm": margin}, seed=key["seed"])
    measured = tolerance(result, position_mm=key["error_mm"], draws=200, seed=key["seed"])
    cells: Row = {"nominal": measured.nominal}
    for name, outcome in measured.outcomes.items():
        cells[f"{name}: in"] = f"{outcome.mean:.4g}"
        cells[f"{name}: 5 %"] = f"{outcome.quantiles[0]:g}"
        cells[f"{name}: misaligned"] = f"{outcome.misalignment:.4g}"
    return key | cells


def keys(
    schemes: Iterable[str],
    size: tuple[int, int, int],
    snrs: Iterable[float],
    weights: str,
    seeds: Iterable[int],
) -> list[Row]:
    """Keys of the rows to measure, one per scheme and draw."""
    names = ("devices", "waveguides", "antennas")
    return [
        {
            "scheme": scheme,
            **dict(zip(names, size, strict=True)),
            "snr_db": snr_db,
            "weights": weights,
            "seed": seed,
        }
        for snr_db in snrs
        for seed in seeds
        for scheme in schemes
    ]


def measure(
    name: str, rows: Sequence[Row], work: Any, workers: int, prepare: Callable[[], None] | None = None
) -> None:
    """Measure the rows that are missing in the file, in processes that call `prepare` first."""
    path = ROOT / "data" / f"plus-{name}.csv"
    have = {tuple(str(row[part]) for part in rows[0]) for row in read(name)}
    missing = [row for row in rows if tuple(str(value) for value in row.values()) not in have]
    with (
        ProcessPoolExecutor(workers, get_context("spawn"), prepare) as pool,
        open(path, "a", newline="") as file,
    ):
        for number, row in enumerate(pool.map(work, missing), 1):
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(f"\r{name}: {number} of {len(missing)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def read(name: str) -> list[Row]:
    """Read the measurements."""
    path = ROOT / "data" / f"plus-{name}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def compare(workers: int) -> None:
    """Measure all designs on the same draws."""
    seeds = range(20)
    rows = keys(FAST, LARGE, SNRS_DB, "equal", seeds) + keys(FAST, SMALL, (0.0, 5.0, 10.0), "equal", seeds)
    measure("compare", rows + keys(FAST, LARGE, SNRS_DB[2:5], "unequal", seeds), named_row, workers)


def slow(workers: int) -> None:
    """Measure the slow designs on fewer draws."""
    measure("compare", keys(SLOW, LARGE, (-10.0, -5.0, 0.0), "equal", range(10)), named_row, workers)


def ablation(workers: int) -> None:
    """Measure the ablation."""
    with TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache  # keeps kernels with changed constants out of the usual cache
        for scheme in ABLATION:
            rows = keys([scheme], LARGE, (-15.0, -10.0, -5.0), "equal", range(1000, 1020))
            measure("ablation", rows, ablation_row, workers, partial(change_constants, scheme))


def selection(workers: int) -> None:
    """Measure hrmc+ and hrmc."""
    rows = keys(SELECTIONS, LARGE, (-5.0, 0.0, 5.0), "equal", range(20))
    measure("selection", rows + keys(SELECTIONS, SMALL, (10.0,), "equal", range(20)), selection_row, workers)


def errors(workers: int) -> None:
    """Measure designs under position errors."""
    rows = [
        {"scheme": scheme, "snr_db": -10.0, "error_mm": error, "seed": seed}
        for error in ERRORS_MM
        for seed in range(10)
        for scheme in ("non-robust", "robust")
    ]
    measure("tolerance", rows, tolerance_row, workers)


def cell(rows: Sequence[Row], *fields: str) -> str:
    """Means over the draws as text."""
    if not rows:
        return "-"
    forms = {"selected": "{:.2f}", "weakest": "{:.3f}", "seconds": "{:.2g} s"}
    return ", ".join(forms[field].format(np.mean([float(row[field]) for row in rows])) for field in fields)


def print_table(title: str, rows: Sequence[Row], columns: Mapping[str, dict[str, Any]], *fields: str) -> None:
    """Print one row per scheme; each column is a filter on the measurements."""
    print(f"\n| {title} | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        cells = [
            cell(
                [
                    row
                    for row in rows
                    if row["scheme"] == scheme and all(str(row[k]) == str(v) for k, v in wanted.items())
                ],
                *fields,
            )
            for wanted in columns.values()
        ]
        print(f"| {scheme} | {' | '.join(cells)} |")


def tables(_: int) -> None:
    """Print the measurements as Markdown tables."""

    def columns(snrs: Iterable[float], devices: int, weights: str) -> dict[str, dict[str, Any]]:
        return {f"{s:g} dB": {"snr_db": s, "devices": devices, "weights": weights} for s in snrs}

    rows = read("compare")
    print_table("K=50, M=N=10, equal weights", rows, columns(SNRS_DB, 50, "equal"), "selected")
    print_table("K=50, M=N=10, mean seconds", rows, columns(SNRS_DB, 50, "equal"), "seconds")
    print_table("K=50, M=N=10, unequal weights", rows, columns(SNRS_DB[2:5], 50, "unequal"), "selected")
    print_table("K=10, M=N=5", rows, columns((0.0, 5.0, 10.0), 10, "equal"), "selected", "weakest", "seconds")
    parts = ("selected", "weakest", "seconds")
    print_table("ablation", read("ablation"), columns((-15.0, -10.0, -5.0), 50, "equal"), *parts)
    picked = columns((-5.0, 0.0, 5.0), 50, "equal") | {"K=10, M=N=5, 10 dB": {"devices": 10}}
    print_table("selection", read("selection"), picked, "selected", "seconds")
    print("\n| error | design | nominal | rescaled | 5 % | re-solved | as designed | misaligned |")
    print("|---" * 8 + "|")
    for error in ERRORS_MM:
        for scheme in ("non-robust", "robust"):
            found = [r for r in read("tolerance") if r["scheme"] == scheme and float(r["error_mm"]) == error]
            names = ("nominal", "rescaled: in", "rescaled: 5 %", "re-solved: in", "as designed: in")
            means = [f"{np.mean([float(row[name]) for row in found]):.1f}" for name in names]
            off = np.mean([float(row["as designed: misaligned"]) for row in found])
            print(f"| {error:g} mm | {scheme} | {' | '.join(means)} | {100 * off:.1f} % |")


def figures(_: int) -> None:
    """Plot the measurements."""
    import matplotlib as mpl

    from airpass.core.display import BLUE, VERMILLION, looks
    from airpass.figures.style import RC, new_figure, plot, save

    def means(rows: Sequence[Row], axis: str, field: str) -> tuple[list[float], list[float], list[float]]:
        """Points, means, and half-widths of 95 % confidence intervals over the draws."""
        points = sorted({float(row[axis]) for row in rows})
        values = [[float(row[field]) for row in rows if float(row[axis]) == point] for point in points]
        half = [1.96 * float(np.std(v, ddof=1)) / len(v) ** 0.5 for v in values]
        return points, [float(np.mean(v)) for v in values], half

    with mpl.rc_context(RC):
        picture = new_figure(6.3, 3.6)
        axes = picture.add_subplot()
        shown = ("airpass-plus", "mimo-mn-plus, 256 starts", "mimo-mn", "airpass", "mimo-m", "hrmc+fixed")
        names = [scheme.partition(",")[0] for scheme in shown]
        for scheme, name in zip(shown, names, strict=True):
            look = looks(names)[name]
            rows = [
                r for r in read("compare")
                if r["scheme"] == scheme and r["devices"] == "50" and r["weights"] == "equal"
            ]  # fmt: skip
            x, y, half = means(rows, "snr_db", "selected")
            plot(axes, look, x, y, "HRMC, antennas fixed" if name == "hrmc+fixed" else look.name)
            low, high = np.subtract(y, half), np.add(y, half)
            axes.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)
        axes.set(xlabel="P0/σ², dB", ylabel="selected devices of 50", ylim=(0, 51.5), xlim=(-20.3, 10.3))
        axes.set_title("K = 50, M = N = 10, arrays along x: mean of 20 draws, 95 % confidence")
        axes.legend(loc="lower right")
        axes.grid(alpha=0.25)
        save(picture, ROOT / "images" / "plus-snr.png")

        picture = new_figure(6.3, 3.3)
        left = picture.add_subplot()
        styles = {"non-robust": (VERMILLION, "^"), "robust": (BLUE, "o")}
        for scheme, (colour, marker) in styles.items():
            rows = [r for r in read("tolerance") if r["scheme"] == scheme]
            for field, dash, label in (
                ("nominal", ":", "nominal"),
                ("rescaled: in", "-", "built, same beam"),
                ("re-solved: in", "--", "built, beam re-solved"),
            ):
                x, y, _half = means(rows, "error_mm", field)
                left.plot(x, y, color=colour, linestyle=dash, marker=marker, ms=4, label=f"{scheme}: {label}")
        left.set(xlabel="position error of every antenna, standard deviation, mm")
        left.set(ylabel="devices", ylim=(0, 50))
        left.set_title("K = 50, M = N = 10, -10 dB: mean of 10 draws")
        left.legend(loc="lower left", fontsize=8, ncols=2)
        left.grid(alpha=0.25)
        save(picture, ROOT / "images" / "plus-tolerance.png")


SECTIONS = {
    "compare": compare,
    "slow": slow,
    "ablation": ablation,
    "selection": selection,
    "tolerance": errors,
    "tables": tables,
    "figures": figures,
}


def main() -> None:
    """Run the requested sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    chosen = parser.parse_args()
    for section in chosen.sections:
        SECTIONS[section](chosen.workers)


if __name__ == "__main__":
    main()
