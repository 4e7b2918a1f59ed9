"""Python calls with odd arguments."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import airpass
from attack.scenarios import METHODS, tables
from attack.values import NUMBERS, Random, odd_value, pick

Call = Callable[..., Any]


def _scenario(rng: Random) -> airpass.Scenario:
    return airpass.Scenario.from_dict(tables(rng))


def _channels(rng: Random) -> Any:
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 6)))
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def _select(rng: Random) -> tuple[Call, dict[str, Any]]:
    channels = _channels(rng)
    method = pick(rng, ("hrmc", "hrmc+", "mp", "random", "exhaustive"))
    weights = rng.uniform(0.1, 1.0, channels.shape[1])
    return airpass.select, {
        "channels": channels,
        "weights": weights,
        "budget": 1.0,
        "method": method,
        "seed": 1,
    }


def _certify(rng: Random) -> tuple[Call, dict[str, Any]]:
    channels = _channels(rng)
    return airpass.certify, {"channels": channels, "weights": np.ones(channels.shape[1]), "budget": 1.0}


def _design(rng: Random) -> tuple[Call, dict[str, Any]]:
    return airpass.design, {"scenario": _scenario(rng), "method": pick(rng, METHODS), "seed": 1}


def _draws(rng: Random) -> tuple[Call, dict[str, Any]]:
    stack = np.stack([_channels(np.random.default_rng(3)) for _ in range(2)])
    return airpass.select_draws, {"channels": stack, "budget": 1.0, "method": "hrmc"}


def _tolerance(rng: Random) -> tuple[Call, dict[str, Any]]:
    found = airpass.design(_scenario(rng), "distributed-m")
    return airpass.tolerance, {"design": found, "position_mm": 1.0, "draws": 5}


def _parts(rng: Random) -> tuple[Call, dict[str, Any]]:
    found: tuple[Call, dict[str, Any]] = pick(
        rng,
        (
            (airpass.Receiver, {"waveguides": 2, "antennas": 2, "length_m": 9.0, "height_m": 3.0}),
            (airpass.Radio, {"snr_db": 3.0, "mse_threshold": 0.1, "wavelength_m": 0.1, "power": 1.0}),
            (airpass.DeviceDraw, {"count": 3, "seed": 1}),
            (airpass.Devices, {"x_m": [1.0, 2.0], "y_m": [0.0, 1.0], "gain": [1.0, 1.0], "samples": [3, 4]}),
            (airpass.Weighting, {"normalisation": "share"}),
            (airpass.Channel, {"loss_db_per_m": 0.1, "candidates_m": 0.5, "blockage_per_m": 0.1, "seed": 3}),
            (airpass.LinkBudget, {"carrier_ghz": 28.0, "power_dbm": 10.0, "bandwidth_mhz": 10.0}),
            (airpass.Scenario, {"receiver": airpass.Receiver(), "radio": airpass.Radio()}),
            (
                airpass.Scenario.paper,
                {"devices": 3, "waveguides": 2, "antennas": 2, "snr_db": 1.0, "seed": 0},
            ),
            (airpass.Scenario.preset, {"name": "paper", "devices": 3, "seed": 0}),
            (airpass.Scenario.from_dict, {"data": tables(rng)}),
            (airpass.load, {"path": "nothing.json"}),
            (airpass.load_responses, {"path": "nothing.npz"}),
            (
                airpass.SampledResponse,
                {"response": np.ones((1, 2, 3)), "places_m": [0.0, 1.0], "waveguide_included": True},
            ),
            (airpass.PartitionOptions, {}),
            (airpass.ServerOptions, {}),
            (airpass.TrainOptions, {"rounds": 2, "batch": 4}),
        ),
    )
    return found


def _layout(rng: Random) -> tuple[Call, dict[str, Any]]:
    scenario = _scenario(rng)
    return scenario.channels, {"layout": scenario.uniform_layout()}


MAKERS = (_select, _certify, _design, _draws, _tolerance, _parts, _parts, _parts, _layout)


def attack_call(rng: Random, folder: Path) -> str:
    """A public function with some arguments changed."""
    function, arguments = pick(rng, MAKERS)(rng)
    changed = dict(arguments)
    for _ in range(int(rng.integers(0, 3))):
        name = pick(rng, tuple(arguments) or ("seed",))
        value = odd_value(rng)
        if isinstance(arguments.get(name), np.ndarray) and rng.random() < 0.5:
            array = np.array(arguments[name], dtype=complex if rng.random() < 0.3 else None)
            array.flat[0 if array.size == 1 else int(rng.integers(array.size))] = pick(rng, NUMBERS[:16])
            value = array
        changed[name] = value
    function(**changed)
    return "done"
