"""The table [figure] of a sweep, or of a file for `airpass plot`: what a figure shows, and how.

[figure]
metric = "selected_count"                 # or two of them, for two panels
x_label = "height of the waveguides"
x_unit = "m"
y_label = "selected devices"              # one per metric, if there are two
title = ""                                # not shown in mode = "paper"
width = "ieee-1"                          # 3.5 in; "ieee-2" is 7.16 in; or a number of inches
height_in = 2.6
legend = "below"
x_limits = [0, 10]
y_limits = [0, 50]                        # one pair per metric, if there are two
log = ""                                  # or "x", "y", "xy"
over = "axis"                             # or "rounds", for curves over training
font = "times"                            # or "sans"
mode = "paper"                            # or "screen"
order = ["airpass-plus"]                  # schemes in legends and tables; others follow as in the file
[figure.labels]
airpass-plus = "proposed, $N = 5$"
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.text import printable
from airpass.figures.chart import FONTS, LEGENDS, LOGS, MODES, WIDTHS_IN, Format, Limits

OVERS = ("axis", "rounds")
# Other commands of formulas than Greek letters, for tables; those that are not here are shown by name.
SYMBOLS = {
    "times": "\N{MULTIPLICATION SIGN}", "cdot": "·", "pm": "±", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥",
    "infty": "∞", "approx": "≈", "rightarrow": "→", "to": "→", "sqrt": "√",
}  # fmt: skip
SMALLEST_IN, LARGEST_IN = 1.0, 30.0


@dataclass(frozen=True)
class FigureTable:
    """Entries of the table, checked. Empty ones follow from the rows."""

    metric: tuple[str, ...] = ()
    x_label: str | None = None
    x_unit: str | None = None
    y_label: tuple[str, ...] = ()
    title: str | None = None
    width: float | None = None  # inches
    height_in: float | None = None
    legend: str = ""
    x_limits: Limits | None = None
    y_limits: tuple[Limits, ...] = ()
    log: str = ""
    over: str = ""
    font: str = "sans"
    mode: str = "screen"
    order: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def format(self, default: Format) -> Format:
        """Size, fonts and legend."""
        legend = self.legend or default.legend
        return Format(self.width or default.width_in, self.height_in, self.font, self.mode, legend)

    def for_schemes(self, schemes: Sequence[str]) -> "FigureTable":
        """The table, if the schemes that it names are among these."""
        for name in (*self.order, *self.labels):
            if name not in schemes:
                where = "order" if name in self.order else "labels"
                raise InvalidInput(f"figure.{where}: no scheme {name!r}; schemes here: {', '.join(schemes)}")
        return self

    @property
    def plain_labels(self) -> dict[str, str]:
        """Labels for tables: formulas as plain text."""
        return {scheme: as_text(label) for scheme, label in self.labels.items()}

    def in_order(self, schemes: Sequence[str]) -> list[str]:
        """Schemes in the order of legends and tables."""
        return [*self.order, *(name for name in schemes if name not in self.order)]


def as_text(label: str) -> str:
    """A label without the marks of formulas: `$\\alpha_k = 0.5$` becomes α_k = 0.5."""

    def formula(found: re.Match[str]) -> str:
        text = re.sub(r"\\(?:math|text|operatorname)[a-z]*", "", found[1])
        text = re.sub(r"\\([A-Za-z]+)", lambda name: _symbol(name[1]), text)
        return re.sub(r"\\[,;:! ]|~", " ", text).replace("{", "").replace("}", "")

    return re.sub(r"\$([^$]*)\$", formula, label.replace(r"\$", "\0")).replace("\0", "$")


def _symbol(name: str) -> str:
    """The character of a command."""
    letter = name.removeprefix("var").replace("ambda", "amda")
    size = "SMALL" if letter.islower() else "CAPITAL"
    try:
        return SYMBOLS.get(name) or unicodedata.lookup(f"GREEK {size} LETTER {letter}")
    except KeyError:
        return name


def read(given: Any, schemes: Sequence[str] | None = None) -> FigureTable:
    """Check the table [figure].

    Parameters
    ----------
    given
        The table.
    schemes
        Labels of the schemes; None if they are not known yet.

    Returns
    -------
    FigureTable
        The checked entries.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"figure = {given!r}: must be a table")
    checks.known_keys("figure", given, [entry.name for entry in fields(FigureTable)])
    found = {name: _READERS[name](f"figure.{name}", value) for name, value in given.items()}
    table = replace(FigureTable(), **found)
    panels = len(table.metric) or 1
    for name in ("y_label", "y_limits"):
        count = len(getattr(table, name))
        if count > panels:
            raise InvalidInput(f"figure.{name}: has {count} entries for {panels} metric")
    return table if schemes is None else table.for_schemes(schemes)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidInput(f"{name} = {given!r}: must be text")
    if given.count("$") > 1:
        from airpass.figures.style import check_formula

        check_formula(name, given)
    return printable(given, keep="\n")


def _words(name: str, given: Any) -> tuple[str, ...]:
    """One name, or a list of them."""
    entries = given if isinstance(given, list) else [given]
    if (
        not entries
        or not all(isinstance(entry, str) for entry in entries)
        or len(set(entries)) < len(entries)
    ):
        raise InvalidInput(f"{name} = {given!r}: must be text, or a list of different texts")
    return tuple(entries)


def _texts(name: str, given: Any) -> tuple[str, ...]:
    """One text, or a list of them."""
    return tuple(_text(name, entry) for entry in (given if isinstance(given, list) else [given]))


def _labels(name: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} = {given!r}: must be a table of texts by scheme")
    return {str(scheme): _text(f"{name}.{scheme}", text) for scheme, text in given.items()}


def _one_or_two(name: str, given: Any) -> tuple[str, ...]:
    entries = _words(name, given)
    if len(entries) > 2:
        raise InvalidInput(f"{name} = {given!r}: must be one metric or two")
    return entries


def _length(name: str, given: Any) -> float:
    if not SMALLEST_IN <= checks.number(name, given) <= LARGEST_IN:
        raise InvalidInput(f"{name} = {given}: must be {SMALLEST_IN:g} to {LARGEST_IN:g} inches")
    return float(given)


def _width(name: str, given: Any) -> float:
    if isinstance(given, str):
        if given not in WIDTHS_IN:
            raise InvalidInput(f"{name} = {given!r}: must be {', '.join(WIDTHS_IN)}, or a number of inches")
        return WIDTHS_IN[given]
    return _length(name, given)


def _limits(name: str, given: Any) -> Limits:
    if not isinstance(given, list) or len(given) != 2:
        raise InvalidInput(f"{name} = {given!r}: must be two numbers, low and high")
    low, high = (checks.number(name, value) for value in given)
    if low >= high:
        raise InvalidInput(f"{name} = [{low:g}, {high:g}]: low must be less than high")
    return low, high


def _all_limits(name: str, given: Any) -> tuple[Limits, ...]:
    """One pair, or a list of them."""
    pairs = isinstance(given, list) and bool(given) and all(isinstance(pair, list) for pair in given)
    return tuple(_limits(name, pair) for pair in (given if pairs else [given]))


def _one_of(*allowed: str) -> Any:
    return lambda name, given: checks.one_of(name, given, [word for word in allowed if word])


_READERS: Mapping[str, Any] = {
    "metric": _one_or_two,
    "x_label": _text,
    "x_unit": _text,
    "y_label": _texts,
    "title": _text,
    "width": _width,
    "height_in": _length,
    "legend": _one_of(*LEGENDS),
    "x_limits": _limits,
    "y_limits": _all_limits,
    "log": lambda name, given: "" if given == "" else checks.one_of(name, given, LOGS[1:]),
    "over": _one_of(*OVERS),
    "font": _one_of(*FONTS),
    "mode": _one_of(*MODES),
    "order": _words,
    "labels": _labels,
}
