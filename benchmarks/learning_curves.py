"""Accuracy over rounds on full MNIST or CIFAR-10. Run: python benchmarks/learning_curves.py mnist|cifar10

The paper's K=10, M=N=5, 10 dB. Results go to docs/data/learning-NAME.csv, the picture to
docs/images/learning-NAME.png. Runs are checkpointed under runs/ and resumed if cut short; with
--draw the picture is made from the results that are there.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np

from airpass import Scenario, design, train
from airpass.figures.style import LINES, RC, new_figure, save
from airpass.learning.training import FEDAVG, TrainOptions, prepare

DOCS = Path(__file__).parent.parent / "docs"
PLANS = {
    "mnist": (("fedavg", "airpass", "mimo-m", "mimo-mn"), (0, 1, 2), 600, 20),
    "cifar10": (("fedavg", "airpass"), (0,), 30, 5),
}
FIELDS = ("scheme", "seed", "round", "test_accuracy", "test_loss", "train_loss", "selected_count")
ERRORS = ("predicted_mse", "measured_mse", "seconds")


def measure(name: str) -> None:
    """Train every scheme on every seed."""
    schemes, seeds, rounds, every = PLANS[name]
    options = TrainOptions(rounds=rounds, evaluate_every=every)
    rows: list[dict[str, object]] = []
    for seed in seeds:
        scenario, _, _ = prepare(Scenario.paper(seed=seed), name, options, seed)
        for scheme in schemes:
            link = None if scheme == FEDAVG else design(scenario, scheme, seed=seed)
            checkpoint = Path("runs") / f"learning-{name}" / f"{scheme}-{seed}.npz"
            run = train(
                link,
                name,
                seed=seed,
                scenario=scenario,
                options=options,
                checkpoint=checkpoint,
                resume=True,
            )
            for record in run.history:
                row = {field: getattr(record, field) for field in (*FIELDS[2:], *ERRORS)}
                rows.append({"scheme": scheme, "seed": seed, **row})
            last = run.history[-1]
            print(
                f"{scheme} seed {seed}: {100 * last.test_accuracy:.2f} % in {last.seconds:.0f} s", flush=True
            )
            target = DOCS / "data" / f"learning-{name}.csv"
            target.parent.mkdir(exist_ok=True)
            with target.open("w", newline="") as file:
                writer = csv.DictWriter(file, (*FIELDS, *ERRORS))
                writer.writeheader()
                writer.writerows(rows)


def draw(name: str) -> None:
    """Mean over seeds, with the range between them shaded."""
    curves: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    devices: dict[str, list[int]] = defaultdict(list)
    with (DOCS / "data" / f"learning-{name}.csv").open() as file:
        for row in csv.DictReader(file):
            curves[row["scheme"]][int(row["round"])].append(100 * float(row["test_accuracy"]))
            if row["round"] == "0":
                devices[row["scheme"]].append(int(row["selected_count"]))
    with mpl.rc_context(RC):
        figure = new_figure(6.0, 3.6)
        axes = figure.subplots()
        for (scheme, points), (colour, dash, marker) in zip(curves.items(), LINES, strict=False):
            rounds = sorted(points)
            mean = [np.mean(points[r]) for r in rounds]
            axes.plot(
                rounds,
                mean,
                color=colour,
                linestyle=dash,
                marker=marker,
                markevery=max(1, len(rounds) // 8),
                markersize=4,
                linewidth=1.4,
                label=f"{scheme} ({np.mean(devices[scheme]):.1f} devices)",
            )
            low, high = ([f(points[r]) for r in rounds] for f in (min, max))
            axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
        count = max(len(values) for points in curves.values() for values in points.values())
        draws = f"mean and range of {count} draws" if count > 1 else "one draw"
        axes.set(xlabel="communication round", ylabel="test accuracy, %", xlim=(0, None))
        axes.set_ylim(0, min(100.0, 1.3 * axes.get_ylim()[1]))
        axes.set_title(f"{name}, K=10, M=N=5, 10 dB; {draws}")
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.legend(loc="best", fontsize=8)
    save(figure, DOCS / "images" / f"learning-{name}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(PLANS))
    parser.add_argument("--draw", action="store_true", help="only draw")
    chosen = parser.parse_args()
    if not chosen.draw:
        measure(chosen.name)
    draw(chosen.name)
