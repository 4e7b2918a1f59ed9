"""Folders for downloads, and downloaded files, unpacked in memory with a limit of their size."""

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SCRATCH = "airpass-download-"  # beginning of the names of folders; the process follows
MOST_BYTES = 2**30  # of all files of a data set together; CIFAR-10 has 0.2 GB


class TooLarge(ValueError):
    """Content that is larger than a data set can be."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is removed at the end. Those of processes that were killed are removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*-*"):
        owner = left.name.removeprefix(SCRATCH).partition("-")[0]
        if owner.isdecimal() and not _is_running(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-") as folder:
        yield Path(folder)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def unpacked(path: Path, most: int = MOST_BYTES) -> dict[str, bytes]:
    """The content of a file, a `.gz` file, or of every file in a `.tar.gz` or `.tgz` archive.

    Parameters
    ----------
    path
        The file. Nothing is written to disk.
    most
        Largest number of bytes of all files together.

    Returns
    -------
    dict of str to bytes
        Contents by file name, without folders and without `.gz`.
    """
    if path.name.endswith((".tar.gz", ".tgz")):
        found: dict[str, bytes] = {}
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    content = _read(file, path, most)
                    most -= len(content)
                    found[Path(member.name).name] = content
        return found
    if path.suffix == ".gz":
        with gzip.open(path) as packed:
            return {path.stem: _read(packed, path, most)}
    with path.open("rb") as plain:
        return {path.name: _read(plain, path, most)}


def _read(file: IO[bytes] | gzip.GzipFile, path: Path, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise TooLarge(f"{path.name} holds more than a data set can have")
    return content
