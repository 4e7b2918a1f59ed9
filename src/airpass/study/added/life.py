"""The life of a design: aligned devices after all devices have moved by a distance, and antennas stayed."""

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.paper.schemes import ARRAYS, METHODS

WAVELENGTHS = {
    "smoke": (1 / 64, 1 / 4, 2.0),
    "lite": (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 4.0),
    "paper": (1 / 64, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 1.0, 2.0, 8.0),
}


class LifeFigure(AxisFigure):
    """Aligned devices against displacement."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A displacement each."""
        size = (12, 3, 3) if scale == "smoke" else (50, 10, 10)
        return tuple(
            Place(
                distance,
                scenario(size, -10.0 if scale != "smoke" else 5.0, 0),
                {name: METHODS[name] for name in ("airpass-plus", "airpass", *ARRAYS)},
                {"displacement_wavelengths": distance, "draws": 5},
            )
            for distance in WAVELENGTHS[scale]
        )


FIGURE = LifeFigure(
    name="life",
    title="Devices that remain aligned after they have moved. K = 50, M = N = 10, -10 dB",
    duration={"smoke": "10 seconds", "lite": "20 seconds", "paper": "6 minutes"},
    xlabel="displacement, wavelengths",
    metrics=("aligned_as_designed", "aligned_re_solved"),
    arrays=ARRAYS,
    log="x",
)
