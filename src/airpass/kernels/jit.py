"""How numerical kernels are compiled: once per machine, cached on disk, without the GIL.

Arithmetic is strict: operations stay as written, none are fused or reordered. So a kernel gives
the same bits whether it was just compiled or comes from the cache, whatever the compiler made of
it, and a seeded result can be repeated. Speed comes from the way loops are written instead: sums
and minima go through `airpass.kernels.sums`, products and additions that should be fused through
`airpass.kernels.math.fma`.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = Path(__file__).parent.parent
_WITH_KERNELS = (
    "kernels/*.py",
    "optim/*.py",
    "channel/*.py",
    "selection/*.py",
    "geometry/*.py",
    "designs/*.py",
    "learning/layers/*.py",
)


@cache
def sources_digest() -> str:
    """A fingerprint of every source file that holds kernels."""
    digest = hashlib.sha256()
    for pattern in _WITH_KERNELS:
        for path in sorted(_PACKAGE.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel. Keeps the static type: kernels are type-checked as plain Python."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy")(function)
    dispatcher.enable_caching()
    # Numba only looks at the file that a kernel is in, but compiles in what the kernel calls:
    # after an edit to another file it would go on using the old code.
    dispatcher._cache._cache_file._source_stamp = sources_digest()
    return cast(Callable[P, R], dispatcher)
