"""Worker processes: end them with the process that started them."""

import os
import signal
import threading
import time


def follow_parent(parent: int) -> None:
    """Leave Ctrl-C to the process `parent` that started this one, and end when that has ended.

    `parent` may have ended already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
