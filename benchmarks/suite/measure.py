"""Timing in turn, and what a measurement looks like on paper.

Two sides are called one after the other, again and again, so that whatever else the machine does
meets both. A ratio is the median over these pairs, with the least and the greatest.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Call = Callable[[], Any]


@dataclass(frozen=True)
class Comparison:
    """Seconds of the same work by several sides, pair by pair; the first side is ours."""

    case: str
    seconds: Mapping[str, Sequence[float]]
    targets: Mapping[str, float] = field(default_factory=dict)  # ratio to reach, by side
    note: str = ""

    def ratios(self) -> dict[str, tuple[float, float, float]]:
        """For each other side, how many times our seconds it takes: median, least, greatest."""
        (_, ours), *others = self.seconds.items()
        result = {}
        for name, theirs in others:
            pairs = sorted(their / our for our, their in zip(ours, theirs, strict=True))
            result[name] = (statistics.median(pairs), pairs[0], pairs[-1])
        return result


@dataclass(frozen=True)
class Table:
    """Numbers that are not a race."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """What one file of the suite found."""

    title: str
    about: str
    comparisons: Sequence[Comparison] = ()
    tables: Sequence[Table] = ()

    def document(self) -> dict[str, Any]:
        """For a JSON file."""
        made = asdict(self)
        for comparison, item in zip(self.comparisons, made["comparisons"], strict=True):
            item["ratios"] = comparison.ratios()
        return made


def in_turn(sides: Mapping[str, Call], repeats: int = 7, at_least_s: float = 0.05) -> dict[str, list[float]]:
    """Seconds a call of every side, `repeats` times in turn after a first call that does not count.

    Short calls are repeated within a turn until they take `at_least_s`.
    """
    calls = {}
    for name, call in sides.items():
        call()
        calls[name] = max(1, round(at_least_s / max(timed(call), 1e-9)))
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, call in sides.items():
            seconds[name].append(timed(call, calls[name]))
    return seconds


def timed(call: Call, calls: int = 1) -> float:
    """Seconds of one of `calls` calls."""
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def duration(seconds: float) -> str:
    """A time in words, three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The power of the size with which time grows, by least squares on logarithms."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
