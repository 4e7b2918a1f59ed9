"""Worker processes that end when their parent ends, and that do not see Ctrl-C."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def follow_parent(parent: int) -> None:
    """Ignore Ctrl-C in this process and end it when its parent has ended.

    Parameters
    ----------
    parent
        Process id of the parent. It may have ended already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to every process
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Context in which processes can be started that ignore Ctrl-C from their first instruction on.

    They inherit the mask of blocked signals. In this process Ctrl-C takes effect at the end of the context.
    The processes of a `loky_executor` are started by its first `submit`.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def loky_executor(
    workers: int,
    initializer: Callable[..., object],
    arguments: tuple[Any, ...],
    env: Mapping[str, str] | None = None,
) -> Any:
    """Executor of loky, which unlike `concurrent.futures` works in scripts without a main guard.

    Its processes start with the first `submit`, which should be called in the context `interrupts_held`.

    Parameters
    ----------
    workers
        Number of processes.
    initializer, arguments
        Function that each process calls first, and its arguments.
    env
        Environment variables of the processes, in addition to those of this one.

    Returns
    -------
    loky.ProcessPoolExecutor
    """
    import loky

    _start_trackers()
    # A process that needs more memory than at first is replaced between two calls, which changes no result.
    # Versions of loky before 3.7 have the second text.
    text = "A worker was restarted|A worker stopped while some jobs"
    warnings.filterwarnings("ignore", message=text, category=UserWarning)
    return loky.ProcessPoolExecutor(
        workers, env=None if env is None else dict(env), initializer=initializer, initargs=arguments
    )


def _start_trackers() -> None:
    """Start the two helper processes that every executor of loky has.

    They block Ctrl-C while they start and unblock it afterwards, which would end `interrupts_held`.
    """
    from multiprocessing import resource_tracker

    from loky.backend import resource_tracker as loky_tracker

    if os.name == "posix":
        resource_tracker.ensure_running()
        loky_tracker.ensure_running()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
