"""`design_for_all`: one design that serves all devices, with the smallest error that is found.

`design` selects as many devices as it can for a given threshold eps. Here the devices are given, all of those
with a priority above zero, and the error is minimised: that of the sum is eps/min_k z_k, so that the smallest
amplitude min_k sqrt(z_k) is maximised. Designs for a part c of all weights have the scores z_k/c^2; one that
selects all devices has min_k sqrt(z_k) >= c. c is lowered from one until all are selected, and then raised by
small steps as long as a better design is found.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.threads import one_blas_thread
from airpass.core.types import Mask
from airpass.designs.api import Design, design, design_method
from airpass.designs.base import DesignMethod
from airpass.kernels.clock import Stopwatch
from airpass.scenario import Scenario

LOWER = 1.5  # factor between the parts while c is lowered
RAISE = 1.02  # of the smallest amplitude, which the next search aims at
FAILURES = 3  # searches without a gain after which the search ends
LEAST_PART = 1e-3  # -60 dB
ROUNDING = 1e-9

# Part of all weights, design to continue from, number of the trial.
ServePart = Callable[[float, Design | None, int], Design]


def design_for_all(
    scenario: Scenario,
    method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    report: Report | None = None,
) -> Design:
    """Design a receiver that serves all devices, with the smallest error that is found.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights. Devices of priority zero need not be served.
    method, options
        As for `design`. The method has to be able to use priorities if a device has the priority zero.
    seed
        Seed of everything random. Default: the seed that the scenario's devices were drawn with, or 0.
    report
        Callback for progress messages.

    Returns
    -------
    Design
        The design. The `mse_threshold` of its scenario is the smallest at which it selects all devices.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    scenario.require_one_carrier("a design for all devices")
    chosen = design_method(method, options=options)
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    wanted: Mask = scenario.priorities > 0.0
    even = scenario.with_priorities(wanted.astype(float))  # all must be in, whatever they count

    def serve(part: float, start: Design | None, trial: int) -> Design:
        given: dict[str, Any] = {}
        if start is not None and start.layout is not None:
            given["start_layout"] = start.layout
            if chosen.uses_start_beam:
                given["start_beam"] = start.beam
        threshold = scenario.radio.mse_threshold / part**2
        number = seed if trial == 0 else int(stream(seed, Purpose.TURNS, trial).integers(10**9))
        return with_scenario(
            design(even.with_radio(mse_threshold=threshold), chosen, seed=number, **given), even
        )

    with one_blas_thread():
        watch = Stopwatch()
        found = strongest(serve, serve(1.0, None, 0), wanted, LEAST_PART, report or discard)
    weakest = weakest_amplitude(found, wanted) ** 2
    if weakest < LEAST_PART**2:
        raise InvalidInput(
            f"{chosen.name} found no design for all devices, even for {LEAST_PART:g} of their weights; "
            "set devices.priority of the weakest to 0"
        )
    threshold = scenario.radio.mse_threshold / weakest * (1.0 + ROUNDING)
    return replace(
        with_scenario(found, scenario.with_radio(mse_threshold=threshold)),
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
        seed=seed,
    )


def with_scenario(found: Design, scenario: Scenario) -> Design:
    """The same antennas and beam, with the weights, powers and threshold of another scenario."""
    return replace(
        found,
        scenario=scenario,
        weights=scenario.weights,
        budget=scenario.budget,
        power=scenario.radio.power,
        mse_threshold=scenario.radio.mse_threshold,
    )


def weakest_amplitude(found: Design, wanted: Mask) -> float:
    """Root of the smallest score of the wanted devices."""
    return float(np.sqrt(found.scores[wanted].min()))


def strongest(
    serve: ServePart, first: Design, wanted: Mask, least_part: float, report: Report, enough: float = np.inf
) -> Design:
    """The design with the largest of the smallest amplitudes that is found.

    Parameters
    ----------
    serve
        Function that gives a design for a part of all weights. Its scores are those with whole weights.
    first
        A design for whole weights.
    wanted
        Devices that must be served, shape (K,).
    least_part
        Smallest part that is tried.
    report
        Callback for progress messages.
    enough
        Amplitude with which the search ends.

    Returns
    -------
    Design
        The design. Its smallest amplitude is below `least_part` if none was found.
    """
    best, part = first, 1.0
    while weakest_amplitude(best, wanted) < part and part > least_part:
        part = max(part / LOWER, least_part)
        report(f"all devices with {part:.3g} of their weights")
        best = _stronger(best, serve(part, None, 0), wanted)
    failed = 0
    while weakest_amplitude(best, wanted) < enough and failed < FAILURES:
        part = RAISE * max(weakest_amplitude(best, wanted), least_part)
        report(f"all devices with {part:.3g} of their weights")
        better = _stronger(best, serve(part, best if failed == 0 else None, failed), wanted)
        failed = 0 if better is not best else failed + 1
        best = better
    return best


def _stronger(one: Design, other: Design, wanted: Mask) -> Design:
    """The one with the larger smallest amplitude; the first if they are equal."""
    return other if weakest_amplitude(other, wanted) > weakest_amplitude(one, wanted) else one
