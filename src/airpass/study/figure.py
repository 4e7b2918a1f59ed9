"""What a figure of the paper is: trials to run, and a picture and a table of their rows."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from airpass.study.trial import Row, Trial

SCALES = ("smoke", "lite", "paper")

Table = tuple[list[str], list[list[str]]]  # headings, and cells as text


@dataclass(frozen=True)
class PaperFigure:
    """One of figures 2 to 9, or table I."""

    name: str
    title: str
    trials: Callable[[str], tuple[Trial, ...]]  # of a scale
    draw: Callable[[Sequence[Row]], Any]  # a matplotlib figure
    tabulate: Callable[[Sequence[Row]], Table]
    duration: Mapping[str, str]  # scale -> what to expect on two cores


@cache
def figures() -> dict[str, PaperFigure]:
    """Every figure by name, in the paper's order, table I last."""
    from airpass.study import paper

    found = {}
    for info in pkgutil.iter_modules(paper.__path__):
        module = importlib.import_module(f"{paper.__name__}.{info.name}")
        found[module.FIGURE.name] = module.FIGURE
    return dict(sorted(found.items()))
