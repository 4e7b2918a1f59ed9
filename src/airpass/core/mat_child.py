"""Reads a MATLAB file in a process of its own, because damaged files can crash SciPy's and HDF5's readers.

`mat_files` starts it as a script: `python -P mat_child.py FILE ORDER`, where ORDER is a table in JSON with
`names` (null: the only variable), `memory_bytes` and `seconds`. Standard output is an `.npz` file: the names
of all variables, the names of those that are read, and their arrays. Nothing is pickled.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

FAILED, NO_MEMORY, NO_SPACE = 3, 4, 5  # exit codes
HDF5 = b"\x89HDF\r\n\x1a\n"
NUMBERS = ("double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
PLAIN = "biufcU"  # kinds of arrays without Python objects


def main() -> int:
    """Read the file of the command line, and return the exit code."""
    path, order = sys.argv[1], json.loads(sys.argv[2])
    _limit(order["memory_bytes"], order["seconds"])
    try:
        names, found = (_from_hdf5 if is_hdf5(path) else _from_mat)(path, order["names"])
    except MemoryError:
        return NO_MEMORY
    except Exception:  # the readers raise many kinds of errors
        return FAILED
    try:
        np.savez(
            sys.stdout.buffer,
            np.array(names, dtype=np.str_),
            np.array(list(found), dtype=np.str_),
            *found.values(),
            allow_pickle=False,
        )
        sys.stdout.buffer.flush()
    except MemoryError:
        return NO_MEMORY
    except OSError:
        return NO_SPACE
    return 0


def is_hdf5(path: str) -> bool:
    """Whether the file is HDF5, as MATLAB 7.3 writes it behind a header of 512 bytes."""
    with open(path, "rb") as file:
        start = file.read(512 + len(HDF5))
    return start.startswith(HDF5) or start[512:] == HDF5


def _limit(memory_bytes: int, seconds: int) -> None:
    """Limit memory, output and time of this process, where the system can do it."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        try:
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        except (OSError, ValueError):  # macOS does not limit the address space
            continue


def _wanted(names: Sequence[str], given: Sequence[str] | None) -> list[str]:
    if given is None:
        return list(names) if len(names) == 1 else []
    return [name for name in given if name in names]


def _from_mat(path: str, given: Sequence[str] | None) -> tuple[list[str], dict[str, Any]]:
    """Variables up to version 7."""
    import scipy.io
    import scipy.sparse

    names = sorted({name for name, _, _ in scipy.io.whosmat(path)})
    wanted = _wanted(names, given)
    content = scipy.io.loadmat(path, variable_names=wanted) if wanted else {}
    found = {name: content[name] for name in wanted}
    found = {name: item.toarray() if scipy.sparse.issparse(item) else item for name, item in found.items()}
    return names, {name: item for name, item in found.items() if _is_plain(item)}


def _is_plain(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind in PLAIN


def _from_hdf5(path: str, given: Sequence[str] | None) -> tuple[list[str], dict[str, Any]]:
    """Variables of version 7.3."""
    import h5py

    with h5py.File(path, "r") as file:
        # Links to other files are not followed.
        own = [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
        names = sorted(name for name in own if _holds(file[name], NUMBERS))
        texts = [name for name in own if _holds(file[name], ("char",))]
        wanted = _wanted(names, None) if given is None else _wanted([*names, *texts], given)
        return names, {name: _values(file[name]) for name in wanted}


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


if __name__ == "__main__":
    sys.exit(main())
