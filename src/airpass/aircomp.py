"""Over-the-air computation for given channels, eqs. (17)-(32).

Devices k in S send b_k s_k simultaneously; the receiver forms s_hat = m^H r/sqrt(eta) as an
estimate of s = sum_k phi_k s_k. This module has the formulas that follow from this model. The
signals themselves, eqs. (13)-(16), are simulated in `airpass.learning.aggregation`. `Link` combines
the formulas: it has the scores, the senders and their scaling for given channels, weights, beam and
powers.

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
from functools import cached_property
from math import inf, log10, nan
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.results import Result
from airpass.core.types import Complex, Mask, Real
from airpass.optim.ranking import rank


def budget(power: float, mse_threshold: float, noise_power: float) -> float:
    """Gamma = P0 eps/sigma^2, eq. (24).

    Parameters
    ----------
    power
        Largest transmit power P0.
    mse_threshold
        eps.
    noise_power
        sigma^2.

    Returns
    -------
    float
        Gamma.
    """
    return power * mse_threshold / noise_power


def effective_channels(channels: Complex, weights: Real, budget: float) -> Complex:
    """Columns sqrt(Gamma) g_k/phi_k, whose outer products are the Q_k of eq. (28).

    Parameters
    ----------
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    budget
        Gamma.

    Returns
    -------
    Complex
        Effective channels, shape (M, K).
    """
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
    """z_k = m^H Q_k m = Gamma |m^H g_k|^2/phi_k^2, eq. (31), for a beam of unit norm.

    Parameters
    ----------
    beam
        m, shape (M,).
    effective
        Effective channels, shape (M, K).

    Returns
    -------
    Real
        z_k, shape (K,).
    """
    projected = np.conj(beam) @ effective
    result: Real = projected.real**2 + projected.imag**2
    return result


def checked_beam(beam: Any, chains: int, label: str, unit: bool = True) -> Complex:
    """Check a beam that a method returned.

    Parameters
    ----------
    beam
        What should be a beam.
    chains
        Number of receive chains M.
    label
        What returned it, for error messages.
    unit
        Whether its norm must be one. If not, it is scaled to unit norm.

    Returns
    -------
    Complex
        The beam, shape (M,). `InvalidInput` is raised if it is none.
    """
    try:
        values = np.asarray(beam)
    except ValueError:
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "iufc":
        raise InvalidInput(
            f"{label} returned {type(beam).__name__}: must be a beam, an array of {chains} complex numbers"
        )
    if values.shape != (chains,):
        raise InvalidInput(
            f"{label} returned a beam of shape {values.shape}: must be ({chains},), one per receive chain"
        )
    if not np.isfinite(values).all():
        raise InvalidInput(f"{label} returned a beam with a value that is not finite: {values}")
    norm = float(np.linalg.norm(values))
    if abs(norm - 1.0) <= 1e-9:
        return np.ascontiguousarray(values, dtype=np.complex128)
    if unit:
        raise InvalidInput(f"{label} returned a beam of norm {norm:.6g}: must be 1")
    if not values.any():
        raise InvalidInput(f"{label} returned a beam of zeros: at least one entry must differ from zero")
    scaled = values / np.abs(values).max()  # the square of a small entry may underflow
    return np.ascontiguousarray(scaled / np.linalg.norm(scaled), dtype=np.complex128)


def violations(scores: Real) -> Real:
    """v_k = max(1 - z_k, 0), eq. (32)."""
    return np.maximum(1.0 - scores, 0.0)


def selected(scores: Real) -> Mask:
    """Devices that meet eq. (29): z_k >= 1."""
    return scores >= 1.0


def denoising_factor(beam: Complex, channels: Complex, weights: Real, chosen: Mask, power: float) -> float:
    """The largest eta within every device's power limit: min over S of P0 |m^H g_k|^2/phi_k^2, eq. (21).

    Parameters
    ----------
    beam
        m, shape (M,).
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    chosen
        Mask of the devices that send, shape (K,).
    power
        P0.

    Returns
    -------
    float
        eta; NaN if no device sends.
    """
    if not chosen.any():
        return nan
    received = np.abs(np.conj(beam) @ channels[:, chosen])
    return float(power * np.min((received / weights[chosen]) ** 2))


def transmit_scaling(
    beam: Complex, channels: Complex, weights: Real, chosen: Mask, denoising_factor: float
) -> Complex:
    """b_k that aligns device k, eq. (19); zero for devices that do not send.

    Parameters
    ----------
    beam
        m, shape (M,).
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    chosen
        Mask of the devices that send, shape (K,).
    denoising_factor
        eta.

    Returns
    -------
    Complex
        b_k, shape (K,).
    """
    result = np.zeros(channels.shape[1], dtype=np.complex128)
    if chosen.any():
        received = np.conj(beam) @ channels[:, chosen]
        # 1/u is conj(u)/|u|^2. This form avoids underflow of |u|^2.
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
    """MSE of s_hat for any scaling and any beam, eq. (17): misalignment plus noise.

    Parameters
    ----------
    beam
        m, shape (M,).
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    chosen
        Mask of the devices that send, shape (K,).
    transmit
        b_k, shape (K,).
    denoising_factor
        eta.
    noise_power
        sigma^2.

    Returns
    -------
    float
        The error.
    """
    gains = (np.conj(beam) @ channels[:, chosen]) * transmit[chosen] / np.sqrt(denoising_factor)
    misalignment = np.sum(np.abs(gains - weights[chosen]) ** 2)
    noise = noise_power * np.vdot(beam, beam).real / denoising_factor
    return float(misalignment + noise)


def optimal_mse(
    beam: Complex, channels: Complex, weights: Real, chosen: Mask, power: float, noise_power: float
) -> float:
    """MSE with the best b_k and eta, eq. (22); NaN if no device sends.

    Parameters
    ----------
    beam
        m, shape (M,).
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    chosen
        Mask of the devices that send, shape (K,).
    power
        P0.
    noise_power
        sigma^2.

    Returns
    -------
    float
        The error.
    """
    if not chosen.any():
        return nan
    received = np.abs(np.conj(beam) @ channels[:, chosen])
    norm_square = np.vdot(beam, beam).real
    return float(noise_power / power * norm_square * np.max((weights[chosen] / received) ** 2))


def with_estimation_errors(channels: Complex, variance: float, rng: np.random.Generator) -> Complex:
    """Estimated channels: each entry has a circular complex normal error.

    Parameters
    ----------
    channels
        True channels, shape (M, K).
    variance
        Estimation error variance of an entry of g_k, relative to ||g_k||^2/M.
    rng
        Source of the errors.

    Returns
    -------
    Complex
        Estimated channels, shape (M, K).
    """
    drawn = rng.standard_normal((2, *channels.shape))
    scale = np.linalg.norm(channels, axis=0) / np.sqrt(len(channels))
    estimate: Complex = channels + np.sqrt(variance / 2.0) * scale * (drawn[0] + 1j * drawn[1])
    return estimate


def sdr_db(signal: float, mse: float) -> float:
    """Signal-to-distortion ratio of an aggregate in dB.

    Parameters
    ----------
    signal
        Power of the wanted sum: sum phi_k^2 over the senders, for uncorrelated symbols of unit power.
    mse
        Error of the sum, eq. (17).

    Returns
    -------
    float
        10 log10(signal/MSE); infinity for zero error, NaN if no device sends.
    """
    if mse == 0.0:
        return inf
    return 10.0 * log10(signal / mse) if signal > 0.0 and mse > 0.0 else nan


def named_score(count: int, score: float, form: str = ".3g") -> str:
    """`Link.weakest_score` in words: weakest of `count` selected devices, or strongest of all if none is."""
    return f"{'weakest' if count else 'strongest'} score {score:{form}}"


@dataclass(frozen=True, eq=False)
class Link(Result):
    """Channels, weights, a beam and powers; scores, senders and scaling follow from them.

    Parameters
    ----------
    channels
        G, complex, shape (M, K).
    weights
        phi_k, shape (K,).
    beam
        m, unit norm, shape (M,).
    budget
        Gamma = P0 eps/sigma^2.
    power
        P0.
    mse_threshold
        eps; None if only the budget is known. Then the noise power is not known either.
    """

    channels: Complex
    weights: Real
    beam: Complex
    budget: float
    power: float = 1.0
    mse_threshold: float | None = None

    @property
    def effective(self) -> Complex:
        """Columns sqrt(Gamma) g_k/phi_k, eq. (28)."""
        return effective_channels(self.channels, self.weights, self.budget)

    @cached_property
    def scores(self) -> Real:
        """z_k = Gamma |m^H g_k|^2/phi_k^2, eq. (31)."""
        return scores(self.beam, self.effective)

    @cached_property
    def selected(self) -> Mask:
        """z_k >= 1, eq. (47)."""
        return selected(self.scores)

    @property
    def selected_count(self) -> int:
        """Number of selected devices."""
        return int(self.selected.sum())

    @property
    def divisor(self) -> float:
        """Sum of the selected devices' weights, over which their weighted updates are averaged."""
        return float(self.weights[self.selected].sum())

    @property
    def weakest_score(self) -> float:
        """Smallest score among the selected devices; the largest of all if none is selected."""
        return rank(self.scores)[1]

    @property
    def noise_power(self) -> float | None:
        """sigma^2 = P0 eps/Gamma; None if the threshold is not known."""
        return None if self.mse_threshold is None else self.power * self.mse_threshold / self.budget

    @cached_property
    def denoising_factor(self) -> float:
        """eta, eq. (21); NaN if no device is selected."""
        return denoising_factor(self.beam, self.channels, self.weights, self.selected, self.power)

    @cached_property
    def transmit(self) -> Complex:
        """b_k, eq. (19); zero for devices that are not selected."""
        return transmit_scaling(self.beam, self.channels, self.weights, self.selected, self.denoising_factor)

    @cached_property
    def mse(self) -> float:
        """Eq. (22); NaN if no device is selected or the noise power is not known."""
        noise = self.noise_power
        if noise is None:
            return nan
        return optimal_mse(self.beam, self.channels, self.weights, self.selected, self.power, noise)

    @property
    def sdr_db(self) -> float:
        """Signal-to-distortion ratio of the aggregate in dB, sum_S phi_k^2 over `mse`.

        The wanted sum of uncorrelated symbols of unit power has the power sum_S phi_k^2. NaN if `mse` is.
        """
        return sdr_db(float(np.sum(self.weights[self.selected] ** 2)), self.mse)

    @property
    def median_snr_db(self) -> float:
        """Received SNR of the median device at full power in dB, the median of P0 |m^H g_k|^2/sigma^2.

        Selected or not, all devices count. NaN if the noise power is not known.
        """
        noise = self.noise_power
        if noise is None:
            return nan
        gain = float(np.median(np.abs(np.conj(self.beam) @ self.channels) ** 2))
        return 10.0 * log10(self.power * gain / noise) if gain > 0.0 else -inf

    def among(self, present: Mask) -> "Link":
        """The link of a round in which not all devices are there.

        Parameters
        ----------
        present
            Devices that are there, shape (K,).

        Returns
        -------
        Link
            The same channels, weights and beam. The selected devices that are there send, with their own
            denoising factor, eq. (21). The divisor has their part of the selected devices' weights.
        """
        return PartialLink(
            channels=self.channels,
            weights=self.weights,
            beam=self.beam,
            budget=self.budget,
            power=self.power,
            mse_threshold=self.mse_threshold,
            whole=self,
            present=present,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._outcome()})"

    def _outcome(self) -> str:
        """Summary of the result, for `repr`."""
        count = self.selected_count
        text = f"{count} of {self.weights.size} devices, {named_score(count, self.weakest_score)}"
        return text if np.isnan(self.mse) else f"{text}, MSE {self.mse:.3g} ({self.sdr_db:z.1f} dB SDR)"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PartialLink(Link):
    """A link of which not all selected devices send; see `Link.among`.

    Parameters
    ----------
    whole
        The link with all of them.
    present
        Devices that are there, shape (K,).
    """

    whole: Link
    present: Mask

    @cached_property
    def selected(self) -> Mask:
        """Selected devices that are there."""
        return self.whole.selected & self.present

    @property
    def divisor(self) -> float:
        """That of the whole link, times the senders' part of its weights; zero if no device sends."""
        if not self.selected.any():
            return 0.0
        part = self.weights[self.selected].sum() / self.weights[self.whole.selected].sum()
        return self.whole.divisor * float(part)
