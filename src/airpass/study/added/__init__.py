"""Figures that are not in the paper, one file each."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airpass.study.added.base import AxisFigure


@cache
def figures() -> dict[str, "AxisFigure"]:
    """Every figure by name."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return {figure.name: figure for figure in sorted(found, key=lambda figure: figure.name)}
