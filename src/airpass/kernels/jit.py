"""Compilation of numerical kernels: once per machine, cached on disk, without the GIL.

Arithmetic is strict: no operations are fused or reordered. A kernel therefore gives the same bits
whether it was just compiled or comes from the cache, and a seeded result can be repeated. Loops are
written for speed instead: sums and minima use `airpass.kernels.sums`, fused products and additions
`airpass.kernels.math.fma`.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from airpass.kernels.cache import cache_of

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel. Keeps the static type: kernels are type-checked as plain Python."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(function)
    dispatcher._cache = cache_of(cast(FunctionType, function), stamp)
    return cast(Callable[P, R], dispatcher)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function to be inlined into its calling kernels.

    A call counts references to every array argument, unless the callee calls no function itself. For
    arrays of a few dozen entries this costs as much as the work.
    """
    return cast(Callable[P, R], numba.njit(nogil=True, error_model="numpy", inline="always")(function))


def stamp(function: FunctionType) -> str:
    """Digest of everything that is compiled into a kernel: source files, and constants by value."""
    files, constants = sources(function)
    digest = hashlib.sha256(repr(sorted(constants)).encode())
    for file in sorted(files):
        digest.update(_file_digest(file))
    return digest.hexdigest()


def sources(function: FunctionType) -> tuple[set[Path], set[str]]:
    """Files that define what a kernel uses, directly or indirectly, and its global constants as text.

    Functions and classes of this package and of the kernel's package are followed; libraries are not.
    """
    followed = {_package(__name__), _package(function.__module__)}
    files: set[Path] = set()
    constants: set[str] = set()
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", function)]
    while left:
        name, item = left.pop()
        if isinstance(item, Dispatcher):
            item = item.py_func
        elif isinstance(item, _Intrinsic):
            item = item._defn
        if isinstance(item, FunctionType | type):
            if id(item) not in seen and _package(item.__module__) in followed:
                seen.add(id(item))
                files.add(Path(cast(str, sys.modules[item.__module__].__file__)))
                left += ((f"{item.__module__}.{used}", value) for used, value in _used(item))
        elif isinstance(item, tuple | list):
            left += ((name, value) for value in item)
        elif isinstance(item, dict):
            left += ((name, value) for value in item.values())
        elif isinstance(item, np.ndarray):
            constants.add(f"{name} = {item.dtype} {item.tolist()}")
        elif isinstance(item, int | float | complex | str | np.generic):
            constants.add(f"{name} = {item!r}")
    return files, constants


def _package(module: str) -> str:
    return module.partition(".")[0]


def _used(item: FunctionType | type) -> Iterator[tuple[str, Any]]:
    """What a function or a class uses, by name: globals, closures, annotations and methods."""
    yield from getattr(item, "__annotations__", {}).items()
    if isinstance(item, type):
        yield from ((name, value) for name, value in vars(item).items() if isinstance(value, FunctionType))
        return
    yield from (("", cell.cell_contents) for cell in item.__closure__ or ())
    names = _names(item.__code__)
    for name in names & item.__globals__.keys():
        value = item.__globals__[name]
        if isinstance(value, ModuleType):  # a namespace, as in `cg.minimise`
            yield from ((f"{name}.{member}", vars(value)[member]) for member in names & vars(value).keys())
        else:
            yield name, value


def _names(code: CodeType) -> set[str]:
    """Names that a function, or a function within it, uses."""
    nested = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, nested))


@cache
def _file_digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()
