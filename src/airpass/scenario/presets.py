"""Named set-ups: tables of a scenario file that take the place of the defaults."""

from collections.abc import Callable, Mapping
from typing import Any

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.text import shown
from airpass.scenario.devices import LISTS
from airpass.scenario.radio import without_replaced_noise

Tables = dict[str, dict[str, Any]]

WIDTH_M = 10.0  # of the room of indoor-28ghz


def paper(waveguides: int | None) -> Tables:
    """The paper's section VI-A, normalised: the defaults of all tables."""
    return {}


def indoor_28ghz(waveguides: int | None) -> Tables:
    """A room of 40 m x 10 m at 28 GHz with 50 devices of 0.1 mW.

    Carrier, effective index, height, room, free-space loss and noise power are usual in work on pinching
    antennas. docs/howto/link-budget.md has the reasons for the other values.
    """
    count = 10 if waveguides is None else waveguides
    return {
        "receiver": {
            "waveguides": count,
            "antennas": 10,
            "length_m": 40.0,
            "waveguide_y_m": [WIDTH_M * (m + 0.5) / count for m in range(count)],
            "height_m": 3.0,
            "min_gap_m": 0.0054,  # half a wavelength
        },
        "radio": {
            "carrier_ghz": 28.0,
            "power_dbm": -10.0,
            "bandwidth_mhz": 400.0,  # the widest channel of 5G at 28 GHz
            "noise_figure_db": 7.0,
            "mse_threshold": 0.01,  # 20 dB with weights by energy
            "refractive_index": 1.4,
        },
        "devices": {
            "count": 50,
            "x_range_m": [0.0, 40.0],
            "y_range_m": [0.0, WIDTH_M],
            "gain_range": [1.0, 1.0],
        },
        "weights": {"normalisation": "energy"},
    }


# Presets by name, as functions of the number of waveguides (None: that of the preset).
PRESETS: dict[str, Callable[[int | None], Tables]] = {"paper": paper, "indoor-28ghz": indoor_28ghz}


def with_preset(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a scenario with the values of their preset filled in.

    A value that is given replaces that of the preset, and those that it cannot be combined with if they
    describe the same: places of waveguides, noise, devices that are given instead of drawn.

    Parameters
    ----------
    data
        Tables of a scenario file, and `preset`.

    Returns
    -------
    dict[str, Any]
        The tables, without `preset`.
    """
    given = {name: table for name, table in data.items() if name != "preset"}
    if "preset" not in data:
        return given
    build = PRESETS[checks.one_of("preset", data["preset"], PRESETS)]
    for name, table in given.items():
        if not isinstance(table, Mapping):
            raise InvalidInput(f"{name} = {shown(table)}: must be a table of keys")
    receiver, radio, devices = (given.get(name, {}) for name in ("receiver", "radio", "devices"))
    count = receiver.get("waveguides")
    tables = build(None if count is None else checks.whole("receiver.waveguides", count, 1))
    if "spacing_m" in receiver:
        tables.get("receiver", {}).pop("waveguide_y_m", None)
    if "radio" in tables:
        tables["radio"] = without_replaced_noise(tables["radio"], radio)
    if set(LISTS) & set(devices) or "responses" in given.get("channel", {}):
        tables.pop("devices", None)
    return {name: {**tables.get(name, {}), **given.get(name, {})} for name in (*given, *tables)}
