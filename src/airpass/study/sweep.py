"""User-defined sweeps, from a TOML file.

name = "gap"
schemes = ["airpass-plus", "mimo-mn"]     # with [train] also "fedavg"
trials = 5                                # trial t has seed + t
seed = 0

[axis]
field = "receiver.min_gap_m"              # any field of a scenario, or train.<option>
values = [0.1, 0.5, 0.95]

[scenario.devices]                        # tables as in a scenario file
count = 50

[train]                                   # only to train models
dataset = "mnist-mini"
rounds = 100

[figure]                                  # optional, see figure_table.py
x_label = "smallest gap"
x_unit = "m"

With a table [channels] the schemes are selection methods, and trial t uses draw t of the channels:

[channels]
file = "channels.npz"                     # (T, M, K), or (M, K) for one draw
variable = "channels"                     # only for files with several arrays
weights = "weights.npy"                   # default: 1/K each
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.scenario import read_tables
from airpass.scenario.devices import LISTS
from airpass.study import figure_table
from airpass.study.charts import Shape
from airpass.study.figure_table import FigureTable
from airpass.study.trial import DESIGN_METRICS, ROUND_METRICS, SECONDS, Trial, given_channels

KEYS = ("name", "schemes", "trials", "seed", "axis", "scenario", "train", "channels", "figure")
RADIO_KEYS = ("snr_db", "mse_threshold", "power")  # what matters for given channels
CHANNEL_KEYS = ("file", "variable", "transpose", "weights", "weights_variable")


@dataclass(frozen=True)
class Sweep:
    """A study read from a file."""

    name: str
    axis: str  # the field that varies, or ""
    trials: tuple[Trial, ...] = field(repr=False)
    figure: FigureTable = field(default_factory=FigureTable, repr=False)
    tables: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as read

    @property
    def shape(self) -> Shape:
        """Axis, schemes and points in the order of the file."""
        schemes = tuple(dict.fromkeys(trial.scheme for trial in self.trials))
        return Shape(self.name, self.axis, schemes, tuple(dict.fromkeys(one.x_label for one in self.trials)))


def load(path: str | Path) -> Sweep:
    """Read a sweep from a TOML file."""
    return from_dict(read_tables(path))


def from_dict(tables: Mapping[str, Any]) -> Sweep:
    """Build a sweep from the tables of its file."""
    checks.known_keys("", tables, KEYS)
    name = tables.get("name", "sweep")
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "-_" for c in name):
        raise InvalidInput(f"name = {name!r}: must be letters, digits, - and _")
    draws = _draws(tables)
    schemes = _schemes(tables.get("schemes", ["airpass-plus"] if draws is None else ["hrmc"]))
    count = checks.whole("trials", tables.get("trials", draws or 1), 1)
    if draws is not None and count > draws:
        raise InvalidInput(f"trials = {count}: the channels have {draws} draws, one for each trial")
    seed = checks.whole("seed", tables.get("seed", 0), 0)
    axis = tables.get("axis", {})
    if not isinstance(axis, Mapping):
        raise InvalidInput("axis: must be a table with field and values")
    checks.known_keys("axis", axis, ("field", "values"))
    varied = axis.get("field", "")
    values = axis.get("values", [None])
    if not isinstance(varied, str) or bool(varied) != ("values" in axis):
        raise InvalidInput("axis: needs a field, as text, and a list of values for it")
    if not isinstance(values, list) or not values:
        raise InvalidInput("axis: needs a field and a list of values for it")
    for i, value in enumerate(values):
        if str(value) in map(str, values[:i]):
            raise InvalidInput(f"axis.values: duplicate value {value!r}")
    figure = _figure(tables, tuple(schemes))
    trials = [
        _trial(tables, name, label, method, varied, value, number, seed + number)
        for value in values
        for number in range(count)
        for label, method in schemes.items()
    ]
    return Sweep(name, varied, tuple(trials), figure, deepcopy(dict(tables)))


def _draws(tables: Mapping[str, Any]) -> int | None:
    """Number of draws of the channels that a sweep is about; None if there is no such table."""
    if "channels" not in tables:
        return None
    table = _table("channels", tables["channels"])
    checks.known_keys("channels", table, CHANNEL_KEYS)
    for key, value in table.items():
        wanted, words = (bool, "true or false") if key == "transpose" else (str, "text")
        if not isinstance(value, wanted):
            raise InvalidInput(f"channels.{key} = {value!r}: must be {words}")
    if "file" not in table:
        raise InvalidInput("channels.file is missing: give an .npy, .npz or .mat file")
    if "train" in tables:
        raise InvalidInput("channels: cannot be combined with [train]; airpass train --channels trains")
    scenario = _table("scenario", tables.get("scenario", {}))
    checks.known_keys("scenario", scenario, ("radio",))
    checks.known_keys("scenario.radio", _table("scenario.radio", scenario.get("radio", {})), RADIO_KEYS)
    return len(given_channels(table)[0])


def _figure(tables: Mapping[str, Any], schemes: tuple[str, ...]) -> FigureTable:
    """The table [figure], if the trials will have what it shows."""
    figure = figure_table.read(tables.get("figure", {}), schemes)
    over_rounds = figure.over == "rounds"
    if over_rounds and "train" not in tables:
        raise InvalidInput('figure.over = "rounds": needs a table [train]')
    with_rounds = ROUND_METRICS if "train" in tables else ()
    for metric in figure.metric:
        at_the_end = () if over_rounds else (*DESIGN_METRICS, SECONDS)
        checks.one_of("figure.metric", metric, dict.fromkeys((*at_the_end, *with_rounds)))
    return figure


def _schemes(given: Any) -> dict[str, dict[str, Any]]:
    """Arguments of `design` by label, from names or tables."""
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidInput("schemes: must be a list of names or tables")
    schemes: dict[str, dict[str, Any]] = {}
    for entry in given:
        table = {"method": entry} if isinstance(entry, str) else _table("schemes: an entry", entry)
        checks.known_keys("schemes", table, ("label", "method", "selection", "geometry", "options", "turns"))
        _table("schemes: options", table.get("options", {}))
        blocks = [str(table[name]) for name in ("selection", "geometry") if name in table]
        label = str(table.pop("label", table.get("method") or "+".join(blocks)))
        if label in schemes:
            raise InvalidInput(f"schemes: duplicate scheme label {label!r}; give each scheme its own label")
        schemes[label] = table
    return schemes


def _table(name: str, given: Any) -> dict[str, Any]:
    """A copy of a table."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} = {given!r}: must be a table")
    return deepcopy(dict(given))


def _trial(
    tables: Mapping[str, Any],
    name: str,
    label: str,
    method: Mapping[str, Any],
    field: str,
    value: Any,
    number: int,
    seed: int,
) -> Trial:
    scenario = _table("scenario", tables.get("scenario", {}))
    training = _table("train", tables["train"]) if "train" in tables else None
    channels = None
    if "channels" in tables:
        channels = {**_table("channels", tables["channels"]), "draw": number}
        if field:
            checks.one_of("axis.field", field, [f"radio.{key}" for key in RADIO_KEYS])
        if "method" not in method or "selection" in method or "geometry" in method:
            raise InvalidInput(f"schemes: {label!r} must be a selection method, as [channels] are given")
    else:
        devices = scenario["devices"] = _table("scenario.devices", scenario.get("devices", {}))
        channel = _table("scenario.channel", scenario.get("channel", {}))
        if not set(LISTS) & set(devices) and "responses" not in channel:
            devices.setdefault("seed", seed)
    if field:
        first, *rest = field.split(".")
        target: Any = training if first == "train" else scenario
        if target is None:
            raise InvalidInput(f"axis.field = {field!r}: needs a table [train]")
        keys = rest if first == "train" else [first, *rest]
        if not keys:
            raise InvalidInput(f"axis.field = {field!r}: name one of its fields, such as train.rounds")
        for key in keys[:-1]:
            target[key] = _table(f"{field.rpartition('.')[0]}", target.get(key, {}))
            target = target[key]
        target[keys[-1]] = value
    number_like = isinstance(value, int | float) and not isinstance(value, bool)
    return Trial(
        job="select" if channels is not None else "design" if training is None else "train",
        figure=name,
        scheme=label,
        x=float(value) if number_like else None,
        x_label="" if value is None else str(value),
        trial=number,
        seed=seed,
        scenario=scenario,
        method=dict(method),
        training=training,
        repeats=0 if channels is None else 1,
        channels=channels,
    )
