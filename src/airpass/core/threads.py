"""Available processors, and a limit of BLAS to one thread."""

import os
import threading
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module

from threadpoolctl import LibController, ThreadpoolController


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> tuple[LibController, ...]:
    # SciPy brings a library of its own, which kernels call for inverses and eigenvectors; what is not
    # loaded yet would not be found.
    import_module("scipy.linalg")
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(found)


class _OneThread:
    """Who asks for one thread at the moment: the first sets it, the last puts back what was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[tuple[LibController, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [(library, library.get_num_threads()) for library in _libraries()]
                for library, _ in self._before:
                    library.set_num_threads(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in self._before:
                    library.set_num_threads(threads)


_one_thread = _OneThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Keep linear algebra in one thread: with several it rounds differently, and a seeded search may end
    elsewhere on a machine with more cores. The matrices here are too small to gain by threads.

    Not by threadpoolctl's own context: that would let the first thread that leaves undo it for others, and
    describes every library each time, which takes as long as the eigenvectors of a small selection.
    """
    return _one_thread
