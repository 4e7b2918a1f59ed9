"""The cache of compiled kernels on disk.

Numba's cache, with three differences. It is invalidated by changes of any source that a kernel uses. Damaged
files are discarded, and the kernel is compiled again: every file has a checksum, because machine code with a
wrong byte would crash or compute something else. If neither the package's folder nor the user's cache
directory can be written, files go to a temporary directory.

Files hold pickles: whoever can write them can run code as the user. The temporary directory must therefore
belong to the user, and nobody else may write to it.
"""

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)

TEMPORARY = "AIRPASS_KERNEL_CACHE"  # variable by which child processes find the temporary directory
DIGEST_BYTES = hashlib.sha256().digest_size


class _Damaged(Exception):
    """A file of the cache does not match its checksum."""


class _HomeLocator(UserWideCacheLocator):
    """The user's cache directory; not used if the home directory is unknown."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self._cache_path):  # "~" could not be replaced
            raise OSError("the home directory is unknown")
        super().ensure_cache_path()


class _TemporaryLocator(UserProvidedCacheLocator):
    """A temporary directory."""

    def __init__(self, function: FunctionType, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(temporary_directory() / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> "_TemporaryLocator | None":
        if not os.path.exists(file):
            return None
        try:
            found = cls(function, file)
            found.ensure_cache_path()
        except OSError:
            return None
        return found


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012  (as in Numba)
        *(
            _HomeLocator if one is UserWideCacheLocator else one
            for one in CompileResultCacheImpl._locator_classes
        ),
        _TemporaryLocator,
    ]


class _CheckedFile(IndexDataCacheFile):
    """Index and data files, each of which begins with the SHA-256 of the rest."""

    def save(self, key: Any, data: Any) -> None:
        # Two processes may choose the same name for the data of different signatures: store the key as well.
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return None if found is None or found[0] != key else found[1]

    def _load_index(self) -> Any:
        try:
            version, stamp, overloads = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        content = Path(path).read_bytes()
        if hashlib.sha256(content[DIGEST_BYTES:]).digest() != content[:DIGEST_BYTES]:
            raise _Damaged(path)
        return pickle.loads(content[DIGEST_BYTES:])  # noqa: S301  (as Numba does)

    def _write(self, path: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(content).digest() + content)


class KernelCache(FunctionCache):
    """The cache of one kernel, invalidated when any source that was compiled in has changed.

    Numba itself checks only the file of the kernel: after an edit to a function that the kernel calls, it
    would use the old code.

    Parameters
    ----------
    function
        The kernel.
    stamp
        Digest of everything that is compiled into a function.
    """

    _impl_class = _Implementation

    def __init__(self, function: FunctionType, stamp: Callable[[FunctionType], str]) -> None:
        super().__init__(function)
        self._stamp = stamp
        self._cache_file = _CheckedFile(self._cache_path, self._impl.filename_base, "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kernel from the cache; None if it is not there, or if its files are damaged."""
        # Computed here, not at decoration: a kernel may call functions defined later.
        self._cache_file._source_stamp = self._stamp(self._py_func)
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a file of another version may raise anything
            self._discard()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a kernel; without an error if the disk is full or has become read-only."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_once(f"compiled kernels cannot be stored: {error.strerror} ({self.cache_path})")
        except Exception:  # the index was damaged since it was read
            self._discard()

    def _discard(self) -> None:
        try:
            self.flush()
        except OSError as error:
            _say_once(f"damaged kernel cache, cannot be replaced: {error.strerror} ({self.cache_path})")


def cache_of(function: FunctionType, stamp: Callable[[FunctionType], str]) -> KernelCache | NullCache:
    """The cache of a kernel; one that stores nothing if no directory can be written.

    Parameters
    ----------
    function
        The kernel.
    stamp
        Digest of everything that is compiled into a function.

    Returns
    -------
    KernelCache or NullCache
        The cache.
    """
    try:
        return KernelCache(function, stamp)
    except RuntimeError:  # no locator
        _say_once("compiled kernels cannot be stored: no directory can be written; NUMBA_CACHE_DIR names one")
        return NullCache()


@cache
def temporary_directory() -> Path:
    """Directory for kernels if no other can be written: one per user, or else one per process.

    Returns
    -------
    Path
        A directory of the user to which nobody else can write.
    """
    given = os.environ.get(TEMPORARY)
    if given and _is_private(Path(given)):
        return Path(given)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    path = Path(tempfile.gettempdir()) / f"airpass-kernels-{user}"
    with suppress(OSError):
        path.mkdir(mode=0o700, exist_ok=True)
    if not _is_private(path):
        path = Path(tempfile.mkdtemp(prefix="airpass-kernels-"))
    os.environ[TEMPORARY] = str(path)
    _say_once(
        f"compiled kernels are stored in {path}, because neither the package's folder nor the home directory "
        "can be written; NUMBA_CACHE_DIR names another folder"
    )
    return path


def _is_private(path: Path) -> bool:
    """Whether a path is a directory of this user that others cannot write to."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


@cache
def _say_once(message: str) -> None:
    sys.stderr.write(f"airpass: {message}\n")
