"""One surrogate stage of HRMC against pymanopt's conjugate gradient on Sphere(2M).

Both use the same columns, start and objective. pymanopt gets the analytic gradient in NumPy. It has no
stopping rule like that of airpass (two consecutive small decreases). An untimed run therefore finds the
iteration at which that rule stops, and the timed runs use it as their iteration limit.
"""

from typing import Any

import numpy as np
import pymanopt

from airpass import Scenario, aircomp
from airpass.core.types import Complex, Real
from airpass.kernels.interrupts import current_flag
from airpass.optim import conjugate_gradient as cg
from airpass.optim.objectives import Saturating
from airpass.selection.base import dominant_eigenvector
from airpass.selection.hrmc import Hrmc
from suite.measure import Comparison, Section, Table, in_turn

SEEDS = range(20)
COUNTS = (10, 50, 100, 1_000, 10_000)


class Stage:
    """The first stage from the eigenvector start: eqs. (33)-(36)."""

    def __init__(self, columns: Complex) -> None:
        self.columns = columns
        self.re, self.im = np.ascontiguousarray(columns.real), np.ascontiguousarray(columns.imag)
        self.start = dominant_eigenvector(columns)
        self.options = Hrmc()
        self._problem = self._pymanopt_problem()
        self._iterations = self._enough()

    def ours(self) -> float:
        """The final objective of airpass."""
        options = self.options
        objective = Saturating(np.ones(self.columns.shape[1]), options.sharpness, options.level)
        limits = cg.Limits(options.initial_step, options.stage_iterations, options.tolerance)
        return float(cg.minimise(self.re, self.im, objective, self.start, limits, current_flag()).value)

    def theirs(self) -> float:
        """The final objective of pymanopt."""
        return float(self._run(self._iterations).cost)

    def _run(self, iterations: int, log: int = 0) -> Any:
        solver = pymanopt.optimizers.ConjugateGradient(
            verbosity=0, min_gradient_norm=1e-4, max_iterations=iterations, log_verbosity=log
        )
        return solver.run(self._problem, initial_point=np.concatenate([self.start.real, self.start.imag]))

    def _enough(self) -> int:
        """Number of iterations until two consecutive decreases are below the tolerance."""
        costs = np.array(self._run(self.options.stage_iterations, log=1).log["iterations"]["cost"])
        small = costs[:-1] - costs[1:] <= self.options.tolerance * np.abs(costs[1:])
        ends = np.flatnonzero(small[:-1] & small[1:])
        return int(ends[0]) + 2 if ends.size else self.options.stage_iterations

    def _pymanopt_problem(self) -> pymanopt.Problem:
        size = self.start.size
        manifold = pymanopt.manifolds.Sphere(2 * size)
        beta, mu = self.options.sharpness, self.options.level
        columns, adjoint = self.columns, self.columns.conj().T.copy()

        def scores(point: Real) -> tuple[Complex, Real]:
            projected = adjoint @ (point[:size] + 1j * point[size:])
            return projected, projected.real**2 + projected.imag**2

        @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
        def cost(point: Real) -> float:
            violation = np.logaddexp(0.0, beta * (1.0 - scores(point)[1])) / beta
            return float(np.sum(-np.expm1(-violation / mu)))

        @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
        def euclidean_gradient(point: Real) -> Real:
            projected, z = scores(point)
            violation = np.logaddexp(0.0, beta * (1.0 - z)) / beta
            alpha = np.exp(-violation / mu) / mu / (1.0 + np.exp(-beta * (1.0 - z)))
            half = -(columns @ (alpha * projected))
            return 2.0 * np.concatenate([half.real, half.imag])

        return pymanopt.Problem(manifold, cost, euclidean_gradient=euclidean_gradient)


def stage(count: int, seed: int) -> Stage:
    """M = N = 10 at 0 dB."""
    scenario = Scenario.paper(count, 10, 10, 0.0, seed)
    channels = scenario.channels(scenario.uniform_layout())
    # Weights of 1/50 for any K: with 1/K all devices would become infeasible or feasible as K changes.
    weights = np.full(count, 1.0 / 50.0)
    return Stage(aircomp.effective_channels(channels, weights, scenario.budget))


def run() -> Section:
    """Median over draws and repetitions, for increasing K."""
    comparisons, rows = [], []
    for count in COUNTS:
        ours: list[float] = []
        theirs: list[float] = []
        reached = []
        for seed in SEEDS if count <= 50 else SEEDS[:5]:
            here = stage(count, seed)
            seconds = in_turn({"airpass": here.ours, "pymanopt": here.theirs}, repeats=3, at_least_s=0.01)
            ours += seconds["airpass"]
            theirs += seconds["pymanopt"]
            reached.append((here.ours(), here.theirs()))
        comparisons.append(Comparison(f"K = {count:,}, M = 10", {"airpass": ours, "pymanopt": theirs}))
        mine, other = np.mean(reached, axis=0)
        lower = sum(one <= two * (1.0 + here.options.tolerance) for one, two in reached)
        rows.append((f"{count:,}", f"{mine:.4f}", f"{other:.4f}", f"{lower} of {len(reached)}"))
    return Section(
        "One stage of HRMC against pymanopt",
        "The first surrogate stage (eqs. 33-36) from the eigenvector start, M = N = 10, 0 dB, at most 100 "
        "iterations. pymanopt's conjugate gradient runs on `Sphere(2M)` with the analytic gradient and "
        "stops where the stopping rule of airpass (two consecutive decreases below a millionth) stops it. "
        "Different step sizes can lead to different local minima; objectives within a millionth count as "
        "equal.",
        comparisons,
        [
            Table(
                "Final objective (mean over draws; lower is better)",
                ("K", "airpass", "pymanopt", "airpass no higher in"),
                rows,
            )
        ],
    )
