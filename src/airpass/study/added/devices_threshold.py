"""Selected devices against the error threshold."""

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.paper.schemes import ARRAYS, METHODS

THRESHOLDS = {
    "smoke": (0.01, 0.1, 1.0),
    "lite": (0.003, 0.01, 0.03, 0.1, 0.3),
    "paper": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
}


class ThresholdFigure(AxisFigure):
    """Selected devices against the threshold."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A threshold each."""
        size = (12, 3, 3) if scale == "smoke" else (50, 10, 10)
        names = ("airpass-plus", "airpass", *ARRAYS)
        return tuple(
            Place(
                threshold,
                scenario(
                    size, -10.0 if scale != "smoke" else 5.0, 0, {"radio": {"mse_threshold": threshold}}
                ),
                {name: METHODS[name] for name in names},
            )
            for threshold in THRESHOLDS[scale]
        )


FIGURE = ThresholdFigure(
    name="devices-threshold",
    title="Selected devices against the error threshold. K = 50, M = N = 10, -10 dB",
    duration={"smoke": "10 seconds", "lite": "10 seconds", "paper": "half a minute"},
    xlabel="error threshold",
    log="x",
    arrays=ARRAYS,
)
