"""HRMC, Algorithm 1: homotopy-Riemannian margin consolidation.

It searches the complex unit sphere for the beam m with the most feasible devices,
z_k(m) = |h_k^H m|^2 >= 1 with h_k = sqrt(Gamma) g_k/phi_k (eqs. 28-31), in two stages: a
smooth count of the infeasible devices is minimised while it is sharpened (eqs. 33-41), then
the weakest score among the feasible and nearly feasible devices is maximised (eqs. 42-46).

| paper                  | here                                          |
|------------------------|-----------------------------------------------|
| beta, kappa_beta, beta_max | `sharpness`, `sharpness_growth`, `sharpness_max` |
| mu, kappa_mu, mu_min   | `level`, `level_shrink`, `level_min`          |
| w_k, eps_w             | `weights` (set by `reweights`), `reweight_floor` |
| delta, tau_m           | `margin`, `margin_temperature`                |
| m-bar, S-bar           | `searched`, of value `searched_value`         |

With priorities v_k, the terms of the surrogate are multiplied by v_k, and sums of v_k take the place of
numbers of devices.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airpass.core import checks, memory
from airpass.core.registry import Report, threads_field
from airpass.core.types import Complex, Flag, Real
from airpass.kernels.interrupts import run_each
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Saturating, Softmin
from airpass.optim.ranking import value_rank
from airpass.optim.schedules import grow, shrink
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector, random_beams

# The surrogate and its gradient are sums over the devices. Above this K the first step is scaled by 1/K;
# otherwise every stage begins with backtracking.
LARGE_K = 1_000


class Parameters(NamedTuple):
    """Kernel arguments; see `Hrmc`."""

    sharpness: float
    sharpness_growth: float
    sharpness_max: float
    level: float
    level_shrink: float
    level_min: float
    reweight_floor: float
    margin: float
    margin_temperature: float
    stage: cg.Limits  # of the conjugate gradients of a homotopy stage
    consolidation: cg.Limits
    max_stages: int


@kernel
def reweights(scores: Real, sharpness: float, floor: float, priorities: Real, out: Real) -> None:
    """w_k = 1/(v_k + eps_w) with the softplus violation v_k of eq. (33), times the priority: eq. (41)."""
    for k in range(scores.size):
        t = sharpness * (1.0 - scores[k])
        softplus = max(t, 0.0) + np.log1p(np.exp(-abs(t)))
        out[k] = priorities[k] / (softplus / sharpness + floor)


@kernel
def _algorithm_1(
    columns_re: Real, columns_im: Real, priorities: Real, start: Complex, parameters: Parameters, stop: Flag
) -> tuple[Complex, float, float, int, int, int]:
    """Algorithm 1 from one start: beam, value, weakest score; stages, iterations, evaluations."""
    searched = start.copy()  # line 1
    sharpness, level = parameters.sharpness, parameters.level  # line 2
    weights = priorities.copy()  # line 3
    workspace = cg.new_workspace(columns_re.shape[1])
    cg.load_point(workspace, columns_re, columns_im, searched)
    iterations = 0
    evaluations = 0
    stages = 0
    previous_value = -1.0
    previous_weakest = 0.0
    while stages < parameters.max_stages and stop[0] == 0:  # line 4
        objective = Saturating(weights, sharpness, level)
        found = cg.minimise_in(  # line 5
            workspace, columns_re, columns_im, objective, searched, parameters.stage, stop
        )
        searched = found.point
        stages += 1
        iterations += found.iterations
        evaluations += found.evaluations
        # Recomputed: the workspace may be a step behind, and accumulates rounding errors along a descent.
        cg.load_point(workspace, columns_re, columns_im, searched)
        value, weakest = value_rank(workspace.scores, priorities)
        # Line 8, evaluated before lines 6 and 7, which do not affect the result of the last stage: the
        # surrogate is at its sharpest, and the feasible set no longer changes.
        if sharpness == parameters.sharpness_max and level == parameters.level_min:
            settled = abs(weakest - previous_weakest) <= 1e-3 * abs(weakest)
            if value == previous_value and settled:
                break
        previous_value, previous_weakest = value, weakest
        reweights(workspace.scores, sharpness, parameters.reweight_floor, priorities, weights)  # line 6
        sharpness = grow(sharpness, parameters.sharpness_growth, parameters.sharpness_max)  # line 7
        level = shrink(level, 1.0 / parameters.level_shrink, parameters.level_min)

    scores = workspace.scores
    searched_value, searched_weakest = value_rank(scores, priorities)  # line 9
    active = np.flatnonzero((scores >= 1.0 - parameters.margin) & (priorities > 0.0))  # line 10
    if active.size == 0 or stop[0] != 0:  # lines 11, 15
        return searched, searched_value, searched_weakest, stages, iterations, evaluations
    active_re = np.empty((columns_re.shape[0], active.size))
    active_im = np.empty((columns_re.shape[0], active.size))
    for i in range(columns_re.shape[0]):
        for j in range(active.size):
            active_re[i, j] = columns_re[i, active[j]]
            active_im[i, j] = columns_im[i, active[j]]
    # The temperature suits scores near 1; for larger scores it is scaled by the weakest score.
    scale = max(1.0, np.min(scores[active]))
    margin_objective = Softmin(parameters.margin_temperature * scale)
    found = cg.minimise(  # line 12
        active_re, active_im, margin_objective, searched, parameters.consolidation, stop
    )
    consolidated = found.point
    iterations += found.iterations
    evaluations += found.evaluations
    scores = projections.squares(columns_re, columns_im, consolidated)
    value, weakest = value_rank(scores, priorities)  # line 13
    if value >= searched_value:  # line 14
        return consolidated, value, weakest, stages, iterations, evaluations
    return searched, searched_value, searched_weakest, stages, iterations, evaluations


@dataclass(frozen=True)
class Hrmc(SelectionMethod):
    """Algorithm 1: smooth count on the complex sphere, then margin consolidation.

    Sources: P is section VI-A of the paper; others are not from the paper, see docs/science/tuning.md.
    """

    name = "hrmc"

    sharpness: float = 10.0  # beta at the start; P
    sharpness_growth: float = 10.0  # kappa_beta
    sharpness_max: float = 100.0  # beta_max; P
    level: float = 0.08  # mu at the start; P
    level_shrink: float = 1.1  # kappa_mu
    level_min: float = 0.01  # mu_min; P
    reweight_floor: float = 0.1  # eps_w
    margin: float = 0.3  # delta
    margin_temperature: float = 0.01  # tau_m; P
    initial_step: float = 3e-2  # P
    stage_iterations: int = 100  # conjugate-gradient iterations per stage
    max_stages: int = 40  # homotopy steps
    tolerance: float = 1e-6  # relative decrease that ends a stage
    starts: int = 1  # the eigenvector, then random beams; the paper has one
    threads: int = threads_field(1)  # threads over which the starts are distributed

    def __post_init__(self) -> None:
        for name in ("sharpness", "level", "level_min", "reweight_floor", "margin_temperature"):
            checks.positive(name, getattr(self, name))
        checks.positive("initial_step", self.initial_step)
        checks.at_least("sharpness_max", self.sharpness_max, self.sharpness)
        checks.at_least("level", self.level, self.level_min)
        for name in ("sharpness_growth", "level_shrink"):
            checks.above(name, getattr(self, name), 1.0)
        checks.between("margin", self.margin, 0.0, 1.0)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)
        checks.whole("stage_iterations", self.stage_iterations, 1)
        checks.whole("max_stages", self.max_stages, 1)
        checks.whole("starts", self.starts, 1)
        checks.whole("threads", self.threads, 1)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Algorithm 1 from every start; the beam with the most devices, then the largest weakest score."""
        return self.prioritised(effective, np.ones(effective.shape[1]), rng, report)

    def prioritised(
        self, effective: Complex, priorities: Real, rng: np.random.Generator, report: Report
    ) -> BeamSearch:
        """The same with sums of priorities in place of numbers of devices."""
        memory.require(self.starts * (64.0 * effective.shape[0] + 512.0), "random starts", "starts")
        columns_re, columns_im = projections.split(effective)
        step_scale = min(1.0, LARGE_K / effective.shape[1])
        step, tolerance = float(self.initial_step), float(self.tolerance)
        parameters = Parameters(
            sharpness=float(self.sharpness),
            sharpness_growth=float(self.sharpness_growth),
            sharpness_max=float(self.sharpness_max),
            level=float(self.level),
            level_shrink=float(self.level_shrink),
            level_min=float(self.level_min),
            reweight_floor=float(self.reweight_floor),
            margin=float(self.margin),
            margin_temperature=float(self.margin_temperature),
            stage=cg.Limits(step * step_scale, self.stage_iterations, tolerance),
            consolidation=cg.Limits(step, self.stage_iterations, tolerance),
            max_stages=self.max_stages,
        )
        starts = [dominant_eigenvector(effective, priorities)]
        starts += list(random_beams(self.starts - 1, effective.shape[0], rng))

        found = run_each(
            _algorithm_1,
            [(columns_re, columns_im, priorities, start, parameters) for start in starts],
            work=self.max_stages * self.stage_iterations * cg.operations(*effective.shape),
            threads=min(self.threads, self.starts),
        )
        best = max(found, key=lambda one: (one[1], one[2]))  # the first of equals, in the order of the starts
        work = {
            "stages": sum(one[3] for one in found),
            "iterations": sum(one[4] for one in found),
            "evaluations": sum(one[5] for one in found),
        }
        limited = sum(one[3] == self.max_stages for one in found)
        status = f"stage limit in {limited} of {self.starts} starts" if limited else "done"
        return BeamSearch(beam=best[0], status=status, work=work)
