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

With priorities v_k, the terms of the smooth count are multiplied by v_k, and sums of v_k take the place of
numbers of devices. Devices are tried by turns in the order of v_k z_k and of z_k. If one does not fit, it is
tried again without the selected devices of lowest priority, as many as together count less than it, and
without one selected device that counts less.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks, memory
from airpass.core.registry import Report
from airpass.core.types import Complex, Flag, Mask, Real
from airpass.kernels.interrupts import run
from airpass.kernels.jit import inlined, kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import projections
from airpass.optim.objectives import Hill
from airpass.optim.ranking import value_rank
from airpass.selection.base import BeamSearch, SelectionMethod, dominant_eigenvector, scaled_priorities

# All of these values are from measurements, see docs/science/hrmc-plus.md.
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
SWAPS = 4  # selected devices that are left out, one by one and weakest first, if a device does not fit
# A start is far behind if it selects fewer devices than the best start, by more than this number and by more
# than this multiple of the square root of the best number.
BEHIND_COUNT = 3
BEHIND_ROOT = 0.25


@inlined
def _anneal(
    columns_re: Real, columns_im: Real, start: Complex, random_weights: Real, priorities: Real, stop: Flag
) -> tuple[Complex, int, int]:
    """The smooth count at increasing powers: beam, conjugate-gradient iterations, evaluations."""
    iterations = 0
    evaluations = 0
    tolerance = min(max(ANNEAL_DEVICES / priorities.size, TIGHTEST), LOOSEST)
    limits = cg.Limits(FIRST_STEP, MAX_ITERATIONS, tolerance)
    beam = start
    for stage, doublings in enumerate(ANNEAL):
        objective = Hill(random_weights if stage < WEIGHTED else priorities, doublings, 1.0)
        found = cg.minimise(columns_re, columns_im, objective, beam, limits, stop)
        beam = found.point
        iterations += found.iterations
        evaluations += found.evaluations
    return beam, iterations, evaluations


@inlined
def _raise_weakest(
    columns_re: Real,
    columns_im: Real,
    start: Complex,
    wanted: Mask,
    priorities: Real,
    exceeded: float,
    stop: Flag,
) -> tuple[Complex, int, int]:
    """Raise the weakest score of the wanted devices: beam of the best rank, iterations, evaluations.

    Ends as soon as the value is above `exceeded`, or the wanted devices can no longer all be selected.
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
    value, weakest = value_rank(scores, priorities)
    for doublings in RAISE:
        # In units of the weakest score the objective is the same, and high powers stay in range.
        unit = 1.0 / np.sqrt(max(np.min(scores[devices]), 1e-100))
        objective = Hill(equal, doublings, 0.0)
        found = cg.minimise(wanted_re * unit, wanted_im * unit, objective, trial, limits, stop)
        trial = found.point
        iterations += found.iterations
        evaluations += found.evaluations
        scores = projections.squares(columns_re, columns_im, trial)
        reached, margin = value_rank(scores, priorities)
        if reached > value or (reached == value and margin > weakest):
            beam, value, weakest = trial, reached, margin
        # The power mean of the scores with exponent -p is an upper bound of the weakest. It is largest here.
        mean = (found.value / devices.size) ** (-(0.5**doublings)) / (unit * unit)
        if value > exceeded or mean < 1.0 or stop[0] != 0:
            break
    return beam, iterations, evaluations


@kernel
def _best_outside(scores: Real, priorities: Real, tried: Mask, weighted: bool) -> int:
    """The untried device with the largest score below one, or the largest v_k z_k; -1 if there is none."""
    best = -1
    highest = 0.0
    for k in range(scores.size):
        if scores[k] < 1.0 and not tried[k] and priorities[k] > 0.0:
            product = priorities[k] * scores[k] if weighted else scores[k]
            if best < 0 or product > highest:
                best, highest = k, product
    return best


@kernel
def _smaller(wanted: Mask, outsider: int, priorities: Real, scores: Real, swap: int) -> Mask:
    """The wanted devices without some that together count less than the outsider.

    For swap = 0, those of lowest priority; for swap = 1, 2, ..., the one with the lowest score, the second
    lowest, and so on, of those that count less. None if all count the same.
    """
    kept = wanted.copy()
    if swap > 0:
        passed = np.zeros(kept.size, np.bool_)
        for _ in range(swap):
            weakest = -1
            for k in range(kept.size):
                less = wanted[k] and not passed[k] and priorities[k] < priorities[outsider]
                if less and (weakest < 0 or scores[k] < scores[weakest]):
                    weakest = k
            if weakest < 0:
                return kept
            passed[weakest] = True
        kept[weakest] = False
        return kept
    left = priorities[outsider]
    dropping = True
    while dropping:
        least = -1
        for k in range(kept.size):
            if kept[k] and k != outsider and (least < 0 or priorities[k] < priorities[least]):
                least = k
        dropping = least >= 0 and priorities[least] < left
        if dropping:
            kept[least] = False
            left -= priorities[least]
    return kept


@kernel
def _grow(
    columns_re: Real,
    columns_im: Real,
    priorities: Real,
    start: Complex,
    outsiders: int,
    polished: float,
    stop: Flag,
) -> tuple[Complex, float, float, int, int]:
    """One more device at a time: beam, value, weakest score; iterations and evaluations.

    In the end the weakest score is raised, if the value is at least `polished`.
    """
    iterations = 0
    evaluations = 0
    beam = start
    scores = projections.squares(columns_re, columns_im, beam)
    value, weakest = value_rank(scores, priorities)
    tried = np.zeros(scores.size, np.bool_)
    left = outsiders
    growing = True
    while growing and stop[0] == 0:
        weighted = (outsiders - left) % 2 == 0
        outsider = _best_outside(scores, priorities, tried, weighted) if left > 0 else -1
        growing = outsider >= 0
        wanted = (scores >= 1.0) & (priorities > 0.0)
        if growing:
            wanted[outsider] = True
            tried[outsider] = True
            left -= 1
        elif value == 0.0 or value < polished:
            break
        exceeded = value if growing else np.inf
        trial, used, spent = _raise_weakest(columns_re, columns_im, beam, wanted, priorities, exceeded, stop)
        iterations, evaluations = iterations + used, evaluations + spent
        reached = projections.squares(columns_re, columns_im, trial)
        more, margin = value_rank(reached, priorities)
        swap = 0
        while growing and more <= value and swap <= SWAPS and stop[0] == 0:
            fewer = _smaller(wanted, outsider, priorities, scores, swap)
            if np.array_equal(fewer, wanted):
                break
            trial, used, spent = _raise_weakest(
                columns_re, columns_im, beam, fewer, priorities, exceeded, stop
            )
            iterations, evaluations = iterations + used, evaluations + spent
            reached = projections.squares(columns_re, columns_im, trial)
            more, margin = value_rank(reached, priorities)
            swap += 1
        if more > value:
            tried[:] = False
            left = outsiders
        if more > value or not growing:
            beam, scores, value, weakest = trial, reached, more, margin
    return beam, value, weakest, iterations, evaluations


@kernel
def _search(
    columns_re: Real,
    columns_im: Real,
    priorities: Real,
    known: Complex,
    starts: Complex,
    weights: Real,
    outsiders: int,
    stop: Flag,
) -> tuple[Complex, int, int]:
    """The best of a known beam and the results of all starts; iterations and evaluations."""
    iterations = 0
    evaluations = 0
    devices = columns_re.shape[1]
    annealed = np.zeros((starts.shape[0], devices), np.bool_)  # devices that a start selects before it grows
    best = known
    best_value, best_weakest = value_rank(projections.squares(columns_re, columns_im, known), priorities)
    for number in range(starts.shape[0]):
        if stop[0] != 0:
            break
        beam, used, tried = _anneal(columns_re, columns_im, starts[number], weights[number], priorities, stop)
        iterations, evaluations = iterations + used, evaluations + tried
        scores = projections.squares(columns_re, columns_im, beam)
        annealed[number] = scores >= 1.0
        value, weakest = value_rank(scores, priorities)
        behind = max(BEHIND_COUNT, BEHIND_ROOT * np.sqrt(best_value))
        repeated = False
        if not annealed[number].all():
            for earlier in range(number):
                repeated = repeated or np.array_equal(annealed[earlier], annealed[number])
        if repeated or value < best_value - behind:
            continue
        beam, value, weakest, used, tried = _grow(
            columns_re, columns_im, priorities, beam, outsiders, best_value, stop
        )
        iterations, evaluations = iterations + used, evaluations + tried
        if value > best_value or (value == best_value and weakest > best_weakest):
            best, best_value, best_weakest = beam, value, weakest
    return best, iterations, evaluations


def _matched(effective: Complex, priorities: Real) -> Complex:
    """The beam matched to the strongest device, of those that it selects one of the highest priority."""
    lengths = np.linalg.norm(effective, axis=0)
    worth = np.where(lengths >= 1.0, priorities, 0.0)
    strongest = int(np.where(worth == worth.max(), lengths, -1.0).argmax())
    if not lengths[strongest] > 0.0:
        return dominant_eigenvector(effective)
    matched: Complex = np.ascontiguousarray(effective[:, strongest] / lengths[strongest])
    return matched


def _operations(chains: int, devices: int) -> float:
    """Operations of one start, about."""
    return (len(ANNEAL) + len(RAISE) * OUTSIDERS) * MAX_ITERATIONS * cg.operations(chains, devices)


def regrow(effective: Complex, beam: Complex, priorities: Real | None = None) -> Complex:
    """A beam that is worth at least as much as `beam`, for slightly changed channels.

    Parameters
    ----------
    effective
        Effective channels, shape (M, K).
    beam
        The beam to start from, shape (M,).
    priorities
        v_k, shape (K,); one each if not given.

    Returns
    -------
    Complex
        A beam of unit norm.
    """
    columns_re, columns_im = projections.split(effective)
    values = np.ones(effective.shape[1]) if priorities is None else scaled_priorities(priorities)
    return run(
        _grow,
        columns_re,
        columns_im,
        values,
        np.ascontiguousarray(beam),
        OUTSIDERS,
        0.0,
        work=_operations(*effective.shape),
    )[0]


@dataclass(frozen=True)
class HrmcPlus(SelectionMethod):
    """Smooth count by Hill functions, then one more device at a time; 16 starts.

    Not from the paper. The defaults are from measurements, see docs/science/hrmc-plus.md.
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
        return self.prioritised(effective, np.ones(effective.shape[1]), rng, report)

    def prioritised(
        self, effective: Complex, priorities: Real, rng: np.random.Generator, report: Report
    ) -> BeamSearch:
        """The same with sums of priorities in place of numbers of devices."""
        chains, devices = effective.shape
        memory.require(self.starts * (64.0 * chains + 32.0 * devices), "random starts", "starts")
        # One row per start: the first starts do not depend on their number.
        draws = rng.standard_normal((self.starts - 1, 2 * chains + devices))
        beams = draws[:, :chains] + 1j * draws[:, chains : 2 * chains]
        beams /= np.linalg.norm(beams, axis=1, keepdims=True)
        weights = np.exp(self.spread * draws[:, 2 * chains :])
        beam, iterations, evaluations = run(
            _search,
            *projections.split(effective),
            priorities,
            _matched(effective, priorities),
            np.vstack([dominant_eigenvector(effective, priorities), beams]),
            np.vstack([np.ones(devices), weights]) * priorities,
            self.outsiders,
            work=self.starts * _operations(chains, devices),
        )
        return BeamSearch(beam=beam, work={"iterations": iterations, "evaluations": evaluations})
