"""`hrmc+`: the selection part of `airpass-plus`, for fixed channels.

Like HRMC, it minimises a smooth count of infeasible devices on the complex sphere while the count is
sharpened, but with Hill functions (`airpass.optim.objectives`), which need no exponentials. A second stage
adds devices: it raises the weakest score among the selected devices and the best of the others, and
continues with the next device if all of these meet the threshold.

The first start is the dominant eigenvector, with equal weights of all devices. Later starts are random
beams. In their first stages devices have random weights; random beams alone converge to the same few
optima.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.registry import Report
from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill
from airpass.optim.ranking import rank
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector, random_beams

ANNEAL = (0, 1, 2, 3, 4)  # log2 of the powers p of the smooth count
GROW = (1, 3, 5)  # log2 of the powers p that raise the weakest score
WEIGHTED = 3  # number of first stages that use the devices' random weights
# Limits of the conjugate gradients of a stage. The first step is longer than that of HRMC: the first
# interpolation step finds the scale.
LIMITS = cg.Limits(first_step=1.0, max_iterations=100, tolerance=1e-5)


@kernel
def _best_outside(scores: Real) -> int:
    """The device with the largest score below one; -1 if there is none."""
    best = -1
    for k in range(scores.size):
        if scores[k] < 1.0 and (best < 0 or scores[k] > scores[best]):
            best = k
    return best


@kernel
def _anneal(
    columns_re: Real, columns_im: Real, start: Complex, random_weights: Real
) -> tuple[Complex, int, int]:
    """The smooth count at increasing powers: beam, conjugate-gradient iterations, evaluations."""
    iterations = 0
    evaluations = 0
    equal = np.ones(columns_re.shape[1])
    beam = start
    for stage, doublings in enumerate(ANNEAL):
        objective = Hill(random_weights if stage < WEIGHTED else equal, doublings, 1.0)
        found = cg.minimise(columns_re, columns_im, objective, beam, LIMITS)
        beam = found.point
        iterations += found.iterations
        evaluations += found.evaluations
    return beam, iterations, evaluations


@kernel
def _grow(columns_re: Real, columns_im: Real, start: Complex) -> tuple[Complex, int, float, int, int]:
    """One more device at a time: beam, count, weakest score; iterations and evaluations."""
    iterations = 0
    evaluations = 0
    beam = start
    scores = projections.squares(columns_re, columns_im, beam)
    count, weakest = rank(scores)
    outside = _best_outside(scores)
    growing = True
    while growing and outside >= 0:
        growing = False
        wanted = np.flatnonzero((scores >= 1.0) | (np.arange(scores.size) == outside))
        # In units of the weakest score the objective is the same, and high powers stay in range.
        unit = 1.0 / np.sqrt(max(scores[outside], 1e-100))
        wanted_re = np.ascontiguousarray(columns_re[:, wanted]) * unit
        wanted_im = np.ascontiguousarray(columns_im[:, wanted]) * unit
        equal = np.ones(wanted.size)
        trial = beam
        for doublings in GROW:
            found = cg.minimise(wanted_re, wanted_im, Hill(equal, doublings, 0.0), trial, LIMITS)
            trial = found.point
            iterations += found.iterations
            evaluations += found.evaluations
            reached = projections.squares(columns_re, columns_im, trial)
            more, margin = rank(reached)
            if more > count or (more == count and margin > weakest):
                growing = more > count
                beam, scores, count, weakest = trial, reached, more, margin
                outside = _best_outside(scores)
                if growing:
                    break
    return beam, count, weakest, iterations, evaluations


def regrow(effective: Complex, beam: Complex) -> Complex:
    """A beam that selects at least as many devices as `beam`, for slightly changed channels."""
    columns_re, columns_im = projections.split(effective)
    return _grow(columns_re, columns_im, np.ascontiguousarray(beam))[0]


@dataclass(frozen=True)
class HrmcPlus(SelectionMethod):
    """Smooth count by Hill functions, then one more device at a time; 16 starts.

    Not from the paper, see docs/airpass-plus.md.
    """

    name = "hrmc+"

    starts: int = 16  # the eigenvector, then random beams and weights
    spread: float = 0.5  # standard deviation of the logarithm of the random weights

    def __post_init__(self) -> None:
        checks.whole("starts", self.starts, 1)
        checks.at_least("spread", self.spread, 0.0)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """The beam with the most devices, then the largest weakest score, of all starts."""
        chains, devices = effective.shape
        columns_re, columns_im = projections.split(effective)
        best: tuple[Complex, int, float] | None = None
        iterations = evaluations = 0
        for number in range(self.starts):
            if number == 0:
                start, weights = dominant_eigenvector(effective), np.ones(devices)
            else:
                start = random_beams(1, chains, rng)[0]
                weights = np.exp(self.spread * rng.standard_normal(devices))
            beam, used, tried = _anneal(columns_re, columns_im, start, weights)
            iterations, evaluations = iterations + used, evaluations + tried
            beam, count, weakest, used, tried = _grow(columns_re, columns_im, beam)
            iterations, evaluations = iterations + used, evaluations + tried
            if best is None or (count, weakest) > best[1:]:
                best = (beam, count, weakest)
        assert best is not None
        return BeamSearch(beam=best[0], work={"iterations": iterations, "evaluations": evaluations})
