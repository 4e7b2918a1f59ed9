"""Figures that are not in the paper, one file each."""

from functools import cache
from typing import TYPE_CHECKING

from airpass.study.collect import collected

if TYPE_CHECKING:
    from airpass.study.added.base import AxisFigure


@cache
def figures() -> dict[str, "AxisFigure"]:
    """Every figure by name."""
    return collected(__name__)
