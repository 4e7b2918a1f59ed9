"""All figures that can be reproduced: those of the paper, and those that were added."""

from airpass.study import added, paper
from airpass.study.paper.base import PaperFigure


def known_figures() -> dict[str, PaperFigure]:
    """Every figure by name; the paper's come first."""
    return {**paper.figures(), **added.figures()}
