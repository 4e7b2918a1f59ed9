"""Processors, threads and worker processes."""

import os
import signal
import threading
import time
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any

from threadpoolctl import ThreadpoolController


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> ThreadpoolController:
    # SciPy brings a library of its own, which kernels call for inverses and eigenvectors; what is not
    # loaded yet would not be found.
    import_module("scipy.linalg")
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra in one thread: with several it rounds differently, and a seeded search may end
    elsewhere on a machine with more cores. The matrices here are too small to gain by threads."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


def follow_parent(parent: int) -> None:
    """Leave Ctrl-C to the process `parent` that started this one, and end when that is gone, however it
    went: it may be gone already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
