"""Selection methods, one file each. `airpass.select` runs one."""

from airpass.core.registry import Registry
from airpass.selection.base import SelectionMethod
from airpass.selection.function import FunctionSelection

METHODS = Registry(SelectionMethod, __name__, FunctionSelection)
