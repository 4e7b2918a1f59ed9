"""SDR-DC: lifting with differences of convex functions, the paper's strongest competitor.

After Yang, Jiang, Shi and Ding, "Federated Learning via Over-the-Air Computation", IEEE Trans.
Wireless Commun., 2020, with the weights phi_k included. The beam is lifted to X = m m^H, and
||x||_0 is minimised subject to 1 - z_k(X) <= x_k, x >= 0, X >= 0, tr X = 1, rank X = 1, where
z_k(X) = h_k^H X h_k. (The original has tr X >= 1 and tr X - z_k(X) <= x_k; its objective is
homogeneous, so that the trace is one at the optimum.) Both nonconvex parts are differences of
convex functions:

    ||x||_0 <= c   if and only if   ||x||_1 - (sum of the c largest x_k) = 0
    rank X = 1     if and only if   tr X - ||X||_2 = 0

1. *Sparsity.* For c = 0, 1, ...: linearise the two concave parts at the current point, solve the
   semidefinite program, repeat; stop when the objective is zero and X has rank one. Devices are
   then ordered by x.
2. *Feasibility.* The largest n such that the first n devices in that order fit one beam, found by
   minimising tr X - ||X||_2 subject to z_k(X) >= 1 for those n. The original tries n = K, K-1,
   ...; bisection takes log K trials and is the default.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from airpass.aircomp import scores
from airpass.core import checks, memory
from airpass.core.registry import Report
from airpass.core.types import Complex, Real
from airpass.kernels.clock import now
from airpass.optim.conic import LiftedProgram, program_bytes
from airpass.optim.ranking import rank
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector

SEARCHES = ("bisection", "linear")
# The constraint z >= 1 is tightened by this amount, so that it holds in spite of rounding.
GUARD = 1e-6


class _Run:
    """State of a search: time limit, best beam so far, number of solves."""

    def __init__(self, effective: Complex, options: "SdrDc", report: Report) -> None:
        self.effective = effective
        self.program = options.program
        self.options = options
        self.report = report
        self.deadline = np.inf
        if options.time_limit_s is not None:
            self.deadline = now() + options.time_limit_s
        self.solves = 0
        self.inaccurate = 0
        self.limited = 0  # runs of linearisations ended by the limit
        self.best = dominant_eigenvector(effective)

    def offer(self, beam: Complex) -> None:
        """Keep `beam` if it ranks above the best so far: more devices, then a larger weakest score."""
        if rank(scores(beam, self.effective)) > rank(scores(self.best, self.effective)):
            self.best = beam

    def late(self) -> bool:
        return now() > self.deadline

    def status(self) -> str:
        if self.late():
            return "time limit"
        if self.inaccurate:
            return f"done, {self.inaccurate} of {self.solves} conic solves inaccurate"
        if self.limited:
            return f"done, iteration limit reached {self.limited} times in {self.solves} conic solves"
        return "done"


def _lifted_scores(effective: Complex, matrix: Complex) -> Real:
    """z_k(X) = h_k^H X h_k."""
    values: Real = np.einsum("ik,ij,jk->k", effective.conj(), matrix, effective).real
    return values


def _leading(matrix: Complex) -> tuple[Complex, float]:
    """Top eigenvector of X, and the sum of all other eigenvalues, tr X - ||X||_2."""
    values, vectors = np.linalg.eigh(matrix)
    beam: Complex = np.ascontiguousarray(vectors[:, -1])
    return beam, float(values[:-1].clip(min=0.0).sum())


def sparsity_order(run: _Run) -> Real:
    """Stage 1: the x_k, small for devices that one beam can serve together."""
    effective, options = run.effective, run.options
    size, count = effective.shape
    program = run.program(effective, tolerance=options.solver_tolerance)
    beam = run.best
    x = np.maximum(1.0 - scores(beam, effective), 0.0)
    for c in range(count):
        previous = np.inf
        for _ in range(options.max_iterations):
            top = np.argsort(-x, kind="stable")[:c]
            penalties = np.ones(count)
            penalties[top] = 0.0  # 1 minus the subgradient of the top-c norm at the current x
            found = program.solve(np.eye(size) - np.outer(beam, beam.conj()), penalties)
            run.solves += 1
            run.inaccurate += not found.accurate
            x = np.maximum(1.0 - _lifted_scores(effective, found.matrix), 0.0)
            beam, excess = _leading(found.matrix)
            run.offer(beam)
            value = float(np.sort(x)[: count - c].sum()) + excess
            if value < options.objective_tolerance or run.late():
                break
            if abs(previous - value) <= options.change_tolerance * abs(value):
                break
            previous = value
        else:
            run.limited += 1
        run.report(f"dropping {c} of {count}: objective {value:.2g}")
        if value < options.objective_tolerance or run.late():
            break
    return x


def fit_together(run: _Run, devices: NDArray[np.intp]) -> bool:
    """Stage 2 for one set: whether a beam that serves all its devices was found."""
    effective, options = run.effective, run.options
    size = effective.shape[0]
    chosen = np.ascontiguousarray(effective[:, devices])
    program = run.program(chosen / np.sqrt(1.0 + GUARD), hard=True, tolerance=options.solver_tolerance)
    beam = run.best
    previous = np.inf
    for _ in range(options.max_iterations):
        found = program.solve(np.eye(size) - np.outer(beam, beam.conj()))
        run.solves += 1
        run.inaccurate += not found.accurate
        if not found.feasible:
            return False
        beam, excess = _leading(found.matrix)
        run.offer(beam)
        if scores(beam, chosen).min() >= 1.0:
            return True
        if run.late() or abs(previous - excess) <= options.change_tolerance * abs(excess):
            return False
        previous = excess
    run.limited += 1
    return False


@dataclass(frozen=True)
class SdrDc(SelectionMethod):
    """Semidefinite lifting with differences of convex functions (Yang et al., 2020).

    Tolerances follow the reference method; `solver_tolerance` and `time_limit_s` are not part of it.
    """

    name = "sdr-dc"
    program: ClassVar[type[LiftedProgram]] = LiftedProgram  # solves the semidefinite programs

    objective_tolerance: float = 1e-6  # values below this count as zero; limited by solver accuracy
    change_tolerance: float = 1e-6  # relative change that ends the iteration
    max_iterations: int = 500  # linearisations for one c, or one n; a safety net
    size_search: str = "bisection"  # over n; "linear" is the original, from K downwards
    solver_tolerance: float = 1e-8  # of the conic solver
    time_limit_s: float | None = None  # return the best so far after this time

    def __post_init__(self) -> None:
        for name in ("objective_tolerance", "change_tolerance", "solver_tolerance"):
            checks.between(name, getattr(self, name), 0.0, 1.0)
        checks.whole("max_iterations", self.max_iterations, 1)
        checks.one_of("size_search", self.size_search, SEARCHES)
        if self.time_limit_s is not None:
            checks.positive("time_limit_s", self.time_limit_s)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Run both stages; return the best beam seen in either."""
        memory.require(program_bytes(*effective.shape), "semidefinite programs", "the number of devices")
        run = _Run(effective, self, report)
        order = np.argsort(sparsity_order(run), kind="stable")
        count = effective.shape[1]
        if self.size_search == "linear":
            for n in range(count, 0, -1):
                report(f"fitting {n} of {count}")
                if run.late() or fit_together(run, order[:n]):
                    break
        else:
            fits, fails = 0, count + 1
            while fails - fits > 1 and not run.late():
                n = (fits + fails) // 2
                report(f"fitting {n} of {count}")
                if fit_together(run, order[:n]):
                    fits = n
                else:
                    fails = n
        return BeamSearch(beam=run.best, status=run.status(), work={"solves": run.solves})
