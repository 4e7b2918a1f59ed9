"""Over-the-air computation for given channels, eqs. (13)-(32).

Devices k in S send b_k s_k at once; the receiver forms s_hat = m^H r/sqrt(eta) as an
estimate of s = sum_k phi_k s_k. Everything here is a formula; nothing is searched for.

| paper   | here               |
|---------|--------------------|
| m       | `beam`             |
| g_k     | column of `channels`, shape (M, K) |
| phi_k   | `weights`          |
| b_k     | `transmit`         |
| eta     | `denoising_factor` |
| Gamma   | `budget`           |
| z_k     | `scores`           |
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Mask, Real


def budget(power: float, mse_threshold: float, noise_power: float) -> float:
    """Gamma = P0 eps/sigma^2, eq. (24)."""
    return power * mse_threshold / noise_power


def effective_channels(channels: Complex, weights: Real, budget: float) -> Complex:
    """Columns sqrt(Gamma) g_k/phi_k, whose outer products are the Q_k of eq. (28)."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled: Complex = np.sqrt(budget) / weights * channels
        size = np.abs(scaled).max(axis=0)
    if not ((size > 1e-100) & (size < 1e100)).all():
        raise InvalidInput(
            "channels, weights and budget give scores beyond the range of floating-point numbers: "
            "scale them towards one"
        )
    return scaled


def scores(beam: Complex, effective: Complex) -> Real:
    """z_k = m^H Q_k m = Gamma |m^H g_k|^2/phi_k^2, eq. (31), for a beam of unit norm."""
    projected = np.conj(beam) @ effective
    result: Real = projected.real**2 + projected.imag**2
    return result


def violations(scores: Real) -> Real:
    """v_k = max(1 - z_k, 0), eq. (32)."""
    return np.maximum(1.0 - scores, 0.0)


def selected(scores: Real) -> Mask:
    """Devices that meet eq. (29): z_k >= 1."""
    return scores >= 1.0


def denoising_factor(beam: Complex, channels: Complex, weights: Real, chosen: Mask, power: float) -> float:
    """The largest eta that all powers allow: min over S of P0 |m^H g_k|^2/phi_k^2, eq. (21)."""
    if not chosen.any():
        return nan
    received = np.abs(np.conj(beam) @ channels[:, chosen])
    return float(power * np.min((received / weights[chosen]) ** 2))


def transmit_scaling(
    beam: Complex, channels: Complex, weights: Real, chosen: Mask, denoising_factor: float
) -> Complex:
    """b_k that aligns device k, eq. (19); zero for devices that stay silent."""
    result = np.zeros(channels.shape[1], dtype=np.complex128)
    if chosen.any():
        received = np.conj(beam) @ channels[:, chosen]
        # conj(u)/|u|^2 is 1/u; written so, a tiny u does not underflow when squared.
        result[chosen] = np.sqrt(denoising_factor) * weights[chosen] / received
    return result


def mse(
    beam: Complex,
    channels: Complex,
    weights: Real,
    chosen: Mask,
    transmit: Complex,
    denoising_factor: float,
    noise_power: float,
) -> float:
    """MSE of s_hat for any scaling and any beam, eq. (17): misalignment plus noise."""
    gains = (np.conj(beam) @ channels[:, chosen]) * transmit[chosen] / np.sqrt(denoising_factor)
    misalignment = np.sum(np.abs(gains - weights[chosen]) ** 2)
    noise = noise_power * np.vdot(beam, beam).real / denoising_factor
    return float(misalignment + noise)


def optimal_mse(
    beam: Complex, channels: Complex, weights: Real, chosen: Mask, power: float, noise_power: float
) -> float:
    """MSE with the best b_k and eta, eq. (22); not a number when nobody sends."""
    if not chosen.any():
        return nan
    received = np.abs(np.conj(beam) @ channels[:, chosen])
    norm_square = np.vdot(beam, beam).real
    return float(noise_power / power * norm_square * np.max((weights[chosen] / received) ** 2))


@dataclass(frozen=True, eq=False)
class Aggregation:
    """What devices and receiver set for a beam and a set of senders, and the error it gives."""

    denoising_factor: float  # eta; not a number when nobody sends
    transmit: Complex  # b_k, zero for devices that stay silent
    mse: float | None  # eq. (22); None when the noise power is not known


def aggregation(
    beam: Complex, channels: Complex, weights: Real, chosen: Mask, power: float, noise_power: float | None
) -> Aggregation:
    """The best transmit scaling and denoising factor for given beam and senders."""
    eta = denoising_factor(beam, channels, weights, chosen, power)
    return Aggregation(
        denoising_factor=eta,
        transmit=transmit_scaling(beam, channels, weights, chosen, eta),
        mse=None if noise_power is None else optimal_mse(beam, channels, weights, chosen, power, noise_power),
    )
