"""HAGO, Algorithm 2: homotopy-assisted geometry optimisation.

For a fixed beam m and device set S it maximises the weakest normalised gain by gradient ascent
on its soft minimum (eqs. 54-57)

    f_tau(L) = -tau log sum_{k in S} exp(-|m^H g_k(L)|^2/(tau phi_k^2)),

in the unconstrained parameters U of the slack map, which keep every layout feasible, while the
temperature tau is lowered (eq. 58).

| paper          | here                                        |
|----------------|---------------------------------------------|
| tau_0, rho, tau_min | `temperature`, `decay`, `temperature_min` |
| u_k(L)         | `gain_re`, `gain_im`                        |
| h_k/phi_k^2    | `levels`, in units of `unit`                |
| w~_k           | `pull` (softmin weight over phi_k^2)        |
| alpha_t        | `step`                                      |
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from airpass.channel.field import Field, modulate_slope, segment_feed
from airpass.channel.pass_uplink import element, guide_slope, response_slope
from airpass.core import checks, memory
from airpass.core.types import Complex, Flag, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch, anywhere, no_worse, weakest_gain
from airpass.geometry.slack import invert, layout_from_raw, raw_gradient
from airpass.kernels.blocks import borrowed
from airpass.kernels.interrupts import run
from airpass.kernels.jit import inlined, kernel
from airpass.kernels.math import fma
from airpass.kernels.sums import lane_sum
from airpass.optim import line_search
from airpass.optim.curvature import dot, new_pairs, newton_direction, remember, trial_step
from airpass.optim.objectives import softmin
from airpass.optim.schedules import shrink
from airpass.scenario import Scenario

UNITS = ("score", "gain")
OPERATIONS = 6.5  # nanoseconds of an iteration per antenna and device, about


class Parameters(NamedTuple):
    """Kernel arguments; see `Hago`."""

    temperature: float
    decay: float
    temperature_min: float
    initial_step: float
    max_iterations: int
    tolerance: float
    memory: int


class Workspace(NamedTuple):
    """Results of `gains` that the gradient needs, and a scratch array."""

    distance: Real  # D of every antenna to every device, shape (M, N, K)
    term_re: Real  # g_{k,m,n}
    term_im: Real
    gain_re: Real  # u_k, shape (K,)
    gain_im: Real
    scratch: Real


@kernel
def new_workspace(waveguides: int, antennas: int, count: int) -> Workspace:
    """Allocate a workspace."""
    shape = (waveguides, antennas, count)
    return Workspace(
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(count),
        np.empty(count),
        np.empty(count),
    )


@kernel
def gains(layout: Real, beam: Complex, field: Field, workspace: Workspace) -> None:
    """u_k(L) = m^H g_k(L), eq. (59), with every antenna's distance and term."""
    field, workspace = borrowed(field), borrowed(workspace)
    workspace.gain_re[:] = 0.0
    workspace.gain_im[:] = 0.0
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        x = beam[m].real
        y = beam[m].imag
        for n in range(antennas):
            re = workspace.term_re[m, n]
            im = workspace.term_im[m, n]
            element(layout[m, n], m, n, field, workspace.distance[m, n], re, im)
            for k in range(re.size):
                workspace.gain_re[k] += fma(x, re[k], y * im[k])
                workspace.gain_im[k] += fma(x, im[k], -(y * re[k]))


@kernel
def layout_gradient(
    layout: Real, beam: Complex, field: Field, workspace: Workspace, pull: Real, gradient: Real
) -> None:
    """df/dl_{m,n} = 2 sum_k w~_k Re(u_k^* m_m^* dg_{k,m,n}/dl), eqs. (61), (66)-(68).

    `workspace` holds the results of `gains` at the same layout.
    """
    field, workspace = borrowed(field), borrowed(workspace)
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        x = beam[m].real
        y = beam[m].imag
        for n in range(antennas):
            re = workspace.term_re[m, n]
            im = workspace.term_im[m, n]
            distance = workspace.distance[m, n]
            feed = segment_feed(field.segments, layout[m, n], m, field.feed[0, m])
            side = guide_slope(layout[m, n], feed, field.feed[1, m])
            rate, loss_rate = field.refractive_index * side, field.loss_per_m * side
            for k in range(re.size):
                slope_re, slope_im = response_slope(
                    layout[m, n], field.device_x[k], distance[k], field.turns_per_m, rate, loss_rate
                )
                slope_re, slope_im = modulate_slope(field.factor, layout[m, n], m, k, slope_re, slope_im)
                # v = u_k^* m_m^*, p = v g, then Re(p g'/g)
                v_re = workspace.gain_re[k] * x - workspace.gain_im[k] * y
                v_im = -workspace.gain_re[k] * y - workspace.gain_im[k] * x
                p_re = v_re * re[k] - v_im * im[k]
                p_im = v_re * im[k] + v_im * re[k]
                workspace.scratch[k] = pull[k] * (slope_re * p_re - slope_im * p_im)
            gradient[m, n] = 2.0 * lane_sum(workspace.scratch)


@kernel
def _levels(workspace: Workspace, per_weight_square: Real, levels: Real) -> None:
    for k in range(levels.size):
        square = workspace.gain_re[k] * workspace.gain_re[k] + workspace.gain_im[k] * workspace.gain_im[k]
        levels[k] = square * per_weight_square[k]


@inlined
def _layout(raw: Real, start: Real, free_length: Real, min_gap: float, layout: Real) -> None:
    """Eq. (72) from `start`, the beginning of the waveguide or of the selected segment."""
    layout_from_raw(raw, free_length, min_gap, layout)
    for m in range(layout.shape[0]):
        for n in range(layout.shape[1]):
            layout[m, n] += start[m]


@kernel
def _algorithm_2(
    raw: Real,
    start: Real,
    free_length: Real,
    min_gap: float,
    beam: Complex,
    field: Field,
    per_weight_square: Real,
    parameters: Parameters,
    stop: Flag,
) -> tuple[Real, int, int, bool]:
    """Algorithm 2 from the unconstrained parameters `raw`.

    Returns the layout, iterations, channel evaluations, and whether the limit of iterations ended it.
    """
    waveguides = raw.shape[0]
    antennas = raw.shape[1] - 1
    count = field.device_x.size
    layout = np.empty((waveguides, antennas))
    workspace = new_workspace(waveguides, antennas, count)
    levels = np.empty(count)
    pull = np.empty(count)
    by_layout = np.empty((waveguides, antennas))
    by_raw = np.empty(raw.shape)
    direction = np.empty(raw.shape)
    old_raw = np.empty(raw.shape)
    old_by_raw = np.empty(raw.shape)
    raw = raw.copy()  # line 1
    pairs = new_pairs(max(1, parameters.memory), raw.size)

    _layout(raw, start, free_length, min_gap, layout)  # line 2
    gains(layout, beam, field, workspace)
    _levels(workspace, per_weight_square, levels)
    evaluations = 1
    iterations = 0  # line 4
    idle = 0
    temperature = parameters.temperature  # line 3
    step = parameters.initial_step
    while iterations < parameters.max_iterations and stop[0] == 0:  # lines 5-11
        value = softmin(levels, temperature, pull)  # line 7
        for k in range(count):
            pull[k] *= per_weight_square[k]  # eq. (62)
        layout_gradient(layout, beam, field, workspace, pull, by_layout)
        raw_gradient(raw, free_length, by_layout, by_raw)
        if iterations > 0:
            remember(pairs, old_raw.ravel(), raw.ravel(), old_by_raw.ravel(), by_raw.ravel())
        direction[:] = by_raw
        if parameters.memory == 0:
            step = trial_step(pairs, step)
        elif pairs.stored[0] > 0.0:
            newton_direction(pairs, direction.ravel())
            step = 1.0
        rate = dot(by_raw.ravel(), direction.ravel())
        if not rate > 0.0:
            break
        old_raw[:] = raw
        old_by_raw[:] = by_raw
        accepted = False
        higher = value
        for _ in range(line_search.MAX_TRIALS):  # line 8
            for m in range(waveguides):
                for i in range(antennas + 1):
                    raw[m, i] = old_raw[m, i] + step * direction[m, i]
            _layout(raw, start, free_length, min_gap, layout)
            gains(layout, beam, field, workspace)
            _levels(workspace, per_weight_square, levels)
            evaluations += 1
            higher = softmin(levels, temperature, pull)
            # The search minimises -f, whose slope along the direction is -rate.
            if line_search.sufficient_decrease(-value, -higher, step, -rate):
                accepted = True
                break
            step = line_search.next_trial(-value, -higher, step, -rate)
            if stop[0] != 0:
                break
        if not accepted:
            raw[:] = old_raw
            break
        step = line_search.first_trial(step)
        iterations += 1
        coldest = temperature == parameters.temperature_min
        temperature = shrink(temperature, parameters.decay, parameters.temperature_min)  # line 9
        idle = idle + 1 if coldest and higher - value <= parameters.tolerance * abs(higher) else 0
        if idle >= 2:
            break
    _layout(raw, start, free_length, min_gap, layout)
    return layout, iterations, evaluations, idle < 2 and iterations == parameters.max_iterations  # line 12


@dataclass(frozen=True)
class Hago(GeometryMethod):
    """Algorithm 2: gradient ascent on the soft minimum, feasible by construction.

    Sources: P is section VI-A of the paper; others are not from the paper, see docs/science/tuning.md.
    """

    name = "hago"

    temperature: float = 0.1  # tau_0; P
    decay: float = 0.8  # rho; P
    temperature_min: float = 0.01  # tau_min; P
    initial_step: float = 4e-2  # P
    max_iterations: int = 10_000  # a safety net: the tolerance ends nearly all runs
    tolerance: float = 1e-6  # relative increase of the objective that ends the ascent
    memory: int = 0  # steps of the quasi-Newton direction; 0 is the gradient, as in the paper
    unit: str = "score"  # unit of tau: "score" is Gamma h/phi^2; "gain" is h/phi^2, as printed in the paper

    def __post_init__(self) -> None:
        checks.positive("temperature_min", self.temperature_min)
        checks.at_least("temperature", self.temperature, self.temperature_min)
        checks.between("decay", self.decay, 0.0, 1.0)
        checks.positive("initial_step", self.initial_step)
        checks.whole("max_iterations", self.max_iterations, 1)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)
        checks.whole("memory", self.memory, 0)
        checks.one_of("unit", self.unit, UNITS)

    def move(
        self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: np.random.Generator
    ) -> LayoutSearch:
        """Algorithm 2 from `layout`, for the devices marked in `devices` (at least one).

        If segments are selected, antennas stay on those of `layout`.
        """
        anywhere(scenario, self.name)
        scenario.uplink.require_derivative()
        receiver = scenario.receiver
        low, high = scenario.spans(layout)
        free_length = receiver.free_within(high - low)
        needed = 32.0 * layout.size * float(devices.sum())
        memory.require(needed, "channels of single antennas", "devices.count or receiver.antennas")
        before = weakest_gain(scenario, layout, beam, devices)
        unit = 1.0
        if self.unit == "score":
            # The temperatures suit scores near 1; for larger scores they are scaled by the weakest score.
            unit = scenario.budget / max(1.0, scenario.budget * before)
        moved, iterations, evaluations, cut_short = run(
            _algorithm_2,
            invert(layout - low[:, None], free_length, receiver.min_gap_m),
            low,
            free_length,
            float(receiver.min_gap_m),
            beam,
            scenario.uplink.field(receiver.antennas, devices),
            unit / scenario.weights[devices] ** 2,
            Parameters(
                temperature=float(self.temperature),
                decay=float(self.decay),
                temperature_min=float(self.temperature_min),
                initial_step=float(self.initial_step),
                max_iterations=self.max_iterations,
                tolerance=float(self.tolerance),
                memory=self.memory,
            ),
            work=self.max_iterations * layout.size * float(devices.sum()) * OPERATIONS,
        )
        # The soft minimum may increase while the minimum decreases.
        work = {"iterations": iterations, "evaluations": evaluations}
        found = no_worse(scenario, layout, moved, beam, devices, work, before)
        return replace(found, status="iteration limit") if cut_short else found
