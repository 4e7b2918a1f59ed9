"""Selected devices against the number of receive chains, the same for pinching antennas and arrays.

A pinching-antenna receiver with M chains has ten antennas on each of M waveguides; an array with M chains
has M antennas.
"""

from typing import Any

from airpass.channel.colocated import SHAPES
from airpass.study.added.base import AxisFigure, Place
from airpass.study.paper.base import scenario
from airpass.study.paper.schemes import METHODS

CHAINS = {"smoke": (2, 4), "lite": (2, 5, 10, 20), "paper": (1, 2, 4, 6, 8, 10, 14, 20)}
ARRAYS: dict[str, dict[str, Any]] = {
    f"mimo-m-plus-{shape}": {"method": "mimo-m-plus", "options": {"axis": shape}} for shape in SHAPES
}


class ChainFigure(AxisFigure):
    """Selected devices against receive chains."""

    def places(self, scale: str) -> tuple[Place, ...]:
        """A number of chains each."""
        devices, antennas = (12, 3) if scale == "smoke" else (50, 10)
        return tuple(
            Place(
                float(chains),
                scenario((devices, chains, antennas), -5.0 if scale != "smoke" else 10.0, 0),
                {name: METHODS[name] for name in ("airpass-plus", "airpass")} | ARRAYS,
            )
            for chains in CHAINS[scale]
        )


FIGURE = ChainFigure(
    name="devices-chains",
    title="Selected devices against receive chains. K = 50, N = 10, -5 dB",
    duration={"smoke": "10 seconds", "lite": "10 seconds", "paper": "half a minute"},
    xlabel="receive chains",
    arrays=ARRAYS,
    best="mimo-m-plus",
)
