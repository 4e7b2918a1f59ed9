"""One family of semidefinite programs over Hermitian matrices, solved by SCS.

    minimise   Re tr(C X) + sum_k p_k max(0, 1 - h_k^H X h_k)
    subject to X Hermitian, X >= 0, tr X = 1

with penalties 0 <= p_k <= infinity; an infinite one makes h_k^H X h_k >= 1 a constraint. It is
solved in its dual form, which has one variable per column instead of n^2,

    maximise   sum_k y_k + v   subject to   C - sum_k y_k h_k h_k^H - v I >= 0,  0 <= y_k <= p_k,

over SCS's complex cone (a real embedding would be twice the size); X is the multiplier of
the matrix inequality. A solver object keeps its factorisation, so that in a sequence of problems
that differ only in C and in finite p_k each solve is a warm start.
"""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from airpass.core.types import Complex, Real

_ROOT_2 = np.sqrt(2.0)


@dataclass(frozen=True, eq=False)
class LiftedSolution:
    """A solution; `matrix` is exactly Hermitian with trace one, `multipliers` within bounds."""

    matrix: Complex  # X
    multipliers: Real  # y_k
    feasible: bool  # false if no X meets the hard constraints
    accurate: bool  # false if the solver failed or did not reach its tolerance


def program_bytes(size: int, count: int) -> float:
    """Memory that a `LiftedProgram` takes, about.

    Parameters
    ----------
    size, count
        n, and the number of columns.

    Returns
    -------
    float
        Bytes of its matrix, dense and sparse, and of its factors.
    """
    return 24.0 * (count + 1.0) * (2.0 * count + size**2) + 16.0 * min(count, size**2) ** 2


class LiftedProgram:
    """The program for given columns h_k; which penalties are infinite is fixed."""

    def __init__(self, columns: Complex, hard: bool = False, tolerance: float = 1e-8) -> None:
        # Imported here: it takes 0.1 s and most designs do not need it.
        import scs
        from scipy import sparse

        self._size, self._count = columns.shape
        rows = [_pack(np.outer(column, column.conj())) for column in columns.T]
        identity = _pack(np.eye(self._size, dtype=np.complex128))
        lower = np.hstack([np.eye(self._count), np.zeros((self._count, 1))])
        blocks = [-lower] if hard else [-lower, lower]
        blocks.append(np.column_stack([*rows, identity]))
        self._hard = hard
        self._bounds = 0 if hard else self._count
        rows_of_bounds = self._count + self._bounds
        start = np.zeros(rows_of_bounds + self._size**2)
        start[rows_of_bounds:] = identity
        self._solver: Any = None
        # A program beyond the range of the solver is refused as invalid: it has no solution then.
        with _silent(), suppress(ValueError):
            self._solver = scs.SCS(
                {"A": sparse.csc_matrix(np.vstack(blocks)), "b": start, "c": -np.ones(self._count + 1)},
                {"l": rows_of_bounds, "cs": [self._size]},
                eps_abs=tolerance,
                eps_rel=tolerance,
                max_iters=20_000,
                verbose=False,
            )
        self._warm = False

    def solve(self, cost: Complex, penalties: Real | None = None) -> LiftedSolution:
        """The solution for C = `cost`; `penalties` unless the program is hard."""
        bounds = np.zeros(0) if self._hard else np.asarray(penalties, dtype=np.float64)
        if self._solver is None:
            return self._failed()
        with _silent():
            self._solver.update(b=np.concatenate([np.zeros(self._count), bounds, _pack(cost)]))
            result = self._solver.solve(warm_start=self._warm)
        status = result["info"]["status"]
        if status == "interrupted":  # SCS handles the signal itself, so that Python does not see it
            raise KeyboardInterrupt
        if "unbounded" in status or "infeasible" in status:
            if not self._hard:  # a wrong answer, by rounding: the identity is always allowed
                return self._failed()
            # The dual is unbounded: no matrix meets the hard constraints. The current iterate is a ray
            # and cannot be used as a warm start.
            self._warm = False
            empty = np.full((self._size, self._size), np.nan, dtype=np.complex128)
            return LiftedSolution(empty, np.maximum(result["x"][:-1], 0.0), False, "inaccurate" not in status)
        self._warm = True
        matrix = _unpack(result["y"][self._count + self._bounds :], self._size)
        trace = float(np.trace(matrix).real)
        if not (np.isfinite(matrix).all() and np.isfinite(result["x"]).all() and trace > 0.0):
            return self._failed()
        multipliers = np.maximum(result["x"][: self._count], 0.0)
        if not self._hard:
            multipliers = np.minimum(multipliers, bounds)
        return LiftedSolution(matrix / trace, multipliers, True, status == "solved")

    def _failed(self) -> LiftedSolution:
        """The result if the solver fails: a matrix that favours no beam, multipliers that prove nothing."""
        self._warm = False
        matrix = np.eye(self._size, dtype=np.complex128) / self._size
        return LiftedSolution(matrix, np.zeros(self._count), not self._hard, False)


@contextmanager
def _silent() -> Iterator[None]:
    """Discard what SCS prints to standard output when it fails, whatever its setting `verbose`."""
    with redirect_stdout(StringIO()):
        yield


def _pack(matrix: Complex) -> Real:
    """A Hermitian matrix in SCS's format: lower triangle by columns, off-diagonal parts times √2."""
    size = matrix.shape[0]
    packed = np.empty(size * size)
    at = 0
    for j in range(size):
        packed[at] = matrix[j, j].real
        below = _ROOT_2 * matrix[j + 1 :, j]
        packed[at + 1 : at + 1 + 2 * below.size : 2] = below.real
        packed[at + 2 : at + 2 + 2 * below.size : 2] = below.imag
        at += 1 + 2 * below.size
    return packed


def _unpack(packed: Real, size: int) -> Complex:
    matrix = np.zeros((size, size), dtype=np.complex128)
    at = 0
    for j in range(size):
        matrix[j, j] = packed[at]
        count = size - j - 1
        part = packed[at + 1 : at + 1 + 2 * count] / _ROOT_2
        matrix[j + 1 :, j] = part[0::2] + 1j * part[1::2]
        matrix[j, j + 1 :] = matrix[j + 1 :, j].conj()
        at += 1 + 2 * count
    return matrix
