"""The version of the package."""

from importlib.metadata import version

__version__ = version("airpass")
