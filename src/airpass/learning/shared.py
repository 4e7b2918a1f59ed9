"""Arrays in memory shared between a process and its workers."""

import mmap
import os
import tempfile
import weakref
from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np
from numpy.typing import NDArray


class SharedArray(np.ndarray[Any, Any]):
    """An array that a new process of multiprocessing or loky maps instead of copying.

    The memory is anonymous and freed when all processes have ended. Except in the arguments of a new process,
    the array is pickled like any other.
    """

    _descriptor: int | None = None  # None for views

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._descriptor is None or get_spawning_popen() is None:
            return np.asarray(self).__reduce_ex__(protocol)
        from multiprocessing.reduction import DupFd

        return _mapped, (DupFd(self._descriptor), self.shape, self.dtype.str)


def shared(array: NDArray[Any]) -> SharedArray:
    """A copy of `array` in shared memory."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("airpass")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, max(array.nbytes, 1))
    result = _view(descriptor, array.shape, array.dtype.str)
    result._descriptor = descriptor
    weakref.finalize(result, os.close, descriptor)
    result[...] = array
    return result


def _view(descriptor: int, shape: tuple[int, ...], kind: str) -> SharedArray:
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return np.ndarray(shape, kind, mmap.mmap(descriptor, max(size, 1))).view(SharedArray)


def _mapped(handle: Any, shape: tuple[int, ...], kind: str) -> SharedArray:
    descriptor = handle.detach()
    try:
        return _view(descriptor, shape, kind)
    finally:
        os.close(descriptor)
