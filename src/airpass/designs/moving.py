"""Communication rounds that take time while devices move.

Round r = 1, 2, ... takes place at the time (r - 1) S. Devices are where their paths say, the channels are
those of these places, and the beam is re-solved for them. Antennas follow as in `airpass.designs.track`: a
step of the track is a round, or a whole fraction of it if layouts are found more often than once in a round.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.threads import one_blas_thread
from airpass.core.types import Real
from airpass.designs.api import design_method
from airpass.designs.base import DesignMethod
from airpass.designs.colocated import ArrayDesign
from airpass.designs.round_links import RoundLink, RoundLinks
from airpass.designs.track import UPDATES, Receiver
from airpass.geometry.base import any_segment
from airpass.scenario import Motion, Paths, Scenario


@dataclass(frozen=True)
class Moving:
    """How long a round takes, how devices move, and how antennas follow.

    Parameters
    ----------
    motion
        Model of motion such as `RandomWaypoint(speed_m_s=1.0)`, or paths from `read_paths`.
    round_s
        Duration S of a round, seconds.
    layout_every_s
        Time between new layouts, rounded to a whole number of rounds, or to a whole number of layouts in a
        round; that of a round if nothing is given.
    layout_delay_s, lead_s, antenna_speed_m_s, time_limit_s
        As for `track`. Links then depend on the machine if there is a time limit. Methods without this
        option do not use it.
    update
        As for `track`; arrays, which have no antennas that move, take "redesign".
    """

    motion: Motion
    round_s: float
    layout_every_s: float | None = None
    layout_delay_s: float = 0.0
    lead_s: float = 0.0
    antenna_speed_m_s: float | None = None
    time_limit_s: float | None = None
    update: str = "redesign"

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion):
            raise InvalidInput(f"motion = {self.motion!r}: must be a model of motion, or paths")
        checks.positive("round_s", self.round_s)
        for name in ("layout_every_s", "antenna_speed_m_s", "time_limit_s"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        checks.at_least("layout_delay_s", self.layout_delay_s, 0.0)
        checks.at_least("lead_s", self.lead_s, 0.0)
        checks.one_of("update", self.update, UPDATES)

    @property
    def steps(self) -> int:
        """Steps of the track in a round."""
        return 1 if self.layout_every_s is None else max(1, round(self.round_s / self.layout_every_s))

    @property
    def step_s(self) -> float:
        """Duration of a step of the track, seconds."""
        return self.round_s / self.steps

    def places(self, scenario: Scenario, rounds: int) -> Real:
        """Where devices are at every step until the last round.

        Parameters
        ----------
        scenario
            The devices at the start, and their room.
        rounds
            Number of rounds.

        Returns
        -------
        Real
            [x, y] or [x, y, z] in metres, shape (steps, K, 2) or (steps, K, 3).
        """
        times = [self.step_s * step for step in range((rounds - 1) * self.steps + 1)]
        return self.motion.paths(scenario, times[-1]).positions(times)

    def receiver(self, scenario: Scenario, method: DesignMethod, seed: int) -> Receiver:
        """The receiver of `links` before the first step."""
        if self.antenna_speed_m_s is not None:
            any_segment(scenario, "antenna_speed_m_s")
        every = self.step_s if self.layout_every_s is None else self.layout_every_s
        return Receiver(
            scenario=scenario,
            method=method,
            update="redesign" if isinstance(method, ArrayDesign) else self.update,
            every=max(1, round(every / self.step_s)),
            delay_s=self.layout_delay_s,
            lead_s=self.lead_s,
            step_s=self.step_s,
            speed_m_s=self.antenna_speed_m_s,
            time_limit_s=self.time_limit_s if hasattr(method, "time_limit_s") else None,
            seed=seed,
        )

    def links(
        self,
        scenario: Scenario,
        rounds: int,
        method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
        *,
        seed: int | None = None,
    ) -> RoundLinks:
        """Links for `airpass.train`, one per round.

        Parameters
        ----------
        scenario
            Receiver, radio, devices at the start, and weights.
        rounds
            Number of rounds.
        method
            Design method, as for `design`.
        seed
            Seed of the searches. Default: that of the scenario.

        Returns
        -------
        RoundLinks
            A sequence of links, each computed when it is first used.
        """
        scenario.require_one_carrier("training in motion")
        chosen = design_method(method)
        seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
        checks.whole("rounds", rounds, 1)
        start = partial(self._walk, scenario, rounds, chosen, seed)
        return RoundLinks(start, rounds, {"motion": self.to_dict()})

    def _walk(self, scenario: Scenario, rounds: int, method: DesignMethod, seed: int) -> Iterator[Link]:
        receiver = self.receiver(scenario, method, seed)
        for step, places in enumerate(self.places(scenario, rounds)):
            with one_blas_thread():
                receiver.advance(places)
            if step % self.steps == 0:
                link = receiver.link
                yield RoundLink(
                    channels=link.channels,
                    weights=link.weights,
                    beam=link.beam,
                    budget=link.budget,
                    power=link.power,
                    mse_threshold=link.mse_threshold,
                    method=method,
                )

    def to_dict(self) -> dict[str, Any]:
        """All values as plain data; paths by their fingerprint."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "motion"}
        return {"model": _described(self.motion), **own}


def _described(motion: Motion) -> dict[str, Any]:
    """A model of motion as plain data."""
    if isinstance(motion, Paths):
        digest = hashlib.sha256()
        for times, points in zip(motion.times_s, motion.points_m, strict=True):
            digest.update(np.ascontiguousarray(times).tobytes() + np.ascontiguousarray(points).tobytes())
        return {"name": "paths", "sha256": digest.hexdigest()}
    options: dict[str, Any] = asdict(motion) if is_dataclass(motion) else {}
    return {"name": type(motion).__name__, **options}
