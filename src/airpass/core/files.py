"""Writing files so that a reader never sees half of one."""

import os
import tempfile
from pathlib import Path

from airpass.core.errors import InvalidInput


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path` and move it there in one step.

    A link is followed; a pipe or a device is written to as it is.
    """
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
            os.fsync(file.fileno())  # else a power cut may leave the new name on an empty file
        # mkstemp makes files private; give this one the permissions an ordinary open would.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InvalidInput(f"{path}: cannot be written ({error.strerror})") from None
        raise
