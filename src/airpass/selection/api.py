"""`select`: device selection and beam for given channels, by any named method."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np

from airpass import aircomp, selection
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import build_options, lookup
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Mask, Real
from airpass.selection.base import Report


@dataclass(frozen=True, eq=False)
class Selection:
    """A beam, who it lets in, and what they send. All follows from beam and channels."""

    method: str
    options: Any
    channels: Complex  # G, shape (M, K)
    weights: Real  # phi_k, shape (K,)
    budget: float  # Gamma
    beam: Complex  # m, unit norm, shape (M,)
    power: float  # P0
    mse_threshold: float | None  # eps; None when only the budget is known
    status: str
    work: Mapping[str, int]
    seconds: float
    seed: int

    @property
    def effective(self) -> Complex:
        """Columns √Γ g_k/φ_k, eq. (28)."""
        return aircomp.effective_channels(self.channels, self.weights, self.budget)

    @cached_property
    def scores(self) -> Real:
        """z_k = Gamma |m^H g_k|^2/phi_k^2, eq. (31)."""
        return aircomp.scores(self.beam, self.effective)

    @cached_property
    def selected(self) -> Mask:
        """z_k >= 1, eq. (47)."""
        return aircomp.selected(self.scores)

    @property
    def selected_count(self) -> int:
        """How many are selected."""
        return int(self.selected.sum())

    @property
    def weakest_score(self) -> float:
        """The least score among the selected; the best score of all if nobody is."""
        return float(self.scores[self.selected].min() if self.selected_count else self.scores.max())

    @property
    def noise_power(self) -> float | None:
        """sigma^2 = P0 eps/Gamma; None when the threshold is not known."""
        return None if self.mse_threshold is None else self.power * self.mse_threshold / self.budget

    @cached_property
    def aggregation(self) -> aircomp.Aggregation:
        """Transmit scaling, denoising factor and error for the selected devices."""
        return aircomp.aggregation(
            self.beam, self.channels, self.weights, self.selected, self.power, self.noise_power
        )

    @property
    def mse(self) -> float:
        """Eq. (22); not a number when nobody is selected or the noise power is not known."""
        return nan if self.aggregation.mse is None else self.aggregation.mse


def select(
    channels: Any,
    weights: Any = None,
    budget: float | None = None,
    method: str = "hrmc",
    *,
    snr_db: float | None = None,
    mse_threshold: float | None = None,
    power: float = 1.0,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Selection:
    """Choose devices and beam for `channels`, complex of shape (M, K).

    `weights` are the phi_k (default 1/K each). The budget Gamma = P0 eps/sigma^2 is given
    as `budget`, or by `snr_db` (of P0/sigma^2) with `mse_threshold`. `options` changes the
    method's defaults, e.g. {"starts": 16}. `report` is told in words how long work goes on.
    """
    chosen = lookup("method", method, selection.methods())
    settings = build_options(chosen.options(), options or {})
    matrix = checked_channels(channels)
    phi = checked_weights(weights, matrix.shape[1])
    gamma, threshold = _budget(budget, snr_db, mse_threshold)
    checks.positive("power", power)
    checks.whole("seed", seed, 0)
    start = time.perf_counter()
    with one_blas_thread():
        found = chosen.search(
            aircomp.effective_channels(matrix, phi, gamma),
            settings,
            stream(seed, Purpose.SELECTION),
            report or silent,
        )
    return Selection(
        method=method,
        options=settings,
        channels=matrix,
        weights=phi,
        budget=gamma,
        beam=found.beam,
        power=power,
        mse_threshold=threshold,
        status=found.status,
        work=found.work,
        seconds=time.perf_counter() - start,
        seed=seed,
    )


def silent(text: str) -> None:
    """Where progress goes when nobody asked for it."""


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
    """`channels` as a complex (M, K) array, or an error that says what is wrong with it."""
    try:
        values = np.asarray(channels)
    except ValueError:
        raise InvalidInput(f"{label}: rows differ in length; must be a matrix of shape (M, K)") from None
    if values.dtype.kind not in "iufc":
        raise InvalidInput(f"{label} has dtype {values.dtype}: must be complex (or real) numbers")
    if values.ndim != 2 or 0 in values.shape:
        raise InvalidInput(
            f"{label} has shape {values.shape}: must be (M, K), one row a receive chain, one column a device"
        )
    finite = np.isfinite(values)
    if not finite.all():
        m, k = np.argwhere(~finite)[0]
        raise InvalidInput(f"{label}[{m}, {k}] = {values[m, k]}: all entries must be finite")
    empty = np.flatnonzero(~values.any(axis=1))
    if empty.size:
        raise InvalidInput(f"{label} row {empty[0]} is all zeros: remove the receive chain that hears nobody")
    empty = np.flatnonzero(~values.any(axis=0))
    if empty.size:
        raise InvalidInput(f"{label} column {empty[0]} is all zeros: remove the device that is not heard")
    return np.ascontiguousarray(values, dtype=np.complex128)


def checked_weights(weights: Any, count: int, label: str = "weights") -> Real:
    """`weights` as K positive numbers; 1/K each when not given."""
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
