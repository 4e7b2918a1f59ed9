"""What the page shows: designs, the room, methods and their options, as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from math import isfinite
from typing import Any, get_args, get_type_hints

import numpy as np

from airpass.channel.blockage import Cylinders
from airpass.channel.factored import FactoredUplink
from airpass.core.display import LOOKS, looks
from airpass.core.registry import Method
from airpass.core.types import Real
from airpass.designs import METHODS
from airpass.designs.api import Design
from airpass.designs.base import Step
from airpass.designs.colocated import ArrayDesign
from airpass.explore.state import LIVE, method_dict
from airpass.scenario import Scenario
from airpass.scenario.devices import COLUMNS, PRIORITY
from airpass.scenario.radio import LIGHT_M_S
from airpass.wideband import WidebandLink

# Options that have a few values, which their types do not tell.
CHOICES = {
    "axis": ["x", "y", "z", "xy", "xz", "yz"],
    "effort": ["fast", "default", "thorough"],
}


def number(value: float) -> float | None:
    """A number for JSON; null for NaN and infinity."""
    return float(value) if isfinite(value) else None


def answer(found: Design) -> dict[str, Any]:
    """A design as the page shows it.

    Parameters
    ----------
    found
        The design.

    Returns
    -------
    dict[str, Any]
        Scores, selected devices and errors, and the room around them.
    """
    transmit = np.abs(found.transmit) ** 2
    if isinstance(found, WidebandLink):
        transmit = transmit.sum(axis=0)
    chosen, scores = found.selected, found.scores
    count = found.selected_count
    return {
        "source": "live" if found.method == LIVE else "design",
        "method": method_dict(found.method),
        "layout_m": None if found.layout is None else found.layout.tolist(),
        "array_m": None if found.array is None else found.array.tolist(),
        "scores": scores.tolist(),
        "selected": chosen.tolist(),
        "weights": found.weights.tolist(),
        "transmit_power": (transmit / found.power).tolist(),
        "selected_count": count,
        "weakest_score": number(float(scores[chosen].min())) if count else None,
        "strongest_score": number(float(scores.max())),
        "mse": number(float(found.mse)) if count else None,
        "mse_threshold": number(float(found.scenario.radio.mse_threshold)),
        "sdr_db": number(float(found.sdr_db)) if count else None,
        "seconds": found.seconds,
        "status": found.status,
        "radio": found.scenario.radio.short_summary,
        "snr_db": found.scenario.radio.snr_db,
        "carrier_ghz": 1e-9 * LIGHT_M_S / found.scenario.radio.wavelength_m,
        "wavelength_m": found.scenario.radio.wavelength_m,
        "devices": devices(found.scenario),
        "room": room(found.scenario),
    }


def devices(scenario: Scenario) -> dict[str, Any]:
    """The devices as lists."""
    return {name: getattr(scenario.devices, name).tolist() for name in (*COLUMNS, PRIORITY)}


def room(scenario: Scenario) -> dict[str, Any]:
    """What is drawn besides devices and antennas."""
    receiver, channel = scenario.receiver, scenario.channel
    obstacles = [
        {"x_m": x, "y_m": y, "radius_m": radius, "height_m": height}
        for model in channel.models
        if isinstance(model, Cylinders)
        for x, y, radius, height in zip(model.x_m, model.y_m, model.radii, model.heights, strict=True)
    ]
    given = channel.responses is not None
    candidates = None if given or scenario.candidates is None else scenario.candidates
    return {
        "waveguide_y_m": receiver.waveguide_y.tolist(),
        "height_m": receiver.heights.tolist(),
        "length_m": receiver.lengths.tolist(),
        "feed_x_m": receiver.feed_x.tolist(),
        "min_gap_m": receiver.min_gap_m,
        "segments": channel.segments,
        "candidates_m": None if candidates is None else [places.tolist() for places in candidates.places],
        "obstacles": obstacles,
        "devices_move": not given,
        "has_factors": bool(channel.factors),
        "channel": _described(scenario),
    }


def _described(scenario: Scenario) -> list[str]:
    """What differs from the paper's channel, in words."""
    channel = scenario.channel
    lines = []
    if channel.loss_db_per_m:
        lines.append(f"loss {channel.loss_db_per_m:g} dB/m")
    if scenario.split_delta is not None:
        lines.append("proportional power split")
    if channel.segments > 1:
        lines.append(f"{channel.segments} segments, {channel.segment_mode}")
    if channel.blockage_per_m:
        lines.append(f"blockage {channel.blockage_per_m:g} per m")
    if channel.rician_k_db is not None:
        lines.append(f"Rice factor {channel.rician_k_db:g} dB")
    if channel.subcarriers > 1:
        lines.append(f"{channel.subcarriers} subcarriers, {scenario.bandwidth_mhz:g} MHz")
    if channel.candidates_m is not None:
        lines.append("given places")
    lines += [f"model {model.name}" for model in channel.models]
    if channel.responses is not None:
        lines.append("responses from a file")
    return lines


def links(found: Design, device: int) -> list[list[float]] | None:
    """How free the links of one device are: |f| of the channel's factors at every antenna, at most one.

    Parameters
    ----------
    found
        A design on waveguides.
    device
        Number of the device.

    Returns
    -------
    list of lists or None
        A list per waveguide; None if the channel has no factors.
    """
    if found.layout is None or found.scenario.channel.subcarriers > 1:
        return None
    uplink = found.scenario.uplink
    if not isinstance(uplink, FactoredUplink):
        return None
    values: Real = np.minimum(np.abs(uplink.factor(found.layout)[:, :, device]), 1.0)
    return [row.tolist() for row in values]


def step(one: Step) -> dict[str, Any]:
    """A step of a search."""
    return {
        "iteration": one.iteration,
        "selected_count": one.selected_count,
        "weakest_score": number(one.weakest_score),
        "seconds": one.seconds,
        "best": one.best,
        "phase": one.phase,
        "layout_m": None if one.layout is None else one.layout.tolist(),
    }


def methods() -> list[dict[str, Any]]:
    """Every design method with its options, for the form of the page."""
    return [
        {
            "name": name,
            "summary": method.summary,
            "array": isinstance(method, ArrayDesign),
            "options": _options(method),
        }
        for name, method in METHODS.methods().items()
    ]


def _options(method: Any, prefix: str = "") -> list[dict[str, Any]]:
    """Options with their values; those of nested methods have names such as selection.starts."""
    found = []
    hints = get_type_hints(type(method))
    for item in fields(method):
        value, name = getattr(method, item.name), f"{prefix}{item.name}"
        if isinstance(value, Method) or is_dataclass(value):
            found += _options(value, f"{name}.")
            continue
        kinds = [kind for kind in (*get_args(hints[item.name]), hints[item.name]) if isinstance(kind, type)]
        kind = next((one for one in (bool, int, float, str) if one in kinds), str)
        found.append(
            {
                "name": name,
                "value": value,
                "kind": kind.__name__,
                "choices": CHOICES.get(item.name) if kind is str else None,
            }
        )
    return found


def looks_table(labels: Mapping[str, Any] | list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Names and line styles: of all known schemes, or of the labels of one figure."""
    return {label: asdict(look) for label, look in (LOOKS if labels is None else looks(labels)).items()}
