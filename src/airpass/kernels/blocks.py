"""Blocks of long arrays, and views without reference counting.

Loops over many devices go block by block, so that intermediate results stay in cache. Reference counting of
slices and arguments costs as much as the work on a few dozen entries. These views skip it; the viewed array
must stay alive, as an argument of the calling kernel does.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from airpass.core.types import Real

BLOCK = 4096  # entries of a block

T = TypeVar("T")


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An array, or a tuple with arrays, without their reference-counted owner."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for index, item in enumerate(cast(Any, kind)):
            view = _borrowed(context, builder, item, builder.extract_value(value, index))
            value = builder.insert_value(value, view, index)
    return value


def _borrowed_typing(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _borrowed(context, builder, signature.args[0], args[0])

    return value(value), codegen


def _part_typing(typingctx: Any, values: Any, start: Any, stop: Any) -> Any:
    if not isinstance(values, types.Array) or values.ndim != 1 or values.layout != "C":
        raise TypingError(f"needs a contiguous vector, not {values}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, start, stop = args
        value = _borrowed(context, builder, signature.args[0], values)
        array = context.make_array(signature.args[0])(context, builder, value)
        array.data = builder.gep(array.data, [start])
        array.nitems = builder.sub(stop, start)
        array.shape = cgutils.pack_array(builder, [array.nitems])
        return array._getvalue()

    return values(values, types.intp, types.intp), codegen


borrowed = cast(Callable[[T], T], intrinsic(_borrowed_typing))  # an array, or a tuple with arrays in it
part = cast(Callable[[Real, int, int], Real], intrinsic(_part_typing))  # values[start:stop], bounds unchecked
