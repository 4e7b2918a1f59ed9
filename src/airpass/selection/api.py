"""`select`: choose devices and a beam for given channels. `select_draws` does it for a stack of draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

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
from airpass.selection.base import SelectionMethod, checked_search

AXES = "(M, K), a row per receive chain, a column per device"
STACK_AXES = f"{AXES}, or (T, M, K), a stack of draws"


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
    priorities
        v_k, shape (K,); None if all are one.
    """

    method: SelectionMethod
    status: str
    work: Mapping[str, int]
    seconds: float
    compile_seconds: float
    seed: int
    priorities: Real | None = None

    @property
    def value(self) -> float:
        """Sum of v_k over the selected devices; their number if there are no priorities."""
        return float(self.selected_count if self.priorities is None else self.priorities[self.selected].sum())

    def __repr__(self) -> str:
        return f"Selection({self.method.name}: {self._outcome()})"


def select(
    channels: Any,
    weights: Any = None,
    budget: float | None = None,
    method: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] = "hrmc",
    *,
    snr_db: float | None = None,
    mse_threshold: float | None = None,
    power: float = 1.0,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    report: Report | None = None,
    priorities: Any = None,
) -> Selection:
    """Choose devices and a beam.

    Parameters
    ----------
    channels
        Complex, shape (M, K): receive chains by devices.
    weights
        phi_k, shape (K,); 1/K each if not given. The error is that of sum_k phi_k s_k, so that their
        scale matters: with shares, which sum to one, it is that of a mean.
    budget
        Gamma = P0 eps/sigma^2. Alternatively give `snr_db` and `mse_threshold`.
    method
        Name of a selection method, an object such as `Hrmc(starts=16)`, a function (effective, rng) that
        returns a beam, `file.py:Name` or `package.module:Name`.
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
    priorities
        v_k >= 0, one number for all devices or one for each. The sum of v_k over the selected devices takes
        the place of their number. `InvalidInput` is raised if they differ and the method cannot use them.

    Returns
    -------
    Selection
        Beam, scores, selected devices and their transmit scaling.
    """
    chosen = METHODS.resolve(method, options)
    matrix = checked_channels(channels)
    return _draws(
        matrix[None], weights, budget, chosen, snr_db, mse_threshold, power, seed, report, priorities
    )[0]


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Sequence[Selection]):
    """The selections for a stack of draws. Each is computed when it is first used.

    Parameters
    ----------
    channels
        Complex, shape (T, M, K).
    weights
        phi_k, shape (K,).
    budget
        Gamma.
    power
        P0.
    mse_threshold
        eps; None if only the budget is known.
    method
        The method with its options.
    seed
        Seed of every search.
    report
        Callback for progress messages.
    priorities
        v_k, shape (K,); None if all are one.
    """

    channels: Complex
    weights: Real
    budget: float
    power: float
    mse_threshold: float | None
    method: SelectionMethod
    seed: int
    report: Report = discard
    priorities: Real | None = None
    _done: dict[int, Selection] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.channels)

    @overload
    def __getitem__(self, draw: int) -> Selection: ...

    @overload
    def __getitem__(self, draw: slice) -> list[Selection]: ...

    def __getitem__(self, draw: int | slice) -> Selection | list[Selection]:
        if isinstance(draw, slice):
            return [self[t] for t in range(*draw.indices(len(self)))]
        t = range(len(self))[draw]
        if t not in self._done:
            self._done[t] = self._select(t)
        return self._done[t]

    def __repr__(self) -> str:
        draws, chains, devices = self.channels.shape
        return f"Draws({self.method.name}: {draws} draws, {chains} receive chains, {devices} devices)"

    def _select(self, t: int) -> Selection:
        matrix = self.channels[t]
        with one_blas_thread():
            watch = Stopwatch()
            effective = aircomp.effective_channels(matrix, self.weights, self.budget)
            rng = stream(self.seed, Purpose.SELECTION, 0)
            if self.priorities is None:
                found = self.method.search(effective, rng, self.report)
            else:
                found = self.method.find(effective, self.priorities, rng, self.report)
        found = checked_search(self.method, found, len(matrix))
        return Selection(
            channels=matrix,
            weights=self.weights,
            beam=found.beam,
            budget=self.budget,
            power=self.power,
            mse_threshold=self.mse_threshold,
            method=self.method,
            status=found.status,
            work=found.work,
            seconds=watch.seconds,
            compile_seconds=watch.compile_seconds,
            seed=self.seed,
            priorities=self.priorities,
        )


def select_draws(
    channels: Any,
    weights: Any = None,
    budget: float | None = None,
    method: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] = "hrmc",
    *,
    snr_db: float | None = None,
    mse_threshold: float | None = None,
    power: float = 1.0,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    report: Report | None = None,
    priorities: Any = None,
) -> Draws:
    """Choose devices and a beam for every draw of the channels.

    Parameters
    ----------
    channels
        Complex, shape (T, M, K): draws by receive chains by devices. A matrix (M, K) is one draw.
    weights, budget, method, snr_db, mse_threshold, power, options, seed, report, priorities
        As for `select`. Draw t gives what `select(channels[t], ...)` gives.

    Returns
    -------
    Draws
        A sequence of T selections, each computed when it is first used.
    """
    chosen = METHODS.resolve(method, options)
    stack = checked_stack(channels)
    return _draws(stack, weights, budget, chosen, snr_db, mse_threshold, power, seed, report, priorities)


def _draws(
    stack: Complex,
    weights: Any,
    budget: float | None,
    method: SelectionMethod,
    snr_db: float | None,
    mse_threshold: float | None,
    power: float,
    seed: int,
    report: Report | None,
    priorities: Any,
) -> Draws:
    phi = checked_weights(weights, stack.shape[2])
    gamma, threshold = _budget(budget, snr_db, mse_threshold)
    checks.positive("power", power)
    checks.whole("seed", seed, 0)
    values = None if priorities is None else checked_priorities(priorities, phi.size)
    if values is not None and (values == 1.0).all():
        values = None
    return Draws(stack, phi, gamma, power, threshold, method, seed, report or discard, values)


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


def _numbers(channels: Any, label: str) -> Any:
    """`channels` as an array of numbers."""
    try:
        values = np.asarray(channels)
    except ValueError:
        raise InvalidInput(f"{label}: rows differ in length; must be a matrix of shape (M, K)") from None
    if values.dtype.kind not in "iufc":
        raise InvalidInput(f"{label} has dtype {values.dtype}: must be complex (or real) numbers")
    return values


def checked_stack(channels: Any, label: str = "channels", transpose: bool = False) -> Complex:
    """Check a stack of draws.

    Parameters
    ----------
    channels
        Array of shape (T, M, K), or (M, K) for one draw.
    label
        Where the array is from, for error messages.
    transpose
        Whether the last two axes are (K, M) instead.

    Returns
    -------
    Complex
        The draws, shape (T, M, K).
    """
    values = _numbers(channels, label)
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise InvalidInput(f"{label} has shape {values.shape}: must be {STACK_AXES}")
    if transpose:
        values = np.swapaxes(values, -1, -2)
    if values.ndim == 2:
        return checked_channels(values, label)[None]
    return np.stack([checked_channels(draw, f"{label}, draw {t},") for t, draw in enumerate(values)])


def axes(shape: Sequence[int]) -> str:
    """The shape of channels with the names of its axes."""
    names = ("draws T", "receive chains M", "devices K")[-len(shape) :]
    return f"shape {tuple(shape)} is ({', '.join(names)})"


def checked_channels(channels: Any, label: str = "channels") -> Complex:
    """`channels` as a complex array of shape (M, K), after validation."""
    values = _numbers(channels, label)
    if values.ndim == 3:
        raise InvalidInput(
            f"{label}: {axes(values.shape)}; one draw is {AXES}: give one, or use select_draws"
        )
    if values.ndim != 2 or 0 in values.shape:
        raise InvalidInput(f"{label} has shape {values.shape}: must be {AXES}")
    finite = np.isfinite(values)
    if not finite.all():
        m, k = np.argwhere(~finite)[0]
        raise InvalidInput(
            f"{label}[{m}, {k}] = {values[m, k]}: all entries must be finite ({axes(values.shape)})"
        )
    empty = np.flatnonzero(~values.any(axis=1))
    if empty.size:
        raise InvalidInput(
            f"{label} row {empty[0]} is all zeros: remove the receive chain, which receives no signal "
            f"({axes(values.shape)})"
        )
    empty = np.flatnonzero(~values.any(axis=0))
    if empty.size:
        raise InvalidInput(
            f"{label} column {empty[0]} is all zeros: remove the device, which has no channel "
            f"({axes(values.shape)})"
        )
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


def checked_priorities(priorities: Any, count: int) -> Real:
    """`priorities` as K numbers, after validation; one number is that of all devices."""
    try:
        values = np.asarray(priorities)
    except ValueError:
        raise InvalidInput(f"priorities: must be one number for each of {count} devices") from None
    if values.dtype.kind not in "iuf":
        raise InvalidInput(f"priorities has dtype {values.dtype}: must be real numbers")
    values = values.astype(np.float64)
    if values.ndim == 0:
        values = np.full(count, values)
    if values.shape != (count,):
        raise InvalidInput(
            f"priorities has shape {values.shape}: must be one number for each of {count} devices"
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise InvalidInput(f"priorities[{bad[0]}] = {values[bad[0]]}: must be finite and >= 0")
    if not values.any():
        raise InvalidInput("priorities: all are zero; at least one must be > 0")
    return values
