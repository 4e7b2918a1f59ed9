"""Over-the-air aggregation at signal level.

In a round each selected device has an update vector, made of tensors. Device k normalises tensor t of its
update by a mean mu_{k,t} and a deviation nu_{k,t}, and these numbers are sent over an error-free control
link. With `statistics = "device"` they are its own, so that its symbols have unit power whatever the update:
2 |S| T scalars per round for T tensors. Two real entries form one complex symbol, s = (a + j b)/√2. The
receiver wants the sum of phi_k nu_{k,t} s_k, so phi_k nu_{k,t} takes the place of the weight phi_k in
eqs. (13)-(21):

    nu_t^2      = sum_k phi_k^2 nu_{k,t}^2/sum_k phi_k^2      unit of tensor t
    a_{k,t}     = phi_k nu_{k,t}/nu_t                         aligned weight
    eta_t       = min_k P0 |m^H g_k|^2/a_{k,t}^2              eq. (21)
    b_{k,t}     = √eta_t a_{k,t}/(m^H g_k)                    eq. (19), so that E|b s|^2 <= P0
    r           = sum_k g_k b_{k,t} s_k + n                   eq. (13), n at all M receive chains
    s_hat       = m^H r/√eta_t                                eq. (14)

and the mean update is (nu_t s_hat + sum_k phi_k mu_{k,t})/sum_k phi_k; the link of a turn has another divisor
(`airpass.designs.book`). In units of nu_t the wanted sum has
the power sum_k a_{k,t}^2 = sum_k phi_k^2, as with equal deviations. The error is measured on the signal and
reported next to the prediction of eq. (17), both in these units, with the average power of every device.

With `statistics = "pooled"` all devices share one mean and one deviation per tensor. Then a_{k,t} = phi_k and
|b_k|^2 <= P0, but a device whose update is larger than the others' exceeds its power.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.types import Complex, Real, Single

BLOCK = 16_384  # symbols simulated at a time, to bound memory with many receive chains
NORMALISATIONS = ("tensor", "vector")
STATISTICS = ("device", "pooled")


@dataclass(frozen=True)
class LinkOptions:
    """Options of aggregation. The paper has no errors, and does not specify the normalisation."""

    normalise: str = "tensor"  # "tensor": each tensor separately; "vector": the whole update at once
    statistics: str = "device"  # mean and deviation of each device, or "pooled": of all devices of a round
    channel_error: float = 0.0  # channel estimation error variance, relative to ||g_k||^2/M
    phase_error_deg: float = 0.0  # standard deviation of the phase error, per device

    def __post_init__(self) -> None:
        checks.one_of("normalise", self.normalise, NORMALISATIONS)
        checks.one_of("statistics", self.statistics, STATISTICS)
        checks.at_least("channel_error", self.channel_error, 0.0)
        checks.at_least("phase_error_deg", self.phase_error_deg, 0.0)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The received mean update, with predicted and measured MSE per symbol."""

    update: Single
    predicted_mse: float
    measured_mse: float
    power: Real  # average transmit power over P0, per selected device


@dataclass(frozen=True, eq=False)
class Symbols:
    """Normalised updates. Tensors are padded to whole symbols."""

    values: Complex  # shape (|S|, symbols)
    tensor: NDArray[np.intp]  # tensor of each symbol
    means: Real  # mu_{k,t}, shape (|S|, T)
    deviations: Real  # nu_{k,t}
    lengths: tuple[int, ...]  # entries of each tensor


def weighted_mean(updates: Single, weights: Real) -> Single:
    """sum_k phi_k x_k/sum_k phi_k: ideal FedAvg, eq. (15) divided by the sum of weights."""
    mean = np.tensordot(weights / weights.sum(), updates.astype(np.float64), axes=1)
    return np.asarray(mean, dtype=np.float32)


def over_the_air(
    updates: Single,
    sizes: list[int],
    link: Link,
    options: LinkOptions,
    noise: np.random.Generator,
    errors: np.random.Generator,
) -> Aggregate:
    """Send updates through the link.

    Parameters
    ----------
    updates
        Updates of the selected devices, shape (|S|, d).
    sizes
        Lengths of the tensors in an update.
    link
        Channels, beam, weights and powers; its noise power must be known.
    options
        Normalisation, and errors of the devices.
    noise
        Source of the receiver noise.
    errors
        Source of channel estimation and phase errors.

    Returns
    -------
    Aggregate
        The received mean update.
    """
    assert link.noise_power is not None
    weights = link.weights[link.selected]
    sent = normalise(updates, sizes if options.normalise == "tensor" else [sum(sizes)], options.statistics)
    unit = np.sqrt(weights**2 @ sent.deviations**2 / np.sum(weights**2))
    aligned = weights[:, None] * np.where(unit > 0.0, sent.deviations / np.where(unit > 0.0, unit, 1.0), 1.0)
    gains = np.conj(link.beam) @ link.channels[:, link.selected]  # m^H g_k
    with np.errstate(divide="ignore"):
        eta = link.power * np.min((np.abs(gains)[:, None] / aligned) ** 2, axis=0)  # eq. (21), per tensor
    transmit = transmit_with_errors(link, aligned, eta, options, errors)

    channels = np.ascontiguousarray(link.channels[:, link.selected])
    received = np.empty(sent.tensor.size, dtype=np.complex128)
    scale = np.sqrt(link.noise_power / 2.0)
    power = np.zeros(weights.size)
    for start in range(0, received.size, BLOCK):
        tensor = sent.tensor[start : start + BLOCK]
        signals = transmit[:, tensor] * sent.values[:, start : start + BLOCK]  # b_k s_k
        power += np.sum(np.abs(signals) ** 2, axis=1)
        arriving = channels @ signals
        drawn = noise.standard_normal((2, *arriving.shape))
        arriving += scale * (drawn[0] + 1j * drawn[1])  # eq. (13)
        received[start : start + BLOCK] = np.conj(link.beam) @ arriving / np.sqrt(eta[tensor])  # eq. (14)
    wanted = np.sum(aligned[:, sent.tensor] * sent.values, axis=0)  # eq. (15)
    measured = float(np.mean(np.abs(received - wanted) ** 2))  # eq. (16)
    misaligned = np.abs(gains[:, None] * transmit / np.sqrt(eta) - aligned) ** 2
    by_tensor = misaligned.sum(axis=0) + link.noise_power * np.vdot(link.beam, link.beam).real / eta
    return Aggregate(
        update=denormalise(received, sent, weights, unit, link.divisor),
        predicted_mse=float(np.mean(by_tensor[sent.tensor])),  # eq. (17)
        measured_mse=measured,
        power=power / (received.size * link.power),
    )


def transmit_with_errors(
    link: Link, aligned: Real, eta: Real, options: LinkOptions, errors: np.random.Generator
) -> Complex:
    """b_{k,t} as the devices set it, from their channel estimates and with their phase errors.

    Parameters
    ----------
    link
        Channels, beam and power.
    aligned
        Aligned weights of the selected devices, shape (|S|, T).
    eta
        Denoising factors, shape (T,).
    options
        Errors of the devices.
    errors
        Source of the errors.

    Returns
    -------
    Complex
        Transmit scaling, shape (|S|, T).
    """
    estimated = aircomp.with_estimation_errors(link.channels, options.channel_error, errors)
    turned = errors.standard_normal(link.weights.size)[link.selected]
    gains = np.conj(link.beam) @ estimated[:, link.selected]
    transmit = np.sqrt(eta) * aligned / gains[:, None]  # eq. (19)
    # A device that underestimates its channel would exceed its power.
    transmit /= np.maximum(np.abs(transmit) / np.sqrt(link.power), 1.0)
    result: Complex = transmit * np.exp(1j * np.deg2rad(options.phase_error_deg) * turned)[:, None]
    return result


def normalise(updates: Single, lengths: list[int], statistics: str = "device") -> Symbols:
    """Updates as symbols of unit power.

    Parameters
    ----------
    updates
        Shape (|S|, d).
    lengths
        Entries of each tensor.
    statistics
        "device": mean and deviation per device and tensor; "pooled": per tensor, over all devices.

    Returns
    -------
    Symbols
        Symbols, and what is needed to undo the normalisation.
    """
    count = len(updates)
    means, deviations = np.empty((count, len(lengths))), np.empty((count, len(lengths)))
    parts, start = [], 0
    for t, length in enumerate(lengths):
        part = updates[:, start : start + length].astype(np.float64)
        axis = 1 if statistics == "device" else None
        means[:, t] = part.mean(axis=axis)
        deviations[:, t] = part.std(axis=axis)
        scale = np.where(deviations[:, t] > 0.0, deviations[:, t], 1.0)
        entries = np.zeros((count, length + length % 2))  # an odd length is padded with a zero
        entries[:, :length] = (part - means[:, t, None]) / scale[:, None]
        parts.append((entries[:, 0::2] + 1j * entries[:, 1::2]) / np.sqrt(2.0))
        start += length
    tensor = np.repeat(np.arange(len(lengths)), [part.shape[1] for part in parts])
    return Symbols(np.concatenate(parts, axis=1), tensor, means, deviations, tuple(lengths))


def denormalise(received: Complex, sent: Symbols, weights: Real, unit: Real, divisor: float) -> Single:
    """The mean update from the received symbols; `unit` is nu_t, `divisor` the sum of weights."""
    entries = np.empty(2 * received.size)
    entries[0::2], entries[1::2] = received.real, received.imag
    entries *= np.sqrt(2.0) * np.repeat(unit[sent.tensor], 2)
    entries += np.repeat((weights @ sent.means)[sent.tensor], 2)
    padded = np.array([length + length % 2 for length in sent.lengths])
    place = np.arange(entries.size) - np.repeat(np.cumsum(padded) - padded, padded)
    kept = place < np.repeat(sent.lengths, padded)
    return np.asarray(entries[kept] / divisor, dtype=np.float32)
