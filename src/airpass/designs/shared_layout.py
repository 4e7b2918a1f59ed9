"""A layout that stays while beams change: strong channels to all devices at once.

With a beam of its own, device k has the score ||h_k||^2, h_k = sqrt(Gamma) g_k/phi_k. If only beams change
from turn to turn, a device can be served if ||h_k||^2 >= 1, and beams can serve several devices if it is
larger. So the antennas are moved, one after the other, to the place of a grid that minimises

    F = sum_k v_k/(1 + (||h_k||^2/target)^p),   p = 1, 2, 4,

a smooth count of the devices whose strength is below the target.
"""

import numpy as np

from airpass import aircomp
from airpass.core.types import Complex, Real
from airpass.scenario import Scenario

GRID_WAVELENGTHS = 0.125  # grid step over lambda
MOST_ENTRIES = 5_000_000  # of the table of responses; the grid is coarser above
POWERS = (1.0, 2.0, 4.0)
SWEEPS = 2  # over all antennas, for each power


def shared_layout(scenario: Scenario, worth: Real, target: float, start: Real) -> Real:
    """Antenna positions with strong channels to all devices.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.
    worth
        v_k >= 0, shape (K,).
    target
        ||h_k||^2 that devices should reach.
    start
        Layout to start from, shape (M, N), metres.

    Returns
    -------
    Real
        Antenna positions, shape (M, N), metres.
    """
    receiver = scenario.receiver
    places, table = _table(scenario)
    layout = start.copy()
    terms = _effective_terms(scenario, layout) * np.sqrt(layout.shape[1] / receiver.antennas)
    sums = terms.sum(axis=1)  # h_k at every waveguide, shape (M, K)
    for power in POWERS:
        for _ in range(SWEEPS):
            for m in range(receiver.waveguides):
                for n in range(receiver.antennas):
                    rest = sums[m] - terms[m, n]
                    fixed = np.sum(np.abs(sums) ** 2, axis=0) - np.abs(sums[m]) ** 2
                    others = np.delete(layout[m], n)
                    gaps = np.abs(places[m][:, None] - others).min(axis=1, initial=np.inf)
                    free = np.flatnonzero((gaps >= receiver.min_gap_m) & (places[m] <= receiver.lengths[m]))
                    moved = np.concatenate([terms[m, n][None], table[m, free]])  # the first is where it is
                    strength = np.maximum(fixed + np.abs(rest + moved) ** 2, 0.0) / target
                    best = int(np.argmin((1.0 / (1.0 + strength**power)) @ worth))
                    if best > 0:
                        layout[m, n] = places[m][free[best - 1]]
                        terms[m, n] = moved[best]
                        sums[m] = rest + moved[best]
                order = np.argsort(layout[m], kind="stable")
                layout[m], terms[m] = layout[m][order], terms[m][order]
    return layout


def _table(scenario: Scenario) -> tuple[Real, Complex]:
    """Places of the grid, shape (M, P), and the responses of all devices, shape (M, P, K)."""
    receiver = scenario.receiver
    step = GRID_WAVELENGTHS * scenario.radio.wavelength_m
    most = max(2, MOST_ENTRIES // (receiver.waveguides * scenario.devices.count))
    points = min(int(receiver.lengths.max() / step) + 1, most)
    places = np.linspace(0.0, 1.0, points) * receiver.lengths[:, None]
    return places, _effective_terms(scenario, places) * np.sqrt(points / receiver.antennas)


def _effective_terms(scenario: Scenario, places: Real) -> Complex:
    """sqrt(Gamma)/phi_k times the response to each place, for as many antennas as places; shape (M, P, K)."""
    terms = scenario.uplink.terms(places)
    shape = terms.shape
    flat = terms.reshape(-1, shape[2])
    return aircomp.effective_channels(flat, scenario.weights, scenario.budget).reshape(shape)
