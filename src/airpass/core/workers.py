"""Worker processes that end when their parent ends."""

import os
import signal
import threading
import time


def follow_parent(parent: int) -> None:
    """Ignore Ctrl-C in this process and end it when its parent has ended.

    Parameters
    ----------
    parent
        Process id of the parent. It may have ended already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to every process
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
