"""Atomic writing of files."""

import errno
import os
import re
import tempfile
from pathlib import Path

from airpass.core.errors import InvalidInput
from airpass.core.paths import check_file

# Names of files while they are written: .NAME.PID-xxxxxxxx.part
_TEMPORARY = re.compile(r"\..+\.(\d+)-[a-z0-9_]{8}\.part")
_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part.

    Parameters
    ----------
    path
        Where to write. Links are followed; pipes and devices are written to directly.
    content
        The new content.
    """
    check_file(path)
    try:
        path = path.resolve()
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # The name may be cut, as a file name has at most 255 bytes.
        prefix = f".{path.name[:40]}.{os.getpid()}-"
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".part")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a zero byte in a name
        raise cannot_write(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut may leave an empty file
        # mkstemp makes files private; set the permissions of an ordinary file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from None
        raise


def cannot_write(path: Path, error: Exception) -> InvalidInput:
    """The error for a file or folder that cannot be written."""
    why = getattr(error, "strerror", None) or str(error)
    full = isinstance(error, OSError) and error.errno in _FULL
    hint = ": free some space, then run the same command again" if full else ""
    return InvalidInput(f"{path}: cannot be written ({why}){hint}")


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed while writing have left in a folder."""
    if not folder.is_dir():
        return
    for path in folder.glob(".*.part"):
        found = _TEMPORARY.fullmatch(path.name)
        if found and not is_running(int(found[1])):
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether another process of this machine has this id."""
    if process == os.getpid():
        return False
    if os.name == "nt":  # where the signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of another user
        return True
    return True
