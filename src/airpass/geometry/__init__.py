"""Geometry methods, one file each. `methods()` lists them."""

import sys
from functools import cache

from airpass.core.registry import discover
from airpass.geometry.base import GeometryMethod


@cache
def methods() -> dict[str, GeometryMethod]:
    """Every geometry method by name."""
    return discover(sys.modules[__name__], GeometryMethod)
