"""Beams for all subcarriers of fixed channels: as many devices as possible with a combined score of one.

The search is that of `hrmc+` (`airpass.selection.hrmc_plus`) with a beam per subcarrier and scores that are
combined over the subcarriers (`airpass.optim.subcarriers`): a smooth count of the devices below one at
increasing powers, then one more device at a time, and in the end the weakest combined score is raised.
Subcarriers are coupled by the set of devices only. Under the rule "worst" a set fits if and only if each
subcarrier alone has a beam for it; under "mean" a subcarrier can make up for another.
"""

from dataclasses import dataclass, field

import numpy as np

from airpass.core.types import Complex, Mask, Real
from airpass.optim import subcarriers
from airpass.optim.conjugate_gradient import Limits
from airpass.optim.ranking import value_rank
from airpass.optim.subcarriers import Goal
from airpass.selection.base import dominant_eigenvector, random_beams
from airpass.wideband import MEAN

# As in `hrmc+`, see docs/science/hrmc-plus.md.
ANNEAL = (0, 1, 2, 3, 4)  # log2 of the powers p of the smooth count
RAISE = (2, 4, 6, 8)  # log2 of the powers p that raise the weakest score
WEIGHTED = 3  # number of first stages that use random weights of the devices
SPREAD = 0.5  # standard deviation of the logarithm of these weights
STARTS = 32  # the dominant eigenvectors, then random beams and weights
OUTSIDERS = 4  # devices that are tried before growing ends
ANNEAL_LIMITS = Limits(first_step=1.0, max_iterations=100, tolerance=1e-3)
RAISE_LIMITS = Limits(first_step=1.0, max_iterations=200, tolerance=1e-3)


@dataclass(frozen=True, eq=False)
class Problem:
    """Effective channels of all subcarriers, the rule, and priorities."""

    effective: Complex  # sqrt(Gamma) g_{k,s}/phi_k, shape (S, M, K)
    rule: str
    priorities: Real  # v_k, shape (K,), the largest is one
    re: Real = field(init=False)
    im: Real = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "re", np.ascontiguousarray(self.effective.real))
        object.__setattr__(self, "im", np.ascontiguousarray(self.effective.imag))

    @property
    def is_mean(self) -> bool:
        """Whether the rule is "mean"."""
        return self.rule == MEAN

    def scores(self, beams: Complex) -> Real:
        """Combined scores of all devices, shape (K,)."""
        received = np.matmul(np.conj(beams)[:, None, :], self.effective)[:, 0]
        return subcarriers.combined(received.real**2 + received.imag**2, self.is_mean)

    def rank(self, beams: Complex) -> tuple[float, float]:
        """Sum of the selected devices' priorities, and the weakest score among them."""
        return value_rank(self.scores(beams), self.priorities)


def annealed(problem: Problem, beams: Complex, weights: Real) -> Complex:
    """Minimise the smooth count at increasing powers.

    Parameters
    ----------
    problem
        The channels.
    beams
        Beams to start from, shape (S, M).
    weights
        Weights of the devices in the first stages, shape (K,).

    Returns
    -------
    Complex
        Beams, shape (S, M).
    """
    for stage, doublings in enumerate(ANNEAL):
        counted = weights if stage < WEIGHTED else problem.priorities
        goal = Goal(counted, doublings, 1.0, problem.is_mean)
        beams = subcarriers.minimise(problem.re, problem.im, goal, beams, ANNEAL_LIMITS).beams
    return beams


def raised(problem: Problem, beams: Complex, wanted: Mask, enough: float = np.inf) -> Complex:
    """Raise the weakest combined score of some devices.

    Parameters
    ----------
    problem
        The channels.
    beams
        Beams to start from, shape (S, M).
    wanted
        Mask of the devices, shape (K,).
    enough
        End as soon as the sum of the selected devices' priorities is above this.

    Returns
    -------
    Complex
        The best beams on the way, by `Problem.rank`.
    """
    devices = np.flatnonzero(wanted)
    re, im = np.ascontiguousarray(problem.re[:, :, devices]), np.ascontiguousarray(problem.im[:, :, devices])
    best, best_rank = beams, problem.rank(beams)
    equal = np.ones(devices.size)
    for doublings in RAISE:
        weakest = float(problem.scores(beams)[devices].min())
        unit = 1.0 / np.sqrt(max(weakest, 1e-100))
        goal = Goal(equal, doublings, 0.0, problem.is_mean)
        found = subcarriers.minimise(re * unit, im * unit, goal, beams, RAISE_LIMITS)
        beams = found.beams
        if (rank := problem.rank(beams)) > best_rank:
            best, best_rank = beams, rank
        # The power mean of the combined scores with exponent -p is an upper bound of the weakest.
        bound = (found.value / devices.size) ** (-(0.5**doublings)) / (unit * unit)
        if best_rank[0] > enough or bound < 1.0:
            break
    return best


def grown(problem: Problem, beams: Complex, polish: bool = True) -> Complex:
    """One more device at a time, then raise the weakest score.

    Parameters
    ----------
    problem
        The channels.
    beams
        Beams to start from, shape (S, M).
    polish
        Whether to raise the weakest score in the end.

    Returns
    -------
    Complex
        Beams that are worth at least as much, shape (S, M).
    """
    wants = problem.priorities > 0.0
    value, _ = problem.rank(beams)
    tried = np.zeros(wants.size, np.bool_)
    while tried.sum() < OUTSIDERS:
        scores = problem.scores(beams)
        inside = (scores >= 1.0) & wants
        worth = np.where(wants & ~inside & ~tried, problem.priorities * scores, -1.0)
        outsider = int(worth.argmax())
        if worth[outsider] < 0.0:
            break
        tried[outsider] = True
        wanted = inside.copy()
        wanted[outsider] = True
        trial = raised(problem, beams, wanted, value)
        reached, _ = problem.rank(trial)
        if reached > value:
            beams, value = trial, reached
            tried[:] = False
    inside = (problem.scores(beams) >= 1.0) & wants
    return raised(problem, beams, inside) if polish and inside.any() else beams


def wideband_beams(
    effective: Complex,
    rule: str,
    priorities: Real,
    rng: np.random.Generator,
    start: Complex | None = None,
    starts: int = STARTS,
) -> Complex:
    """A beam for every subcarrier, such that many devices have a combined score of at least one.

    Parameters
    ----------
    effective
        sqrt(Gamma) g_{k,s}/phi_k, shape (S, M, K).
    rule
        "worst" or "mean".
    priorities
        v_k, shape (K,), the largest is one.
    rng
        Source of the random starts.
    start
        Beams to start from too, shape (S, M).
    starts
        Number of other starts: the dominant eigenvectors, then random beams and weights.

    Returns
    -------
    Complex
        Beams of unit norm, shape (S, M), never worth less than `start`.
    """
    problem = Problem(effective, rule, priorities)
    count, chains, devices = effective.shape
    first = np.stack([dominant_eigenvector(one, priorities) for one in effective])
    best = first if start is None else max(start, first, key=problem.rank)
    trials = [] if start is None else [(np.ascontiguousarray(start), priorities)]
    trials.append((first, priorities))
    for _ in range(starts - 1):
        beams = random_beams(count, chains, rng)
        trials.append((beams, priorities * np.exp(SPREAD * rng.standard_normal(devices))))
    if start is not None:
        best = max(best, grown(problem, trials[0][0]), key=problem.rank)
    seen: list[bytes] = []
    for beams, weights in trials:
        found = annealed(problem, beams, weights)
        selected = problem.scores(found) >= 1.0
        if selected.tobytes() in seen and not selected.all():
            continue
        seen.append(selected.tobytes())
        best = max(best, grown(problem, found), key=problem.rank)
        if problem.rank(best)[0] >= priorities.sum():
            break
    return best
