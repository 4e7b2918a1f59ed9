"""Arrays from users' files: NumPy `.npy` and `.npz`, and MATLAB `.mat`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from airpass.core.errors import InvalidInput

_HDF5 = b"\x89HDF\r\n\x1a\n"
_NUMBERS = ("double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


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
    if not path.is_file():
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
    if not path.is_file():
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
        if _is_hdf5(path):
            with _hdf5(path) as file:
                found = [name for name in _own(file) if name in names]
                return {
                    name: _values(file[name]) for name in found if _holds(file[name], (*_NUMBERS, "char"))
                }
        try:
            content = scipy.io.loadmat(path, variable_names=list(names))
        except Exception:  # loadmat raises many kinds of errors
            raise InvalidInput(f"{path}: not a MATLAB file that can be read") from None
        return {name: content[name] for name in names if name in content}
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
        return np.load(path, allow_pickle=False)
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
    if _is_hdf5(path):
        return _read_hdf5(path, variable, flag)
    try:
        content = scipy.io.loadmat(path)
    except Exception:  # loadmat raises many kinds of errors
        raise InvalidInput(f"{path}: not a MATLAB file that can be read") from None
    names = sorted(name for name in content if not name.startswith("__"))
    return content[_chosen(path, names, variable, flag)]


def _is_hdf5(path: Path) -> bool:
    """Whether the file is HDF5, as MATLAB 7.3 writes it behind a header of 512 bytes."""
    with path.open("rb") as file:
        start = file.read(512 + len(_HDF5))
    return start.startswith(_HDF5) or start[512:] == _HDF5


def _read_hdf5(path: Path, variable: str | None, flag: str) -> Any:
    """Read MATLAB 7.3."""
    with _hdf5(path) as file:
        names = sorted(name for name in _own(file) if _holds(file[name], _NUMBERS))
        return _values(file[_chosen(path, names, variable, flag)])


@contextmanager
def _hdf5(path: Path) -> Iterator[Any]:
    """An open file of MATLAB 7.3; errors while it is read are one line."""
    try:
        import h5py
    except ModuleNotFoundError:
        raise InvalidInput(
            f"{path}: MATLAB 7.3 format; install h5py (pip install 'airpass[mat]'), or save it with "
            "save(..., '-v7')"
        ) from None
    try:
        with h5py.File(path, "r") as file:
            yield file
    except InvalidInput:
        raise
    except Exception:  # h5py raises many kinds of errors
        raise InvalidInput(f"{path}: not a MATLAB file that can be read") from None


def _own(file: Any) -> list[str]:
    """Names in an HDF5 file, without links to other files."""
    import h5py

    return [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]


def _values(found: Any) -> Any:
    """An array of MATLAB 7.3. Its axes are in reverse order, and complex numbers are two fields."""
    if "MATLAB_empty" in found.attrs:  # the dataset then holds the shape
        return np.empty(tuple(int(size) for size in found[()]))
    values = found[()]
    if _class(found) == "char":
        return np.array(["".join(map(chr, np.ravel(values)))])
    if values.dtype.names:
        values = values["real"] + 1j * values["imag"]
    return values.T


def _class(item: Any) -> str:
    """MATLAB's name of the type of an entry."""
    written = item.attrs.get("MATLAB_class", b"double")
    return written.decode() if isinstance(written, bytes) else str(written)


def _holds(item: Any, classes: Sequence[str]) -> bool:
    """Whether an entry of an HDF5 file is an array of one of the classes, and not a struct or a cell."""
    kind = getattr(item, "dtype", None)
    if kind is None:  # a group
        return False
    return _class(item) in classes and (kind.kind in "iufc" or kind.names == ("real", "imag"))
