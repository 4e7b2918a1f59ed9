"""A selection method of one's own, next to the built-in ones, in one figure.

Run: python examples/own_method.py
"""

from pathlib import Path

import numpy as np

import airpass


def nearest(effective: np.ndarray, rng: np.random.Generator, devices: int = 3) -> np.ndarray:
    """Beam matched to the sum of the strongest devices."""
    strongest = np.argsort(-np.linalg.norm(effective, axis=0))[:devices]
    return effective[:, strongest].sum(axis=1)


if __name__ == "__main__":  # workers import this file
    scenario = airpass.Scenario.paper(devices=20, snr_db=15.0)
    channels = scenario.channels(scenario.uniform_layout())
    for method in (nearest, "mp", "hrmc", "hrmc+"):
        print(airpass.select(channels, scenario.weights, scenario.budget, method))
    mine = {"label": "mine", "selection": f"{Path(__file__).resolve()}:nearest", "geometry": "hago"}
    study = airpass.sweep(
        {"name": "mine", "schemes": [mine, "airpass"], "trials": 3,
         "axis": {"field": "radio.snr_db", "values": [5, 10, 15]}}
    )  # fmt: skip
    print("figure: runs/mine/mine.png", len(study.rows), "rows")
