"""Which devices a round serves: training with and without queues, at rest and while devices walk.

Run: python benchmarks/policies.py run|table|share [--rounds 200]

`run` adds rows to docs/data/policies.csv; rows that are there are not computed again. `table` prints the
table of accuracies of docs/howto/policies.md. `share` measures and prints that of target shares, without
training.
Seeds start at 8520; those of `share`, which the default was chosen on, at 8600.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import csv  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from itertools import product  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from airpass import (  # noqa: E402
    Moving,
    Queues,
    RandomWaypoint,
    Scenario,
    TrainOptions,
    design,
    design_for_all,
    prepare,
    schedule,
    train,
)

ROWS = Path(__file__).resolve().parent.parent / "docs" / "data" / "policies.csv"
COLUMNS = ("round_s", "seed", "scheme", "policy", "metric", "value")
SEEDS = range(8520, 8523)
SHARE_SEEDS = range(8600, 8603)
SHARES = (0.1, 0.2, 0.33, 0.5)
SCHEMES = ("airpass-plus", "mimo-mn-plus", "distributed-mn")
ROUND_S = (0.1, 1.0)
SPEED_M_S = 1.0
SNR_DB = 0.0
LARGER, LARGER_THRESHOLD = "threshold 1", 1.0  # for nearly all devices, instead of 0.03


def cases() -> Iterator[tuple[str, str, str]]:
    """Duration of a round, scheme and policy; "rest" is no motion."""
    for round_s in ROUND_S:
        for scheme in SCHEMES:
            for policy in ("plain", "queues", LARGER):
                yield f"{round_s:g}", scheme, policy
    for policy in ("plain", "queues", "turns", "all devices"):
        yield "rest", "airpass-plus", policy
    yield "rest", "fedavg", "plain"


def links_of(case: tuple[str, str, str], scenario: Scenario, rounds: int, seed: int) -> Any:
    """What `train` gets for a case."""
    round_s, scheme, policy = case
    if scheme == "fedavg":
        return None
    if policy == LARGER:
        scenario = scenario.with_radio(mse_threshold=LARGER_THRESHOLD)
    if policy == "all devices":
        return design_for_all(scenario, scheme, seed=seed)
    if policy == "turns":
        return schedule(scenario, method=scheme, seed=seed)
    moving = None if round_s == "rest" else Moving(RandomWaypoint(SPEED_M_S, seed=seed), float(round_s))
    if policy == "queues":
        return Queues().links(scenario, rounds, scheme, moving=moving, seed=seed)
    if moving is None:
        return design(scenario, scheme, seed=seed)
    return moving.links(scenario, rounds, scheme, seed=seed)


def selected_in(links: Any, rounds: int) -> Any:
    """Devices that take part, shape (rounds, K)."""
    sequence = getattr(links, "links", links)
    if not hasattr(sequence, "__getitem__"):
        sequence = [sequence]
    return np.array([sequence[number % len(sequence)].selected for number in range(rounds)])


def run(rounds: int) -> None:
    """Measure what is not known yet."""
    rows = stored()
    known = {tuple(row[name] for name in COLUMNS[:4]) for row in rows}
    for case, seed in product(cases(), SEEDS):
        round_s, scheme, policy = case
        if (round_s, str(seed), scheme, policy) in known:
            continue
        options = TrainOptions(rounds=rounds, evaluate_every=rounds, probe_images=100)
        scenario, data = prepare(Scenario.paper(snr_db=SNR_DB, seed=seed), "mnist-mini", options)
        links = links_of(case, scenario, rounds, seed)
        result = train(links, data, options=options, scenario=scenario, workers=1, progress=False)
        values = {"accuracy": result.history[-1].test_accuracy}
        if links is not None:
            chosen = selected_in(links, rounds)
            values |= {
                "devices": float(chosen.sum(axis=1).mean()),
                "ever": float(chosen.any(axis=0).sum()),
                "least_share": float(chosen.mean(axis=0).min()),
            }
        add((round_s, str(seed), scheme, policy), values)


def stored() -> list[dict[str, str]]:
    """All rows."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def add(case: tuple[str, ...], values: dict[str, float]) -> None:
    """Append rows, one per metric."""
    new = not ROWS.exists()
    with ROWS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for metric, value in values.items():
            writer.writerow([*case, metric, f"{value:.6g}"])
            print(*case, metric, f"{value:.6g}", flush=True)


def table() -> None:
    """Means over seeds, and the accuracy of every seed; only seeds for which all cases are known."""
    known = {
        (row["round_s"], row["scheme"], row["policy"], int(row["seed"]), row["metric"]): float(row["value"])
        for row in stored()
    }
    for round_s in (*(f"{one:g}" for one in ROUND_S), "rest"):
        group = [case for case in cases() if case[0] == round_s]
        seeds = [seed for seed in SEEDS if all((*case, seed, "accuracy") in known for case in group)]
        print(f"\nseeds {', '.join(map(str, seeds))}\n")
        print("| round | scheme | policy | accuracy | by seed | devices per round | ever |")
        print("|---|---|---|---|---|---|---|")
        for case in group if seeds else []:

            def means(
                metric: str, case: tuple[str, str, str] = case, seeds: list[int] = seeds
            ) -> list[float]:
                return [known.get((*case, seed, metric), 10.0) for seed in seeds]

            by_seed = means("accuracy")
            cells = [f"{100 * np.mean(by_seed):.1f} %", ", ".join(f"{100 * value:.1f}" for value in by_seed)]
            cells += [f"{np.mean(means(name)):.1f}" for name in ("devices", "ever")]
            print("|", " | ".join([*case, *cells]), "|")


def share(rounds: int) -> None:
    """Noise and bias against the target share."""
    print("| share | scheme | devices per round | noise | bias |")
    print("|---|---|---|---|---|")
    for scheme in ("airpass-plus", "mimo-mn-plus"):
        for target in SHARES:
            counts, noise, bias = [], [], []
            for seed in SHARE_SEEDS:
                scenario = Scenario.paper(snr_db=SNR_DB, seed=seed)
                moving = Moving(RandomWaypoint(SPEED_M_S, seed=seed), 1.0)
                links = Queues(target).links(scenario, rounds, scheme, moving=moving, seed=seed)
                counted = np.zeros(scenario.devices.count)
                for link in links:
                    counts.append(link.selected_count)
                    if link.selected_count:
                        noise.append(link.mse / link.divisor**2)
                        counted += np.where(link.selected, link.weights, 0.0) / link.divisor / rounds
                bias.append(float(np.abs(counted - scenario.weights).sum()))
            values = [f"{np.mean(counts):.1f}", f"{np.mean(noise):.2f}", f"{np.mean(bias):.3f}"]
            print("|", " | ".join([f"{target:g}", scheme, *values]), "|", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "share"])
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    if given.what == "run":
        run(given.rounds)
    elif given.what == "share":
        share(given.rounds)
    else:
        table()
