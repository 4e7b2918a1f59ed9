"""Arrays of MATLAB files. They are read in a child process with limits of time and memory (`mat_child`)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core import mat_child
from airpass.core.errors import InvalidInput

SECONDS = 60  # of processor time, for a small file
WAIT = 5  # longest duration over processor time, on a busy machine
BYTES_PER_SECOND = 2_000_000  # larger files may take longer
LEAST_MEMORY = 2**30
TOO_LONG = -int(getattr(signal, "SIGXCPU", 24))  # exit code after too much processor time


def read_mat(path: Path, names: Sequence[str] | None) -> tuple[list[str], dict[str, Any]]:
    """Read variables of a MATLAB file.

    Parameters
    ----------
    path
        The file. Version 7.3 of the format needs h5py.
    names
        The variables to read; None: the only one, if there is only one.

    Returns
    -------
    names : list of str
        Names of all variables.
    arrays : dict of str to array
        Those variables that were asked for and are arrays of numbers or texts.
    """
    if mat_child.is_hdf5(str(path)) and find_spec("h5py") is None:
        raise InvalidInput(
            f"{path}: MATLAB 7.3 format; install h5py (pip install 'airpass[mat]'), or save it with "
            "save(..., '-v7')"
        )
    seconds = SECONDS + path.stat().st_size // BYTES_PER_SECOND
    memory = _memory()
    order = {"names": None if names is None else list(names), "memory_bytes": memory, "seconds": seconds}
    with tempfile.TemporaryFile() as output:
        try:
            ended = subprocess.run(  # noqa: S603
                [sys.executable, "-P", mat_child.__file__, str(path), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                # Threads of BLAS, which is not used, would reserve memory.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                timeout=WAIT * seconds,
                check=False,
            )
            code = ended.returncode
        except subprocess.TimeoutExpired:
            code = TOO_LONG
        if code == TOO_LONG:
            raise InvalidInput(f"{path}: could not be read within {seconds} s; it may be damaged")
        if code == mat_child.NO_MEMORY:
            raise InvalidInput(
                f"{path}: needs more than {memory / 2**30:.1f} GB to be read; it may be damaged"
            )
        if code == mat_child.NO_SPACE:
            raise InvalidInput(f"{path}: no space for its arrays in {tempfile.gettempdir()}; set TMPDIR")
        output.seek(0)
        try:
            if code:  # also if the reader crashed
                raise ValueError(f"exit code {code}")
            with np.load(output, allow_pickle=False) as archive:
                everything, found, *arrays = (archive[key] for key in archive.files)
        except Exception:  # NumPy and zipfile raise many kinds of errors
            raise InvalidInput(f"{path}: not a MATLAB file that can be read") from None
    return everything.tolist(), dict(zip(found.tolist(), arrays, strict=True))


def _memory() -> int:
    """Half of the machine's memory, in bytes."""
    try:
        return max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2, LEAST_MEMORY)
    except (AttributeError, ValueError, OSError):
        return 4 * LEAST_MEMORY
