"""Designs under errors of antenna positions, displacements of devices, and channel estimation errors.

Every draw moves each antenna and each device by normal errors, which gives the real channels, and adds a
normal error to these, which gives the estimated channels. Three receivers are compared:

    as designed   beam, senders and scaling of the design
    rescaled      the design's beam; senders and scaling from the estimated channels
    re-solved     beam, senders and scaling from the estimated channels

A sender is counted if it is aligned. With the scaling of the design, its contribution must arrive
within a tenth of its weight. With new scaling, its score on the real channels must be at least one, so
that it can be aligned exactly. The aggregation error of eq. (17) is not sufficient: with K equal weights it
is 1/K if no device sends, which may be below the threshold.
"""

from dataclasses import dataclass, replace

import numpy as np

from airpass import aircomp
from airpass.aircomp import Link
from airpass.channel.segments import places_on
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report
from airpass.core.types import Complex, Real
from airpass.designs.api import Design
from airpass.scenario import Scenario
from airpass.selection.hrmc_plus import regrow

RECEIVERS = ("as designed", "rescaled", "re-solved")
QUANTILES = (0.05, 0.5, 0.95)
ALIGNED = 0.1  # largest relative error of an aligned device with the scaling of the design


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of one receiver over all draws."""

    senders: Real  # number of devices that send, per draw
    counts: Real  # number of these that are aligned
    misalignments: Real  # sqrt(sum |received - phi_k|^2/sum phi_k^2) over the senders, without noise
    mses: Real  # aggregation error on the real channels; these two are NaN if no device sends
    threshold: float

    @property
    def mean(self) -> float:
        """Mean number of aligned devices."""
        return float(self.counts.mean())

    @property
    def quantiles(self) -> tuple[float, ...]:
        """5 %, 50 % and 95 % quantiles of the number of aligned devices."""
        return tuple(float(value) for value in np.quantile(self.counts, QUANTILES))

    @property
    def misalignment(self) -> float:
        """Root mean square over the draws with senders."""
        sent = self.misalignments[np.isfinite(self.misalignments)]
        return float(np.sqrt(np.mean(sent**2))) if sent.size else float("nan")

    @property
    def high_mse(self) -> float:
        """95 % quantile of the aggregation error over the draws with senders."""
        sent = self.mses[np.isfinite(self.mses)]
        return float(np.quantile(sent, 0.95)) if sent.size else float("nan")

    @property
    def within(self) -> float:
        """Share of the draws with senders whose aggregation error is within the threshold."""
        # With tolerance for rounding: the best scaling makes the weakest sender meet the limit exactly.
        return float(np.mean(self.mses <= self.threshold * (1.0 + 1e-9)))


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Outcomes of a design under random errors."""

    position_mm: float
    channel_error: float
    draws: int
    seed: int
    nominal: int  # devices selected without errors
    outcomes: dict[str, Outcome]  # by receiver
    displacement_mm: float = 0.0


def tolerance(
    design: Design,
    *,
    position_mm: float = 0.0,
    displacement_mm: float = 0.0,
    channel_error: float = 0.0,
    draws: int = 500,
    seed: int | None = None,
    report: Report | None = None,
) -> Tolerance:
    """Evaluate a design under random errors.

    Parameters
    ----------
    design
        The design.
    position_mm
        Standard deviation of every antenna's position along its waveguide; of every coordinate for a
        co-located array.
    displacement_mm
        Standard deviation of the displacement of every device in x and in y; independent for each device.
    channel_error
        Channel estimation error variance of an entry of g_k, relative to ||g_k||^2/M.
    draws
        Number of draws.
    seed
        Seed of the errors. Default: that of the design.
    report
        Callback for progress messages.

    Returns
    -------
    Tolerance
        Distribution of aligned devices and errors for three receivers.
    """
    checks.instance("design", design, Design, "the result of airpass.design")
    design.scenario.require_one_carrier("tolerance")
    checks.at_least("position_mm", position_mm, 0.0)
    checks.at_least("displacement_mm", displacement_mm, 0.0)
    checks.at_least("channel_error", channel_error, 0.0)
    checks.whole("draws", draws, 1)
    if design.scenario.channel.responses is not None and (position_mm > 0.0 or displacement_mm > 0.0):
        raise InvalidInput(
            f"{design.scenario.channel.label}: are known at their places and for their devices only; set "
            "position_mm and displacement_mm to 0"
        )
    longest_mm = 1e3 * float(design.scenario.receiver.lengths.max())
    if position_mm > longest_mm:
        raise InvalidInput(
            f"position_mm = {position_mm:g}: must not exceed the length of the waveguides, {longest_mm:g} mm"
        )
    seed = design.seed if seed is None else checks.whole("seed", seed, 0)
    memory.require(96.0 * draws, "results of the draws", "draws")
    sent = {name: np.empty(draws) for name in RECEIVERS}
    counts = {name: np.empty(draws) for name in RECEIVERS}
    misalignments = {name: np.empty(draws) for name in RECEIVERS}
    mses = {name: np.empty(draws) for name in RECEIVERS}
    for draw in range(draws):
        place = _displaced(design, displacement_mm, stream(seed, Purpose.DISPLACEMENT, draw))
        real = _built(design, place, position_mm, stream(seed, Purpose.BUILD_ERROR, draw))
        rng = stream(seed, Purpose.CHANNEL_ERROR, draw)
        known = aircomp.with_estimation_errors(real, channel_error, rng)
        links = {"as designed": link_on(design, design.channels), "rescaled": link_on(design, known)}
        adapted = regrow(links["rescaled"].effective, design.beam)
        links["re-solved"] = replace(links["rescaled"], beam=adapted)
        for name, believed in links.items():
            senders = believed.selected
            errors = misalignment(believed, real)
            if name == "as designed":
                inside = senders & (errors <= ALIGNED)
            else:
                inside = senders & replace(believed, channels=real).selected
            power = believed.weights[senders] ** 2
            sent[name][draw] = senders.sum()
            counts[name][draw] = inside.sum()
            misaligned = np.sum(power * errors[senders] ** 2)
            misalignments[name][draw] = np.sqrt(misaligned / power.sum()) if senders.any() else np.nan
            noise = design.scenario.radio.noise_power / believed.denoising_factor
            mses[name][draw] = misaligned + noise  # eq. (17)
        if report is not None and draw % 50 == 49:
            report(f"errors: {draw + 1} of {draws} draws")
    threshold = design.scenario.radio.mse_threshold
    return Tolerance(
        position_mm=position_mm,
        channel_error=channel_error,
        draws=draws,
        seed=seed,
        nominal=design.selected_count,
        outcomes={
            name: Outcome(sent[name], counts[name], misalignments[name], mses[name], threshold)
            for name in RECEIVERS
        },
        displacement_mm=displacement_mm,
    )


def link_on(design: Design, channels: Complex) -> Link:
    """The design's beam on other channels."""
    return Link(channels, design.weights, design.beam, design.budget, design.power, design.mse_threshold)


def _displaced(design: Design, displacement_mm: float, rng: np.random.Generator) -> Scenario:
    """The scenario with displaced devices."""
    if displacement_mm == 0.0:
        return design.scenario
    devices = design.scenario.devices
    dx, dy = 1e-3 * displacement_mm * rng.standard_normal((2, devices.count))
    return replace(
        design.scenario, devices=replace(devices, x_m=devices.x_m + dx, y_m=devices.y_m + dy, drawn_from=None)
    )


def _built(design: Design, place: Scenario, position_mm: float, rng: np.random.Generator) -> Complex:
    """Channels with position errors of the antennas."""
    if design.layout is not None:
        moved = design.layout + 1e-3 * position_mm * rng.standard_normal(design.layout.shape)
        if place.segments is not None:
            moved = places_on(place.segments, design.layout, moved)
        return place.uplink.channels(moved)
    assert design.array is not None
    moved = design.array + 1e-3 * position_mm * rng.standard_normal(design.array.shape)
    return place.array_at(moved).channels()


def misalignment(believed: Link, real: Complex) -> Real:
    """|received/phi_k - 1| of every sender on the real channels; NaN for other devices."""
    result = np.full(believed.weights.size, np.nan)
    senders = believed.selected
    if senders.any():
        received = (np.conj(believed.beam) @ real) * believed.transmit / np.sqrt(believed.denoising_factor)
        result[senders] = np.abs(received[senders] / believed.weights[senders] - 1.0)
    return result
