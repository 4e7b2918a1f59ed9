"""HRMC compared with SDR-DC, solved by three semidefinite solvers, and with matching pursuit."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from airpass import Scenario, aircomp, select
from airpass.core.types import Complex, Real
from airpass.optim.conic import LiftedProgram, LiftedSolution
from airpass.optim.ranking import rank
from airpass.selection.sdr_dc import SdrDc
from suite.measure import Comparison, Section, Table, timed

cvxpy: Any = importlib.import_module("cvxpy")  # their type hints are missing or wrong
clarabel: Any = importlib.import_module("clarabel")

SEEDS = range(10)
SLOW_SEEDS = range(2)  # for CVXPY
SNR_DB = 0.0


class ClarabelProgram(LiftedProgram):
    """The same dual program solved by Clarabel without a modelling layer, in its real embedding.

    A Hermitian matrix A + jB is positive semidefinite if and only if [[A, -B], [B, A]] is.
    """

    def __init__(self, columns: Complex, hard: bool = False, tolerance: float = 1e-8) -> None:
        size, count = columns.shape
        self._size, self._count, self._hard = size, count, hard
        lower = np.hstack([np.eye(count), np.zeros((count, 1))])
        bounds = [-lower] if hard else [-lower, lower]
        packed = [_pack(_embed(np.outer(h, h.conj()))) for h in columns.T]
        packed.append(_pack(np.eye(2 * size)))
        self._matrix = sparse.csc_matrix(np.vstack([*bounds, np.column_stack(packed)]))
        self._cones = [clarabel.NonnegativeConeT(len(bounds) * count), clarabel.PSDTriangleConeT(2 * size)]
        self._settings = clarabel.DefaultSettings()
        self._settings.verbose = False
        self._settings.max_threads = 1
        for name in ("tol_feas", "tol_gap_abs", "tol_gap_rel"):
            setattr(self._settings, name, tolerance)

    def solve(self, cost: Complex, penalties: Real | None = None) -> LiftedSolution:
        """The solution for C = `cost`."""
        upper = np.zeros(0) if self._hard else np.asarray(penalties, dtype=np.float64)
        right = np.concatenate([np.zeros(self._count), upper, _pack(_embed(cost))])
        nothing = sparse.csc_matrix((self._count + 1, self._count + 1))
        solver = clarabel.DefaultSolver(
            nothing, -np.ones(self._count + 1), self._matrix, right, self._cones, self._settings
        )
        found = solver.solve()
        status = str(found.status)
        # For clearly infeasible problems Clarabel may also stall while its multipliers diverge.
        if "Infeasible" in status or (self._hard and "Solved" not in status):
            empty = np.full((self._size, self._size), np.nan, dtype=np.complex128)
            return LiftedSolution(empty, np.maximum(np.array(found.x[:-1]), 0.0), False, True)
        multiplier = _unpack(np.array(found.z[-self._size * (2 * self._size + 1) :]), 2 * self._size)
        n = self._size
        matrix = multiplier[:n, :n] + multiplier[n:, n:] + 1j * (multiplier[n:, :n] - multiplier[:n, n:])
        matrix = 0.5 * (matrix + matrix.conj().T)
        return LiftedSolution(
            matrix / np.trace(matrix).real, np.array(found.x[:-1]), True, "Solved" in status
        )


class CvxpyProgram(LiftedProgram):
    """The program as it is usually written in CVXPY, rebuilt for each solve."""

    def __init__(self, columns: Complex, hard: bool = False, tolerance: float = 1e-8) -> None:
        self._columns, self._hard = columns, hard

    def solve(self, cost: Complex, penalties: Real | None = None) -> LiftedSolution:
        """The solution for C = `cost`."""
        size, count = self._columns.shape
        lifted = cvxpy.Variable((size, size), hermitian=True)
        # Faster to build than one trace per device.
        scores = cvxpy.real(cvxpy.sum(cvxpy.multiply(self._columns.conj(), lifted @ self._columns), axis=0))
        constraints = [lifted >> 0, cvxpy.real(cvxpy.trace(lifted)) == 1]
        objective = cvxpy.real(cvxpy.trace(cost @ lifted))
        if self._hard:
            constraints.append(scores >= 1)
        else:
            missing = cvxpy.Variable(count, nonneg=True)
            constraints.append(1 - scores <= missing)
            objective += penalties @ missing
        problem: Any = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
        try:
            with warnings.catch_warnings(action="ignore"):  # of inaccurate solutions
                problem.solve(solver=cvxpy.CLARABEL)
        except cvxpy.error.SolverError:
            if self._hard:
                problem = None  # the solver may fail near the boundary of feasibility
            else:
                problem.solve(solver=cvxpy.SCS)  # fallback if the solver fails
        if problem is None or lifted.value is None:
            empty = np.full((size, size), np.nan, dtype=np.complex128)
            return LiftedSolution(empty, np.zeros(count), False, True)
        matrix = 0.5 * (lifted.value + lifted.value.conj().T)
        return LiftedSolution(
            matrix / np.trace(matrix).real, np.zeros(count), True, problem.status == cvxpy.OPTIMAL
        )


def _embed(matrix: Complex) -> Real:
    return np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])


def _pack(matrix: Real) -> Real:
    """Upper triangle by columns, off-diagonal entries times √2, as Clarabel expects it."""
    rows, columns = _triangle(matrix.shape[0])
    packed: Real = np.where(rows == columns, 1.0, np.sqrt(2.0)) * matrix[rows, columns]
    return packed


def _unpack(packed: Real, size: int) -> Real:
    rows, columns = _triangle(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    matrix[columns, rows] = matrix[rows, columns]
    return matrix


def _triangle(size: int) -> tuple[Any, Any]:
    columns, rows = np.tril_indices(size)
    return rows, columns


def lifted(program: type[LiftedProgram], effective: Complex) -> Callable[[], tuple[int, int]]:
    """SDR-DC with the given solver; returns the numbers of selected devices and solved programs."""

    method = type("Variant", (SdrDc,), {"program": program})()

    def call() -> tuple[int, int]:
        found = method.search(effective, np.random.default_rng(0), lambda _: None)
        return rank(aircomp.scores(found.beam, effective))[0], found.work["solves"]

    return call


def run() -> Section:
    """Time all methods; HRMC is timed over many calls before and after each slow solve."""
    programs = {
        "SDR-DC, SCS": LiftedProgram,
        "SDR-DC, Clarabel": ClarabelProgram,
        "SDR-DC, CVXPY": CvxpyProgram,
    }
    seconds: dict[str, dict[str, list[float]]] = {}
    counts: dict[str, list[int]] = {"HRMC": [], "MP": []}
    solves: dict[str, list[int]] = {}
    pursuit: dict[str, list[float]] = {"airpass": [], "MP": []}
    for program in programs.values():  # imports
        program(np.eye(2, dtype=np.complex128)).solve(np.eye(2, dtype=np.complex128), np.ones(2))
    for seed in SEEDS:
        scenario = Scenario.paper(50, 10, 10, SNR_DB, seed)
        channels = scenario.channels(scenario.uniform_layout())
        effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)

        def by(method: str, channels: Complex = channels, scenario: Scenario = scenario) -> Callable[[], Any]:
            return lambda: select(channels, scenario.weights, scenario.budget, method)

        for method, label in (("hrmc", "HRMC"), ("mp", "MP")):
            counts[label].append(by(method)().selected_count)
        pursuit["airpass"].append(timed(by("hrmc"), 50))
        pursuit["MP"].append(timed(by("mp"), 50))
        for label, program in programs.items():
            if program is CvxpyProgram and seed not in SLOW_SEEDS:
                continue
            here = seconds.setdefault(label, {"airpass": [], label: []})
            before = timed(by("hrmc"), 50)
            outcome: list[tuple[int, int]] = []
            call = lifted(program, effective)
            here[label].append(timed(lambda call=call, outcome=outcome: outcome.append(call())))  # type: ignore[misc]
            here["airpass"].append(0.5 * (before + timed(by("hrmc"), 50)))
            counts.setdefault(label, []).append(outcome[0][0])
            solves.setdefault(label, []).append(outcome[0][1])
    case = "K = 50, M = N = 10, 0 dB"
    note = (
        "`sdr-dc` of this package is faster than the same method with Clarabel because each program "
        "is warm-started from the previous solution."
    )
    comparisons = [Comparison(case, here, note) for here in seconds.values()]
    comparisons.append(Comparison(case, pursuit))
    rows = [
        (
            label,
            f"{np.mean(found):.1f}",
            f"{np.mean(solves[label]):.0f}" if label in solves else "",
            str(len(found)),
        )
        for label, found in counts.items()
    ]
    return Section(
        "HRMC against SDR-DC and matching pursuit",
        "All methods run on the same channels at the uniform layout. SDR-DC is solved in three ways: "
        "`sdr-dc` of this package (dual form, SCS's complex cone, warm starts), the same with Clarabel "
        "called directly, and the program as it is usually written in CVXPY, rebuilt for each solve. HRMC "
        "is `select(...)` with default options.",
        comparisons,
        [Table("Selected devices (mean)", ("method", "selected", "programs solved", "draws"), rows)],
    )
