"""All devices: how many turns they need, and what they do for training.

Run: python benchmarks/turns.py turns|gain|mnist|floor|tables [--schemes "A;B"] [--seeds 8600,8601]

`turns` counts turns, `gain` compares the errors of receivers that serve all devices, `mnist` trains with one
design and by turns, `floor` trains with one design for all devices at low SNRs. They add rows to
docs/data/turns.csv; rows that are there are not computed again. `tables` prints the tables of
docs/howto/turns.md. Seeds of draws start at 8400, those of training at 8600. Numbers of draws and rounds are
fixed below.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Book, Scenario, TrainOptions, design, design_for_all, prepare, schedule, train  # noqa: E402
from airpass.aircomp import Link  # noqa: E402
from airpass.designs.alternating import Airpass  # noqa: E402
from airpass.designs.base import DesignMethod  # noqa: E402
from airpass.designs.colocated import MimoMnPlus, MimoMPlus  # noqa: E402
from airpass.designs.distributed import DistributedM, DistributedMn  # noqa: E402
from airpass.designs.plus import AirpassPlus  # noqa: E402
from airpass.learning.history import Record  # noqa: E402

ROWS = Path(__file__).resolve().parent.parent / "docs" / "data" / "turns.csv"
COLUMNS = ("part", "devices", "snr_db", "seed", "scheme", "metric", "value")
SIZES = ((10, 5, (-10.0, -5.0, 0.0, 5.0)), (50, 10, (-20.0, -15.0, -10.0, -5.0)))
DRAWS = range(8400, 8410)
TRAINED = range(8600, 8605)
TRAINED_DB = (0.0, -5.0, 5.0)
ROUNDS = 400
FLOOR_DB, FLOOR_SEEDS = (-20.0, -30.0), TRAINED[:3]
FLOOR_SCHEMES = ("airpass-plus", "array")
FAST = AirpassPlus(effort="fast", threads=1)
MOVES = ("antennas", "beams")
# Method, and what moves between turns; None: one design. The array has the shape with the largest mean number
# of devices and the largest mean amplitude on the draws 100 to 119.
ARRAY = MimoMnPlus(axis="xz")
SCHEMES: dict[str, tuple[DesignMethod, str | None]] = {
    "airpass-plus": (AirpassPlus(threads=1), None),
    "airpass": (Airpass(), None),
    "array": (ARRAY, None),
    "airpass-plus, turns": (AirpassPlus(threads=1), "antennas"),
    "airpass-plus, turns, beams": (AirpassPlus(threads=1), "beams"),
    "airpass, turns": (Airpass(), "antennas"),
    "array, turns": (ARRAY, "beams"),
}


def stored() -> list[dict[str, str]]:
    """All rows."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def add(part: str, devices: int, snr_db: float, seed: int, scheme: str, values: Mapping[str, float]) -> None:
    """Append rows, one per metric."""
    lines = [
        f'{part},{devices},{snr_db:g},{seed},"{scheme}",{name},{value:.6g}' for name, value in values.items()
    ]
    with ROWS.open("a") as file:
        if file.tell() == 0:
            lines.insert(0, ",".join(COLUMNS))
        file.write("\n".join(lines) + "\n")


def known() -> set[tuple[str, ...]]:
    """What has been computed."""
    return {tuple(row[name] for name in COLUMNS[:5]) for row in stored()}


def metrics(book: Book) -> dict[str, float]:
    """Numbers of a book."""
    return {
        "turns": book.turns,
        "served": int(book.served.sum()),
        "missing": int(book.missing.sum()),
        "unservable": int((book.least_turns > 1).sum()),  # in one turn
        "least turns": int(book.least_turns.max()),
        "layouts": len({one.layout.tobytes() for one in book.designs if one.layout is not None}),
        "update_mse": book.update_mse,
        "seconds": book.seconds,
    }


def count_turns() -> None:
    """Books of fresh draws."""
    done = known()
    schedule(Scenario.paper(4, 2, 2), method=FAST)  # compile
    for devices, waveguides, levels in SIZES:
        for snr_db in levels:
            for seed in DRAWS:
                scenario = Scenario.paper(devices, waveguides, waveguides, snr_db, seed)
                place = ("turns", str(devices), f"{snr_db:g}", str(seed))
                if (*place, "one design") not in done:
                    one = design(scenario, FAST)
                    add("turns", devices, snr_db, seed, "one design", {"served": one.selected_count})
                for scheme, method, move in (
                    ("antennas", FAST, "antennas"),
                    ("beams", FAST, "beams"),
                    ("array", ARRAY, "beams"),
                ):
                    if (*place, scheme) not in done:
                        book = schedule(scenario, move=move, method=method)
                        add("turns", devices, snr_db, seed, scheme, metrics(book))
                        print(devices, snr_db, seed, scheme, book, f"{book.seconds:.1f} s", flush=True)


def receivers() -> dict[str, DesignMethod]:
    """Receivers that are compared by the error with which they serve all devices."""
    return {
        "airpass-plus": AirpassPlus(threads=1),
        "airpass": Airpass(),
        "even spacing": DistributedM(),
        **{f"array of M, {axis}": MimoMPlus(axis=axis) for axis in ("x", "z", "xz")},
        **{f"array of MN, {axis}": MimoMnPlus(axis=axis) for axis in ("x", "z", "xz")},
        "distributed, MN": DistributedMn(),
    }


def measure_gain() -> None:
    """Errors of one design for all devices. They are proportional to the noise power: one SNR is enough."""
    done = known()
    for devices, waveguides in ((10, 5), (20, 5), (50, 10), (100, 10)):
        for seed in DRAWS:
            scenario = Scenario.paper(devices, waveguides, waveguides, 0.0, seed)
            for scheme, method in receivers().items():
                if ("gain", str(devices), "0", str(seed), scheme) not in done:
                    found = design_for_all(scenario, method)
                    add("gain", devices, 0.0, seed, scheme, {"mse": found.mse, "seconds": found.seconds})
                    print(devices, seed, scheme, f"{found.mse:.4g} {found.seconds:.1f} s", flush=True)


def fingerprint(link: Link | Book) -> bytes:
    """The same for links over which training is the same."""
    links = link.links if isinstance(link, Book) else (link,)
    parts = {
        one.beam.tobytes() + one.channels.tobytes() + np.round(one.weights, 12).tobytes() for one in links
    }
    return b"".join(parts) if len(parts) == 1 else b"".join(one.beam.tobytes() for one in links)


def measure_accuracy(schemes: list[str], seeds: list[int]) -> None:
    """Training on MNIST."""
    options = TrainOptions(rounds=ROUNDS, evaluate_every=ROUNDS // 4)
    for seed in seeds:
        for snr_db in TRAINED_DB:
            scenario, data = prepare(Scenario.paper(10, 5, 5, snr_db, seed), "mnist", options)
            seen: dict[bytes, dict[str, float]] = {}
            for scheme in schemes:
                label = 0.0 if scheme == "fedavg" else snr_db  # ideal FedAvg has no noise
                if ("mnist", "10", f"{label:g}", str(seed), scheme) in known():
                    continue
                if scheme == "fedavg":
                    run = train(None, data, scenario=scenario, options=options, seed=seed, workers=1)
                    add("mnist", 10, label, seed, scheme, accuracies(run.history) | {"served": 10})
                    continue
                method, move = SCHEMES[scheme]
                if move is None:
                    one = design(scenario, method)
                    link: Link | Book = one
                    values: dict[str, float] = {"served": one.selected_count}
                else:
                    book = schedule(scenario, move=move, method=method)
                    link = book
                    values = {"served": int(book.served.sum()), "turns": book.turns}
                    values["update_mse"] = book.update_mse
                key = fingerprint(link)
                if key not in seen:
                    run = train(link, data, options=options, seed=seed, workers=1)
                    seen[key] = accuracies(run.history)
                add("mnist", 10, label, seed, scheme, values | seen[key])
                print(seed, snr_db, scheme, values, seen[key], flush=True)


def measure_floor() -> None:
    """Training on MNIST with one design for all devices."""
    options = TrainOptions(rounds=ROUNDS, evaluate_every=ROUNDS // 4)
    for seed in FLOOR_SEEDS:
        for snr_db in FLOOR_DB:
            scenario, data = prepare(Scenario.paper(10, 5, 5, snr_db, seed), "mnist", options)
            for scheme in FLOOR_SCHEMES:
                if ("floor", "10", f"{snr_db:g}", str(seed), scheme) in known():
                    continue
                link = design_for_all(scenario, SCHEMES[scheme][0])
                run = train(link, data, options=options, seed=seed, workers=1)
                values = accuracies(run.history) | {"mse": link.mse}
                add("floor", 10, snr_db, seed, scheme, values)
                print(seed, snr_db, scheme, values, run.status, flush=True)


def accuracies(history: Sequence[Record]) -> dict[str, float]:
    """Test accuracy in per cent, in the middle and at the end."""
    middle, last = history[len(history) // 2], history[-1]
    return {
        "accuracy": 100.0 * last.test_accuracy,
        f"accuracy after {middle.round}": 100.0 * middle.test_accuracy,
        "rounds": last.round,
    }


def values_of(part: str, devices: int, snr_db: float, scheme: str, metric: str) -> dict[int, float]:
    """Values by seed."""
    return {
        int(row["seed"]): float(row["value"])
        for row in stored()
        if (row["part"], row["devices"], row["snr_db"], row["scheme"], row["metric"])
        == (part, str(devices), f"{snr_db:g}", scheme, metric)
    }


def mean(part: str, devices: int, snr_db: float, scheme: str, metric: str) -> float:
    """Mean over seeds."""
    values = values_of(part, devices, snr_db, scheme, metric)
    return float(np.mean(list(values.values()))) if values else float("nan")


def half_width(differences: np.ndarray) -> float:
    """Half-width of the 95 % interval of a mean."""
    from scipy import stats

    if differences.size < 2:
        return float("nan")
    return float(stats.t.ppf(0.975, differences.size - 1) * stats.sem(differences))


def print_tables() -> None:
    """The tables of docs/howto/turns.md."""
    heads = (
        "K, M=N",
        "SNR",
        "one design",
        "too weak for one turn",
        "turns",
        "layouts",
        "error",
        "array: turns",
    )
    print(f"| {' | '.join(heads)} | error |\n|{'---|' * (len(heads) + 1)}")
    for devices, waveguides, levels in SIZES:
        for snr_db in levels:
            served = mean("turns", devices, snr_db, "antennas", "served")
            assert served == devices, "not all are served"
            cells = [
                f"{mean('turns', devices, snr_db, 'one design', 'served'):.1f}",
                f"{mean('turns', devices, snr_db, 'antennas', 'unservable'):.1f}",
                f"{mean('turns', devices, snr_db, 'antennas', 'turns'):.1f}",
                f"{mean('turns', devices, snr_db, 'antennas', 'layouts'):.1f}",
                f"{mean('turns', devices, snr_db, 'antennas', 'update_mse'):.3f}",
                f"{mean('turns', devices, snr_db, 'array', 'turns'):.1f}",
                f"{mean('turns', devices, snr_db, 'array', 'update_mse'):.3f}",
            ]
            print(f"| {devices}, {waveguides} | {snr_db:g} dB | {' | '.join(cells)} |")
    fedavg = values_of("mnist", 10, 0.0, "fedavg", "accuracy")
    print(f"\nFedAvg {np.mean(list(fedavg.values())):.2f} %, {len(fedavg)} seeds\n")
    print(f"| scheme |{''.join(f' {snr_db:g} dB |' for snr_db in sorted(TRAINED_DB))}")
    print(f"|{'---|' * (len(TRAINED_DB) + 1)}")
    for scheme in SCHEMES:
        cells = []
        for snr_db in sorted(TRAINED_DB):
            values = values_of("mnist", 10, snr_db, scheme, "accuracy")
            lost = np.array([values[seed] - fedavg[seed] for seed in values if seed in fedavg])
            served = mean("mnist", 10, snr_db, scheme, "served")
            cells.append(
                f"{np.mean(list(values.values())):.1f} % ({lost.mean():+.1f} ± {half_width(lost):.1f}), "
                f"{served:.1f} devices, n={lost.size}"
            )
        print(f"| {scheme} | {' | '.join(cells)} |")
    sizes = ((10, 5), (20, 5), (50, 10), (100, 10))
    print("\n| receiver |" + "".join(f" K = {k}, M = N = {m} |" for k, m in sizes))
    print(f"|{'---|' * (len(sizes) + 1)}")
    for scheme in receivers():
        cells = []
        for devices, _ in sizes:
            values = values_of("gain", devices, 0.0, scheme, "mse")
            best = values_of("gain", devices, 0.0, "airpass-plus", "mse")
            worse = np.array([10.0 * np.log10(values[seed] / best[seed]) for seed in values if seed in best])
            error = float(np.exp(np.mean(np.log(list(values.values()) or [np.nan]))))
            cells.append(f"{error:.2g} ({worse.mean():+.1f} ± {half_width(worse):.1f} dB)")
        print(f"| {scheme} | {' | '.join(cells)} |")
    print(f"\n| all devices |{''.join(f' {snr_db:g} dB |' for snr_db in FLOOR_DB)}")
    print(f"|{'---|' * (len(FLOOR_DB) + 1)}")
    for scheme in FLOOR_SCHEMES:
        cells = []
        for snr_db in FLOOR_DB:
            values = values_of("floor", 10, snr_db, scheme, "accuracy")
            lost = np.array([values[seed] - fedavg[seed] for seed in values if seed in fedavg])
            error = mean("floor", 10, snr_db, scheme, "mse")
            cells.append(
                f"{np.mean(list(values.values())):.1f} % ({lost.mean():+.1f} ± {half_width(lost):.1f}), "
                f"error {error:.2g}, n={lost.size}"
            )
        print(f"| {scheme} | {' | '.join(cells)} |")


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["turns", "gain", "mnist", "floor", "tables"])
    parser.add_argument("--schemes", default=";".join(["fedavg", *SCHEMES]), help="Separated by semicolons.")
    parser.add_argument("--seeds", default=",".join(map(str, TRAINED)), help="Of training.")
    given = parser.parse_args()
    if given.part == "turns":
        count_turns()
    elif given.part == "gain":
        measure_gain()
    elif given.part == "mnist":
        measure_accuracy(given.schemes.split(";"), [int(seed) for seed in given.seeds.split(",")])
    elif given.part == "floor":
        measure_floor()
    else:
        print_tables()


if __name__ == "__main__":
    main()
