"""Follow devices that have moved a little, with small moves of the antennas.

A redesign may send an antenna anywhere on its waveguide. Following changes all positions and the beam
together, uphill from where they are (`airpass.designs.joint.ascent`), so that antennas move by fractions of
a wavelength:

    keep   raise the weakest score of the devices that were selected before they moved; if not all meet the
           threshold, drop the weakest and raise the others
    grow   add the best outsider, and raise the weakest score again; if it is not selected then, try the next

With a limit on the distance, positions are clipped to it. The clipped layout is feasible: the clipped
position median(l_n - s, t_n, l_n + s) increases with l_n and t_n and moves with them, so that if neighbours
are a gap apart in both layouts, l and t, they are so in the clipped one.
"""

import numpy as np

from airpass import aircomp
from airpass.core.types import Complex, Flag, Index, Mask, Real
from airpass.designs.joint.ascent import AscentLimits, ascend
from airpass.designs.joint.found import Found
from airpass.designs.joint.space import Space, exact_scores, space_of
from airpass.designs.joint.wanted import wanted_of
from airpass.geometry.base import anywhere
from airpass.scenario import Scenario
from airpass.selection.hrmc_plus import regrow

DOUBLINGS = (3, 5, 7)  # log2 of the powers p of the ascents
LIMITS = AscentLimits(max_iterations=40, tolerance=1e-3, enough=np.inf, memory=8)
MOST_DROPS = 8  # rounds in which devices are dropped
OUTSIDERS = 2  # devices that are tried before growing ends


def towards(layout: Real, target: Real, distance_m: float | None) -> Real:
    """Move every antenna towards its target.

    Parameters
    ----------
    layout, target
        Feasible layouts, shape (M, N), metres.
    distance_m
        Largest move of an antenna; None if there is no limit.

    Returns
    -------
    Real
        A feasible layout, shape (M, N).
    """
    if distance_m is None:
        return target
    return np.clip(target, layout - distance_m, layout + distance_m)


def follow(
    scenario: Scenario, layout: Real, beam: Complex, devices: Mask, distance_m: float | None = None
) -> tuple[Real, Complex]:
    """Adapt layout and beam to devices that have moved.

    Parameters
    ----------
    scenario
        The devices at their new places.
    layout, beam
        The design so far: positions in metres, shape (M, N), and a beam of unit norm, shape (M,).
    devices
        The devices that it selected, shape (K,).
    distance_m
        Largest move of an antenna; None if there is no limit.

    Returns
    -------
    layout : Real
        Feasible positions.
    beam : Complex
        The beam. Both select at least as many devices as the old layout with the beam grown from the old.
    """
    anywhere(scenario, "follow")
    scale = np.sqrt(scenario.budget) / scenario.weights
    space = space_of(scenario, scale, scenario.radio.wavelength_m, 0.0)
    climb = _Climb(scenario, space, layout, distance_m)
    best = climb.at(layout, beam)
    wanted = np.flatnonzero(devices)
    for _ in range(MOST_DROPS):
        if wanted.size == 0:
            break
        reached = climb.raised(best, wanted)
        best = max(best, reached, key=lambda one: one.rank)
        served = reached.scores[wanted] >= 1.0
        if served.all() or best.selected.size >= wanted.size - 1:
            break
        # Half of those that miss the threshold, the weakest first.
        dropped = max(1, int((~served).sum()) // 2)
        wanted = wanted[np.sort(np.argsort(-reached.scores[wanted], kind="stable")[:-dropped])]
    tried: set[int] = set()
    while best.selected.size < scenario.devices.count and len(tried) < OUTSIDERS:
        order = np.argsort(-best.scores, kind="stable")[best.selected.size :]
        outsider = next((int(k) for k in order if int(k) not in tried), None)
        if outsider is None:
            break
        tried.add(outsider)
        chosen = np.sort(np.append(np.flatnonzero(best.scores >= 1.0), outsider))
        reached = climb.raised(best, chosen)
        if reached.selected.size > best.selected.size:
            tried.clear()
        best = max(best, reached, key=lambda one: one.rank)
    return best.layout, best.beam


class _Climb:
    """Ascents within a distance of a layout."""

    def __init__(self, scenario: Scenario, space: Space, layout: Real, distance_m: float | None) -> None:
        self.scenario = scenario
        self.space = space
        self.layout = layout
        self.distance_m = distance_m
        self.stop: Flag = np.zeros(1, np.uint8)

    def at(self, layout: Real, beam: Complex) -> Found:
        """A layout with the beam grown from a given one."""
        channels = self.scenario.uplink.channels(layout)
        effective = aircomp.effective_channels(channels, self.scenario.weights, self.scenario.budget)
        grown = regrow(effective, beam)
        return Found(
            layout, grown, exact_scores(self.scenario, self.space, layout, grown), self.scenario.priorities
        )

    def raised(self, found: Found, devices: Index) -> Found:
        """Raise the weakest score of some devices; the best of the ends."""
        wanted = wanted_of(self.space, devices, np.ones(devices.size))
        best = found
        for doublings in DOUBLINGS:
            result = ascend(found.layout, found.beam, self.space, wanted, doublings, LIMITS, self.stop)
            found = self.at(towards(self.layout, result.layout, self.distance_m), result.beam)
            best = max(best, found, key=lambda one: one.rank)
        return best
