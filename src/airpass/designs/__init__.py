"""Named designs. `methods()` lists them; `airpass.design` runs one."""

import sys
from functools import cache

from airpass.designs.base import DesignMethod
from airpass.registry import discover


@cache
def methods() -> dict[str, DesignMethod]:
    """Every design method by name."""
    return discover(sys.modules[__name__], DesignMethod)
