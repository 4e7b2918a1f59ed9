"""Federated regression on a table of one's own, with one's own network, over a designed link.

Run: python examples/own_data.py
"""

import numpy as np
from torch import nn

import airpass

rng = np.random.default_rng(0)
x = rng.standard_normal((4000, 8)).astype(np.float32)
y = (x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2])).astype(np.float32)
data = airpass.ArrayData(x[:3000], y[:3000], x[3000:], y[3000:], name="table")
split = np.array_split(rng.permutation(3000), 10)  # the samples of each device


def network() -> nn.Module:
    """One hidden layer; one output per sample."""
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1), nn.Flatten(0))


if __name__ == "__main__":  # workers import this file
    local = {"optimiser": "adam", "learning_rate": 0.01, "local_steps": 10, "batch": 32}
    options = airpass.TrainOptions(rounds=60, model=network, **local)
    scenario, prepared = airpass.prepare(airpass.Scenario.paper(seed=1), data, options, split=split)
    runs = airpass.compare(scenario, ["fedavg", "airpass-plus"], prepared, options)
    for run in runs:
        print(run)
    runs.plot("own_data.png")
