"""`hrmc+`: the selection part of `airpass-plus`, for fixed channels.

Like HRMC, it minimises a smooth count of infeasible devices on the complex sphere while the count is
sharpened, but with Hill functions (`airpass.optim.objectives`), which need no exponentials. A second stage
adds devices: it raises the weakest score among the selected devices and one of the others. If more devices
are selected then, it continues from there; otherwise it tries another device. In the end the weakest score
of the selected devices is raised.

The first start is the dominant eigenvector, with equal weights of all devices. Later starts are random
beams. In their first stages devices have random weights; random beams alone converge to the same few
optima. A start is abandoned after the smooth count if it is far behind the best start, or if it selects the
same devices as an earlier one.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.registry import Report
from airpass.core.types import Complex, Mask, Real
from airpass.kernels.jit import inlined, kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill
from airpass.optim.ranking import rank
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector

# All of these values are from measurements, see docs/hrmc-plus.md.
ANNEAL = (0, 1, 2, 3, 4)  # log2 of the powers p of the smooth count
RAISE = (2, 4, 6, 8)  # log2 of the powers p that raise the weakest score
WEIGHTED = 3  # number of first stages that use the devices' random weights
FIRST_STEP = 1.0  # longer than that of HRMC: the first interpolation step finds the scale
MAX_ITERATIONS = 100  # of the conjugate gradients, for each power
RAISE_TOLERANCE = 1e-2  # relative decrease that ends a power of the weakest score
# Relative decrease that ends a power of the smooth count: this number over K, so that it is less than that
# many devices, within bounds.
ANNEAL_DEVICES = 0.2
TIGHTEST, LOOSEST = 1e-5, 1e-3
OUTSIDERS = 4  # devices that are tried before growing ends
# A start is far behind if it selects fewer devices than the best start, by more than this number and by more
# than this multiple of the square root of the best number.
BEHIND_COUNT = 3
BEHIND_ROOT = 0.25


@inlined
def _anneal(
    columns_re: Real, columns_im: Real, start: Complex, random_weights: Real
) -> tuple[Complex, int, int]:
    """The smooth count at increasing powers: beam, conjugate-gradient iterations, evaluations."""
    iterations = 0
    evaluations = 0
    equal = np.ones(columns_re.shape[1])
    tolerance = min(max(ANNEAL_DEVICES / equal.size, TIGHTEST), LOOSEST)
    limits = cg.Limits(FIRST_STEP, MAX_ITERATIONS, tolerance)
    beam = start
    for stage, doublings in enumerate(ANNEAL):
        objective = Hill(random_weights if stage < WEIGHTED else equal, doublings, 1.0)
        found = cg.minimise(columns_re, columns_im, objective, beam, limits)
        beam = found.point
        iterations += found.iterations
        evaluations += found.evaluations
    return beam, iterations, evaluations


@inlined
def _raise_weakest(
    columns_re: Real, columns_im: Real, start: Complex, wanted: Mask, enough: int
) -> tuple[Complex, int, int]:
    """Raise the weakest score of the wanted devices: beam of the best rank, iterations, evaluations.

    Ends as soon as `enough` devices are selected, or the wanted devices can no longer all be.
    """
    iterations = 0
    evaluations = 0
    devices = np.flatnonzero(wanted)
    wanted_re = np.ascontiguousarray(columns_re[:, devices])
    wanted_im = np.ascontiguousarray(columns_im[:, devices])
    equal = np.ones(devices.size)
    limits = cg.Limits(FIRST_STEP, MAX_ITERATIONS, RAISE_TOLERANCE)
    beam = trial = start
    scores = projections.squares(columns_re, columns_im, start)
    count, weakest = rank(scores)
    for doublings in RAISE:
        # In units of the weakest score the objective is the same, and high powers stay in range.
        unit = 1.0 / np.sqrt(max(np.min(scores[devices]), 1e-100))
        found = cg.minimise(wanted_re * unit, wanted_im * unit, Hill(equal, doublings, 0.0), trial, limits)
        trial = found.point
        iterations += found.iterations
        evaluations += found.evaluations
        scores = projections.squares(columns_re, columns_im, trial)
        reached, margin = rank(scores)
        if reached > count or (reached == count and margin > weakest):
            beam, count, weakest = trial, reached, margin
        # The power mean of the scores with exponent -p is an upper bound of the weakest. It is largest here.
        mean = (found.value / devices.size) ** (-(0.5**doublings)) / (unit * unit)
        if count >= enough or mean < 1.0:
            break
    return beam, iterations, evaluations


@kernel
def _best_outside(scores: Real, tried: Mask) -> int:
    """The device with the largest score below one that was not tried; -1 if there is none."""
    best = -1
    for k in range(scores.size):
        if scores[k] < 1.0 and not tried[k] and (best < 0 or scores[k] > scores[best]):
            best = k
    return best


@kernel
def _grow(
    columns_re: Real, columns_im: Real, start: Complex, outsiders: int, polished: int
) -> tuple[Complex, int, float, int, int]:
    """One more device at a time: beam, count, weakest score; iterations and evaluations.

    In the end the weakest score is raised, if at least `polished` devices are selected.
    """
    iterations = 0
    evaluations = 0
    beam = start
    scores = projections.squares(columns_re, columns_im, beam)
    count, weakest = rank(scores)
    tried = np.zeros(scores.size, np.bool_)
    left = outsiders
    growing = True
    while growing:
        outsider = _best_outside(scores, tried) if left > 0 else -1
        growing = outsider >= 0
        wanted = scores >= 1.0
        if growing:
            wanted[outsider] = True
            tried[outsider] = True
            left -= 1
        elif count == 0 or count < polished:
            break
        enough = count + 1 if growing else scores.size + 1
        trial, used, spent = _raise_weakest(columns_re, columns_im, beam, wanted, enough)
        iterations, evaluations = iterations + used, evaluations + spent
        reached = projections.squares(columns_re, columns_im, trial)
        more, margin = rank(reached)
        if more > count:
            tried[:] = False
            left = outsiders
        if more > count or not growing:
            beam, scores, count, weakest = trial, reached, more, margin
    return beam, count, weakest, iterations, evaluations


@kernel
def _search(
    columns_re: Real, columns_im: Real, known: Complex, starts: Complex, weights: Real, outsiders: int
) -> tuple[Complex, int, int]:
    """The best of a known beam and the results of all starts; iterations and evaluations."""
    iterations = 0
    evaluations = 0
    devices = columns_re.shape[1]
    annealed = np.zeros((starts.shape[0], devices), np.bool_)  # devices that a start selects before it grows
    best = known
    best_count, best_weakest = rank(projections.squares(columns_re, columns_im, known))
    for number in range(starts.shape[0]):
        beam, used, tried = _anneal(columns_re, columns_im, starts[number], weights[number])
        iterations, evaluations = iterations + used, evaluations + tried
        scores = projections.squares(columns_re, columns_im, beam)
        annealed[number] = scores >= 1.0
        count, weakest = rank(scores)
        behind = max(BEHIND_COUNT, BEHIND_ROOT * np.sqrt(best_count))
        repeated = False
        if count < devices:
            for earlier in range(number):
                repeated = repeated or np.array_equal(annealed[earlier], annealed[number])
        if repeated or count < best_count - behind:
            continue
        beam, count, weakest, used, tried = _grow(columns_re, columns_im, beam, outsiders, best_count)
        iterations, evaluations = iterations + used, evaluations + tried
        if count > best_count or (count == best_count and weakest > best_weakest):
            best, best_count, best_weakest = beam, count, weakest
    return best, iterations, evaluations


def _matched(effective: Complex) -> Complex:
    """The beam matched to the strongest device: the best one if no device can be selected."""
    lengths = np.linalg.norm(effective, axis=0)
    strongest = int(lengths.argmax())
    if not lengths[strongest] > 0.0:
        return dominant_eigenvector(effective)
    matched: Complex = np.ascontiguousarray(effective[:, strongest] / lengths[strongest])
    return matched


def regrow(effective: Complex, beam: Complex) -> Complex:
    """A beam that selects at least as many devices as `beam`, for slightly changed channels."""
    columns_re, columns_im = projections.split(effective)
    return _grow(columns_re, columns_im, np.ascontiguousarray(beam), OUTSIDERS, 0)[0]


@dataclass(frozen=True)
class HrmcPlus(SelectionMethod):
    """Smooth count by Hill functions, then one more device at a time; 16 starts.

    Not from the paper. The defaults are from measurements, see docs/hrmc-plus.md.
    """

    name = "hrmc+"

    starts: int = 16  # the eigenvector, then random beams and weights
    spread: float = 0.5  # standard deviation of the logarithm of the random weights
    outsiders: int = OUTSIDERS  # devices that are tried, best score first, before growing ends

    def __post_init__(self) -> None:
        checks.whole("starts", self.starts, 1)
        checks.at_least("spread", self.spread, 0.0)
        checks.whole("outsiders", self.outsiders, 1)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """The beam with the most devices, then the largest weakest score, of all starts."""
        chains, devices = effective.shape
        # One row per start: the first starts do not depend on their number.
        draws = rng.standard_normal((self.starts - 1, 2 * chains + devices))
        beams = draws[:, :chains] + 1j * draws[:, chains : 2 * chains]
        beams /= np.linalg.norm(beams, axis=1, keepdims=True)
        weights = np.exp(self.spread * draws[:, 2 * chains :])
        beam, iterations, evaluations = _search(
            *projections.split(effective),
            _matched(effective),
            np.vstack([dominant_eigenvector(effective), beams]),
            np.vstack([np.ones(devices), weights]),
            self.outsiders,
        )
        return BeamSearch(beam=beam, work={"iterations": iterations, "evaluations": evaluations})
