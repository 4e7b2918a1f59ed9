"""Geometry methods, one file each."""

from airpass.core.registry import Registry
from airpass.geometry.base import GeometryMethod
from airpass.geometry.function import FunctionGeometry

METHODS = Registry(GeometryMethod, __name__, FunctionGeometry)
