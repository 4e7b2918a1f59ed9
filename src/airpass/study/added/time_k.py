"""Time of every selection method against the number of devices, at the uniform layout with ten waveguides."""

from dataclasses import replace

import numpy as np

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.trial import SECONDS, Trial

COUNTS = {
    "smoke": (6, 12, 24),
    "lite": (6, 12, 50, 250, 1250),
    "paper": (6, 12, 25, 50, 100, 250, 1250, 6250),
}
# Largest number of devices for methods whose time grows fast.
MOST = {"exhaustive": 12, "sdr-dc": 50, "mp": 1250}
SELECTIONS = ("hrmc", "hrmc+", "mp", "sdr-dc", "exhaustive", "random")


class TimeFigure(AxisFigure):
    """Time of selection methods."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A number of devices each."""
        most = {**MOST, "sdr-dc": 12} if scale == "smoke" else MOST
        return tuple(
            Place(
                float(count),
                # With weights 1/K, fewer devices need more SNR: 20 log10(50/K) dB, as in table I.
                scenario((count, 10, 10), round(20.0 * float(np.log10(50.0 / count)), 2), 0),
                {name: {"method": name} for name in SELECTIONS if count <= most.get(name, count)},
            )
            for count in COUNTS[scale]
        )

    def _trial(self, scale: str, place: Place, scheme: str, number: int, seed: int) -> Trial:
        return replace(
            super()._trial(scale, place, scheme, number, seed),
            job="select",
            repeats=1 if scheme in ("sdr-dc", "exhaustive") else 3,
        )


FIGURE = TimeFigure(
    name="time-k",
    title="Time of device selection against the number of devices. M = 10",
    duration={"smoke": "10 seconds", "lite": "10 seconds", "paper": "half a minute"},
    xlabel="devices K",
    metrics=(SECONDS,),
    log="xy",
)
