"""Required scores, so that devices stay above the threshold when antennas or devices are not in place.

Errors of antennas are independent of each other: every term of a device's sum is rotated on its own. The
displacement of a device is common to all terms, which rotate together: it has only two random numbers, and a
common rotation of all terms changes nothing. Derivations: docs/howto/tolerance.md and docs/howto/lasting.md.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from airpass.channel.segments import segment_feeds
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Real
from airpass.scenario import Scenario

AVERAGED_PLACES = 200  # along each waveguide, while beam and layout are not known
DISPLACEMENTS = 1024  # points of the normal distribution in the plane
GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


class _Averages(NamedTuple):
    """Means along the waveguides, with equal beam weights; shape (K,)."""

    power: Real  # of the sum, sum_n |g_{k,m,n}|^2, averaged over m
    turn: Real  # of (dD/dl + i_ref ds_m/dl)^2
    spread: Real  # of |e - mean e|^2, weighted by power; e is the direction to the device, in the plane


def _averages(scenario: Scenario) -> _Averages:
    receiver, devices = scenario.receiver, scenario.devices
    field = scenario.uplink.field(receiver.antennas)
    shape = (receiver.waveguides, field.device_x.size)
    turn, power, square = np.empty(shape), np.empty(shape), np.empty(shape)
    direction = np.empty((2, *shape))
    along = np.linspace(0.0, receiver.lengths, AVERAGED_PLACES, axis=1)
    feeds = segment_feeds(field.segments, along, field.feed[0])
    for m in range(receiver.waveguides):
        places, feed, side = along[m, :, None], feeds[m, :, None], field.feed[1, m]
        sides = np.where(places >= feed, 1.0, -1.0) if side == 0.0 else side
        decay = np.exp(-field.loss_per_m * np.abs(places - feed))
        dx = places - field.device_x
        distance = np.sqrt(dx**2 + field.offset_square[m])
        turn[m] = np.mean((dx / distance + field.refractive_index * sides) ** 2, axis=0)
        powers = (decay * field.amplitude / distance) ** 2 * np.mean(field.feed[2:, m] ** 2)
        power[m] = receiver.antennas * np.mean(powers, axis=0)
        dy = receiver.waveguide_y[m] - devices.y_m
        weight = receiver.antennas * powers
        direction[0, m] = np.mean(weight * dx / distance, axis=0)
        direction[1, m] = np.mean(weight * dy / distance, axis=0)
        square[m] = np.mean(weight * (dx**2 + dy**2) / distance**2, axis=0)
    total = power.sum(axis=0)
    common = (direction.sum(axis=1) / total) ** 2
    spread = square.sum(axis=0) / total - common.sum(axis=0)
    return _Averages(power.mean(axis=0), turn.mean(axis=0), spread)


def margins(scenario: Scenario, tolerance_mm: float, confidence: float, displacement_mm: float = 0.0) -> Real:
    """Required scores, per device, so that they stay above one under position errors.

    Normal errors of standard deviation s rotate the terms a_i of u = sum_i a_i by normal angles of
    standard deviation sigma = s kappa (dD/dl + i_ref ds_m/dl). The sum has mean exp(-sigma^2/2) u and
    variance (1 - exp(-sigma^2)) sum_i |a_i|^2, half of it along u. Beam and layout are not known
    yet, so the squares are averaged along the waveguides with equal beam weights. For displacements of the
    device, sigma is that of the rotations against their mean.
    """
    result: Real = np.ones(scenario.devices.count)
    if tolerance_mm == 0.0 and displacement_mm == 0.0:
        return result
    if not scenario.uplink.closed_form:
        raise InvalidInput(
            "tolerance_mm and displacement_mm: required scores are known for the paper's channel only; set "
            f"both to 0, or leave out {scenario.channel.label}"
        )
    averages = _averages(scenario)
    if tolerance_mm > 0.0:
        result = _averaged(scenario, averages.power, averages.turn, tolerance_mm, confidence)
    if displacement_mm > 0.0:
        moved = _averaged(scenario, averages.power, averages.spread, displacement_mm, confidence)
        result = moved if tolerance_mm == 0.0 else _combined(result, np.sqrt(moved) - 1.0)
    return result


def _averaged(scenario: Scenario, power: Real, turn: Real, error_mm: float, confidence: float) -> Real:
    """Required scores for rotations of variance (kappa s)^2 `turn`."""
    error = 1e-3 * error_mm * 2.0 * np.pi / scenario.radio.wavelength_m
    variance = np.minimum(error**2 * turn, 50.0)
    spread = np.sqrt(scenario.budget * (1.0 - np.exp(-variance)) * power / 2.0) / scenario.weights
    quantile = NormalDist().inv_cdf(confidence)
    result: Real = (np.exp(variance / 2.0) * (1.0 + quantile * spread)) ** 2
    return result


def _combined(required: Real, loss: Real) -> Real:
    """Required scores with a further loss of amplitude; losses are added, which is on the safe side."""
    result: Real = np.maximum(np.sqrt(required) + loss, 1.0) ** 2
    return result


def exact_margins(
    scenario: Scenario,
    layout: Real,
    beam: Complex,
    tolerance_mm: float,
    confidence: float,
    displacement_mm: float = 0.0,
) -> Real:
    """Required scores, per device, for a given layout and beam.

    A term a of the sum, rotated by a normal angle of variance sigma^2, has mean e^{-sigma^2/2} a and
    variance |a|^2 (1 - e^{-sigma^2})(1 - e^{-sigma^2} cos 2 psi)/2 along the sum, where psi is the
    angle between the term and the sum. The loss by displacements is `displacement_losses`.
    """
    result = np.ones(scenario.devices.count)
    if tolerance_mm > 0.0 or displacement_mm == 0.0:
        result = _antenna_margins(scenario, layout, beam, tolerance_mm, confidence)
    if displacement_mm > 0.0:
        result = _combined(result, displacement_losses(scenario, layout, beam, displacement_mm, confidence))
    return result


def _terms(scenario: Scenario, layout: Real, beam: Complex) -> tuple[Complex, Complex]:
    """The terms a of every device's sum, shape (M, N, K), and the antennas' channels."""
    antenna_terms = scenario.uplink.terms(layout)
    scale = np.sqrt(scenario.budget) / scenario.weights
    return np.conj(beam)[:, None, None] * scale * antenna_terms, antenna_terms


def _antenna_margins(
    scenario: Scenario, layout: Real, beam: Complex, tolerance_mm: float, confidence: float
) -> Real:
    terms, antenna_terms = _terms(scenario, layout, beam)
    whole = terms.sum(axis=(0, 1))
    angle_per_m = (scenario.uplink.derivative(layout) / antenna_terms).imag  # -kappa (dD/dl + i_ref ds_m/dl)
    kept = np.exp(-((1e-3 * tolerance_mm * angle_per_m) ** 2))
    shrunk = np.abs((np.sqrt(kept) * terms).sum(axis=(0, 1)))
    twice_angle = (terms / whole) ** 2 / np.abs(terms / whole) ** 2
    variance = (0.5 * np.abs(terms) ** 2 * (1.0 - kept) * (1.0 - kept * twice_angle.real)).sum(axis=(0, 1))
    # The score at which mean - quantile * deviation is one, if all three grow in proportion to the score.
    quantile = NormalDist().inv_cdf(confidence)
    result: Real = ((1.0 + quantile * np.sqrt(variance)) * np.abs(whole) / np.maximum(shrunk, 1e-9)) ** 2
    return np.maximum(result, 1.0)


def directions(scenario: Scenario, layout: Real) -> Real:
    """Unit vectors from every antenna to every device, without their vertical part; shape (2, M, N, K).

    A device that moves by d in the plane comes farther away from the antenna by e . d, to first order.
    """
    receiver, devices = scenario.receiver, scenario.devices
    dx = devices.x_m - layout[:, :, None]
    dy = (devices.y_m - receiver.waveguide_y[:, None])[:, None, :]
    dz = (receiver.heights[:, None] - devices.z_m)[:, None, :]
    distance = np.sqrt(dx**2 + (dy**2 + dz**2))
    return np.stack([dx / distance, dy / distance])


def normal_points(count: int) -> Real:
    """Points in the plane, each with the same share of the standard normal distribution; shape (2, count).

    Their squared lengths are evenly spaced quantiles, and the angle between successive points is the golden
    angle.
    """
    order = np.arange(count)
    radius = np.sqrt(-2.0 * np.log1p(-(order + 0.5) / count))
    angle = GOLDEN_ANGLE * order
    points: Real = radius * np.stack([np.cos(angle), np.sin(angle)])
    return points


def displacement_losses(
    scenario: Scenario, layout: Real, beam: Complex, displacement_mm: float, confidence: float
) -> Real:
    """|u_k| less the amplitude that device k keeps with the given confidence when it is displaced.

    A displacement d rotates term a_i by -kappa e_i . d, so that the sum depends on two random numbers only.
    Its distribution is computed on equally likely points of the plane, without further approximation.
    """
    terms, _ = _terms(scenario, layout, beam)
    towards = directions(scenario, layout)
    kappa = 2.0 * np.pi / scenario.radio.wavelength_m
    moves = 1e-3 * displacement_mm * kappa * normal_points(DISPLACEMENTS)
    count = terms.shape[2]
    losses = np.empty(count)
    for k in range(count):
        angles = np.tensordot(towards[:, :, :, k].reshape(2, -1), moves, axes=(0, 0))  # (M N, points)
        kept = np.abs(terms[:, :, k].ravel() @ np.exp(-1j * angles))
        losses[k] = np.abs(terms[:, :, k].sum()) - np.quantile(kept, 1.0 - confidence)
    return losses
