"""Geometry methods, one file each."""

from airpass.core.registry import Registry
from airpass.geometry.base import GeometryMethod

METHODS = Registry(GeometryMethod, __name__)
