"""Aligned devices under errors of the antennas' positions."""

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.paper.schemes import ARRAYS, METHODS

ERRORS_MM = {
    "smoke": (0.0, 2.0, 10.0),
    "lite": (0.0, 0.5, 1.0, 2.0, 5.0, 10.0),
    "paper": (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0),
}
ROBUST = "airpass-plus-robust"  # a design for errors of 1 mm


class ToleranceFigure(AxisFigure):
    """Aligned devices against the standard deviation of position errors."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """An error each."""
        size = (12, 3, 3) if scale == "smoke" else (50, 10, 10)
        return tuple(
            Place(
                error,
                scenario(size, -10.0 if scale != "smoke" else 5.0, 0),
                {name: METHODS[name] for name in ("airpass-plus", ROBUST, "airpass", *ARRAYS)},
                {"position_mm": error, "draws": 20},
            )
            for error in ERRORS_MM[scale]
        )


FIGURE = ToleranceFigure(
    name="tolerance",
    title="Devices that are aligned when antennas are not in place. K = 50, M = N = 10, -10 dB",
    duration={"smoke": "10 seconds", "lite": "20 seconds", "paper": "4 minutes"},
    xlabel="position error (standard deviation), mm",
    metrics=("aligned_as_designed", "aligned_re_solved"),
    arrays=ARRAYS,
)
