"""Arrays from users' files: NumPy `.npy` and `.npz`, and MATLAB `.mat`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.mat_files import read_mat


def read_array(path: Path, variable: str | None = None, flag: str = "--variable") -> Any:
    """Read an array.

    Parameters
    ----------
    path
        NumPy `.npy` or `.npz`, or MATLAB `.mat`. Version 7.3 of MATLAB's format needs h5py.
    variable
        Name of the array in a file with several arrays; not used for `.npy`.
    flag
        How the user gives `variable`, for error messages.

    Returns
    -------
    Any
        The array, with the axes that it has in NumPy or MATLAB.
    """
    if not os.path.isfile(path):  # unlike `Path.is_file`, it takes names of any length
        raise InvalidInput(f"{path}: no such file")
    readers = {".npy": _read_npy, ".npz": _read_npz, ".mat": _read_mat}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(f"{path}: must be a NumPy .npy or .npz file, or a MATLAB .mat file")
    return reader(path, variable, flag)


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Read several arrays and texts by name.

    Parameters
    ----------
    path
        NumPy `.npz`, or MATLAB `.mat`. Version 7.3 of MATLAB's format needs h5py.
    names
        The names to look for.

    Returns
    -------
    dict
        What the file holds under these names, with the axes of NumPy or MATLAB. A text is an array with one
        string. Names that the file does not have are left out.
    """
    if not os.path.isfile(path):  # unlike `Path.is_file`, it takes names of any length
        raise InvalidInput(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        try:
            # Opened here, because `np.load` leaves a damaged file open.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in names if name in archive.files}
        except Exception as error:  # NumPy and zipfile raise many kinds of errors
            raise _not_plain(path, error) from None
    if suffix == ".mat":
        return read_mat(path, names)[1]
    raise InvalidInput(f"{path}: must be a NumPy .npz file or a MATLAB .mat file")


def _chosen(path: Path, names: Sequence[str], variable: str | None, flag: str) -> str:
    """The name of the array to read."""
    if not names:
        raise InvalidInput(f"{path}: holds no arrays of numbers")
    if variable is None and len(names) == 1:
        return names[0]
    if variable is None:
        raise InvalidInput(f"{path}: holds several variables; choose one with {flag}: {', '.join(names)}")
    if variable not in names:
        raise InvalidInput(f"{path}: holds no variable {variable!r}; {flag} may be {', '.join(names)}")
    return variable


def _not_plain(path: Path, error: Exception) -> InvalidInput:
    suffix = path.suffix.lower()
    reason = f"damaged, not {suffix}, or with Python objects, which are not read"
    return InvalidInput(f"{path}: not a plain NumPy array ({reason})")


def _read_npy(path: Path, variable: str | None, flag: str) -> Any:
    try:
        with path.open("rb") as file:
            return np.load(file, allow_pickle=False)
    except Exception as error:  # a damaged header makes NumPy raise many kinds of errors
        raise _not_plain(path, error) from None


def _read_npz(path: Path, variable: str | None, flag: str) -> Any:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return archive[_chosen(path, sorted(archive.files), variable, flag)]
    except InvalidInput:
        raise
    except Exception as error:  # NumPy and zipfile raise many kinds of errors
        raise _not_plain(path, error) from None


def _read_mat(path: Path, variable: str | None, flag: str) -> Any:
    names, found = read_mat(path, None if variable is None else [variable])
    chosen = _chosen(path, names, variable, flag)
    if chosen not in found:
        raise InvalidInput(f"{path}: {chosen} is a struct, a cell or another object; must be an array")
    return found[chosen]
