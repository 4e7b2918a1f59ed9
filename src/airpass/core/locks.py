"""Locks of output folders: one command at a time writes to a folder.

The operating system holds the lock and releases it when the process ends, however it ends, so that no stale
lock is left by a killed process or a reboot. Commands that only read take no lock.
"""

import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from airpass.core.errors import InvalidInput
from airpass.core.files import cannot_write, is_running, remove_leftovers, write_atomically
from airpass.core.registry import Report, discard

LOCK = ".airpass-lock"  # empty, locked by the process that writes to the folder
HOLDER = ".airpass-in-use.json"  # that process
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def folder_lock(folder: Path, report: Report = discard) -> Iterator[None]:
    """Lock an output folder, and remove what killed processes have left in it.

    Parameters
    ----------
    folder
        The folder. It is made if it does not exist; if nothing is written to it, it is removed again.
    report
        Callback for the message that the file system has no locks.
    """
    from filelock import FileLock, Timeout

    absent = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).open("ab").close()  # an unwritable folder is refused here, before any work
    except (OSError, ValueError) as error:
        raise cannot_write(folder, error) from None
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InvalidInput(
            f"{folder}: {_holder(folder)} is writing to it; wait until it has ended, stop it, "
            "or give another --out"
        ) from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise cannot_write(folder, error) from None
        report(f"{folder}: its file system has no locks; run no other command with the same --out")
    try:
        remove_leftovers(folder)
        write_atomically(folder / HOLDER, _this_process())
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)
            if absent and [path.name for path in folder.iterdir()] == [LOCK]:
                (folder / LOCK).unlink()
        lock.release()
        with suppress(OSError):  # not empty
            for made in absent:
                made.rmdir()


@contextmanager
def folder_locks(folders: list[Path], report: Report = discard) -> Iterator[None]:
    """Lock several folders; the same folder may be named more than once."""
    with ExitStack() as stack:
        for folder in {path.resolve(): path for path in folders}.values():
            stack.enter_context(folder_lock(folder, report))
        yield


def locks_folder(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function lock its keyword argument `folder`, if it is given, while it runs."""

    @wraps(function)
    def locked(*arguments: P.args, **options: P.kwargs) -> T:
        folder = options.get("folder")
        if folder is None:
            return function(*arguments, **options)
        with folder_lock(Path(str(folder))):
            return function(*arguments, **options)

    return locked


def _this_process() -> bytes:
    return (json.dumps({"process": os.getpid(), "host": socket.gethostname()}) + "\n").encode()


def _holder(folder: Path) -> str:
    """The process that holds the lock of a folder, as far as it is known."""
    try:
        found = json.loads((folder / HOLDER).read_bytes())
        process, host = int(found["process"]), str(found["host"])
    except (OSError, ValueError, TypeError, KeyError):
        return "another process"
    if host != socket.gethostname():
        return f"process {process} on {host}"
    own = process == os.getpid()
    return f"process {process}" if own or is_running(process) else "another process"
