"""Downloaded files, unpacked in memory with a limit of their size."""

import gzip
import tarfile
from pathlib import Path
from typing import IO

MOST_BYTES = 2**30  # of all files of a data set together; CIFAR-10 has 0.2 GB


class TooLarge(ValueError):
    """Content that is larger than a data set can be."""


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
        with gzip.open(path) as file:
            return {path.stem: _read(file, path, most)}
    with path.open("rb") as file:
        return {path.name: _read(file, path, most)}


def _read(file: IO[bytes], path: Path, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise TooLarge(f"{path.name} holds more than a data set can have")
    return content
