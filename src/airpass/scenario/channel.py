"""The table `channel` of a scenario: models as objects, and as tables of a file."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from airpass.channel import MODELS
from airpass.channel.factor import ChannelFactor, RecordedFactor
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import options_dict, with_options


def models_of(given: Any, seed: int) -> tuple[ChannelFactor, ...]:
    """Channel models from an argument.

    Parameters
    ----------
    given
        A model as an object, a class, a name or `file.py:Name`, a list of these, or None.
    seed
        Seed of models that have one and leave it open.

    Returns
    -------
    tuple[ChannelFactor, ...]
        The models, with their seeds.
    """
    several = given if isinstance(given, list | tuple) else () if given is None else (given,)
    found = [
        one if isinstance(one, RecordedFactor) else MODELS.resolve(one, label="channel.model")
        for one in several
    ]
    return tuple(_with_seed(one, seed) for one in found)


def _with_seed(model: Any, seed: int) -> ChannelFactor:
    open_seed = any(item.name == "seed" for item in fields(model)) and model.seed is None
    changed: ChannelFactor = replace(model, seed=seed) if open_seed else model
    return changed


def models_from(tables: Any, trusted: bool) -> Iterator[ChannelFactor]:
    """Channel models from the table of a file, or from a list of tables.

    Parameters
    ----------
    tables
        Tables with the key `model` and the model's options.
    trusted
        Whether code that a table names may be imported.

    Returns
    -------
    Iterator[ChannelFactor]
        The models.
    """
    listed = tables if isinstance(tables, Sequence) and not isinstance(tables, str) else [tables]
    for table in listed:
        if not isinstance(table, Mapping):
            raise InvalidInput(f"channel = {table!r}: must be a table of keys, or a list of tables")
        if not table:
            continue
        options = {key: value for key, value in table.items() if key != "model"}
        name = table.get("model")
        if not isinstance(name, str):
            raise InvalidInput(
                f"channel.model = {name!r}: must be one of {', '.join(MODELS.methods())}, file.py:Name"
            )
        if not trusted and name not in MODELS.methods():
            yield RecordedFactor(name, {}, options)
            continue
        model = MODELS.resolve(name, label="channel.model")
        checks.known_keys("channel", options, [item.name for item in fields(model)])
        yield with_options(model, options, "channel.")


def model_table(model: ChannelFactor) -> dict[str, Any]:
    """The table of a model; `models_from` reads it."""
    options = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options_dict(model).items()
        if value is not None
    }
    return {"model": _reference(model), **options}


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
