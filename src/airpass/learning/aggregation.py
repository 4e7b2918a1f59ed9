"""Aggregation over the air, signal by signal: what devices send, what the receiver makes of it.

In a round every selected device holds an update vector. Each tensor of it is normalised by one
mean and one deviation that all devices share (agreed over an error-free control link, as the
receiver could not undo K different ones); two real entries ride on one complex symbol,
s = (a + j b)/√2, so that E|s|^2 = 1 and each recovered entry has the error of eq. (17). Then, for
every symbol,

    r = sum_k g_k b_k s_k + n                 eq. (13), n at all M receive chains
    s_hat = m^H r/√η                          eq. (14)

and the receiver undoes the normalisation and divides by the sum of the weights. Nothing is
computed from the error formula; predicted and measured error are reported side by side.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airpass import aircomp
from airpass.core import checks
from airpass.core.types import Complex, Mask, Real

Float32 = NDArray[np.float32]
BLOCK = 16_384  # symbols simulated at a time, to bound memory with many receive chains
NORMALISATIONS = ("tensor", "vector")


@dataclass(frozen=True)
class LinkOptions:
    """Ours: the paper has perfect channel knowledge, and does not say how updates are normalised."""

    normalise: str = "tensor"  # each tensor by itself, or the whole vector at once
    channel_error: float = 0.0  # variance of what devices get wrong, relative to ||g_k||^2/M
    phase_error_deg: float = 0.0  # standard deviation of a device's phase

    def __post_init__(self) -> None:
        checks.one_of("normalise", self.normalise, NORMALISATIONS)
        checks.at_least("channel_error", self.channel_error, 0.0)
        checks.at_least("phase_error_deg", self.phase_error_deg, 0.0)


@dataclass(frozen=True, eq=False)
class Link:
    """The air between the selected devices and the model: channels, beam, weights, noise."""

    channels: Complex  # G, shape (M, K)
    beam: Complex  # m, unit norm
    weights: Real  # phi_k
    selected: Mask
    power: float  # P0
    noise_power: float  # sigma^2


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The mean update as received, and its error per symbol, predicted and measured."""

    update: Float32
    predicted_mse: float
    measured_mse: float


def weighted_mean(updates: Float32, weights: Real) -> Float32:
    """sum_k phi_k x_k/sum_k phi_k: what ideal FedAvg computes, eq. (15) over the sum of weights."""
    mean = np.tensordot(weights / weights.sum(), updates.astype(np.float64), axes=1)
    return np.asarray(mean, dtype=np.float32)


def over_the_air(
    updates: Float32,
    sizes: list[int],
    link: Link,
    options: LinkOptions,
    noise: np.random.Generator,
    errors: np.random.Generator,
) -> Aggregate:
    """Send the updates of the selected devices, shape (|S|, d), through the link.

    `sizes` are the lengths of the tensors that make up a vector.
    """
    chosen = link.selected
    weights = link.weights[chosen]
    channels = np.ascontiguousarray(link.channels[:, chosen])
    eta = aircomp.denoising_factor(link.beam, link.channels, link.weights, chosen, link.power)
    transmit = _transmit(link, options, eta, errors)

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


def _transmit(link: Link, options: LinkOptions, eta: float, errors: np.random.Generator) -> Complex:
    """b_k as the devices set it, from what they know of their channels."""
    shape = link.channels.shape
    drawn = errors.standard_normal((2, *shape))
    turned = errors.standard_normal(shape[1])
    size = np.linalg.norm(link.channels, axis=0) / np.sqrt(shape[0])
    wrong = np.sqrt(options.channel_error / 2.0) * size * (drawn[0] + 1j * drawn[1])
    transmit = aircomp.transmit_scaling(link.beam, link.channels + wrong, link.weights, link.selected, eta)
    # A device that believes its channel to be weaker than it is would exceed its power.
    excess = np.abs(transmit) / np.sqrt(link.power)
    transmit = transmit / np.maximum(excess, 1.0)
    result: Complex = transmit * np.exp(1j * np.deg2rad(options.phase_error_deg) * turned)
    return result


def normalise(updates: Float32, blocks: list[int]) -> tuple[Complex, Real, Real]:
    """Symbols, shape (|S|, ceil(d/2)), and the mean and deviation of every block."""
    count, size = updates.shape
    entries = np.zeros((count, size + size % 2))  # an odd vector is filled up with a zero
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
) -> Float32:
    """The mean update from the received symbols."""
    entries = np.empty(2 * received.size)
    entries[0::2], entries[1::2] = received.real, received.imag
    entries = np.sqrt(2.0) * entries[:size] / weights.sum()
    update = entries * np.repeat(deviations, blocks) + np.repeat(means, blocks)
    return np.asarray(update, dtype=np.float32)
