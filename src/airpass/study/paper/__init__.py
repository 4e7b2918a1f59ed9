"""Figures 2 to 9 and table I of the paper, one file each."""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airpass.study.paper.base import PaperFigure


@cache
def figures() -> dict[str, "PaperFigure"]:
    """Every figure by name, in the paper's order; table I is last."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return {figure.name: figure for figure in sorted(found, key=lambda figure: figure.name)}
