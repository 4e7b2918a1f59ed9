"""The table `channel` of a scenario: what differs from the paper's channel."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import is_
from pathlib import Path
from typing import Any, cast

from airpass.channel import MODELS
from airpass.channel.blockage import Blockage
from airpass.channel.factor import ChannelFactor, RecordedFactor
from airpass.channel.rician import Rician
from airpass.channel.sampled import SampledResponse
from airpass.channel.sampled_uplink import LABEL as RESPONSES
from airpass.channel.segments import SEGMENT_MODES, SELECTED, SUMMED
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import options_dict, with_options
from airpass.core.text import shown
from airpass.scenario.candidates import checked_candidates
from airpass.scenario.responses import Responses, resolved
from airpass.wideband import RULES, WORST

EQUAL, PROPORTIONAL = SPLITS = ("equal", "proportional")
# Keys that turn a part of the channel on, and the options of that part.
PARTS = {
    "power_split": ("power_split_delta",),
    "segments": ("segment_mode",),
    "blockage_per_m": ("blockage_stretch_m", "blockage_residual"),
    "rician_k_db": ("rician_waves",),
    "subcarriers": ("bandwidth_mhz", "subcarrier_rule"),
}
# How messages name the value that turns a part on, if it is not just its key.
TURNS_ON = {
    "power_split": f"power_split = {PROPORTIONAL!r}",
    "segments": "segments > 1",
    "subcarriers": "subcarriers > 1",
}


@dataclass(frozen=True)
class Channel:
    """What differs from the paper's channel. The defaults are the paper's model."""

    loss_db_per_m: float = 0.0  # of power along a waveguide
    # "equal" is the paper's 1/sqrt(N); "proportional": each antenna couples delta^2 of what passes it
    power_split: str = EQUAL
    power_split_delta: float | None = None  # delta; 1/sqrt(N) if not given
    segments: int = 1  # Q: segments of each waveguide, each with a feed of its own
    # "summed": all segments are connected to the receive chain; "selected": one, with all antennas
    segment_mode: str = SUMMED
    blockage_per_m: float | None = None  # beta: lines of sight are free with probability exp(-beta distance)
    blockage_stretch_m: float = Blockage.stretch_m  # length of waveguide that is blocked or free as a whole
    blockage_residual: float = Blockage.residual  # amplitude of a blocked link over that of a free one
    rician_k_db: float | None = None  # K, power of the line of sight over that of the scatter, dB
    rician_waves: int = Rician.waves  # scattered waves per device and waveguide
    subcarriers: int = 1  # S; the paper has a single carrier
    bandwidth_mhz: float | None = None  # B, of all subcarriers together, unless the link budget has one
    subcarrier_rule: str = WORST  # whether the worst or the mean error over the subcarriers must meet eps
    # Where antennas can be: a step from x = 0 on, a list for all waveguides, or a list of lists, one
    # for each; anywhere if not given.
    candidates_m: float | tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None
    seed: int | None = None  # of blockage, scatter, and models with a seed; that of the scenario if not given
    # Other factors on the channel: a model as an object, a class, a name, `file.py:Name`, or a list of these;
    # stored as a tuple of objects.
    models: tuple[ChannelFactor, ...] = ()
    # Responses on candidate places in place of eq. (64), from a ray tracer or measured: a file, or a
    # `SampledResponse`; stored as `Responses`. Places and devices are those of the responses.
    responses: Responses | SampledResponse | str | Path | None = None

    def __post_init__(self) -> None:
        checks.keep(
            self,
            loss_db_per_m=checks.at_least("channel.loss_db_per_m", self.loss_db_per_m, 0.0),
            power_split=checks.one_of("channel.power_split", self.power_split, SPLITS),
            segments=checks.whole("channel.segments", self.segments, 1),
            segment_mode=checks.one_of("channel.segment_mode", self.segment_mode, SEGMENT_MODES),
            candidates_m=checked_candidates(self.candidates_m),
            models=_resolved(self.models),
            responses=resolved(self.responses),
        )
        checks.whole("channel.subcarriers", self.subcarriers, 1)
        checks.one_of("channel.subcarrier_rule", self.subcarrier_rule, RULES)
        if self.bandwidth_mhz is not None:
            bandwidth = checks.at_least("channel.bandwidth_mhz", self.bandwidth_mhz, 0.0)
            checks.keep(self, bandwidth_mhz=bandwidth)
        if self.seed is not None:
            checks.whole("channel.seed", self.seed, 0)
        self._check_parts()
        if self.responses is not None:
            self._check_alone()

    def _check_alone(self) -> None:
        """Refuse what responses already include."""
        given = [f"channel.{key}" for key in PARTS if not self._is_off(key)]
        for label in (*given, *(model.label for model in self.models)):
            raise InvalidInput(
                f"{label} cannot be combined with {RESPONSES}, which replace the paper's channel altogether"
            )

    def _check_parts(self) -> None:
        """Check the options of every part, and that they have an effect."""
        for key, options in PARTS.items():
            for name in options:
                value = getattr(self, name)
                if not _is_default(name, value) and self._is_off(key):
                    other = TURNS_ON.get(key, key)
                    raise InvalidInput(
                        f"channel.{name} = {shown(value)}: has no effect without channel.{other}"
                    )
        if self.subcarriers > 1 and self.segments > 1 and self.segment_mode == SELECTED:
            raise InvalidInput(
                f"channel.segment_mode = {SELECTED!r} cannot be combined with channel.subcarriers: use "
                f"{SUMMED!r}"
            )
        delta = self.power_split_delta
        if delta is not None and checks.positive("channel.power_split_delta", delta) > 1.0:
            raise InvalidInput(f"channel.power_split_delta = {delta}: must be <= 1")
        checks.keep(self, power_split_delta=None if delta is None else float(delta))
        if self.blockage_per_m is not None:
            blockage = self._blockage(self.blockage_per_m)
            checks.keep(
                self,
                blockage_per_m=blockage.per_m,
                blockage_stretch_m=blockage.stretch_m,
                blockage_residual=blockage.residual,
            )
        if self.rician_k_db is not None:
            rician = self._rician(self.rician_k_db)
            checks.keep(self, rician_k_db=rician.k_db, rician_waves=rician.waves)

    def _is_off(self, key: str) -> bool:
        """Whether a part of the channel is not used."""
        value = getattr(self, key)
        return value is None or (isinstance(value, int | str) and value == _default(key))

    def _blockage(self, per_m: float) -> Blockage:
        return Blockage(per_m, self.blockage_stretch_m, self.blockage_residual, self.seed)

    def _rician(self, k_db: float) -> Rician:
        return Rician(k_db, self.rician_waves, self.seed)

    @cached_property
    def factors(self) -> tuple[ChannelFactor, ...]:
        """All factors on the paper's channel, that is blockage unless beta is zero, scatter, and `models`."""
        found: list[ChannelFactor] = []
        if self.blockage_per_m:
            found.append(self._blockage(self.blockage_per_m))
        if self.rician_k_db is not None:
            found.append(self._rician(self.rician_k_db))
        return (*found, *self.models)

    @property
    def response_source(self) -> Responses | None:
        """`responses` as stored."""
        return cast(Responses | None, self.responses)

    @property
    def label(self) -> str:
        """Key of responses or of the first factor, for messages; "" if there are none."""
        if self.responses is not None:
            return RESPONSES
        return self.factors[0].label if self.factors else ""

    def split_delta(self, antennas: int) -> float | None:
        """delta of the split of power, for N antennas on each waveguide; None for an equal split."""
        if self.power_split == EQUAL:
            return None
        return float(antennas**-0.5 if self.power_split_delta is None else self.power_split_delta)

    def seeded(self, seed: int) -> "Channel":
        """The same with a seed, if something is drawn at random and its seed is open.

        Parameters
        ----------
        seed
            Seed of what has none.

        Returns
        -------
        Channel
            `self` if nothing changes.
        """
        if not any(has_seed(one) for one in self.factors):
            return self
        used = seed if self.seed is None else self.seed
        models = tuple(_with_seed(one, used) for one in self.models)
        same = used == self.seed and all(map(is_, models, self.models))
        return self if same else replace(self, seed=used, models=models)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the paper's channel, as a table; `channel_from` reads it."""
        table: dict[str, Any] = {}
        if self.loss_db_per_m:
            table["loss_db_per_m"] = self.loss_db_per_m
        for key, options in PARTS.items():
            if getattr(self, key) != _default(key):
                table |= {name: getattr(self, name) for name in (key, *options)}
        table |= {"candidates_m": _plain(self.candidates_m), "seed": self.seed}
        table = {name: value for name, value in table.items() if value is not None}
        if self.response_source is not None:
            table["responses"] = self.response_source.to_dict()
        tables = [_model_table(model) for model in self.models]
        if len(tables) == 1 and all(table.get(key) == tables[0][key] for key in _KEYS & tables[0].keys()):
            return tables[0] | table
        return table | ({"models": tables} if tables else {})


_KEYS = {item.name for item in fields(Channel)}


def _is_default(name: str, value: Any) -> bool:
    return value is None or (isinstance(value, int | float | str) and value == _default(name))


def _default(name: str) -> Any:
    return Channel.__dataclass_fields__[name].default


def has_seed(model: ChannelFactor) -> bool:
    """Whether a model draws at random."""
    return any(item.name == "seed" for item in fields(model))


def _with_seed(model: Any, seed: int) -> ChannelFactor:
    changed: ChannelFactor = replace(model, seed=seed) if has_seed(model) and model.seed is None else model
    return changed


def _resolved(given: Any) -> tuple[ChannelFactor, ...]:
    several = given if isinstance(given, list | tuple) else (given,)
    return tuple(
        one if isinstance(one, RecordedFactor) else MODELS.resolve(one, label="channel.model")
        for one in several
    )


def channel_from(table: Any, trusted: bool) -> Channel:
    """The channel of a table in a file.

    Parameters
    ----------
    table
        Fields of `Channel`. A model is given by `model` next to its options, or several by
        `models`, a list of such tables.
    trusted
        Whether code that a table names may be imported. If not, files of responses are read when they are
        first used.

    Returns
    -------
    Channel
        The channel.
    """
    if not isinstance(table, Mapping):
        raise InvalidInput(f"channel = {shown(table)}: must be a table of keys")
    own = {key: value for key, value in table.items() if key in _KEYS}
    if "responses" in own:
        own["responses"] = resolved(own["responses"], wait=not trusted)
    rest = {key: value for key, value in table.items() if key not in _KEYS}
    if "model" in table:
        if "models" in table:
            raise InvalidInput(
                "channel.model cannot be combined with channel.models: give a list of all models"
            )
        model = _model_from("channel", rest, trusted, sorted(_KEYS - {"models"}))
        for item in fields(model):
            if item.name in own and item.name != "seed":
                raise InvalidInput(
                    f"channel.{item.name}: is an option of model {model.name!r} too; give the model as a "
                    "table [[channel.models]]"
                )
        return Channel(**own | {"models": (model,)})
    checks.known_keys("channel", rest, [item.name for item in fields(Channel)] + ["model"])
    listed = own.pop("models", [])
    if not isinstance(listed, list | tuple):
        raise InvalidInput(f"channel.models = {shown(listed)}: must be a list of tables")
    models = (_model_from(f"channel.models[{i}]", one, trusted) for i, one in enumerate(listed))
    return Channel(**own | {"models": tuple(models)})


def _model_from(label: str, table: Any, trusted: bool, more: Sequence[str] = ()) -> ChannelFactor:
    """The model of a table with the key `model` and options; `more` are other keys that are allowed there."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{label} = {shown(table)}: must be a table of keys")
    options = {key: value for key, value in table.items() if key != "model"}
    name = table.get("model")
    if not isinstance(name, str):
        raise InvalidInput(
            f"{label}.model = {shown(name)}: must be one of {', '.join(MODELS.methods())}, file.py:Name"
        )
    if not trusted and name not in MODELS.methods():
        return RecordedFactor(name, {}, options)
    model = MODELS.resolve(name, label=f"{label}.model")
    checks.known_keys(label, options, [*(item.name for item in fields(model)), *more])
    changed: ChannelFactor = with_options(model, options, f"{label}.")
    return changed


def _model_table(model: ChannelFactor) -> dict[str, Any]:
    """The table of a model; `_model_from` reads it."""
    options = {name: _plain(value) for name, value in options_dict(model).items() if value is not None}
    return {"model": _reference(model), **options}


def _plain(value: Any) -> Any:
    """Tuples as lists."""
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _reference(model: ChannelFactor) -> str:
    """The name of a registered model; else where its class is, as far as it can be told."""
    kind = type(model)
    if isinstance(model, RecordedFactor) or is_registered((model,)):
        return model.name
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return model.name if file is None or "<locals>" in kind.__qualname__ else f"{file}:{kind.__qualname__}"


def is_registered(models: Sequence[ChannelFactor]) -> bool:
    """Whether all models can be found by name."""
    known = MODELS.methods()
    return all(type(known.get(model.name)) is type(model) for model in models)
