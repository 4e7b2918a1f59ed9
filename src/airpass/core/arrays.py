"""Arrays from users' files: NumPy `.npy` and MATLAB `.mat`."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from airpass.core.errors import InvalidInput


def read_array(path: Path, variable: str | None = None, flag: str = "--variable") -> Any:
    """Read an array.

    Parameters
    ----------
    path
        NumPy `.npy` or MATLAB `.mat` file.
    variable
        Name of the array in a `.mat` file with several variables.
    flag
        How the user gives `variable`, for error messages.

    Returns
    -------
    Any
        The array.
    """
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    if path.suffix.lower() == ".npy":
        return _read_npy(path)
    if path.suffix.lower() == ".mat":
        return _read_mat(path, variable, flag)
    raise InvalidInput(f"{path}: must be a NumPy .npy or a MATLAB .mat file")


def _read_npy(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header makes NumPy raise many kinds of errors
        reason = "it holds Python objects" if "allow_pickle" in str(error) else "damaged, or not .npy"
        raise InvalidInput(f"{path}: not a plain NumPy array ({reason})") from None


def _read_mat(path: Path, variable: str | None, flag: str) -> Any:
    try:
        content = scipy.io.loadmat(path)
    except NotImplementedError:
        raise InvalidInput(f"{path}: MATLAB 7.3 format; save it with save(..., '-v7')") from None
    except Exception:  # loadmat raises many kinds of errors
        raise InvalidInput(f"{path}: not a MATLAB file that can be read") from None
    names = sorted(name for name in content if not name.startswith("__"))
    if not names:
        raise InvalidInput(f"{path}: holds no variables")
    if variable is None and len(names) == 1:
        return content[names[0]]
    if variable is None:
        raise InvalidInput(f"{path}: holds several variables; choose one with {flag}: {', '.join(names)}")
    if variable not in names:
        raise InvalidInput(f"{path}: holds no variable {variable!r}; {flag} may be {', '.join(names)}")
    return content[variable]
