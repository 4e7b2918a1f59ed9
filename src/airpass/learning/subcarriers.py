"""Over-the-air aggregation on subcarriers.

Symbols of an update ride on the subcarriers by turns: symbol i on subcarrier i mod S. Normalisation and
aligned weights a_{k,t} are those of `airpass.learning.aggregation`. With u_{k,s} = m_s^H g_{k,s},

    eta_{s,t} = (P0/S) min_k |u_{k,s}|^2/a_{k,t}^2              rule "worst"
    eta_{s,t} = min_k P0/sum_s (a_{k,t}/|u_{k,s}|)^2            rule "mean", the same for all subcarriers
    b_{k,s,t} = sqrt(eta_{s,t}) a_{k,t}/u_{k,s},

which are those of `airpass.wideband` with a_{k,t} in place of phi_k, and every subcarrier has the noise
sigma^2/S. A device that underestimates its channels reduces its power to its limit.
"""

import numpy as np

from airpass import aircomp
from airpass.core.types import Complex, Real, Single
from airpass.learning.aggregation import BLOCK, Aggregate, LinkOptions, denormalise, normalise
from airpass.wideband import WORST, WidebandLink


def over_subcarriers(
    updates: Single,
    sizes: list[int],
    link: WidebandLink,
    options: LinkOptions,
    noise: np.random.Generator,
    errors: np.random.Generator,
) -> Aggregate:
    """Send updates through a link with subcarriers.

    Parameters
    ----------
    updates, sizes, link, options, noise, errors
        As for `airpass.learning.aggregation.over_the_air`.

    Returns
    -------
    Aggregate
        The received mean update. Powers are those of all subcarriers together.
    """
    assert link.noise_power is not None
    weights = link.weights[link.selected]
    sent = normalise(updates, sizes if options.normalise == "tensor" else [sum(sizes)], options.statistics)
    unit = np.sqrt(weights**2 @ sent.deviations**2 / np.sum(weights**2))
    aligned = weights[:, None] * np.where(unit > 0.0, sent.deviations / np.where(unit > 0.0, unit, 1.0), 1.0)
    channels = np.ascontiguousarray(link.channels[:, :, link.selected])
    gains = np.einsum("sm,smk->sk", np.conj(link.beam), channels)
    eta = _denoising_factors(link, gains, aligned)
    transmit = _transmit(link, aligned, eta, options, errors)

    count = len(channels)
    noise_power = link.noise_power / count
    scale = np.sqrt(noise_power / 2.0)
    received = np.empty(sent.tensor.size, dtype=np.complex128)
    power = np.zeros(weights.size)
    for s in range(count):
        places = np.arange(s, received.size, count)
        for start in range(0, places.size, BLOCK):
            chosen = places[start : start + BLOCK]
            tensor = sent.tensor[chosen]
            signals = transmit[s][:, tensor] * sent.values[:, chosen]
            power += np.sum(np.abs(signals) ** 2, axis=1)
            arriving = channels[s] @ signals
            drawn = noise.standard_normal((2, *arriving.shape))
            arriving += scale * (drawn[0] + 1j * drawn[1])
            received[chosen] = np.conj(link.beam[s]) @ arriving / np.sqrt(eta[s, tensor])
    wanted = np.sum(aligned[:, sent.tensor] * sent.values, axis=0)
    misaligned = np.abs(gains[:, :, None] * transmit / np.sqrt(eta)[:, None] - aligned) ** 2
    predicted = misaligned.sum(axis=1) + noise_power / eta  # eq. (17), shape (S, T)
    return Aggregate(
        update=denormalise(received, sent, weights, unit, link.divisor),
        predicted_mse=float(np.mean(predicted[np.arange(received.size) % count, sent.tensor])),
        measured_mse=float(np.mean(np.abs(received - wanted) ** 2)),
        power=power * count / (received.size * link.power),
    )


def _denoising_factors(link: WidebandLink, gains: Complex, aligned: Real) -> Real:
    """eta_{s,t}, shape (S, T); `gains` are u_{k,s}, shape (S, senders)."""
    count = len(gains)
    with np.errstate(divide="ignore"):
        if link.rule == WORST:
            factors: Real = link.power / count * np.min((np.abs(gains)[:, :, None] / aligned) ** 2, axis=1)
            return factors
        needed = np.sum(1.0 / np.abs(gains) ** 2, axis=0)[:, None] * aligned**2
        return np.tile(link.power / needed.max(axis=0), (count, 1))


def _transmit(
    link: WidebandLink, aligned: Real, eta: Real, options: LinkOptions, errors: np.random.Generator
) -> Complex:
    """b_{k,s,t} from the devices' channel estimates and with their phase errors, shape (S, senders, T)."""
    estimated = np.stack(
        [aircomp.with_estimation_errors(one, options.channel_error, errors) for one in link.channels]
    )
    turned = errors.standard_normal(link.weights.size)[link.selected]
    gains = np.einsum("sm,smk->sk", np.conj(link.beam), estimated[:, :, link.selected])
    transmit = np.sqrt(eta)[:, None] * aligned / gains[:, :, None]
    if link.rule == WORST:
        excess = np.abs(transmit) / np.sqrt(link.power / len(gains))
    else:
        excess = np.sqrt(np.sum(np.abs(transmit) ** 2, axis=0) / link.power)
    transmit = transmit / np.maximum(excess, 1.0)
    result: Complex = transmit * np.exp(1j * np.deg2rad(options.phase_error_deg) * turned)[:, None]
    return result
