"""Alternating timing, and the form of a measurement.

The compared programs are called alternately, so that other load on the machine affects all of them. A
ratio is the median over these pairs, with minimum and maximum.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Call = Callable[[], Any]


@dataclass(frozen=True)
class Comparison:
    """Seconds of the same work by several programs, pair by pair; the first is airpass."""

    case: str
    seconds: Mapping[str, Sequence[float]]
    note: str = ""

    def ratios(self) -> dict[str, tuple[float, float, float]]:
        """Time of each other program divided by that of airpass: median, minimum, maximum."""
        (_, ours), *others = self.seconds.items()
        result = {}
        for name, theirs in others:
            pairs = sorted(their / our for our, their in zip(ours, theirs, strict=True))
            result[name] = (statistics.median(pairs), pairs[0], pairs[-1])
        return result


@dataclass(frozen=True)
class Table:
    """A table of results that are not comparisons."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Results of one module of the suite."""

    title: str
    about: str
    comparisons: Sequence[Comparison] = ()
    tables: Sequence[Table] = ()

    def document(self) -> dict[str, Any]:
        """Content for JSON."""
        made = asdict(self)
        for comparison, item in zip(self.comparisons, made["comparisons"], strict=True):
            item["ratios"] = comparison.ratios()
        return made


def in_turn(sides: Mapping[str, Call], repeats: int = 7, at_least_s: float = 0.05) -> dict[str, list[float]]:
    """Seconds per call of each program, measured alternately `repeats` times after a warm-up call.

    Short calls are repeated within a measurement until they take `at_least_s`.
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
    """Mean seconds per call over `calls` calls."""
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def duration(seconds: float) -> str:
    """A time as text with its unit, three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent of time in size, by least squares on logarithms."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
