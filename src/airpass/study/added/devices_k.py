"""Selected devices against their number, with weights for which the threshold means the same for all K."""

from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import ENERGY, scenario
from airpass.study.paper.schemes import ARRAYS, METHODS

COUNTS = {"smoke": (5, 10, 20), "lite": (10, 20, 50, 100), "paper": (5, 10, 20, 50, 100, 200)}


class CountFigure(AxisFigure):
    """Selected devices against K."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A number of devices each."""
        chains = 3 if scale == "smoke" else 10
        names = ("airpass-plus", "airpass", *ARRAYS)
        return tuple(
            Place(
                float(count),
                scenario((count, chains, chains), 10.0, 0, {"weights": {"normalisation": ENERGY}}),
                {name: METHODS[name] for name in names},
            )
            for count in COUNTS[scale]
        )


FIGURE = CountFigure(
    name="devices-k",
    title="Selected devices against their number, energy weights. M = N = 10, 10 dB",
    duration={"smoke": "10 seconds", "lite": "10 seconds", "paper": "half a minute"},
    xlabel="devices K",
    log="x",
    arrays=ARRAYS,
)
