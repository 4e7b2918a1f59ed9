"""Required scores, so that devices stay above the threshold under antenna position errors."""

from statistics import NormalDist

import numpy as np

from airpass.core.types import Complex, Real
from airpass.scenario import Scenario

AVERAGED_PLACES = 200  # along each waveguide, while beam and layout are not known


def margins(scenario: Scenario, tolerance_mm: float, confidence: float) -> Real:
    """Required scores, per device, so that they stay above one under position errors.

    Normal errors of standard deviation s rotate the terms a_i of u = sum_i a_i by normal angles of
    standard deviation sigma = s kappa (dD/dl + i_ref ds_m/dl). The sum has mean exp(-sigma^2/2) u and
    variance (1 - exp(-sigma^2)) sum_i |a_i|^2, half of it along u. Beam and layout are not known
    yet, so the squares are averaged along the waveguides with equal beam weights.
    """
    if tolerance_mm == 0.0:
        return np.ones(scenario.devices.count)
    receiver, uplink = scenario.receiver, scenario.uplink
    field = uplink.field(receiver.antennas)
    turn = np.empty((receiver.waveguides, field.device_x.size))
    power = np.empty_like(turn)
    for m, length in enumerate(receiver.lengths):
        places = np.linspace(0.0, length, AVERAGED_PLACES)[:, None]
        feed, side = field.feed[:, m]
        sides = np.where(places >= feed, 1.0, -1.0) if side == 0.0 else side
        dx = places - field.device_x
        distance = np.sqrt(dx**2 + field.offset_square[m])
        turn[m] = np.mean((dx / distance + field.refractive_index * sides) ** 2, axis=0)
        power[m] = receiver.antennas * np.mean((field.amplitude / distance) ** 2, axis=0)
    error = 1e-3 * tolerance_mm * 2.0 * np.pi / uplink.wavelength
    variance = np.minimum(error**2 * turn.mean(axis=0), 50.0)
    spread = (
        np.sqrt(scenario.budget * (1.0 - np.exp(-variance)) * power.mean(axis=0) / 2.0) / scenario.weights
    )
    quantile = NormalDist().inv_cdf(confidence)
    result: Real = (np.exp(variance / 2.0) * (1.0 + quantile * spread)) ** 2
    return result


def exact_margins(
    scenario: Scenario, layout: Real, beam: Complex, tolerance_mm: float, confidence: float
) -> Real:
    """Required scores, per device, for a given layout and beam.

    A term a of the sum, rotated by a normal angle of variance sigma^2, has mean e^{-sigma^2/2} a and
    variance |a|^2 (1 - e^{-sigma^2})(1 - e^{-sigma^2} cos 2 psi)/2 along the sum, where psi is the
    angle between the term and the sum.
    """
    antenna_terms = scenario.uplink.terms(layout)
    scale = np.sqrt(scenario.budget) / scenario.weights
    terms = np.conj(beam)[:, None, None] * scale * antenna_terms
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
