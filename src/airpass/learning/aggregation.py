"""Over-the-air aggregation at signal level.

In a round each selected device has an update vector. Each tensor of it is normalised by one mean and one
deviation that all devices share. They are agreed over an error-free control link, as the receiver cannot
undo K different ones. Two real entries form one complex symbol, s = (a + j b)/√2, so that E|s|^2 = 1 and
each recovered entry has the error of eq. (17). Then, for every symbol,

    r = sum_k g_k b_k s_k + n                 eq. (13), n at all M receive chains
    s_hat = m^H r/√η                          eq. (14)

and the receiver undoes the normalisation and divides by the sum of the weights. The error is measured on
the signal and reported next to the prediction of eq. (17).
"""

from dataclasses import dataclass

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.types import Complex, Real, Single

BLOCK = 16_384  # symbols simulated at a time, to bound memory with many receive chains
NORMALISATIONS = ("tensor", "vector")


@dataclass(frozen=True)
class LinkOptions:
    """Options of aggregation. The paper has no errors, and does not specify the normalisation."""

    normalise: str = "tensor"  # "tensor": each tensor separately; "vector": the whole update at once
    channel_error: float = 0.0  # channel estimation error variance, relative to ||g_k||^2/M
    phase_error_deg: float = 0.0  # standard deviation of the phase error, per device

    def __post_init__(self) -> None:
        checks.one_of("normalise", self.normalise, NORMALISATIONS)
        checks.at_least("channel_error", self.channel_error, 0.0)
        checks.at_least("phase_error_deg", self.phase_error_deg, 0.0)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The received mean update, with predicted and measured MSE per symbol."""

    update: Single
    predicted_mse: float
    measured_mse: float


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
    chosen = link.selected
    weights = link.weights[chosen]
    channels = np.ascontiguousarray(link.channels[:, chosen])
    eta = link.denoising_factor
    transmit = transmit_with_errors(link, options, errors)

    blocks = sizes if options.normalise == "tensor" else [sum(sizes)]
    symbols, means, deviations = normalise(updates, blocks)
    received = np.empty(symbols.shape[1], dtype=np.complex128)
    gain = channels * transmit[chosen]  # g_k b_k
    scale = np.sqrt(link.noise_power / 2.0)
    for start in range(0, received.size, BLOCK):
        part = symbols[:, start : start + BLOCK]
        signal = gain @ part
        drawn = noise.standard_normal((2, *signal.shape))
        signal += scale * (drawn[0] + 1j * drawn[1])  # eq. (13)
        received[start : start + BLOCK] = np.conj(link.beam) @ signal / np.sqrt(eta)  # eq. (14)
    wanted = weights @ symbols  # eq. (15)
    measured = float(np.mean(np.abs(received - wanted) ** 2))  # eq. (16)
    predicted = aircomp.mse(link.beam, link.channels, link.weights, chosen, transmit, eta, link.noise_power)
    update = denormalise(received, weights, means, deviations, blocks, updates.shape[1])
    return Aggregate(update, predicted, measured)


def transmit_with_errors(link: Link, options: LinkOptions, errors: np.random.Generator) -> Complex:
    """b_k as the devices set it, from their channel estimates and with their phase errors."""
    estimated = aircomp.with_estimation_errors(link.channels, options.channel_error, errors)
    turned = errors.standard_normal(link.weights.size)
    transmit = aircomp.transmit_scaling(
        link.beam, estimated, link.weights, link.selected, link.denoising_factor
    )
    # A device that underestimates its channel would exceed its power.
    excess = np.abs(transmit) / np.sqrt(link.power)
    transmit = transmit / np.maximum(excess, 1.0)
    result: Complex = transmit * np.exp(1j * np.deg2rad(options.phase_error_deg) * turned)
    return result


def normalise(updates: Single, blocks: list[int]) -> tuple[Complex, Real, Real]:
    """Symbols, shape (|S|, ceil(d/2)), and mean and deviation per block."""
    count, size = updates.shape
    entries = np.zeros((count, size + size % 2))  # an odd length is padded with a zero
    means, deviations = np.empty(len(blocks)), np.empty(len(blocks))
    start = 0
    for i, length in enumerate(blocks):
        part = updates[:, start : start + length].astype(np.float64)
        means[i] = part.mean()
        deviations[i] = part.std()
        if deviations[i] > 0.0:
            entries[:, start : start + length] = (part - means[i]) / deviations[i]
        start += length
    symbols: Complex = (entries[:, 0::2] + 1j * entries[:, 1::2]) / np.sqrt(2.0)
    return symbols, means, deviations


def denormalise(
    received: Complex, weights: Real, means: Real, deviations: Real, blocks: list[int], size: int
) -> Single:
    """The mean update from the received symbols."""
    entries = np.empty(2 * received.size)
    entries[0::2], entries[1::2] = received.real, received.imag
    entries = np.sqrt(2.0) * entries[:size] / weights.sum()
    update = entries * np.repeat(deviations, blocks) + np.repeat(means, blocks)
    return np.asarray(update, dtype=np.float32)
