"""Notice when kernels are compiled. Loading them from the cache, which takes little time, does not count."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_COMPILE_EVENT = "numba:compile"  # not sent when a kernel is found in the cache


class _First(event.Listener):
    """Calls a function when the first kernel is compiled."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self._on_first = on_first
        self._happened = False

    def on_start(self, event: Any) -> None:
        if not self._happened:
            self._happened = True
            self._on_first()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def on_compilation(call: Callable[[], None]) -> Iterator[None]:
    """Call a function when a kernel is compiled within the context, once."""
    with event.install_listener(_COMPILE_EVENT, _First(call)):
        yield
