"""Available processors, and a limit of BLAS to one thread."""

import os
import threading
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module

from threadpoolctl import LibController, ThreadpoolController


def processors() -> int:
    """Number of processors that this process may use; respects the CPU affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> tuple[LibController, ...]:
    # SciPy has its own BLAS, which kernels call for inverses and eigenvectors. Only loaded libraries
    # are found.
    import_module("scipy.linalg")
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(found)


class _OneThread:
    """Re-entrant limit of BLAS to one thread."""

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
    """Context in which BLAS uses one thread.

    With several threads BLAS rounds differently, so that seeded results would depend on the number of
    cores. The matrices here are too small to gain from threads.

    threadpoolctl's own context is not used because the first thread that leaves it would end the limit for
    all others, and because entering it takes as long as a small selection.
    """
    return _one_thread
