"""Paths that a command writes: checked before any work is done."""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from airpass.core.errors import InvalidInput

Named = tuple[str, str | Path]  # a flag and the path that was given with it


def check_outputs(files: Sequence[Named], folders: Sequence[Named], inputs: Iterable[Named]) -> None:
    """Refuse paths that cannot be written, that are given twice, or that are also read.

    Parameters
    ----------
    files
        Files that will be written.
    folders
        Folders that files will be written to; they are made if they do not exist.
    inputs
        Files that are read.
    """
    for _, path in files:
        check_file(path)
    for _, path in folders:
        check_folder(path)
    plain = [(flag, path) for flag, path in files if not _is_device(path)]
    for place, (flag, path) in enumerate(plain):
        for other, earlier in plain[:place]:
            if _same(path, earlier):
                raise InvalidInput(f"{flag} {path}: is also written by {other}; give another name")
    for name, source in inputs:
        for flag, path in plain:
            if _same(path, source):
                raise InvalidInput(f"{flag} {path}: is also read, by {name}; give another name")


def check_file(path: str | Path) -> None:
    """Refuse a path at which no file can be written."""
    if _mode(path, "file") is not None and os.path.isdir(path):
        raise InvalidInput(f"{path}: is a directory; give the name of a file")
    if not _is_device(path):
        _check_parent(path, os.path.realpath(path))


def check_folder(path: str | Path) -> None:
    """Refuse a path that is not a folder and cannot become one."""
    if _mode(path, "folder") is not None:
        if not os.path.isdir(path):
            raise InvalidInput(f"{path}: is not a directory; give a folder")
        if not os.access(path, os.W_OK | os.X_OK):
            raise InvalidInput(f"{path}: cannot be written (permission denied)")
    _check_parent(path, os.path.realpath(path))


def _check_parent(path: str | Path, real: str) -> None:
    """Refuse a path whose nearest existing folder is no folder, or is not writable."""
    nearest = os.path.dirname(real)
    while not os.path.exists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        raise InvalidInput(f"{path}: cannot be written ({nearest} is not a directory)")
    if not os.path.exists(real) and not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path}: cannot be written (no permission to write in {nearest})")


def _mode(path: str | Path, what: str) -> int | None:
    """Kind of what is at a path; None if nothing is."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a loop of links, or a name that is too long
        raise InvalidInput(f"{path}: cannot be written ({error.strerror}); give another {what}") from None
    except ValueError:  # a zero byte
        raise InvalidInput(f"{str(path)!r}: is not the name of a {what}") from None


def _is_device(path: str | Path) -> bool:
    """Whether a path is a pipe or a device, which may be written twice."""
    mode = _mode(path, "file")
    return mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _same(one: str | Path, other: str | Path) -> bool:
    """Whether two paths are the same file, also through links and in other spellings."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(other)
