"""HAGO, Algorithm 2: homotopy-assisted geometry optimisation.

For a fixed beam m and device set S it raises the weakest normalised gain by gradient ascent
on its soft minimum (eqs. 54-57)

    f_tau(L) = -tau log sum_{k in S} exp(-|m^H g_k(L)|^2/(tau phi_k^2)),

in the raw numbers U of the slack map, which keep every layout feasible, while the
temperature tau is lowered (eq. 58).

| paper          | here                                        |
|----------------|---------------------------------------------|
| tau_0, rho, tau_min | `temperature`, `decay`, `temperature_min` |
| u_k(L)         | `gain_re`, `gain_im`                        |
| h_k/phi_k^2    | `levels`, in units of `unit`                |
| w~_k           | `pull` (softmin weight over phi_k^2)        |
| alpha_t        | `step`                                      |
"""

from dataclasses import dataclass

import numpy as np

from airpass import checks
from airpass.channel.pass_uplink import element
from airpass.geometry.base import GeometryMethod, LayoutSearch, weakest_gain
from airpass.geometry.slack import invert, layout_from_raw, raw_gradient
from airpass.optim import line_search
from airpass.optim.jit import kernel
from airpass.optim.schedules import shrink
from airpass.optim.softmin import softmin
from airpass.optim.types import Complex, Mask, Real
from airpass.scenario import Scenario

UNITS = ("score", "gain")


@dataclass(frozen=True)
class HagoOptions:
    """Sources: P is section VI-A of the paper; "ours" is measured in docs/tuning.md."""

    temperature: float = 0.1  # tau_0; P
    decay: float = 0.8  # rho; P
    temperature_min: float = 0.01  # tau_min; P
    initial_step: float = 4e-2  # P
    max_iterations: int = 100  # ours
    tolerance: float = 1e-6  # relative gain of the objective that ends the ascent; ours
    unit: str = "score"  # what tau is measured in: Gamma h/phi^2, or h/phi^2 as printed; ours

    def __post_init__(self) -> None:
        checks.positive("temperature_min", self.temperature_min)
        checks.at_least("temperature", self.temperature, self.temperature_min)
        checks.between("decay", self.decay, 0.0, 1.0)
        checks.positive("initial_step", self.initial_step)
        checks.whole("max_iterations", self.max_iterations, 1)
        checks.between("tolerance", self.tolerance, 0.0, 1.0)
        checks.one_of("unit", self.unit, UNITS)


@kernel
def gains(
    layout: Real,
    beam: Complex,
    device_x: Real,
    offset_square: Real,
    amplitude: Real,
    turns_per_m: float,
    refractive_index: float,
    distance: Real,
    term_re: Real,
    term_im: Real,
    gain_re: Real,
    gain_im: Real,
) -> None:
    """u_k(L) = m^H g_k(L), eq. (59); also leaves every antenna's distance and term behind."""
    gain_re[:] = 0.0
    gain_im[:] = 0.0
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        x = beam[m].real
        y = beam[m].imag
        for n in range(antennas):
            re = term_re[m, n]
            im = term_im[m, n]
            element(
                layout[m, n],
                device_x,
                offset_square[m],
                amplitude,
                turns_per_m,
                refractive_index,
                distance[m, n],
                re,
                im,
            )
            for k in range(gain_re.size):
                gain_re[k] += x * re[k] + y * im[k]
                gain_im[k] += x * im[k] - y * re[k]


@kernel
def layout_gradient(
    layout: Real,
    beam: Complex,
    device_x: Real,
    wavenumber: float,
    refractive_index: float,
    distance: Real,
    term_re: Real,
    term_im: Real,
    gain_re: Real,
    gain_im: Real,
    pull: Real,
    gradient: Real,
) -> None:
    """df/dl_{m,n} = 2 sum_k w~_k Re(u_k^* m_m^* dg_{k,m,n}/dl), eqs. (61), (66)-(68)."""
    waveguides, antennas = layout.shape
    for m in range(waveguides):
        x = beam[m].real
        y = beam[m].imag
        for n in range(antennas):
            re = term_re[m, n]
            im = term_im[m, n]
            dist = distance[m, n]
            total = 0.0
            for k in range(gain_re.size):
                stretch = (layout[m, n] - device_x[k]) / dist[k]  # dD/dl
                # v = u_k^* m_m^*, then Re(v g (-stretch/D - j kappa (stretch + i_ref)))
                v_re = gain_re[k] * x - gain_im[k] * y
                v_im = -gain_re[k] * y - gain_im[k] * x
                p_re = v_re * re[k] - v_im * im[k]
                p_im = v_re * im[k] + v_im * re[k]
                total += pull[k] * (
                    wavenumber * (stretch + refractive_index) * p_im - (stretch / dist[k]) * p_re
                )
            gradient[m, n] = 2.0 * total


@kernel
def _levels(gain_re: Real, gain_im: Real, per_weight_square: Real, levels: Real) -> None:
    for k in range(levels.size):
        levels[k] = (gain_re[k] * gain_re[k] + gain_im[k] * gain_im[k]) * per_weight_square[k]


@kernel
def _algorithm_2(
    raw: Real,
    room: Real,
    min_gap: float,
    beam: Complex,
    device_x: Real,
    offset_square: Real,
    amplitude: Real,
    per_weight_square: Real,
    turns_per_m: float,
    refractive_index: float,
    temperature: float,
    decay: float,
    temperature_min: float,
    initial_step: float,
    max_iterations: int,
    tolerance: float,
) -> tuple[Real, int, int]:
    """Algorithm 2 from the raw numbers `raw`: layout, iterations, channel evaluations."""
    waveguides = raw.shape[0]
    antennas = raw.shape[1] - 1
    count = device_x.size
    wavenumber = 2.0 * np.pi * turns_per_m
    layout = np.empty((waveguides, antennas))
    distance = np.empty((waveguides, antennas, count))
    term_re = np.empty((waveguides, antennas, count))
    term_im = np.empty((waveguides, antennas, count))
    gain_re = np.empty(count)
    gain_im = np.empty(count)
    levels = np.empty(count)
    pull = np.empty(count)
    by_layout = np.empty((waveguides, antennas))
    by_raw = np.empty(raw.shape)
    trial = np.empty(raw.shape)
    raw = raw.copy()  # line 1

    layout_from_raw(raw, room, min_gap, layout)  # line 2
    gains(
        layout,
        beam,
        device_x,
        offset_square,
        amplitude,
        turns_per_m,
        refractive_index,
        distance,
        term_re,
        term_im,
        gain_re,
        gain_im,
    )
    _levels(gain_re, gain_im, per_weight_square, levels)
    evaluations = 1
    iterations = 0
    idle = 0
    step = initial_step
    while iterations < max_iterations:  # lines 5-11
        value = softmin(levels, temperature, pull)  # line 7
        for k in range(count):
            pull[k] *= per_weight_square[k]  # eq. (62)
        layout_gradient(
            layout,
            beam,
            device_x,
            wavenumber,
            refractive_index,
            distance,
            term_re,
            term_im,
            gain_re,
            gain_im,
            pull,
            by_layout,
        )
        raw_gradient(raw, room, by_layout, by_raw)
        square = np.sum(by_raw * by_raw)
        if not square > 0.0:
            break
        accepted = False
        higher = value
        for _ in range(line_search.MAX_TRIALS):  # line 8
            for m in range(waveguides):
                for i in range(antennas + 1):
                    trial[m, i] = raw[m, i] + step * by_raw[m, i]
            layout_from_raw(trial, room, min_gap, layout)
            gains(
                layout,
                beam,
                device_x,
                offset_square,
                amplitude,
                turns_per_m,
                refractive_index,
                distance,
                term_re,
                term_im,
                gain_re,
                gain_im,
            )
            _levels(gain_re, gain_im, per_weight_square, levels)
            evaluations += 1
            higher = softmin(levels, temperature, pull)
            # The search minimises -f along the gradient, where its slope is -|grad|^2.
            if line_search.sufficient_decrease(-value, -higher, step, -square):
                accepted = True
                break
            step = line_search.next_trial(-value, -higher, step, -square)
        if not accepted:
            break
        raw[:] = trial
        step = line_search.first_trial(step)
        iterations += 1
        coldest = temperature == temperature_min
        temperature = shrink(temperature, decay, temperature_min)  # line 9
        idle = idle + 1 if coldest and higher - value <= tolerance * abs(higher) else 0
        if idle >= 2:
            break
    layout_from_raw(raw, room, min_gap, layout)
    return layout, iterations, evaluations  # line 12


def move(
    scenario: Scenario,
    layout: Real,
    beam: Complex,
    devices: Mask,
    options: HagoOptions,
    rng: np.random.Generator,
) -> LayoutSearch:
    """Algorithm 2 from `layout`, for the devices marked in `devices` (at least one)."""
    receiver, uplink = scenario.receiver, scenario.uplink
    unit = scenario.budget if options.unit == "score" else 1.0
    device_x = uplink.device_x[devices]
    device_y = uplink.device_y[devices]
    offset_square = (device_y - uplink.waveguide_y[:, None]) ** 2 + uplink.height**2
    moved, iterations, evaluations = _algorithm_2(
        invert(layout, receiver.room, receiver.min_gap_m),
        receiver.room,
        float(receiver.min_gap_m),
        beam,
        device_x,
        offset_square,
        uplink.amplitude(receiver.antennas)[devices],
        unit / scenario.weights[devices] ** 2,
        1.0 / uplink.wavelength,
        uplink.refractive_index,
        float(options.temperature),
        float(options.decay),
        float(options.temperature_min),
        float(options.initial_step),
        options.max_iterations,
        float(options.tolerance),
    )
    before = weakest_gain(scenario, layout, beam, devices)
    after = weakest_gain(scenario, moved, beam, devices)
    # A soft minimum may rise while the minimum falls: never hand back a worse layout.
    kept = (moved, after) if after >= before else (layout, before)
    return LayoutSearch(
        layout=kept[0],
        objective=(before, kept[1]),
        status="done",
        work={"iterations": iterations, "evaluations": evaluations},
    )


METHOD = GeometryMethod(
    name="hago",
    summary="Algorithm 2: gradient ascent on the soft minimum, feasible by construction",
    options=HagoOptions,
    move=move,
)
