"""Accuracy and transmit power with pooled and with per-device statistics of the updates.

    python benchmarks/update_statistics.py    # trains what is missing, prints the table

MNIST, K = 10, M = N = 5, 10 dB, designs by airpass-plus, 300 rounds, seeds 5000 to 5004.
"""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from airpass import Scenario, TrainOptions, design, prepare, train
from airpass.learning.aggregation import STATISTICS, LinkOptions

FILE = Path(__file__).parent.parent / "docs" / "data" / "update-statistics.csv"
SEEDS = range(5000, 5005)
OPTIONS = TrainOptions(rounds=300, evaluate_every=50)
FIELDS = ("seed", "statistics", "round", "test_accuracy", "measured_mse", "measured_sdr_db", "largest_power")


def rows() -> list[dict[str, str]]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Train what is missing and print means over the seeds."""
    done = {(row["seed"], row["statistics"]) for row in rows()}
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in SEEDS:
            scenario, data = prepare(Scenario.paper(seed=seed), "mnist", OPTIONS, seed)
            link = design(scenario, seed=seed)
            for statistics in STATISTICS:
                if (str(seed), statistics) in done:
                    continue
                options = replace(OPTIONS, link=LinkOptions(statistics=statistics))
                run = train(link, data, seed=seed, options=options)
                for record in run.history[1:]:
                    values = {name: getattr(record, name) for name in FIELDS[2:]}
                    writer.writerow({"seed": seed, "statistics": statistics, **values})
                file.flush()
    print(
        "| statistics | accuracy after 300 rounds | measured SDR | largest power over P0 |\n|---|---|---|---|"
    )
    for statistics in STATISTICS:
        last = [row for row in rows() if row["statistics"] == statistics and row["round"] == "300"]
        power = [float(row["largest_power"]) for row in rows() if row["statistics"] == statistics]
        accuracy = 100 * np.mean([float(row["test_accuracy"]) for row in last])
        sdr = np.mean([float(row["measured_sdr_db"]) for row in last])
        print(f"| {statistics} | {accuracy:.2f} % | {sdr:.1f} dB | {min(power):.2f} to {max(power):.2f} |")


if __name__ == "__main__":
    main()
