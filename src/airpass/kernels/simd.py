"""Explicit vector instructions, for loops that LLVM does not vectorise well.

LLVM keeps strict sums scalar, and adds overlap checks to short loops. An `intrinsic` that uses this module
specifies exactly which entries are loaded, fused and stored together. On a processor with narrower vectors
LLVM splits them, with the same result.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

SCALARS = {
    types.float32: (ir.FloatType(), "f32", 4),
    types.float64: (ir.DoubleType(), "f64", 8),
    types.int32: (ir.IntType(32), "", 4),
}


def contiguous(scalar: Any, *arrays: Any) -> None:
    """Refuse other types and non-contiguous arrays, for which vector loads would read wrong entries."""
    for array in arrays:
        if (
            not isinstance(array, types.Array)
            or array.ndim != 1
            or array.layout != "C"
            or array.dtype != scalar
        ):
            raise TypingError(f"needs a contiguous vector of {scalar}, not {array}")


class VectorCode:
    """Emits operations on vectors of `lanes` numbers of one type into a function."""

    def __init__(self, context: Any, builder: Any, scalar: Any, lanes: int) -> None:
        self._context, self._builder, self._lanes = context, builder, lanes
        self.scalar, self._name, self._align = SCALARS[scalar]
        self.kind = ir.VectorType(self.scalar, lanes)

    def data(self, array: Any, kind: Any) -> Any:
        """Pointer to the first entry of an array."""
        return self._context.make_array(kind)(self._context, self._builder, array).data

    def entry(self, data: Any, index: Any) -> Any:
        """One entry."""
        return self._builder.load(self._builder.gep(data, [index]))

    def load(self, data: Any, index: Any, vector: int = 0) -> Any:
        """The vector at `index`, or one `vector` vectors after it."""
        value = self._builder.load(self._place(data, index, vector))
        value.align = self._align
        return value

    def store(self, value: Any, data: Any, index: Any, vector: int = 0) -> None:
        """Store a vector at the position that `load` reads with the same arguments."""
        self._builder.store(value, self._place(data, index, vector)).align = self._align

    def _place(self, data: Any, index: Any, vector: int) -> Any:
        moved = self._builder.add(index, ir.Constant(index.type, vector * self._lanes))
        return self._builder.bitcast(self._builder.gep(data, [moved]), self.kind.as_pointer())

    def variables(self, count: int) -> list[Any]:
        """Vectors that change in a loop, uninitialised; LLVM keeps them in registers."""
        return [cgutils.alloca_once(self._builder, self.kind) for _ in range(count)]

    def zero(self) -> Any:
        """A vector of zeros."""
        return ir.Constant(self.kind, [0.0] * self._lanes)

    def spread(self, scalar: Any) -> Any:
        """A vector of equal entries."""
        undefined = ir.Constant(self.kind, ir.Undefined)
        first = self._builder.insert_element(undefined, scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self._lanes), [0] * self._lanes)
        return self._builder.shuffle_vector(first, first, zeros)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x*y + z, rounded once."""
        kind = ir.FunctionType(self.kind, [self.kind] * 3)
        name = f"llvm.fma.v{self._lanes}{self._name}"
        return self._builder.call(cgutils.get_or_insert_function(self._builder.module, kind, name), [x, y, z])

    def sum_of_entries(self, vector: Any) -> Any:
        """((a + e) + (b + f)) + ((c + g) + (d + h)): first half and second half, then neighbours."""
        half = self._lanes // 2
        vector = self._builder.fadd(
            self._pick(vector, range(half)), self._pick(vector, range(half, self._lanes))
        )
        while half > 1:
            vector = self._builder.fadd(
                self._pick(vector, range(0, half, 2)), self._pick(vector, range(1, half, 2))
            )
            half //= 2
        return self._builder.extract_element(vector, ir.IntType(32)(0))

    def _pick(self, vector: Any, which: range) -> Any:
        """Select entries of a vector as a new vector."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(which)), list(which))
        return self._builder.shuffle_vector(vector, vector, mask)
