"""Worker processes: end them with the process that started them."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path


def follow_parent(parent: int, shared: Path | None = None) -> None:
    """Ignore Ctrl-C in this process and end it when its parent has ended.

    Parameters
    ----------
    parent
        Process id of the parent. It may have ended already.
    shared
        Folder to remove when the parent has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to every process
    threading.Thread(target=_end_with, args=(parent, shared), daemon=True).start()


def _end_with(parent: int, shared: Path | None) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    if shared is not None:
        shutil.rmtree(shared, ignore_errors=True)
    os._exit(1)
