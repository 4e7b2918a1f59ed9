"""Selection methods, one file each. `airpass.select` runs one."""

from airpass.core.registry import Registry
from airpass.selection.base import SelectionMethod

METHODS = Registry(SelectionMethod, __name__)
