"""The life of a design: how far devices may move before its gain is lost.

Every draw moves each device by the same distance, in a random direction in the plane; antennas stay. Three
receivers are compared, as in `tolerance`:

    as designed   beam, senders and scaling of the design
    rescaled      the design's beam; senders and scaling from the new channels
    re-solved     beam, senders and scaling from the new channels

The new channels are known exactly. The beam is re-solved by growing from the design's, and by `hrmc+` from
many starts; the better one counts. A device is counted as in `tolerance`.

The coherence distance of a receiver is the displacement at which half of its gain is lost. The gain is the
mean count without displacement minus that at a displacement of ten wavelengths, where no phase is
related to that of the design. Between the distances that are evaluated, mean counts are interpolated
linearly; the first crossing counts. A receiver that loses less than a tenth of its count, or less than
one device, has none: its gain does not depend on phases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airpass import aircomp
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import Report, discard
from airpass.core.results import Result
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Real
from airpass.designs.api import Design
from airpass.designs.tolerance import ALIGNED, RECEIVERS, link_on, misalignment
from airpass.optim.ranking import rank
from airpass.scenario.motion import displaced
from airpass.selection.hrmc_plus import HrmcPlus, regrow

WAVELENGTHS = (1 / 64, 1 / 32, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 1.0, 2.0)  # distances
FAR_WAVELENGTHS = 10.0  # displacement at which nothing is left of the design's phases
SMALLEST_SHARE = 0.1  # of the count that must be lost for a coherence distance


@dataclass(frozen=True, eq=False)
class Life(Result):
    """Aligned devices of a design against displacement.

    Parameters
    ----------
    method
        Name of the design's method.
    devices
        Number of devices K.
    wavelength_m
        Wavelength, metres.
    distances_m
        Displacements, metres, increasing; the first is zero.
    draws
        Number of draws.
    seed
        Seed of the directions.
    counts
        Number of aligned devices by receiver, shape (distances, draws).
    """

    method: str
    devices: int
    wavelength_m: float
    distances_m: Real
    draws: int
    seed: int
    counts: Mapping[str, Real]

    def mean(self, receiver: str) -> Real:
        """Mean number of aligned devices of a receiver at every distance."""
        means: Real = self.counts[receiver].mean(axis=1)
        return means

    def far(self, receiver: str) -> float:
        """Mean number of aligned devices at a displacement of ten wavelengths."""
        at = int(np.argmin(np.abs(self.distances_m - FAR_WAVELENGTHS * self.wavelength_m)))
        return float(self.mean(receiver)[at])

    def coherence_m(self, receiver: str = "re-solved") -> float:
        """Displacement at which half of a receiver's gain is lost.

        Parameters
        ----------
        receiver
            One of "as designed", "rescaled", "re-solved".

        Returns
        -------
        float
            Metres; NaN if the receiver keeps its count, as arrays do whose beam is re-solved.
        """
        checks.one_of("receiver", receiver, self.counts)
        means = self.mean(receiver)
        gain = float(means[0]) - self.far(receiver)
        if gain < max(1.0, SMALLEST_SHARE * float(means[0])):
            return float("nan")
        half = float(means[0]) - gain / 2.0
        after = int(np.argmax(means <= half))
        first, second = means[after - 1], means[after]
        share = (first - half) / (first - second)
        before = self.distances_m[after - 1]
        return float(before + share * (self.distances_m[after] - before))

    def coherence_wavelengths(self, receiver: str = "re-solved") -> float:
        """`coherence_m` over the wavelength."""
        return self.coherence_m(receiver) / self.wavelength_m

    def __repr__(self) -> str:
        kept = self.coherence_m()
        words = "keeps its devices" if np.isnan(kept) else f"coherence distance {kept:.3g} m"
        return f"Life({self.method}: {words} with the beam re-solved)"


def life(
    design: Design,
    distances_m: Sequence[float] | Real | None = None,
    *,
    draws: int = 20,
    seed: int | None = None,
    report: Report | None = None,
) -> Life:
    """Evaluate a design after its devices have moved.

    Parameters
    ----------
    design
        The design, of pinching antennas or of an array.
    distances_m
        Displacements in metres. Default: 1/64 to 2 wavelengths. Zero and ten wavelengths are always added.
    draws
        Number of draws of the directions; the same directions for all distances.
    seed
        Seed of the directions. Default: that of the design.
    report
        Callback for progress messages.

    Returns
    -------
    Life
        Aligned devices of three receivers at every distance, and their coherence distances.
    """
    checks.instance("design", design, Design, "the result of airpass.design")
    design.scenario.require_one_carrier("life")
    checks.whole("draws", draws, 1)
    seed = design.seed if seed is None else checks.whole("seed", seed, 0)
    report = discard if report is None else report
    distances = _distances(distances_m, design.scenario.radio.wavelength_m)
    memory.require(24.0 * distances.size * draws, "results of the draws", "draws")
    counts = {name: np.empty((distances.size, draws)) for name in RECEIVERS}
    devices = design.scenario.devices
    places = np.column_stack([devices.x_m, devices.y_m])
    with one_blas_thread():
        for draw in range(draws):
            angles = stream(seed, Purpose.DIRECTIONS, draw).uniform(0.0, 2.0 * np.pi, devices.count)
            directions = np.column_stack([np.cos(angles), np.sin(angles)])
            rng = stream(seed, Purpose.SELECTION, draw)
            for at, distance in enumerate(distances):
                channels = channels_at(design, places + distance * directions)
                for name, count in _counts(design, channels, rng).items():
                    counts[name][at, draw] = count
            report(f"displacements: {draw + 1} of {draws} draws")
    return Life(
        method=design.method.name,
        devices=devices.count,
        wavelength_m=design.scenario.radio.wavelength_m,
        distances_m=distances,
        draws=draws,
        seed=seed,
        counts=counts,
    )


def channels_at(design: Design, places: Real) -> Complex:
    """Channels of a design's antennas to its devices at other places.

    Parameters
    ----------
    design
        The design.
    places
        [x, y] or [x, y, z] of every device in metres, shape (K, 2) or (K, 3).

    Returns
    -------
    Complex
        Channels, shape (M, K).
    """
    scenario = displaced(design.scenario, places)
    if design.layout is not None:
        return scenario.uplink.channels(design.layout)
    if design.array is None:
        raise InvalidInput(
            f"{design.method.name} has neither a layout nor an array: its channels to other places are "
            "not known"
        )
    return scenario.array_at(design.array).channels()


def re_solved(effective: Complex, beam: Complex, rng: np.random.Generator) -> Complex:
    """The better of the beam grown from `beam`, and that of `hrmc+`.

    Parameters
    ----------
    effective
        Effective channels, shape (M, K).
    beam
        The beam so far, shape (M,).
    rng
        Source of the starts of `hrmc+`.

    Returns
    -------
    Complex
        A beam of unit norm.
    """
    found = (regrow(effective, beam), HrmcPlus().search(effective, rng, discard).beam)
    return max(found, key=lambda one: rank(aircomp.scores(one, effective)))


def _counts(design: Design, channels: Complex, rng: np.random.Generator) -> dict[str, int]:
    """Number of aligned devices by receiver."""
    rescaled = link_on(design, channels)
    adapted = replace(rescaled, beam=re_solved(rescaled.effective, design.beam, rng))
    kept = design.selected & (misalignment(design, channels) <= ALIGNED)
    return {
        "as designed": int(kept.sum()),
        "rescaled": rescaled.selected_count,
        "re-solved": adapted.selected_count,
    }


def _distances(given: Sequence[float] | Real | None, wavelength_m: float) -> Real:
    """Checked distances, with zero and the far one."""
    far = FAR_WAVELENGTHS * wavelength_m
    if given is None:
        return np.array([0.0, *(share * wavelength_m for share in WAVELENGTHS), far])
    values = np.ravel(np.asarray(given, dtype=object))
    checked = [checks.at_least("distances_m", value, 0.0) for value in values]
    return np.unique([0.0, far, *checked])
