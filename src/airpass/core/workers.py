"""Worker processes: end them with the process that started them."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path


def follow_parent(parent: int, shared: Path | None = None) -> None:
    """Leave Ctrl-C to the process `parent` that started this one, and end when that is gone, however it
    went: it may be gone already. A folder `shared` with it is removed then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes
    threading.Thread(target=_end_with, args=(parent, shared), daemon=True).start()


def _end_with(parent: int, shared: Path | None) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    if shared is not None:
        shutil.rmtree(shared, ignore_errors=True)
    os._exit(1)
