"""The state of the page, and the design that it stands for.

A state is a JSON object:

    scenario   tables as in a scenario file
    seed       of searches
    layout_m   antenna positions, M lists of N; null for even spacing
    array      {"name", "options"} of an array without waveguides that takes the place of the layout, or null
    found      {"method": {"name", "options"}, "beam": {"re", "im"}, "seed", "seconds", "status"} if a search
               has found the antennas and the beam, or null: then the beam is that of `hrmc+` on the antennas

Messages may name registered methods and channel models only. A model `file.py:Name`, or a file of responses,
is accepted if it is that of a scenario which was opened on the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference
from airpass.core.registry import options_dict
from airpass.core.text import one_line, shown
from airpass.core.types import Complex, Real
from airpass.designs import METHODS
from airpass.designs.api import Design, WidebandDesign, design
from airpass.designs.base import DesignMethod, RecordedDesign
from airpass.designs.colocated import ArrayDesign
from airpass.designs.distributed import DistributedM
from airpass.documents.common import channels_of
from airpass.scenario import Scenario

LIVE = DistributedM()  # hrmc+ on antennas that stay: the method of live answers
# Largest sizes, so that an answer takes seconds at most.
LIMITS = {"devices": 2000, "waveguides": 64, "antennas": 64, "subcarriers": 64, "waves": 1000}
LONGEST_NAME = 100  # of a method
STATE_KEYS = ("scenario", "seed", "layout_m", "array", "found")


@dataclass(frozen=True, eq=False)
class Trusted:
    """Channels of scenarios that were opened on the command line; they may name files.

    Parameters
    ----------
    channels
        Tables `channel` of these scenarios.
    """

    channels: tuple[Mapping[str, Any], ...] = ()

    def with_channel(self, scenario: Mapping[str, Any]) -> "Trusted":
        """The same with the channel of one more scenario."""
        channel = scenario.get("channel")
        return Trusted((*self.channels, channel)) if channel else self

    def check(self, tables: Mapping[str, Any]) -> None:
        """Refuse a scenario that names files, unless they were opened on the command line."""
        channel = tables.get("channel")
        if not channel or channel in self.channels:
            return
        for value in _values(channel):
            if isinstance(value, str) and is_reference(value):
                raise InvalidInput(
                    f"channel.model = {shown(value)}: the page may use registered models only; open a "
                    "scenario file that has it"
                )
        if isinstance(channel, Mapping) and "responses" in channel:
            raise InvalidInput(
                "channel.responses: the page may not name files; open a scenario file that does"
            )


def _values(value: Any) -> list[Any]:
    """Everything in nested tables and lists."""
    if isinstance(value, Mapping):
        return [item for one in value.values() for item in _values(one)]
    if isinstance(value, list | tuple):
        return [item for one in value for item in _values(one)]
    return [value]


@dataclass(frozen=True, eq=False)
class State:
    """A state that has been checked.

    Parameters
    ----------
    scenario
        The scenario.
    seed
        Seed of searches.
    layout
        Antenna positions, shape (M, N), feasible; None for an array without waveguides.
    array
        The array without waveguides; None for a layout.
    found
        What a search has found; None without a search.
    """

    scenario: Scenario
    seed: int
    layout: Real | None
    array: ArrayDesign | None = None
    found: "Found | None" = field(default=None, repr=False)

    def design(self) -> Design:
        """The design that the state stands for.

        Returns
        -------
        Design
            With the beam that a search has found, or else with that of `hrmc+`.
        """
        if self.found is None:
            if self.array is not None:
                return design(self.scenario, self.array, seed=self.seed)
            return design(self.scenario, LIVE, seed=self.seed, start_layout=self.layout)
        places = None if self.array is None else self.array.positions(self.scenario)
        channels = channels_of(self.scenario, self.layout, places)
        assert channels is not None
        chains, subcarriers = channels.shape[-2], self.scenario.channel.subcarriers
        wanted = (chains,) if subcarriers == 1 else (subcarriers, chains)
        if self.found.beam.shape != wanted:
            raise InvalidInput(f"found.beam has shape {self.found.beam.shape}: must be {wanted}")
        rule = self.scenario.channel.subcarrier_rule
        kind = Design if subcarriers == 1 else partial(WidebandDesign, rule=rule)
        return kind(
            channels=channels,
            weights=self.scenario.weights,
            beam=self.found.beam,
            budget=self.scenario.budget,
            power=self.scenario.radio.power,
            mse_threshold=self.scenario.radio.mse_threshold,
            scenario=self.scenario,
            method=self.found.method,
            layout=self.layout,
            array=places,
            trace=(),
            status=self.found.status,
            work={},
            seconds=self.found.seconds,
            compile_seconds=0.0,
            seed=self.found.seed,
        )

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON; devices as explicit lists."""
        return {
            "scenario": self.scenario.to_dict(),
            "seed": self.seed,
            "layout_m": None if self.layout is None else self.layout.tolist(),
            "array": None if self.array is None else method_dict(self.array),
            "found": None if self.found is None else self.found.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has found.

    Parameters
    ----------
    method
        The method.
    beam
        The beam, shape (M,), or (S, M) with subcarriers.
    seed
        Seed of the search.
    seconds
        Its duration.
    status
        Why it ended.
    """

    method: DesignMethod
    beam: Complex
    seed: int = 0
    seconds: float = 0.0
    status: str = "done"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "method": method_dict(self.method),
            "beam": {"re": self.beam.real.tolist(), "im": self.beam.imag.tolist()},
            "seed": self.seed,
            "seconds": self.seconds,
            "status": self.status,
        }


def state_of(found: Design) -> State:
    """The state that stands for a design.

    Parameters
    ----------
    found
        A design whose method is registered, or one that was read from a file.

    Returns
    -------
    State
        A design of `LIVE` is a state without a search.
    """
    if found.layout is not None and found.method == LIVE:
        return State(found.scenario, found.seed, found.layout)
    array = found.method if found.layout is None else None
    if array is not None and not isinstance(array, ArrayDesign):
        raise InvalidInput(f"method {found.method.name}: its antennas are not on waveguides")
    searched = Found(found.method, found.beam, found.seed, found.seconds, found.status)
    return State(found.scenario, found.seed, found.layout, array, searched)


def read_state(message: Any, trusted: Trusted) -> State:
    """Check a state that the page sent.

    Parameters
    ----------
    message
        The state as JSON. A layout that does not fit the receiver is fitted to it.
    trusted
        What the page may name besides registered names.

    Returns
    -------
    State
        The state.
    """
    table = _table("state", message)
    checks.known_keys("state", table, STATE_KEYS)
    scenario = read_scenario(table.get("scenario"), trusted)
    seed = checks.whole("seed", table.get("seed", 0), 0)
    array: ArrayDesign | None = None
    if table.get("array") is not None:
        named = read_method(table["array"])
        if not isinstance(named, ArrayDesign):
            raise InvalidInput(f"array = {named.name!r}: is not an array without waveguides")
        array = named
    layout = None if array is not None else fitted_layout(scenario, table.get("layout_m"))
    given = table.get("found")
    return State(scenario, seed, layout, array, None if given is None else _read_found(given, seed))


def _read_found(message: Any, seed: int) -> Found:
    """Check what a search has found."""
    found = _table("found", message)
    checks.known_keys("found", found, ("method", "beam", "seed", "seconds", "status"))
    beam = _table("found.beam", found.get("beam"))
    try:
        values = np.asarray(beam["re"], np.float64) + 1j * np.asarray(beam["im"], np.float64)
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("found.beam: must have re and im, lists of numbers") from None
    norms = np.linalg.norm(values, axis=-1) if values.ndim in (1, 2) else np.zeros(1)
    if not (np.isfinite(values).all() and np.allclose(norms, 1.0, rtol=0.0, atol=1e-6)):
        raise InvalidInput("found.beam: must be finite and of unit norm")
    return Found(
        _method_of_search(found.get("method")),
        values,
        checks.whole("found.seed", found.get("seed", seed), 0),
        checks.at_least("found.seconds", found.get("seconds", 0.0), 0.0),
        one_line(str(found.get("status", "done"))),
    )


def read_scenario(tables: Any, trusted: Trusted) -> Scenario:
    """Check a scenario that the page sent, and its size."""
    given = _table("scenario", tables)
    trusted.check(given)
    for name, table in given.items():
        if name != "preset":
            _table(f"scenario.{name}", table)
    _check_sizes(given)
    scenario = Scenario.from_dict(given)
    check_size(scenario)
    return scenario


def _check_sizes(tables: Mapping[str, Any]) -> None:
    """Refuse sizes before anything of that size is built."""
    stated = {
        "devices.count": ("devices", LIMITS["devices"]),
        "receiver.waveguides": ("receiver", LIMITS["waveguides"]),
        "receiver.antennas": ("receiver", LIMITS["antennas"]),
        "channel.subcarriers": ("channel", LIMITS["subcarriers"]),
        "channel.rician_waves": ("channel", LIMITS["waves"]),
    }
    for label, (section, most) in stated.items():
        value = tables.get(section, {}).get(label.partition(".")[2])
        if isinstance(value, int | float) and value > most:
            raise InvalidInput(f"{label} = {value:g}: the explorer shows at most {most}")


def check_size(scenario: Scenario) -> None:
    """Refuse a scenario that is too large for live answers.

    Parameters
    ----------
    scenario
        The scenario.
    """
    sizes = {
        "devices": ("devices.count", scenario.devices.count),
        "waveguides": ("receiver.waveguides", scenario.receiver.waveguides),
        "antennas": ("receiver.antennas", scenario.receiver.antennas),
        "subcarriers": ("channel.subcarriers", scenario.channel.subcarriers),
        "waves": ("channel.rician_waves", scenario.channel.rician_waves),
    }
    for name, (label, size) in sizes.items():
        if size > LIMITS[name]:
            raise InvalidInput(f"{label} = {size}: the explorer shows at most {LIMITS[name]}")


def read_method(message: Any) -> DesignMethod:
    """The design method of {"name", "options"}; registered names only."""
    table = _table("method", message)
    checks.known_keys("method", table, ("name", "options"))
    name = table.get("name")
    if not isinstance(name, str) or name not in METHODS.methods():
        raise InvalidInput(f"method = {shown(name)}: must be one of {', '.join(METHODS.methods())}")
    return METHODS.resolve(name, _table("options", table.get("options") or {}))


def _method_of_search(message: Any) -> DesignMethod:
    """The method of a design that was found before; one that is not registered is only named."""
    table = _table("found.method", message)
    name = table.get("name")
    if isinstance(name, str) and name not in METHODS.methods() and 0 < len(name) <= LONGEST_NAME:
        return RecordedDesign(name, {}, dict(_table("options", table.get("options") or {})))
    return read_method(message)


def method_dict(method: DesignMethod) -> dict[str, Any]:
    """A method as {"name", "options"}."""
    return {"name": method.name, "options": options_dict(method)}


def fitted_layout(scenario: Scenario, given: Any) -> Real:
    """The feasible layout nearest to a given one.

    Parameters
    ----------
    scenario
        The scenario.
    given
        M lists of N positions in metres; None for even spacing. If the numbers of waveguides or antennas have
        changed, waveguides that still have N antennas keep them, and others are evenly spaced.

    Returns
    -------
    Real
        Antenna positions, shape (M, N).
    """
    even = scenario.uniform_layout()
    if given is None:
        return even
    if not isinstance(given, list) or not all(isinstance(row, list) for row in given):
        raise InvalidInput("layout_m: must be M lists of N positions")
    try:
        rows = [np.asarray(row, np.float64) for row in given[: len(even)]]
    except (TypeError, ValueError):
        raise InvalidInput("layout_m: must be M lists of N positions") from None
    layout = even.copy()
    for m, row in enumerate(rows):
        if row.shape == layout[m].shape and np.isfinite(row).all():
            layout[m] = row
    try:
        return scenario.checked_layout(layout)
    except InvalidInput:
        pass
    receiver = scenario.receiver
    gaps = np.arange(receiver.antennas) * receiver.min_gap_m
    low, high = scenario.spans(np.clip(layout, 0.0, receiver.lengths[:, None]))
    for m in range(receiver.waveguides):
        free = max(0.0, high[m] - low[m] - gaps[-1])
        layout[m] = low[m] + gaps + np.clip(_rising(layout[m] - low[m] - gaps), 0.0, free)
    if scenario.candidates is not None:
        layout = scenario.candidates.nearest(layout, low, high)
    return scenario.checked_layout(layout)


def _rising(values: Real) -> Real:
    """The nearest rising sequence, by pooling adjacent violators."""
    blocks: list[tuple[float, int]] = []  # mean and size
    for value in values:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.concatenate([np.full(size, mean) for mean, size in blocks])


def _table(label: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{label} = {shown(value)}: must be an object")
    return value
