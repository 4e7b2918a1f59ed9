"""Checks of input. Each raises `InvalidInput` with the field, its value and the rule."""

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from airpass.core.errors import InvalidInput

LARGEST = 1e100  # squares and products of larger numbers may overflow
LARGEST_COUNT = 1_000_000_000


def number(field: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{field} = {value!r}: must be a number")
    plain = float(value)
    if not math.isfinite(plain):
        raise InvalidInput(f"{field} = {value}: must be finite")
    if abs(plain) > LARGEST:
        raise InvalidInput(f"{field} = {value}: must be within ±{LARGEST:g}")
    return plain


def positive(field: str, value: Any) -> float:
    """A finite real number above zero."""
    return above(field, value, 0.0)


def above(field: str, value: Any, bound: float) -> float:
    """A finite real number greater than `bound`."""
    if number(field, value) <= bound:
        raise InvalidInput(f"{field} = {value}: must be > {bound:g}")
    return float(value)


def at_least(field: str, value: Any, minimum: float) -> float:
    """A finite real number not below `minimum`."""
    if number(field, value) < minimum:
        raise InvalidInput(f"{field} = {value}: must be >= {minimum:g}")
    return float(value)


def between(field: str, value: Any, low: float, high: float) -> float:
    """A finite real number strictly between `low` and `high`."""
    if not low < number(field, value) < high:
        raise InvalidInput(f"{field} = {value}: must be > {low:g} and < {high:g}")
    return float(value)


def whole(field: str, value: Any, minimum: int) -> int:
    """A whole number not below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{field} = {value!r}: must be a whole number")
    plain = int(value)
    if plain < minimum:
        raise InvalidInput(f"{field} = {value}: must be >= {minimum}")
    if plain > LARGEST_COUNT:
        raise InvalidInput(f"{field} = {value}: must be <= {LARGEST_COUNT}")
    return plain


def decibels(field: str, value: Any) -> float:
    """A ratio in dB within the range of floating-point numbers."""
    if abs(number(field, value)) > 300.0:
        raise InvalidInput(f"{field} = {value}: must be within ±300 dB")
    return float(value)


def one_of(field: str, value: Any, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise InvalidInput(f"{field} = {value!r}: must be one of {', '.join(words)}")
    return str(value)


def known_keys(section: str, data: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse unknown keys."""
    words = list(allowed)
    for key in data:
        if key not in words:
            name = f"{section}.{key}" if section else key
            raise InvalidInput(f"{name}: unknown key; allowed here: {', '.join(words)}")


def keep(part: object, **values: object) -> None:
    """Store checked values in a frozen dataclass while it is being built."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
