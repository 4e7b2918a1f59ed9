"""Figures 2 to 9 and table I of the paper, one file each."""

from functools import cache
from typing import TYPE_CHECKING

from airpass.study.collect import collected

if TYPE_CHECKING:
    from airpass.study.paper.base import PaperFigure


@cache
def figures() -> dict[str, "PaperFigure"]:
    """Every figure by name, in the paper's order; table I is last."""
    return collected(__name__)
