"""Scenarios, good and bad, and what every accepted design must fulfil."""

import json
from pathlib import Path
from typing import Any

import airpass
from airpass.designs.alternating import Airpass, Alternation
from airpass.designs.base import DesignMethod
from airpass.designs.colocated import MimoM, MimoMn, MimoMnPlus
from airpass.designs.distributed import DistributedM, DistributedMn
from airpass.designs.plus import AirpassPlus
from airpass.documents import encode
from airpass.geometry.elementwise import Elementwise
from airpass.selection.hrmc import Hrmc
from airpass.selection.matching_pursuit import Mp
from attack.values import Random, pick, plain_value
from independent import check_design

METHODS: tuple[DesignMethod, ...] = (
    AirpassPlus(starts=1, kicks=1, threads=1),
    AirpassPlus(starts=1, kicks=0, threads=1, grow=False, polish=False),
    Airpass(max_iterations=2),
    Alternation(selection=Hrmc(), geometry=Elementwise(), max_iterations=2),
    Alternation(selection=Mp(), geometry=Elementwise(), max_iterations=1),
    MimoM(),
    MimoMn(axis="xz"),
    MimoMnPlus(axis="z"),
    DistributedM(),
    DistributedMn(),
)
# Numeric keys of a scenario.
FIELDS = {
    "receiver": ("waveguides", "antennas", "length_m", "spacing_m", "height_m", "min_gap_m", "waveguide_y_m"),
    "radio": ("snr_db", "mse_threshold", "wavelength_m", "refractive_index", "path_gain", "power"),
    "devices": ("count", "seed", "x_m", "y_m", "gain", "samples", "z_m", "priority"),
    "weights": ("normalisation",),
    "channel": (
        *("loss_db_per_m", "power_split", "power_split_delta", "blockage_per_m", "blockage_stretch_m"),
        *("rician_k_db", "rician_waves", "candidates_m", "subcarriers", "model", "seed"),
    ),
}


def tables(rng: Random) -> dict[str, Any]:
    """A small scenario that is good, as a rule."""
    count = int(rng.integers(1, 9))
    made: dict[str, Any] = {
        "receiver": {
            "waveguides": int(rng.integers(1, 4)),
            "antennas": int(rng.integers(1, 4)),
            "length_m": float(rng.uniform(3.0, 30.0)),
            "spacing_m": float(rng.uniform(0.5, 4.0)),
            "height_m": float(rng.uniform(1.0, 6.0)),
            "min_gap_m": float(rng.uniform(0.0, 1.0)),
            "feed": pick(rng, ("left", "right", "centre")),
        },
        "radio": {
            "snr_db": float(rng.uniform(-20.0, 30.0)),
            "mse_threshold": float(10.0 ** rng.uniform(-3.0, 0.0)),
            "wavelength_m": float(10.0 ** rng.uniform(-2.0, 0.0)),
        },
        "devices": {"count": count, "seed": int(rng.integers(1000))},
        "weights": {"normalisation": pick(rng, ("share", "count", "energy"))},
    }
    if rng.random() < 0.3:
        made["devices"] = {
            name: rng.uniform(low, high, count).tolist()
            for name, low, high in (
                ("x_m", 0.0, 30.0),
                ("y_m", 0.0, 8.0),
                ("gain", 0.1, 2.0),
                ("samples", 1.0, 50.0),
                ("z_m", 0.0, 0.9),
            )
        }
    if rng.random() < 0.4:
        made["channel"] = pick(
            rng,
            (
                {"loss_db_per_m": float(rng.uniform(0.0, 1.0))},
                {"power_split": "proportional"},
                {"blockage_per_m": float(rng.uniform(0.0, 0.3))},
                {"rician_k_db": float(rng.uniform(-10.0, 20.0))},
                {"candidates_m": float(rng.uniform(0.3, 2.0))},
                {"model": "pattern", "exponent": float(rng.uniform(0.0, 4.0))},
                {"model": "cylinders", "x_m": [5.0, 9.0], "y_m": [2.0, 3.0]},
            ),
        )
    return made


def spoil(rng: Random, made: dict[str, Any]) -> None:
    """Change some values of a scenario to anything."""
    for _ in range(int(rng.integers(1, 4))):
        section = pick(rng, tuple(FIELDS))
        key = pick(rng, (*FIELDS[section], "unknown")) if rng.random() < 0.97 else "x" * 300
        value = plain_value(rng)
        if rng.random() < 0.2:
            made[section] = value
        elif isinstance(made.setdefault(section, {}), dict):
            made[section][key] = value if rng.random() < 0.8 else [value, value]


def attack_scenario(rng: Random, folder: Path) -> str:
    """Design for a random scenario; whatever is accepted must agree with the formulas."""
    made = tables(rng)
    if rng.random() < 0.6:
        spoil(rng, made)
    method = pick(rng, METHODS)
    scenario = airpass.Scenario.from_dict(made)
    found = airpass.design(scenario, method, seed=int(rng.integers(100)))
    path = folder / "design.json"
    found.save(path)
    document = json.loads(path.read_bytes())
    check_design(document)
    if rng.random() < 0.1:
        again = airpass.load(path)
        assert encode(json.loads(path.read_bytes())) == encode(document)
        assert (again.scores == found.scores).all(), "scores change when a design is stored"
    return "designed"
