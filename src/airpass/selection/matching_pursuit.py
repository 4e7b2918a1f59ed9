"""Matching pursuit: devices are scheduled one by one and never reconsidered.

A reconstruction. The paper compares with Bereyhi et al., "Device Scheduling in Over-the-Air
Federated Learning via Matching Pursuit", IEEE Trans. Signal Process., 2023. Only the principle is taken
from it: sequential support updates, irreversible decisions, cost O(K^2 M^2).

Forward (`mp`): start from the strongest device with the beam matched to it. Take the device
with the largest score under the current beam, refit the beam to the enlarged set by
regularised least squares with phase alignment,

    theta_j = arg(h_j^H m),    m ~ (H H^H + r I)^{-1} H e^{j theta},

keep the better of old and new beam by the weakest score of the set, and accept the device if
all its scores are at least one; otherwise stop.

Backward (`mp-backward`): start from all devices with the dominant eigenvector of the sum of
their Q_k, and drop the weakest until all that remain are feasible.
"""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.registry import Report
from airpass.core.types import Complex, Flag, Real
from airpass.kernels.interrupts import run
from airpass.kernels.jit import kernel
from airpass.optim.projections import split, squares
from airpass.selection.base import BeamSearch, SelectionMethod


@kernel
def _weakest(scores: Real, members: Real) -> float:
    lowest = np.inf
    for k in range(scores.size):
        if members[k] > 0.0:
            lowest = min(lowest, scores[k])
    return lowest


@kernel
def _refit(
    columns: Complex, members: Real, gram: Complex, beam: Complex, passes: int, share: float
) -> Complex:
    """Regularised least squares with phase alignment; `gram` is H H^H over the members."""
    size = columns.shape[0]
    mean = 0.0
    for i in range(size):
        mean += gram[i, i].real
    ridge = gram.copy()
    for i in range(size):
        ridge[i, i] += share * mean / size
    inverse = np.linalg.inv(ridge)
    fitted = beam.copy()
    for _ in range(passes):
        target = np.zeros(size, np.complex128)
        for k in range(columns.shape[1]):
            if members[k] > 0.0:
                projection = 0.0j
                for i in range(size):
                    projection += columns[i, k].conjugate() * fitted[i]
                length = abs(projection)
                phase = projection / length if length > 0.0 else 1.0 + 0.0j
                for i in range(size):
                    target[i] += columns[i, k] * phase
        fitted = inverse @ target
        fitted = fitted / np.sqrt(np.sum(np.abs(fitted) ** 2))
    return fitted


@kernel
def _forward(
    columns: Complex, columns_re: Real, columns_im: Real, passes: int, share: float, stop: Flag
) -> tuple[Complex, int]:
    size, count = columns.shape
    strength = np.zeros(count)
    for k in range(count):
        for i in range(size):
            strength[k] += columns_re[i, k] ** 2 + columns_im[i, k] ** 2
    first = int(np.argmax(strength))
    beam = columns[:, first].copy() / np.sqrt(strength[first])
    members = np.zeros(count)
    members[first] = 1.0
    gram = np.outer(columns[:, first], columns[:, first].conjugate())
    scheduled = 1
    if strength[first] < 1.0:
        return beam, 0
    while scheduled < count and stop[0] == 0:
        scores = squares(columns_re, columns_im, beam)
        best = -1
        for k in range(count):
            if members[k] == 0.0 and (best < 0 or scores[k] > scores[best]):
                best = k
        members[best] = 1.0
        gram += np.outer(columns[:, best], columns[:, best].conjugate())
        fitted = _refit(columns, members, gram, beam, passes, share)
        kept = _weakest(scores, members)
        refitted = _weakest(squares(columns_re, columns_im, fitted), members)
        if max(kept, refitted) < 1.0:
            break
        if refitted > kept:
            beam = fitted
        scheduled += 1
    return beam, scheduled


@kernel
def _backward(columns: Complex, columns_re: Real, columns_im: Real, stop: Flag) -> tuple[Complex, int]:
    size, count = columns.shape
    members = np.ones(count)
    gram = columns @ columns.conjugate().T
    left = count
    while True:
        _, vectors = np.linalg.eigh(gram)
        beam = vectors[:, size - 1].copy()
        scores = squares(columns_re, columns_im, beam)
        weakest = -1
        for k in range(count):
            if members[k] > 0.0 and (weakest < 0 or scores[k] < scores[weakest]):
                weakest = k
        if scores[weakest] >= 1.0 or left == 1 or stop[0] != 0:
            return beam, left
        members[weakest] = 0.0
        gram -= np.outer(columns[:, weakest], columns[:, weakest].conjugate())
        left -= 1


def _parts(effective: Complex) -> tuple[Complex, Real, Real]:
    columns = np.ascontiguousarray(effective)
    return columns, *split(columns)


def _operations(effective: Complex) -> float:
    """Operations of one refit for every device, about."""
    size, count = effective.shape
    return float(count * (20.0 * size**3 + 8.0 * size * count))


@dataclass(frozen=True)
class Mp(SelectionMethod):
    """Forward matching pursuit, a reconstruction (after Bereyhi et al., 2023).

    The options are not from the paper; docs/science/baselines.md has the measurements.
    """

    name = "mp"

    passes: int = 3  # phase alignments of one refit
    regularisation: float = 1e-2  # r, relative to the mean eigenvalue of H H^H

    def __post_init__(self) -> None:
        checks.whole("passes", self.passes, 1)
        checks.positive("regularisation", self.regularisation)

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Grow the set from the strongest device."""
        beam, scheduled = run(
            _forward,
            *_parts(effective),
            self.passes,
            float(self.regularisation),
            work=self.passes * _operations(effective),
        )
        return BeamSearch(beam=beam, work={"scheduled": scheduled})


@dataclass(frozen=True)
class MpBackward(SelectionMethod):
    """Backward matching pursuit: drop the weakest device until all others are feasible."""

    name = "mp-backward"

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Shrink the set from all devices."""
        beam, left = run(_backward, *_parts(effective), work=_operations(effective))
        return BeamSearch(beam=beam, work={"left": left})
