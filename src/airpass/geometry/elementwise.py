"""Element-wise search: one antenna at a time, over its whole feasible interval.

The usual geometry method of the pinching-antenna literature. Each antenna is evaluated on a grid over
the whole interval between its neighbours, the best point is refined, and the antenna is moved if the
weakest normalised gain increases. Sweeps are repeated until the gain no longer increases. The phase of a
device's gain changes by 2 pi about every lambda/(1 + i_ref), so the grid step must not exceed lambda/20:
a coarser grid would not resolve the oscillation of the gain. At wavelengths so short that a waveguide would
have more than `MOST_POINTS` points, the grid is coarser nevertheless, and only samples the oscillation. If
the receiver has places, all of these are evaluated instead, and nothing is refined.
"""

from dataclasses import dataclass

import numpy as np

from airpass.channel.field import Field, segment_span
from airpass.channel.pass_uplink import element
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Flag, Index, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch, no_worse
from airpass.kernels.interrupts import run
from airpass.kernels.jit import kernel
from airpass.kernels.math import fma
from airpass.kernels.sums import lane_min
from airpass.scenario import Scenario
from airpass.scenario.candidates import search_places

MOST_POINTS = 2**18  # of a waveguide's grid; at shorter wavelengths the grid is coarser
OPERATIONS = 5.0  # of a position per device, about
REFINEMENTS = 3  # rounds of a ten times finer grid around the best point


@kernel
def _weakest_with(
    position: float,
    waveguide: int,
    antenna: int,
    x: float,
    y: float,
    field: Field,
    rest_re: Real,
    rest_im: Real,
    per_weight_square: Real,
    scratch: Real,
) -> float:
    """The weakest normalised gain with one antenna at `position` and the others fixed."""
    element(position, waveguide, antenna, field, scratch[0], scratch[1], scratch[2])
    for k in range(rest_re.size):
        re = rest_re[k] + fma(x, scratch[1, k], y * scratch[2, k])
        im = rest_im[k] + fma(x, scratch[2, k], -(y * scratch[1, k]))
        scratch[0, k] = fma(re, re, im * im) * per_weight_square[k]
    return lane_min(scratch[0])


@kernel
def _sweeps(
    layout: Real,
    lengths: Real,
    places: Real,
    counts: Index,
    min_gap: float,
    beam: Complex,
    field: Field,
    per_weight_square: Real,
    grid_step: float,
    max_sweeps: int,
    tolerance: float,
    stop: Flag,
) -> tuple[Real, int, int]:
    """Layout, number of sweeps, and number of positions evaluated.

    `places` and `counts` are those of `search_places`; without places there are no columns.
    """
    waveguides, antennas = layout.shape
    count = field.device_x.size
    layout = layout.copy()
    gain_re = np.zeros(count)
    gain_im = np.zeros(count)
    rest_re = np.empty(count)
    rest_im = np.empty(count)
    scratch = np.empty((3, count))
    best = 0.0
    tried = 0
    for sweep in range(max_sweeps):
        # Recomputed each sweep to avoid accumulating rounding errors.
        gain_re[:] = 0.0
        gain_im[:] = 0.0
        for m in range(waveguides):
            x = beam[m].real
            y = beam[m].imag
            for n in range(antennas):
                element(layout[m, n], m, n, field, scratch[0], scratch[1], scratch[2])
                for k in range(count):
                    gain_re[k] += x * scratch[1, k] + y * scratch[2, k]
                    gain_im[k] += x * scratch[2, k] - y * scratch[1, k]
        best = np.inf
        for k in range(count):
            best = min(best, (gain_re[k] ** 2 + gain_im[k] ** 2) * per_weight_square[k])
        before = best
        for m in range(waveguides):
            x = beam[m].real
            y = beam[m].imag
            first, last = segment_span(field.segments, layout[m, 0], m, 0.0, lengths[m])
            for n in range(antennas):
                low = layout[m, n - 1] + min_gap if n > 0 else first
                high = layout[m, n + 1] - min_gap if n < antennas - 1 else last
                if not high > low:
                    continue
                element(layout[m, n], m, n, field, scratch[0], scratch[1], scratch[2])
                for k in range(count):
                    rest_re[k] = gain_re[k] - (x * scratch[1, k] + y * scratch[2, k])
                    rest_im[k] = gain_im[k] - (x * scratch[2, k] - y * scratch[1, k])
                place = layout[m, n]
                for i in range(counts[m]):
                    if stop[0] != 0:
                        return layout, sweep, tried
                    if low <= places[m, i] <= high:
                        value = _weakest_with(
                            places[m, i], m, n, x, y, field, rest_re, rest_im, per_weight_square, scratch
                        )
                        tried += 1
                        if value > best:
                            best = value
                            place = places[m, i]
                points = int(np.ceil((high - low) / grid_step)) + 1
                step = (high - low) / (points - 1)
                start = low
                for _ in range(1 + REFINEMENTS if counts[m] == 0 else 0):
                    for i in range(points):
                        if stop[0] != 0:
                            return layout, sweep, tried
                        position = min(start + i * step, high)
                        value = _weakest_with(
                            position, m, n, x, y, field, rest_re, rest_im, per_weight_square, scratch
                        )
                        tried += 1
                        if value > best:
                            best = value
                            place = position
                    start = max(place - step, low)
                    points = 21
                    step = 0.1 * step
                layout[m, n] = place
                element(place, m, n, field, scratch[0], scratch[1], scratch[2])
                for k in range(count):
                    gain_re[k] = rest_re[k] + x * scratch[1, k] + y * scratch[2, k]
                    gain_im[k] = rest_im[k] + x * scratch[2, k] - y * scratch[1, k]
        if best - before <= tolerance * best:
            return layout, sweep + 1, tried
    return layout, max_sweeps, tried


@dataclass(frozen=True)
class Elementwise(GeometryMethod):
    """One antenna at a time on a dense grid over its whole interval.

    Not in the paper, which only cites such methods.
    """

    name = "elementwise"

    step_wavelengths: float = 0.05  # grid step over lambda; at most 1/20
    max_sweeps: int = 20  # largest number of sweeps over all antennas
    tolerance: float = 1e-4  # relative gain of a sweep that ends the search

    def __post_init__(self) -> None:
        checks.positive("step_wavelengths", self.step_wavelengths)
        if self.step_wavelengths > 0.05:
            raise InvalidInput(
                f"step_wavelengths = {self.step_wavelengths!r}: must be <= 0.05 to resolve the oscillation "
                "of the gain"
            )
        checks.whole("max_sweeps", self.max_sweeps, 1)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)

    def move(
        self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: np.random.Generator
    ) -> LayoutSearch:
        """Sweep over the antennas until the gain no longer increases."""
        receiver = scenario.receiver
        step = max(
            self.step_wavelengths * scenario.radio.wavelength_m, receiver.lengths.max() / (MOST_POINTS - 1)
        )
        # The intervals of all antennas of a waveguide cover it twice.
        positions = 2.0 * float(receiver.lengths.sum()) / step + (2 + 21 * REFINEMENTS) * layout.size
        moved, sweeps, tried = run(
            _sweeps,
            np.ascontiguousarray(layout),
            receiver.lengths,
            *search_places(receiver, scenario.candidates),
            beam,
            scenario.uplink.field(receiver.antennas, devices),
            1.0 / scenario.weights[devices] ** 2,
            float(step),
            self.max_sweeps,
            float(self.tolerance),
            work=self.max_sweeps * positions * (OPERATIONS * float(devices.sum()) + 20.0),
        )
        return no_worse(scenario, layout, moved, beam, devices, {"sweeps": sweeps, "positions": tried})
