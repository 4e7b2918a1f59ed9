"""`select`: choose devices and a beam for given channels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Real
from airpass.kernels.clock import Stopwatch
from airpass.selection import METHODS
from airpass.selection.base import SelectionMethod


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Selection(Link):
    """A link whose beam was found by a selection method.

    Parameters
    ----------
    method
        The method with its options.
    status
        "done", or a description of the problem.
    work
        Operation counts, such as iterations.
    seconds
        Duration of the search, without the compilation of kernels.
    compile_seconds
        Time spent on compiling kernels, or on loading them from the cache.
    seed
        Seed of the search.
    """

    method: SelectionMethod
    status: str
    work: Mapping[str, int]
    seconds: float
    compile_seconds: float
    seed: int

    def __repr__(self) -> str:
        return f"Selection({self.method.name}: {self._outcome()})"


def select(
    channels: Any,
    weights: Any = None,
    budget: float | None = None,
    method: str | SelectionMethod | type[SelectionMethod] = "hrmc",
    *,
    snr_db: float | None = None,
    mse_threshold: float | None = None,
    power: float = 1.0,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Selection:
    """Choose devices and a beam.

    Parameters
    ----------
    channels
        Complex, shape (M, K): receive chains by devices.
    weights
        phi_k, shape (K,); 1/K each if not given.
    budget
        Gamma = P0 eps/sigma^2. Alternatively give `snr_db` and `mse_threshold`.
    method
        Name of a selection method, an object such as `Hrmc(starts=16)`, `file.py:Name` or
        `package.module:Name`.
    snr_db
        P0/sigma^2 in dB.
    mse_threshold
        eps.
    power
        Largest transmit power P0.
    options
        Changes of the method's options, such as {"starts": 16}.
    seed
        Seed of the method's random numbers.
    report
        Callback for progress messages.

    Returns
    -------
    Selection
        Beam, scores, selected devices and their transmit scaling.
    """
    chosen = METHODS.resolve(method, options)
    matrix = checked_channels(channels)
    phi = checked_weights(weights, matrix.shape[1])
    gamma, threshold = _budget(budget, snr_db, mse_threshold)
    checks.positive("power", power)
    checks.whole("seed", seed, 0)
    with one_blas_thread():
        watch = Stopwatch()
        effective = aircomp.effective_channels(matrix, phi, gamma)
        found = chosen.search(effective, stream(seed, Purpose.SELECTION), report or discard)
    return Selection(
        channels=matrix,
        weights=phi,
        beam=found.beam,
        budget=gamma,
        power=power,
        mse_threshold=threshold,
        method=chosen,
        status=found.status,
        work=found.work,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
        seed=seed,
    )


def _budget(
    budget: float | None, snr_db: float | None, mse_threshold: float | None
) -> tuple[float, float | None]:
    """Gamma, and eps where it is known."""
    if mse_threshold is not None:
        checks.positive("mse_threshold", mse_threshold)
    if budget is not None:
        if snr_db is not None:
            raise InvalidInput(
                "budget and snr_db are both given: give the budget, or snr_db with mse_threshold"
            )
        return checks.positive("budget", budget), mse_threshold
    if snr_db is None or mse_threshold is None:
        raise InvalidInput("budget is missing: give it, or snr_db with mse_threshold")
    snr = 10.0 ** (checks.decibels("snr_db", snr_db) / 10.0)
    return aircomp.budget(1.0, mse_threshold, 1.0 / snr), mse_threshold


def checked_channels(channels: Any, label: str = "channels") -> Complex:
    """`channels` as a complex array of shape (M, K), after validation."""
    try:
        values = np.asarray(channels)
    except ValueError:
        raise InvalidInput(f"{label}: rows differ in length; must be a matrix of shape (M, K)") from None
    if values.dtype.kind not in "iufc":
        raise InvalidInput(f"{label} has dtype {values.dtype}: must be complex (or real) numbers")
    if values.ndim != 2 or 0 in values.shape:
        raise InvalidInput(
            f"{label} has shape {values.shape}: must be (M, K), a row per receive chain, a column per device"
        )
    finite = np.isfinite(values)
    if not finite.all():
        m, k = np.argwhere(~finite)[0]
        raise InvalidInput(f"{label}[{m}, {k}] = {values[m, k]}: all entries must be finite")
    empty = np.flatnonzero(~values.any(axis=1))
    if empty.size:
        raise InvalidInput(
            f"{label} row {empty[0]} is all zeros: remove the receive chain, which receives no signal"
        )
    empty = np.flatnonzero(~values.any(axis=0))
    if empty.size:
        raise InvalidInput(f"{label} column {empty[0]} is all zeros: remove the device, which has no channel")
    return np.ascontiguousarray(values, dtype=np.complex128)


def checked_weights(weights: Any, count: int, label: str = "weights") -> Real:
    """`weights` as K positive numbers, after validation; 1/K each if not given."""
    if weights is None:
        return np.full(count, 1.0 / count)
    try:
        values = np.asarray(weights)
    except ValueError:
        raise InvalidInput(f"{label}: must be one number for each of {count} devices") from None
    if values.dtype.kind not in "iuf":
        raise InvalidInput(f"{label} has dtype {values.dtype}: must be real numbers")
    values = values.astype(np.float64)
    if values.size != count or max(values.shape, default=0) != values.size:
        raise InvalidInput(
            f"{label} has shape {values.shape}: must be one number for each of {count} devices"
        )
    values = np.ascontiguousarray(values.reshape(-1))
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        raise InvalidInput(f"{label}[{bad[0]}] = {values[bad[0]]}: must be finite and > 0")
    return values
