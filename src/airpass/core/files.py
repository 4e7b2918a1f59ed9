"""Atomic writing of files."""

import os
import tempfile
from pathlib import Path

from airpass.core.errors import InvalidInput
from airpass.core.paths import check_file


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
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})") from None
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
            raise InvalidInput(f"{path}: cannot be written ({error.strerror})") from None
        raise
