"""How numerical kernels are compiled: once per machine, cached on disk, without the GIL.

Both decorators keep the function's static type, so that the kernels are type-checked as
the plain Python they also are.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Reassociation lets the compiler sum in vector lanes. NaN and infinity keep their
# meaning (no "nnan", "ninf"): the objectives rely on exp overflowing to infinity.
_REORDER = {"contract", "reassoc", "arcp", "nsz"}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel whose sums may be reordered for speed."""
    return cast(
        Callable[P, R], numba.njit(cache=True, nogil=True, fastmath=_REORDER, error_model="numpy")(function)
    )


def exact_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel whose operations stay in the order written.

    Needed where a difference of nearly equal terms carries the accuracy, as in argument
    reduction; fused multiply-add is still allowed.
    """
    return cast(
        Callable[P, R],
        numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")(function),
    )
