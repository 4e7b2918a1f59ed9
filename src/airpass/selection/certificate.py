"""Upper bounds on the number of selectable devices, and infeasibility certificates for sets.

For any multipliers 0 <= y_k <= 1 and any unit beam m, as min(1, z) <= (1 - y) + y z,

    #{k : z_k >= 1}  <=  sum_k min(1, z_k)  <=  sum_k (1 - y_k) + lambda_max(sum_k y_k Q_k),

and if z_k >= 1 held for all k in S, sum_{k in S} y_k <= lambda_max(sum_{k in S} y_k Q_k). The best
y comes from a semidefinite program, but both statements hold for every y: they are checked here
by one eigenvalue, so that the tolerance of the solver cannot invalidate them. Devices with
||h_k|| < 1 are excluded first: no beam gives them a score of one.

With priorities v_k >= 0, multiplying min(1, z_k) <= (1 - y_k) + y_k z_k by v_k and summing gives

    sum of v_k over z_k >= 1  <=  sum_k (v_k - u_k) + lambda_max(sum_k u_k Q_k),   u_k = v_k y_k,

for any 0 <= u_k <= v_k. The best u comes from the same program with the bounds v_k in place of 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from airpass import aircomp
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.text import shown
from airpass.core.types import Complex, Real
from airpass.optim.conic import LiftedProgram, program_bytes
from airpass.selection.api import checked_channels, checked_priorities, checked_weights, select
from airpass.selection.hrmc import Hrmc

ROUNDING = 1e-9  # relative rounding error of the eigenvalue


@dataclass(frozen=True, eq=False)
class Certificate:
    """Upper bound on the number of selected devices, or on their value, valid for every beam."""

    at_most: float  # a whole number unless there are priorities
    bound: float  # before rounding down; with priorities, before the allowance for rounding errors
    multipliers: Real  # y_k of the proof, or u_k with priorities; zero for excluded devices


@dataclass(frozen=True, eq=False)
class SetCheck:
    """Result of checking whether one beam serves a set of devices."""

    verdict: str  # "feasible", "infeasible" or "undecided"
    beam: Complex | None  # serves all of them; None unless feasible
    multipliers: Real | None  # sum of y exceeds lambda_max; None unless infeasible


def upper_bound(effective: Complex, priorities: Real | None = None) -> Certificate:
    """Upper bound for effective channels √Γ g_k/φ_k.

    Parameters
    ----------
    effective
        Complex, shape (M, K).
    priorities
        v_k, shape (K,); if given, the sum of v_k over the selected devices is bounded, not their number.

    Returns
    -------
    Certificate
        The bound and its multipliers.
    """
    able = np.linalg.norm(effective, axis=0) ** 2 >= 1.0 - ROUNDING
    counted = priorities is None or bool((priorities == 1.0).all())
    values = np.ones(able.size) if priorities is None else priorities
    able &= values > 0.0
    multipliers = np.zeros(effective.shape[1])
    if not able.any():
        return Certificate(0, 0.0, multipliers)
    chosen, values = np.ascontiguousarray(effective[:, able]), values[able]
    memory.require(program_bytes(*chosen.shape), "semidefinite programs", "the number of devices")
    top = 1.0 if counted else float(values.max())  # the program has the largest priority as its unit
    found = LiftedProgram(chosen).solve(np.zeros((chosen.shape[0],) * 2, np.complex128), values / top)
    # The bound holds for these only, whatever the solver returns.
    y = np.clip(found.multipliers * top, 0.0, values)
    multipliers[able] = y
    trivial = float(values.sum())  # the bound of y = 0
    bound = min(trivial, trivial - float(y.sum()) + _largest(chosen, y))
    allowed = bound * (1.0 + ROUNDING)
    return Certificate(floor(allowed) if counted else allowed, bound, multipliers)


def check_set(effective: Complex, devices: Sequence[int], seed: int = 0, starts: int = 64) -> SetCheck:
    """Find a beam that serves all of `devices`, or prove that there is none.

    Parameters
    ----------
    effective
        Effective channels √Γ g_k/φ_k, shape (M, K).
    devices
        Indices of the devices.
    seed
        Seed of the search for a beam.
    starts
        Starts of that search.

    Returns
    -------
    SetCheck
        A beam, or the multipliers of a proof, or neither.
    """
    chosen = np.ascontiguousarray(effective[:, list(devices)])
    picked = select(chosen, np.ones(chosen.shape[1]), 1.0, Hrmc(starts=starts), seed=seed)
    if picked.selected.all():
        return SetCheck("feasible", picked.beam, None)
    size = chosen.shape[0]
    memory.require(program_bytes(*chosen.shape), "semidefinite programs", "the number of devices")
    found = LiftedProgram(chosen).solve(np.zeros((size, size), np.complex128), np.ones(chosen.shape[1]))
    if float(found.multipliers.sum()) > _largest(chosen, found.multipliers) * (1.0 + ROUNDING):
        return SetCheck("infeasible", None, found.multipliers)
    return SetCheck("undecided", None, None)


def certify(channels: Any, weights: Any = None, *, budget: float, priorities: Any = None) -> Certificate:
    """Compute an upper bound on the number of devices that any beam can select, or on their value.

    Parameters
    ----------
    channels
        Complex, shape (M, K).
    weights
        phi_k, shape (K,); 1/K each if not given.
    budget
        Gamma.
    priorities
        v_k >= 0, shape (K,). If given, the sum of v_k over the selected devices is bounded.

    Returns
    -------
    Certificate
        The bound and its proof.
    """
    matrix = checked_channels(channels)
    phi = checked_weights(weights, matrix.shape[1])
    values = None if priorities is None else checked_priorities(priorities, matrix.shape[1])
    return upper_bound(aircomp.effective_channels(matrix, phi, checks.positive("budget", budget)), values)


def parse_set(text: str, count: int) -> list[int]:
    """Device numbers from "0,3,7"."""
    try:
        devices = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"set = {shown(text)}: must be device numbers with commas, such as 0,3,7"
        ) from None
    bad = [k for k in devices if not 0 <= k < count]
    if bad or len(set(devices)) != len(devices):
        raise InvalidInput(f"set = {shown(text)}: must be different numbers from 0 to {count - 1}")
    return devices


def _largest(columns: Complex, multipliers: Real) -> float:
    """lambda_max(sum_k y_k h_k h_k^H)."""
    scaled = columns * np.sqrt(multipliers)
    return float(np.linalg.eigvalsh(scaled @ scaled.conj().T)[-1])
