"""Selection methods, one file each. `methods()` lists them; `airpass.select` runs one."""

import sys
from functools import cache

from airpass.core.registry import discover
from airpass.selection.base import SelectionMethod


@cache
def methods() -> dict[str, SelectionMethod]:
    """Every selection method by name."""
    return discover(sys.modules[__name__], SelectionMethod)
