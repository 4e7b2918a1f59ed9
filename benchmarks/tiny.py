"""Designs and bounds against exhaustive search over layouts, for two and three antennas.

Run: python benchmarks/tiny.py [--effort fast default thorough] [--draws 8]

Prints the second table of docs/science/bounds.md. Seeds start at 3000. The exhaustive search tries all
layouts of a grid with a twentieth of the wavelength, so that a design may select more devices than it.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402

import numpy as np  # noqa: E402

from airpass import DeviceDraw, Radio, Receiver, Scenario, certify_layouts, design  # noqa: E402
from airpass.designs.plus import AirpassPlus  # noqa: E402
from exhaustive_layouts import most_devices  # noqa: E402

FIRST_SEED = 3000


@dataclass(frozen=True)
class Size:
    """A set-up with few antennas."""

    waveguides: int
    antennas: int
    devices: int
    snr_db: float
    length_m: float = 40.0

    def scenario(self, seed: int) -> Scenario:
        """The scenario of a draw: the paper's, with devices up to the end of the waveguides."""
        return Scenario(
            receiver=Receiver(waveguides=self.waveguides, antennas=self.antennas, length_m=self.length_m),
            radio=Radio(snr_db=self.snr_db),
            devices=DeviceDraw(
                count=self.devices, seed=seed, x_range_m=(min(4.0, self.length_m / 10.0), self.length_m)
            ).draw(),
        )

    def __str__(self) -> str:
        return (
            f"M={self.waveguides}, N={self.antennas}, K={self.devices}, {self.length_m:g} m, "
            f"{self.snr_db:g} dB"
        )


SIZES = (
    Size(1, 2, 50, -5.0),
    Size(1, 2, 50, 0.0),
    Size(1, 2, 10, 10.0),
    Size(1, 3, 10, 10.0, 5.0),
    Size(2, 1, 10, 10.0),
    Size(2, 1, 10, 12.0, 10.0),
)


@dataclass(frozen=True)
class Row:
    """Counts of all draws of a size, shape (draws,)."""

    size: Size
    exhaustive: np.ndarray
    bound: np.ndarray
    found: dict[str, np.ndarray]  # by effort


def compare(size: Size, efforts: Sequence[str], draws: int) -> Row:
    """Exhaustive search, bound and `airpass-plus` on the same draws.

    Parameters
    ----------
    size
        The set-up.
    efforts
        Efforts of `airpass-plus`.
    draws
        Number of draws.

    Returns
    -------
    Row
        Number of devices of each.
    """
    scenarios = [size.scenario(FIRST_SEED + draw) for draw in range(draws)]
    return Row(
        size=size,
        exhaustive=np.array([most_devices(scenario) for scenario in scenarios]),
        bound=np.array([certify_layouts(scenario).at_most for scenario in scenarios]),
        found={
            effort: np.array([design(one, AirpassPlus(effort=effort)).selected_count for one in scenarios])
            for effort in efforts
        },
    )


def main() -> None:
    """Print a row per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", nargs="+", default=["fast", "default", "thorough"])
    parser.add_argument("--draws", type=int, default=8)
    arguments = parser.parse_args()
    names = [f"{effort} | reached" for effort in arguments.effort]
    print("| set-up |", " | ".join([*names, "exhaustive", "bound"]), "|")
    print("|---" * (3 + 2 * len(names)) + "|")
    for size in SIZES:
        row = compare(size, arguments.effort, arguments.draws)
        cells = [
            f"{found.mean():.1f} | {(found >= row.exhaustive).sum()} of {found.size}"
            for found in row.found.values()
        ]
        print(f"| {size} |", " | ".join(cells), end=" | ")
        print(f"{row.exhaustive.mean():.1f} | {row.bound.mean():.1f} |", flush=True)


if __name__ == "__main__":
    main()
