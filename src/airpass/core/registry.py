"""Finding methods by name: every module of a package that defines METHOD or METHODS adds its own."""

import importlib
import pkgutil
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from airpass.core import checks
from airpass.core.errors import InvalidInput


class Named(Protocol):
    """What all methods have."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def summary(self) -> str:
        """What it does, in a line."""


M = TypeVar("M", bound=Named)


def discover(package: ModuleType, kind: type[M]) -> dict[str, M]:
    """Every method of type `kind` in the package's modules, by name, in order of name."""
    found: dict[str, M] = {}
    for module in _modules(package):
        given = getattr(module, "METHODS", (getattr(module, "METHOD", None),))
        for method in given:
            if not isinstance(method, kind):
                continue
            if method.name in found:
                raise RuntimeError(f"two methods are called {method.name!r}")
            found[method.name] = method
    return dict(sorted(found.items()))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        yield importlib.import_module(f"{package.__name__}.{info.name}")


def lookup(kind: str, name: str, methods: Mapping[str, M]) -> M:
    """The method called `name`, or an error that lists the names there are."""
    return methods[checks.one_of(kind, name, methods)]


def options_dict(options: Any) -> dict[str, Any]:
    """Every option with its value, nested options as nested tables."""
    return asdict(options)


def build_options(defaults: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """`defaults` changed by `changes`, nested options by nested tables.

    A number may stand as its text, as it comes from a command line.
    """
    if not changes:
        return defaults
    hints = _hints(defaults.__class__)
    names = [item.name for item in fields(defaults)]
    if not names:
        raise InvalidInput(f"option {prefix}{next(iter(changes))}: this method has no options")
    checks.known_keys("option " + prefix.rstrip(".") if prefix else "option", changes, names)
    values: dict[str, Any] = {}
    for name, value in changes.items():
        current = getattr(defaults, name)
        if is_dataclass(current):
            if not isinstance(value, Mapping):
                raise InvalidInput(f"option {prefix}{name}: has parts of its own, as {name}.<option>")
            values[name] = build_options(current, value, f"{prefix}{name}.")
        else:
            values[name] = _converted(f"option {prefix}{name}", value, hints[name])
    return replace(defaults, **values)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _converted(label: str, value: Any, hint: Any) -> Any:
    """`value`, from text if it is text, as the option's type."""
    if get_origin(hint) in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if not isinstance(value, str) or hint is str:
        return value
    words = {bool: "true or false", int: "a whole number", float: "a number"}
    try:
        if hint is bool:
            return {"true": True, "false": False}[value.lower()]
        return hint(value)
    except (KeyError, ValueError):
        raise InvalidInput(f"{label} = {value!r}: must be {words.get(hint, hint)}") from None
