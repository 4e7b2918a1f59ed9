"""Checks of arrays of numbers that users give."""

from numbers import Real as RealNumber
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.text import shown
from airpass.core.types import Real


def reals(field: str, values: Any, rule: str = "must be a list of numbers") -> Real:
    """Real numbers as an array; NaN and infinity are allowed.

    Texts are not read as numbers, and complex numbers are refused, as their imaginary part would be lost.

    Parameters
    ----------
    field
        Name of the argument.
    values
        What the user gave: a number, a list, nested lists or an array.
    rule
        What is allowed, for the message.

    Returns
    -------
    Real
        A new array.
    """
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O" and all(_is_real(item) for item in found.flat):  # such as fractions
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InvalidInput(f"{field} = {shown(values)}: {rule}") from None
    if found.dtype.kind not in "iuf":
        raise InvalidInput(f"{field} = {shown(values)}: {rule}")
    with np.errstate(over="ignore"):  # numbers of a wider type become infinite
        return np.array(found, dtype=np.float64)


def _is_real(item: Any) -> bool:
    return isinstance(item, RealNumber) and not isinstance(item, bool)


def is_list(value: Any) -> bool:
    """Whether a value is a list of values, and not one for all."""
    return isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim > 0)
