"""A clock that stands still while kernels are compiled.

Numba compiles a kernel when it is first called with arguments of new types, or loads it from its cache. This
belongs to no search in particular, so durations are measured without it. Numba announces when it takes and
frees the lock of its compiler; the time in between is added up. With several threads, the clock stands still
while any of them compiles.
"""

import time
from threading import Lock
from typing import Any

from numba.core import event

_LOCK_EVENT = "numba:compiler_lock"  # held while a kernel is compiled, loaded or stored


class _CompileTime(event.Listener):
    """Adds up the time in which at least one thread holds the lock or waits for it."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._depth = 0  # threads, and calls within a thread, that hold the lock or wait for it
        self._since = 0.0
        self._total = 0.0

    def on_start(self, event: Any) -> None:
        with self._guard:
            if self._depth == 0:
                self._since = time.perf_counter()
            self._depth += 1

    def on_end(self, event: Any) -> None:
        with self._guard:
            self._depth -= 1
            if self._depth == 0:
                self._total += time.perf_counter() - self._since

    def read(self) -> tuple[float, float]:
        """Present time, and the part of it that was spent on compiling since the start of the process."""
        with self._guard:
            time_now = time.perf_counter()
            return time_now, self._total + (time_now - self._since if self._depth else 0.0)


_compile_time = _CompileTime()
event.register(_LOCK_EVENT, _compile_time)


def now() -> float:
    """Seconds on a clock that stands still while kernels are compiled or loaded from the cache.

    Returns
    -------
    float
        Only differences have a meaning.
    """
    time_now, compiling = _compile_time.read()
    return time_now - compiling


def compile_seconds() -> float:
    """Time that this process has spent on compiling kernels and loading them from the cache.

    Returns
    -------
    float
        Seconds since the process started.
    """
    return _compile_time.read()[1]


class Stopwatch:
    """Measures a piece of work, and the compilation during it apart."""

    def __init__(self) -> None:
        self._began, self._compiled = now(), compile_seconds()

    @property
    def seconds(self) -> float:
        """Time since the start without compilation."""
        return now() - self._began

    @property
    def compile_seconds(self) -> float:
        """Time spent on compilation since the start."""
        return compile_seconds() - self._compiled
