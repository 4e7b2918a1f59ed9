"""Worker processes that end when their parent ends, and that do not see Ctrl-C."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


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
    Call `start_trackers` before if the processes are those of an executor of loky.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_trackers() -> None:
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
