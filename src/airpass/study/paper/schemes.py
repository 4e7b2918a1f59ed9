"""The schemes of the figures, and the three comparisons of pinching antennas with fixed arrays.

As printed: one start of HRMC on both sides, as in the paper. Equal effort: 16 starts on both sides.
Best known: `airpass-plus`, and the best of seven fixed arrays of M x N antennas with `hrmc+`. In training
`airpass-plus` is also used by turns, so that all devices are heard. The paper does not say how its arrays
lie; those of the first two comparisons lie along x.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airpass.channel.colocated import SHAPES
from airpass.learning import FEDAVG

AS_PRINTED, EQUAL_EFFORT, BEST_KNOWN = "as printed", "equal effort", "best known of each"
BY_TURNS = "by turns"


def _array(method: str, starts: int) -> dict[str, Any]:
    return {"method": method, "options": {"axis": "x", "selection": {"starts": starts}}}


# Fixed arrays of M x N antennas, each with a receive chain.
ARRAYS: Mapping[str, dict[str, Any]] = {
    **{f"mimo-mn-plus-{axis}": {"method": "mimo-mn-plus", "options": {"axis": axis}} for axis in SHAPES},
    "distributed-mn": {"method": "distributed-mn"},
}
# The array of figures 2 and 3 (K = 10, M = N = 5, 10 dB): the most selected devices of all arrays on seeds
# 7000 to 7019, designs only. It selects all ten in every draw, as does distributed-mn; its weakest score is
# larger (a geometric mean of 1.68 against 1.44).
TRAINED_ARRAY = "mimo-mn-plus-xz"

# In figures 6 to 8 the array is the best at each point, by the same rule on the same seeds: the shapes by
# waveguides, antennas and SNR in dB at which it is not that of figures 2 and 3. Where two shapes select
# equally many devices, it is that of figures 2 and 3.
BEST_ARRAY = "best-array"
BEST_SHAPES = {(1, 5, 10.0): "z", (2, 5, 10.0): "yz", (5, 1, 10.0): "z"}
TURNS = "airpass-plus-turns"  # a book that serves all devices, in as few turns as are found


def best_array_at(waveguides: int, antennas: int, snr_db: float) -> dict[str, Any]:
    """Arguments of `design` for the best array with K = 10 devices.

    Parameters
    ----------
    waveguides, antennas
        M and N; the array has M x N antennas.
    snr_db
        SNR in dB.

    Returns
    -------
    dict[str, Any]
        Method and options.
    """
    shape = BEST_SHAPES.get((waveguides, antennas, snr_db), TRAINED_ARRAY.rpartition("-")[2])
    return {"method": "mimo-mn-plus", "options": {"axis": shape}}


# Arguments of `design` by scheme; with `turns`, of `schedule`.
METHODS: Mapping[str, dict[str, Any]] = {
    **{
        name: {"method": name} for name in (FEDAVG, "airpass-plus", "airpass", "airpass-sdr-dc", "airpass-mp")
    },
    "mimo-m-1-start": _array("mimo-m", 1),
    "mimo-mn-1-start": _array("mimo-mn", 1),
    "airpass-16-starts": {"method": "airpass", "options": {"selection": {"starts": 16}}},
    "mimo-m-16-starts": _array("mimo-m", 16),
    "mimo-mn-16-starts": _array("mimo-mn", 16),
    **ARRAYS,
    BEST_ARRAY: best_array_at(5, 5, 10.0),
    **{f"airpass-plus-{rule}": {"method": "airpass-plus"} for rule in ("share", "energy")},
    "airpass-plus-robust": {"method": "airpass-plus", "options": {"tolerance_mm": 1.0}},
    TURNS: {"method": "airpass-plus", "options": {"effort": "fast"}, "turns": "auto"},
}


@dataclass(frozen=True)
class Comparison:
    """Schemes that are compared with each other.

    Parameters
    ----------
    name
        Name in claims.
    title
        Title of a panel.
    subject
        The scheme with pinching antennas.
    small, large
        Arrays of M and of M x N antennas. If there are several, the subject is compared with the best.
    variants
        Other schemes with pinching antennas.
    """

    name: str
    title: str
    subject: str
    small: tuple[str, ...]
    large: tuple[str, ...]
    variants: tuple[str, ...] = ()

    @property
    def schemes(self) -> tuple[str, ...]:
        """All schemes."""
        return (self.subject, *self.variants, *self.large, *self.small)


COMPARISONS = (
    Comparison(
        AS_PRINTED,
        "As printed: one start each, arrays along x",
        "airpass",
        ("mimo-m-1-start",),
        ("mimo-mn-1-start",),
        ("airpass-sdr-dc", "airpass-mp"),
    ),
    Comparison(
        EQUAL_EFFORT,
        "Equal effort: 16 starts each, arrays along x",
        "airpass-16-starts",
        ("mimo-m-16-starts",),
        ("mimo-mn-16-starts",),
    ),
    Comparison(BEST_KNOWN, "Best known of each", "airpass-plus", (), tuple(ARRAYS)),
)
# Figures 2 and 3 train no scheme of the second comparison.
TRAINED = (
    Comparison(AS_PRINTED, "", "airpass", ("mimo-m-1-start",), ("mimo-mn-1-start",)),
    Comparison(BEST_KNOWN, "", "airpass-plus", (), (TRAINED_ARRAY,)),
)
