"""Design methods: devices, beam and layout together. `airpass.design` runs one."""

from airpass.core.registry import Registry
from airpass.designs.base import DesignMethod

METHODS = Registry(DesignMethod, __name__)
