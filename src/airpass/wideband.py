"""Over-the-air computation on S subcarriers (OFDM), with one antenna layout and a beam per subcarrier.

A device sends one entry of its update on each subcarrier. On subcarrier s it sends b_{k,s} times its symbol,
and the receiver forms m_s^H r_s/sqrt(eta_s), as in eqs. (13)-(16) with the channel g_{k,s} of that
subcarrier. Noise and power are those of the whole band: each subcarrier has the noise sigma^2/S, and on
average the power P0/S of a device, so that its SNR is P0/sigma^2. With the alignment of eq. (19),

    b_{k,s} = sqrt(eta_s) phi_k/(m_s^H g_{k,s}),       MSE_s = (sigma^2/S)/eta_s.

With z_{k,s} = Gamma |m_s^H g_{k,s}|^2/phi_k^2, the power of b_{k,s} is eta_s Gamma/z_{k,s}. Two rules say
how a device may divide its power.

`worst`: |b_{k,s}|^2 <= P0/S on every subcarrier, as under a spectral mask. The largest eta_s is
(P0/S) min_k z_{k,s}/Gamma over the senders, and

    MSE_s = eps max_k 1/z_{k,s},

which is at most eps on every subcarrier if and only if every sender has min_s z_{k,s} >= 1.

`mean`: sum_s |b_{k,s}|^2 <= P0, with one eta for all subcarriers, so that all entries have the same error.
The power of device k is eta Gamma sum_s 1/z_{k,s} = eta Gamma S/h_k, where h_k is the harmonic mean of
z_{k,s} over s. The largest eta is (P0/S) min_k h_k/Gamma, and

    MSE_s = eps max_k 1/h_k,

which is at most eps if and only if every sender has h_k >= 1.

The combined score of a device is min_s z_{k,s} or h_k; devices with at least one are selected. Alone, a
device causes the error eps/z_{k,s} on subcarrier s: the rules ask that the worst, or the mean, of these
meets eps. As min_s z <= h <= max_s z, `mean` selects at least as many devices. For S = 1 both are the
paper's model.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, log10, nan

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link, PartialLink
from airpass.core.types import Complex, Mask, Real

WORST, MEAN = RULES = ("worst", "mean")


def effective_channels(channels: Complex, weights: Real, budget: float) -> Complex:
    """sqrt(Gamma) g_{k,s}/phi_k, eq. (28) on every subcarrier.

    Parameters
    ----------
    channels
        g_{k,s}, complex, shape (S, M, K).
    weights
        phi_k, shape (K,).
    budget
        Gamma.

    Returns
    -------
    Complex
        Effective channels, shape (S, M, K).
    """
    return np.stack([aircomp.effective_channels(one, weights, budget) for one in channels])


def subcarrier_scores(beams: Complex, effective: Complex) -> Real:
    """z_{k,s}, eq. (31) on every subcarrier.

    Parameters
    ----------
    beams
        m_s, of unit norm, shape (S, M).
    effective
        Effective channels, shape (S, M, K).

    Returns
    -------
    Real
        Scores, shape (S, K).
    """
    return np.stack([aircomp.scores(beam, one) for beam, one in zip(beams, effective, strict=True)])


def combined_scores(scores: Real, rule: str) -> Real:
    """min_s z_{k,s}, or the harmonic mean of z_{k,s} over s.

    Parameters
    ----------
    scores
        z_{k,s}, shape (S, K).
    rule
        "worst" or "mean".

    Returns
    -------
    Real
        Combined scores, shape (K,); zero for a device that a subcarrier does not receive.
    """
    lowest: Real = scores.min(axis=0)
    if rule == WORST or len(scores) == 1:
        return lowest
    # In units of the lowest score, reciprocals are at most one.
    unit = np.where(lowest > 0.0, lowest, 1.0)
    with np.errstate(divide="ignore"):
        mean: Real = unit / np.mean(unit / scores, axis=0)
    return mean


@dataclass(frozen=True, eq=False, kw_only=True)
class WidebandLink(Link):
    """A link with a channel and a beam per subcarrier.

    `channels` has the shape (S, M, K) and `beam` the shape (S, M). `scores` are combined over
    the subcarriers.

    Parameters
    ----------
    rule
        "worst" or "mean".
    """

    rule: str = WORST

    @property
    def effective(self) -> Complex:
        """sqrt(Gamma) g_{k,s}/phi_k, shape (S, M, K)."""
        return effective_channels(self.channels, self.weights, self.budget)

    @cached_property
    def subcarrier_scores(self) -> Real:
        """z_{k,s}, shape (S, K)."""
        return subcarrier_scores(self.beam, self.effective)

    @cached_property
    def scores(self) -> Real:
        """min_s z_{k,s} or the harmonic mean, shape (K,)."""
        return combined_scores(self.subcarrier_scores, self.rule)

    @cached_property
    def denoising_factor(self) -> Real:  # type: ignore[override]
        """eta_s, shape (S,); NaN if no device is selected."""
        chosen = self.selected
        if not chosen.any():
            return np.full(len(self.channels), nan)
        unit = self.power / len(self.channels) / self.budget
        if self.rule == MEAN:
            return np.full(len(self.channels), unit * self.scores[chosen].min())
        factors: Real = unit * self.subcarrier_scores[:, chosen].min(axis=1)
        return factors

    @cached_property
    def transmit(self) -> Complex:
        """b_{k,s}, shape (S, K); zero for devices that are not selected."""
        return np.stack(
            [
                aircomp.transmit_scaling(beam, channels, self.weights, self.selected, float(factor))
                for beam, channels, factor in zip(
                    self.beam, self.channels, self.denoising_factor, strict=True
                )
            ]
        )

    @cached_property
    def subcarrier_mse(self) -> Real:
        """Error on every subcarrier, shape (S,); NaN if no device is selected or the noise is not known."""
        noise = self.noise_power
        if noise is None:
            return np.full(len(self.channels), nan)
        errors: Real = noise / len(self.channels) / self.denoising_factor
        return errors

    @cached_property
    def mse(self) -> float:
        """The largest error of all subcarriers; under the rule "mean" all are the same."""
        return float(self.subcarrier_mse.max())

    @property
    def median_snr_db(self) -> float:
        """Received SNR of the median device at full power, dB, where the power is divided equally.

        Median over all devices of P0 |m_s^H g_{k,s}|^2/sigma^2, averaged over the subcarriers.
        """
        noise = self.noise_power
        if noise is None:
            return nan
        received = np.abs(np.einsum("sm,smk->sk", np.conj(self.beam), self.channels)) ** 2
        gain = float(np.median(received.mean(axis=0)))
        return 10.0 * log10(self.power * gain / noise) if gain > 0.0 else -inf

    def among(self, present: Mask) -> "WidebandLink":
        """As `Link.among`."""
        return PartialWidebandLink(
            channels=self.channels,
            weights=self.weights,
            beam=self.beam,
            budget=self.budget,
            power=self.power,
            mse_threshold=self.mse_threshold,
            rule=self.rule,
            whole=self,
            present=present,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PartialWidebandLink(PartialLink, WidebandLink):
    """A link with subcarriers of which not all selected devices send; see `Link.among`."""
