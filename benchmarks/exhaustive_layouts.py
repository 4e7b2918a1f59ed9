"""The most devices that any beam and any layout of a grid select, for at most three antennas.

All feasible layouts of a grid are tried. The channels are computed from eq. (10) with NumPy, apart from the
package. The best beam is exact for one and two waveguides:

- One waveguide: the beam is a phase, and z_k = |h_k|^2.
- Two waveguides: a unit beam is a point n of the sphere, z_k = |h_k|^2 (1 + n . n_k)/2, and the beams that
  select device k form a cap around n_k. The boundary of an intersection of caps has a corner, which lies
  on the boundaries of two caps, or it contains the whole boundary of a cap. All points where two boundaries
  meet and one point of every boundary are tried.

For three waveguides it is `exhaustive` selection.
"""

import itertools
import math

import numpy as np

from airpass import Scenario, select
from airpass.core.types import Complex, Real
from airpass.kernels.jit import kernel

ROUNDING = 1e-9  # relative tolerance of points on the boundary of a cap


def most_devices(scenario: Scenario, step_m: float | None = None) -> int:
    """Largest number of devices that a layout of the grid selects with its best beam.

    Parameters
    ----------
    scenario
        At most three antennas in total.
    step_m
        Distance of grid points; a twentieth of the wavelength by default.

    Returns
    -------
    int
        Number of devices.
    """
    receiver = scenario.receiver
    waveguides, antennas = receiver.waveguides, receiver.antennas
    assert waveguides * antennas <= 3
    step = scenario.radio.wavelength_m / 20.0 if step_m is None else step_m
    columns = [responses(scenario, m, step) for m in range(waveguides)]
    gap = math.ceil(receiver.min_gap_m / step - ROUNDING)
    if waveguides == 1:
        places = columns[0]
        if antennas == 1:
            return int((np.abs(places) ** 2 >= 1.0).sum(axis=1).max())
        single = np.ascontiguousarray(places.real), np.ascontiguousarray(places.imag)
        return int(_pairs(*single, gap) if antennas == 2 else _triples(*single, gap))
    if waveguides == 2:
        return int(_caps(columns[0], columns[1]))
    return _three(columns)


def responses(scenario: Scenario, waveguide: int, step_m: float) -> Complex:
    """Term of eq. (10) times sqrt(Gamma)/phi_k for an antenna at every grid point, shape (points, K)."""
    receiver, radio, devices = scenario.receiver, scenario.radio, scenario.devices
    assert receiver.feed == "left"
    points = np.arange(0.0, receiver.lengths[waveguide] + ROUNDING, step_m)[:, None]
    square = (devices.x_m - points) ** 2 + (devices.y_m - receiver.waveguide_y[waveguide]) ** 2
    distance = np.sqrt(square + (devices.z_m - receiver.heights[waveguide]) ** 2)
    phase = 2.0 * np.pi / radio.wavelength_m * (distance + radio.refractive_index * points)
    strength = math.sqrt(scenario.budget / receiver.antennas) * radio.path_gain
    result: Complex = strength * devices.gain / scenario.weights * np.exp(-1j * phase) / distance
    return result


@kernel
def _pairs(re: Real, im: Real, gap: int) -> int:
    points, count = re.shape
    best = 0
    for i in range(points):
        for j in range(i + gap, points):
            found = 0
            for k in range(count):
                found += (re[i, k] + re[j, k]) ** 2 + (im[i, k] + im[j, k]) ** 2 >= 1.0
            best = max(best, found)
    return best


@kernel
def _triples(re: Real, im: Real, gap: int) -> int:
    points, count = re.shape
    best = 0
    pair_re, pair_im = np.empty(count), np.empty(count)
    for i in range(points):
        for j in range(i + gap, points):
            pair_re[:] = re[i] + re[j]
            pair_im[:] = im[i] + im[j]
            for n in range(j + gap, points):
                found = 0
                for k in range(count):
                    found += (pair_re[k] + re[n, k]) ** 2 + (pair_im[k] + im[n, k]) ** 2 >= 1.0
                best = max(best, found)
    return best


@kernel
def _caps(first: Complex, second: Complex) -> int:
    """Most caps with a common point, over all pairs of places."""
    count = first.shape[1]
    best = 0
    centres, heights = np.empty((count, 3)), np.empty(count)
    for i in range(first.shape[0]):
        for j in range(second.shape[0]):
            able = 0
            for k in range(count):
                a, b = first[i, k], second[j, k]
                power = abs(a) ** 2 + abs(b) ** 2
                if power >= 1.0:
                    cross = 2.0 * a.conjugate() * b / power
                    centres[able] = cross.real, cross.imag, (abs(a) ** 2 - abs(b) ** 2) / power
                    heights[able] = 2.0 / power - 1.0
                    able += 1
            if able > best:
                best = max(best, _depth(centres[:able], heights[:able]))
    return best


@kernel
def _depth(centres: Real, heights: Real) -> int:
    """Most caps {n : n . centre >= height} with a common point."""
    best = 0
    for i in range(heights.size):
        across = np.cross(centres[i], np.eye(3)[np.argmin(np.abs(centres[i]))])
        across /= math.sqrt(np.dot(across, across))
        rim = heights[i] * centres[i] + math.sqrt(max(0.0, 1.0 - heights[i] ** 2)) * across
        best = max(best, _inside(rim, centres, heights))
        for j in range(i):
            # Points a c_i + b c_j + t (c_i x c_j) with both boundary conditions and unit norm.
            cosine = np.dot(centres[i], centres[j])
            det = 1.0 - cosine**2
            if det < 1e-12:
                continue
            a = (heights[i] - cosine * heights[j]) / det
            b = (heights[j] - cosine * heights[i]) / det
            rest = 1.0 - (a * a + b * b + 2.0 * a * b * cosine)
            if rest < 0.0:
                continue
            normal = np.cross(centres[i], centres[j])
            for sign in (-1.0, 1.0):
                point = a * centres[i] + b * centres[j] + sign * math.sqrt(rest / det) * normal
                best = max(best, _inside(point, centres, heights))
    return best


@kernel
def _inside(point: Real, centres: Real, heights: Real) -> int:
    found = 0
    for k in range(heights.size):
        found += np.dot(point, centres[k]) >= heights[k] - ROUNDING
    return found


def _three(columns: list[Complex]) -> int:
    best = 0
    for places in itertools.product(*columns):
        effective = np.array(places)
        if (np.linalg.norm(effective, axis=0) >= 1.0).sum() > best:
            count = effective.shape[1]
            best = max(best, select(effective, np.ones(count), 1.0, "exhaustive").selected_count)
    return best
