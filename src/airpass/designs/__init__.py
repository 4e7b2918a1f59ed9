"""Named designs. `methods()` lists them; `airpass.design` runs one."""

import sys
from functools import cache

from airpass.core.registry import discover
from airpass.designs.base import DesignMethod


@cache
def methods() -> dict[str, DesignMethod]:
    """Every design method by name."""
    return discover(sys.modules[__name__], DesignMethod)
