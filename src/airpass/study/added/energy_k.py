"""Signal-to-distortion ratio that a threshold of the error asks for, with both rules for the weights."""

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import ENERGY, scenario
from airpass.study.paper.schemes import METHODS

COUNTS = {"smoke": (5, 10, 20), "lite": (10, 20, 50, 100), "paper": (5, 10, 20, 50, 100, 200)}
SNR_DB = 0.0  # at 10 dB all devices are selected with both rules, far below the threshold
RULES = {"airpass-plus-share": "share", "airpass-plus-energy": ENERGY}


class EnergyFigure(AxisFigure):
    """Signal-to-distortion ratio and selected devices against K."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A number of devices each; the rules for the weights are the lines."""
        chains = 3 if scale == "smoke" else 10
        return tuple(
            Place(
                float(count),
                scenario((count, chains, chains), SNR_DB, 0, {"weights": {"normalisation": rule}}),
                {name: METHODS["airpass-plus"]},
            )
            for count in COUNTS[scale]
            for name, rule in RULES.items()
        )


FIGURE = EnergyFigure(
    name="energy-k",
    title="Signal-to-distortion ratio against the number of devices. M = N = 10, 0 dB",
    duration={"smoke": "10 seconds", "lite": "10 seconds", "paper": "half a minute"},
    xlabel="devices K",
    metrics=("sdr_db", "selected_count"),
    log="x",
)
