"""Design methods: devices, beam and layout together. `airpass.design` runs one."""

from airpass.core.registry import Registry
from airpass.designs.base import DesignMethod
from airpass.designs.function import FunctionDesign

METHODS = Registry(DesignMethod, __name__, FunctionDesign)
