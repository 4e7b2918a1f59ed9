"""Names and line styles of schemes and selection methods, the same in every figure, report and table.

Colours are those of Okabe & Ito, "Color Universal Design" (2008). Two looks always differ in dash,
marker or filling, so that lines remain distinguishable without colour. Selection methods have open markers.
"""

from collections.abc import Iterable
from dataclasses import dataclass

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#aaaaaa"


@dataclass(frozen=True)
class Look:
    """Display name, and how a line is drawn."""

    name: str
    colour: str
    dash: str
    marker: str
    filled: bool = True
    width: float = 1.2  # points


# In the order of legends. FedAvg is first, and wide, because other lines may coincide with it.
LOOKS = {
    "fedavg": Look("FedAvg (ideal)", GREY, "-", "", width=4.0),
    "airpass-plus": Look("AirPASS-plus", BLUE, "-", "o"),
    "airpass-plus-turns": Look("AirPASS-plus, by turns", BLUE, "-.", "o"),
    "airpass-plus-robust": Look("AirPASS-plus, robust (1 mm)", GREEN, "--", "o"),
    "airpass-plus-share": Look("AirPASS-plus, share", BLUE, "--", "h"),
    "airpass-plus-energy": Look("AirPASS-plus, energy", VERMILLION, "-", "P"),
    "airpass": Look("AirPASS", VERMILLION, "--", "^"),
    "airpass-sdr-dc": Look("AirPASS-SDR-DC", ORANGE, "--", "P"),
    "airpass-mp": Look("AirPASS-MP", SKY, "-.", "X"),
    "airpass-lasting": Look("AirPASS-lasting", BLUE, ":", "o"),
    "airpass-16-starts": Look("AirPASS (16 starts)", VERMILLION, "-", "^"),
    "mimo-mn-plus": Look("co-located, MN, plus", BLACK, "-", "s"),
    "best-array": Look("best array, MN", BLACK, "-", "h"),
    "mimo-mn": Look("co-located, MN", GREEN, "-.", "D"),
    "mimo-mn-1-start": Look("co-located, MN (1 start)", GREEN, "--", "D"),
    "mimo-mn-16-starts": Look("co-located, MN (16 starts)", GREEN, "-", "D"),
    "mimo-m-plus": Look("co-located, M, plus", PURPLE, "--", "*"),
    "mimo-m": Look("co-located, M", PURPLE, ":", "v"),
    "mimo-m-1-start": Look("co-located, M (1 start)", PURPLE, "--", "v"),
    "mimo-m-16-starts": Look("co-located, M (16 starts)", PURPLE, "-", "v"),
    "mimo-mn-plus-x": Look("co-located, MN, plus (x)", VERMILLION, "--", "s"),
    "mimo-mn-plus-y": Look("co-located, MN, plus (y)", GREEN, "-.", "s"),
    "mimo-mn-plus-z": Look("co-located, MN, plus (z)", PURPLE, ":", "s"),
    "mimo-mn-plus-xy": Look("co-located, MN, plus (xy)", SKY, "-", "*"),
    "mimo-mn-plus-xz": Look("co-located, MN, plus (xz)", ORANGE, "-.", "*"),
    "mimo-mn-plus-yz": Look("co-located, MN, plus (yz)", GREY, ":", "*"),
    "distributed-mn": Look("distributed, MN", BLACK, ":", "h"),
    "distributed-m": Look("distributed, M", SKY, ":", "H"),
    "hrmc+": Look("HRMC+", BLUE, "-", "o", filled=False),
    "hrmc": Look("HRMC", VERMILLION, "--", "^", filled=False),
    "sdr-dc": Look("SDR-DC", ORANGE, "--", "P", filled=False),
    "mp": Look("MP", SKY, "-.", "X", filled=False),
    "mp-backward": Look("MP, backward", GREEN, "-.", "D", filled=False),
    "exhaustive": Look("exhaustive search", BLACK, "-", "s", filled=False),
    "random": Look("random beam", PURPLE, ":", "v", filled=False),
}
# For labels that are not in the table. No marker of the table is among these, and the lengths have no
# common divisor, so that the first 20 labels differ in marker or dash, and the first 140 in marker, dash or
# colour.
_COLOURS = (GREEN, ORANGE, PURPLE, BLACK, SKY, VERMILLION, BLUE)
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("<", "p", ">", "d", "8")


def display_name(label: str) -> str:
    """Name of a scheme or selection method in figures and reports; other labels are returned unchanged."""
    return LOOKS[label].name if label in LOOKS else label


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The looks of the lines of one figure.

    Parameters
    ----------
    labels
        Names of schemes or selection methods, or labels that a user chose.

    Returns
    -------
    dict[str, Look]
        A look for each label, in the order of legends: known names as in `LOOKS`, then other labels
        in the order given. Other labels have looks that no known name has.
    """
    given = list(dict.fromkeys(labels))
    found = {name: look for name, look in LOOKS.items() if name in given}
    used = {look.colour for look in found.values()}
    colours = sorted(_COLOURS, key=lambda colour: colour in used)  # colours not yet in the figure first
    for i, label in enumerate(label for label in given if label not in LOOKS):
        colour, dash, marker = (pool[i % len(pool)] for pool in (colours, _DASHES, _MARKERS))
        found[label] = Look(label, colour, dash, marker)
    return found
