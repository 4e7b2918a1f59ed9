"""What becomes of a design when it is built and used with small errors.

Every draw moves each antenna by a normal error, which gives the channels that are really there,
and adds a normal error to those, which gives the channels as they are known. Then three receivers
are compared, by who sends, who of these has a score of at least one on the real channels, and the
aggregation error that they really get (eq. 17):

    as designed   beam, senders and scaling stay as the design has them
    rescaled      the beam stays; senders and scaling follow from the channels as known
    re-solved     the beam, too, is adapted to the channels as known

A sender whose score has fallen below one cannot be aligned exactly with the others any more. With
the old scaling it is then a little out of line, which may cost less than the limit leaves over.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from airpass import aircomp, checks
from airpass.designing import Design
from airpass.optim.types import Complex, Mask, Real
from airpass.randomness import Purpose, stream
from airpass.selection.hrmc_plus import regrow

RECEIVERS = ("as designed", "rescaled", "re-solved")
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One receiver over all draws."""

    senders: Real  # how many devices send
    counts: Real  # how many of these have a score of at least one on the real channels
    mses: Real  # aggregation error on the real channels; not a number when nobody sends
    threshold: float

    @property
    def mean(self) -> float:
        """Devices with a score of at least one, in the mean."""
        return float(self.counts.mean())

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Devices at the 5th, 50th and 95th percent of the draws."""
        return tuple(float(value) for value in np.quantile(self.counts, QUANTILES))

    @property
    def typical_mse(self) -> float:
        """The aggregation error that 95 % of the draws stay under; not a number if nobody ever sends."""
        sent = self.mses[np.isfinite(self.mses)]
        return float(np.quantile(sent, 0.95)) if sent.size else float("nan")

    @property
    def within(self) -> float:
        """Share of the draws in which the aggregation error stays under its limit."""
        # Rounding apart: the best scaling puts the weakest sender exactly at its score.
        return float(np.mean(self.mses <= self.threshold * (1.0 + 1e-9)))


@dataclass(frozen=True, eq=False)
class Tolerance:
    """A design under errors."""

    position_mm: float
    channel_error: float
    draws: int
    seed: int
    nominal: int  # devices selected without errors
    outcomes: dict[str, Outcome]  # by receiver


def tolerance(
    design: Design,
    *,
    position_mm: float,
    channel_error: float = 0.0,
    draws: int = 500,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> Tolerance:
    """Draw errors and see who is left.

    `position_mm` is the standard deviation of every antenna's position, along its waveguide (of
    every coordinate, in a co-located array). `channel_error` is the variance of what is not known
    about each entry of g_k, relative to ||g_k||^2/M.
    """
    checks.at_least("position_mm", position_mm, 0.0)
    checks.at_least("channel_error", channel_error, 0.0)
    checks.whole("draws", draws, 1)
    checks.whole("seed", seed, 0)
    sent = {name: np.empty(draws) for name in RECEIVERS}
    counts = {name: np.empty(draws) for name in RECEIVERS}
    mses = {name: np.empty(draws) for name in RECEIVERS}
    for draw in range(draws):
        real = _built(design, position_mm, stream(seed, Purpose.BUILD_ERROR, draw))
        known = _known(real, channel_error, stream(seed, Purpose.CHANNEL_ERROR, draw))
        adapted = regrow(_effective(design, known), design.beam)
        for name, beam, believed in (
            ("as designed", design.beam, design.channels),
            ("rescaled", design.beam, known),
            ("re-solved", adapted, known),
        ):
            senders = aircomp.selected(aircomp.scores(beam, _effective(design, believed)))
            sent[name][draw] = senders.sum()
            counts[name][draw] = np.sum(senders & _meets(design, beam, real))
            mses[name][draw] = _mse(design, beam, believed, real, senders)
        if report is not None and draw % 50 == 49:
            report(f"errors: {draw + 1} of {draws} draws")
    threshold = design.scenario.radio.mse_threshold
    return Tolerance(
        position_mm=position_mm,
        channel_error=channel_error,
        draws=draws,
        seed=seed,
        nominal=design.selected_count,
        outcomes={name: Outcome(sent[name], counts[name], mses[name], threshold) for name in RECEIVERS},
    )


def _built(design: Design, position_mm: float, rng: np.random.Generator) -> Complex:
    """The channels with antennas a little off."""
    if design.layout is not None:
        moved = design.layout + 1e-3 * position_mm * rng.standard_normal(design.layout.shape)
        return design.scenario.uplink.channels(moved)
    assert design.array is not None
    moved = design.array + 1e-3 * position_mm * rng.standard_normal(design.array.shape)
    return replace(design.scenario.colocated(1), positions=moved).channels()


def _known(real: Complex, channel_error: float, rng: np.random.Generator) -> Complex:
    drawn = rng.standard_normal((2, *real.shape))
    size = np.sqrt(channel_error / 2.0) * np.linalg.norm(real, axis=0) / np.sqrt(len(real))
    known: Complex = real + size * (drawn[0] + 1j * drawn[1])
    return known


def _effective(design: Design, channels: Complex) -> Complex:
    return aircomp.effective_channels(channels, design.scenario.weights, design.scenario.budget)


def _meets(design: Design, beam: Complex, real: Complex) -> Mask:
    return aircomp.selected(aircomp.scores(beam, _effective(design, real)))


def _mse(design: Design, beam: Complex, believed: Complex, real: Complex, senders: Mask) -> float:
    """Eq. (17) on the real channels, with scaling from the believed ones, within the power limit."""
    if not senders.any():
        return float("nan")
    weights, power = design.scenario.weights, design.scenario.radio.power
    eta = aircomp.denoising_factor(beam, believed, weights, senders, power)
    transmit = aircomp.transmit_scaling(beam, believed, weights, senders, eta)
    noise = design.scenario.radio.noise_power
    return aircomp.mse(beam, real, weights, senders, transmit, eta, noise)
