"""Checks of input. Each raises `InvalidInput` with the field, its value and the rule."""

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from airpass.core.errors import InvalidInput
from airpass.core.text import LONGEST_VALUE, shortened, shown

LARGEST = 1e100  # squares and products of larger numbers may overflow
SMALLEST = 1e-100  # of numbers that must not be zero: squares and products of smaller ones may be
LARGEST_COUNT = 1_000_000_000

T = TypeVar("T")


def number(field: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{field} = {shown(value)}: must be a number")
    try:
        plain = float(value)
    except OverflowError:  # a whole number or a fraction beyond the range of floating-point numbers
        raise InvalidInput(f"{field} = {shown(value)}: must be within ±{LARGEST:g}") from None
    if not math.isfinite(plain):
        raise InvalidInput(f"{field} = {shown(value)}: must be finite")
    if abs(plain) > LARGEST:
        raise InvalidInput(f"{field} = {shown(value)}: must be within ±{LARGEST:g}")
    return plain


def positive(field: str, value: Any) -> float:
    """A finite real number above zero, whose square is above zero, too."""
    if 0.0 < number(field, value) < SMALLEST:
        raise InvalidInput(f"{field} = {shown(value)}: must be >= {SMALLEST:g}")
    return above(field, value, 0.0)


def above(field: str, value: Any, bound: float) -> float:
    """A finite real number greater than `bound`."""
    if number(field, value) <= bound:
        raise InvalidInput(f"{field} = {shown(value)}: must be > {bound:g}")
    return float(value)


def at_least(field: str, value: Any, minimum: float) -> float:
    """A finite real number not below `minimum`."""
    if number(field, value) < minimum:
        raise InvalidInput(f"{field} = {shown(value)}: must be >= {minimum:g}")
    return float(value)


def between(field: str, value: Any, low: float, high: float) -> float:
    """A finite real number strictly between `low` and `high`."""
    if not low < number(field, value) < high:
        raise InvalidInput(f"{field} = {shown(value)}: must be > {low:g} and < {high:g}")
    return float(value)


def whole(field: str, value: Any, minimum: int) -> int:
    """A whole number not below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInput(f"{field} = {shown(value)}: must be a whole number")
    plain = int(value)
    if plain < minimum:
        raise InvalidInput(f"{field} = {shown(value)}: must be >= {minimum}")
    if plain > LARGEST_COUNT:
        raise InvalidInput(f"{field} = {shown(value)}: must be <= {LARGEST_COUNT}")
    return plain


def decibels(field: str, value: Any) -> float:
    """A ratio in dB within the range of floating-point numbers."""
    if abs(number(field, value)) > 300.0:
        raise InvalidInput(f"{field} = {shown(value)}: must be within ±300 dB")
    return float(value)


def one_of(field: str, value: Any, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise InvalidInput(f"{field} = {shown(value)}: must be one of {', '.join(words)}")
    return str(value)


def instance(field: str, value: Any, kind: type[T], hint: str = "") -> T:
    """An object of a class.

    Parameters
    ----------
    field
        Name of the argument.
    value
        What the user gave.
    kind
        The class.
    hint
        How to get such an object, for the message.

    Returns
    -------
    T
        The object.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        more = f", such as {hint}" if hint else ""
        raise InvalidInput(f"{field} = {shown(value)}: must be {article} {kind.__name__}{more}")
    return value


def known_keys(section: str, data: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Refuse unknown keys."""
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{section or 'tables'} = {shown(data)}: must be a table of keys")
    words = list(allowed)
    for key in data:
        if key not in words:
            plain = shortened(str(key), LONGEST_VALUE)
            name = f"{section}.{plain}" if section else plain
            raise InvalidInput(f"{name}: unknown key; allowed here: {', '.join(words)}")


def keep(part: object, **values: object) -> None:
    """Store checked values in a frozen dataclass while it is being built."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
