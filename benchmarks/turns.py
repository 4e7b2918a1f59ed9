"""Turns: how many are needed, and what they do for training.

Run: python benchmarks/turns.py turns|accuracy|tables [--draws 10] [--rounds 200]

`turns` and `accuracy` add rows to docs/data/turns.csv; rows that are there are not computed again. `tables`
prints the tables of docs/turns.md. Seeds of draws start at 8400, those of training at 8500.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
from collections.abc import Mapping  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from airpass import Book, Scenario, TrainOptions, design, prepare, schedule, train  # noqa: E402
from airpass.designs.plus import AirpassPlus  # noqa: E402

ROWS = Path(__file__).resolve().parent.parent / "docs" / "data" / "turns.csv"
COLUMNS = ("part", "devices", "snr_db", "seed", "scheme", "metric", "value")
SIZES = ((10, 5, (-10.0, -5.0, 0.0, 5.0)), (50, 10, (-20.0, -15.0, -10.0, -5.0)))
FIRST_DRAW, FIRST_TRAINING = 8400, 8500
TRAINED_DB, TRAINED_SEEDS = (0.0, -5.0, 5.0), 3
METHOD = AirpassPlus(effort="fast", threads=1)
MOVES = ("antennas", "beams")


def stored() -> list[dict[str, str]]:
    """All rows."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def add(part: str, devices: int, snr_db: float, seed: int, scheme: str, values: Mapping[str, float]) -> None:
    """Append rows, one per metric."""
    new = not ROWS.exists()
    with ROWS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for metric, value in values.items():
            writer.writerow([part, devices, f"{snr_db:g}", seed, scheme, metric, f"{value:.6g}"])


def known() -> set[tuple[str, ...]]:
    """What has been computed."""
    return {tuple(row[name] for name in COLUMNS[:5]) for row in stored()}


def metrics(book: Book) -> dict[str, float]:
    """Numbers of a book."""
    served = book.covered[book.covered > 0]
    return {
        "turns": book.turns,
        "served": served.size,
        "missing": int(book.missing.sum()),
        "unservable": int(book.unservable.sum()),
        "share": float(served.mean() / book.turns) if served.size else 0.0,
        "seconds": book.seconds,
    }


def count_turns(draws: int) -> None:
    """Books of fresh draws."""
    done = known()
    schedule(Scenario.paper(4, 2, 2), method=METHOD)  # compile
    for devices, waveguides, levels in SIZES:
        for snr_db in levels:
            for seed in range(FIRST_DRAW, FIRST_DRAW + draws):
                scenario = Scenario.paper(devices, waveguides, waveguides, snr_db, seed)
                place = ("turns", str(devices), f"{snr_db:g}", str(seed))
                if (*place, "one design") not in done:
                    one = design(scenario, METHOD)
                    add("turns", devices, snr_db, seed, "one design", {"served": one.selected_count})
                for move in MOVES:
                    if (*place, move) not in done:
                        book = schedule(scenario, move=move, method=METHOD)
                        add("turns", devices, snr_db, seed, move, metrics(book))
                        print(devices, snr_db, seed, move, book, f"{book.seconds:.1f} s", flush=True)


def measure_accuracy(rounds: int) -> None:
    """Training on the embedded data."""
    done = known()
    options = TrainOptions(rounds=rounds, evaluate_every=rounds // 4)
    for seed in range(FIRST_TRAINING, FIRST_TRAINING + TRAINED_SEEDS):
        for snr_db in TRAINED_DB:
            scenario, data = prepare(Scenario.paper(10, 5, 5, snr_db, seed), "mnist-mini", options)
            for scheme in ("fedavg", "one design", *MOVES):
                label = 0.0 if scheme == "fedavg" else snr_db  # ideal FedAvg has no noise
                if ("accuracy", "10", f"{label:g}", str(seed), scheme) in done:
                    continue
                if scheme == "fedavg":
                    run = train(None, data, scenario=scenario, options=options, seed=seed, workers=1)
                    served = 10
                elif scheme == "one design":
                    link = design(scenario, METHOD)
                    run = train(link, data, options=options, seed=seed, workers=1)
                    served = link.selected_count
                else:
                    book = schedule(scenario, move=scheme, method=METHOD)
                    run = train(book, data, options=options, seed=seed, workers=1)
                    served = int((book.covered > 0).sum())
                accuracy = 100.0 * run.history[-1].test_accuracy
                values = {"accuracy": accuracy, "served": served, "rounds": run.history[-1].round}
                if run.book is not None:
                    values["turns"] = run.book.turns
                add("accuracy", 10, label, seed, scheme, values)
                done = known()
                print(seed, snr_db, scheme, f"{accuracy:.1f} %", served, flush=True)


def mean(part: str, devices: int, snr_db: float, scheme: str, metric: str) -> tuple[float, int]:
    """Mean over seeds, and their number."""
    values = [
        float(row["value"])
        for row in stored()
        if (row["part"], row["devices"], row["snr_db"], row["scheme"], row["metric"])
        == (part, str(devices), f"{snr_db:g}", scheme, metric)
    ]
    return (float(np.mean(values)) if values else float("nan")), len(values)


def print_tables() -> None:
    """The tables of docs/turns.md."""
    heads = ("K, M=N", "SNR", "one design", "unservable", "turns, antennas", "share", "turns, beams", "share")
    print(f"| {' | '.join(heads)} | not served |\n|{'---|' * (len(heads) + 1)}")
    for devices, waveguides, levels in SIZES:
        for snr_db in levels:
            cells = [f"{mean('turns', devices, snr_db, 'one design', 'served')[0]:.1f}"]
            cells.append(f"{mean('turns', devices, snr_db, 'antennas', 'unservable')[0]:.1f}")
            for move in MOVES:
                cells.append(f"{mean('turns', devices, snr_db, move, 'turns')[0]:.1f}")
                cells.append(f"{100 * mean('turns', devices, snr_db, move, 'share')[0]:.0f} %")
            missing = [f"{mean('turns', devices, snr_db, move, 'missing')[0]:.1f}" for move in MOVES]
            cells.append(" / ".join(missing))
            print(f"| {devices}, {waveguides} | {snr_db:g} dB | {' | '.join(cells)} |")
    print("\n| SNR | FedAvg | one design | turns, antennas | turns, beams |")
    print("|---|---|---|---|---|")
    for snr_db in sorted(TRAINED_DB):
        cells = [f"{mean('accuracy', 10, 0.0, 'fedavg', 'accuracy')[0]:.1f} %"]
        for scheme in ("one design", *MOVES):
            accuracy, count = mean("accuracy", 10, snr_db, scheme, "accuracy")
            served = mean("accuracy", 10, snr_db, scheme, "served")[0]
            cells.append(f"{accuracy:.1f} % ({served:.1f} devices, {count} seeds)")
        print(f"| {snr_db:g} dB | {' | '.join(cells)} |")


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["turns", "accuracy", "tables"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    if given.part == "turns":
        count_turns(given.draws)
    elif given.part == "accuracy":
        measure_accuracy(given.rounds)
    print_tables()


if __name__ == "__main__":
    main()
