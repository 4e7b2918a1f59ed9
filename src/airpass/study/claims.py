"""The paper's claims, each with a test on the rows of a study.

A comparison of two schemes is made within trials, as both see the same devices, data and noise: the
mean difference with its 95 % confidence interval (Student's t). It holds if the whole interval is on the
claimed side, does not hold if it is on the other, and is not decided in between, or with fewer than
three trials.
A claim of several parts holds if all do, and does not if one does not. What the paper leaves to
the eye ("close", "slightly") is given a number here, which the text says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airpass.study.paper import table1
from airpass.study.plots import NAMES
from airpass.study.summary import Mean, last_round, mean, means_by_point
from airpass.study.trial import SECONDS, Row

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
FEWEST = 3  # trials below which nothing is decided; the paper has three
CLOSE_POINTS = 3.0  # percentage points within which accuracies count as close; ours
SLIGHTLY_POINTS = 2.0  # and within which one is only slightly better; ours

Rows = Mapping[str, Sequence[Row]]  # by figure


@dataclass(frozen=True)
class Part:
    """One comparison: what, the effect with its interval, and how it came out."""

    what: str
    verdict: str
    effect: str


@dataclass(frozen=True)
class Verdict:
    """A claim, and all its parts."""

    claim: str
    text: str
    figures: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> str:
        """Of the claim as a whole."""
        found = {part.verdict for part in self.parts}
        if FAILS in found:
            return FAILS
        return HOLDS if found == {HOLDS} else OPEN


def difference(rows: Sequence[Row], metric: str, better: str, worse: str, point: str | None = None) -> Mean:
    """Mean over trials of metric(better) - metric(worse) at the last round."""
    values: dict[str, dict[tuple[str, int], float]] = {better: {}, worse: {}}
    for row in last_round(rows):
        if row.metric == metric and row.scheme in values and (point is None or row.x_label == point):
            values[row.scheme][row.x_label, row.trial] = row.value
    both = sorted(values[better].keys() & values[worse].keys())
    return mean([values[better][key] - values[worse][key] for key in both])


def above(found: Mean, limit: float = 0.0) -> str:
    """Whether a mean is above a limit, as far as its interval tells."""
    if found.count < FEWEST:
        return OPEN
    if found.value - found.half_width > limit:
        return HOLDS
    # With no spread at all, equal is not above.
    return FAILS if found.value + found.half_width <= limit else OPEN


def below(found: Mean, limit: float) -> str:
    """The same for below."""
    return above(Mean(-found.value, found.half_width, found.count), -limit)


def _text(found: Mean, unit: str, scale: float = 1.0) -> str:
    if found.count == 0:
        return "no rows"
    half = "" if np.isnan(found.half_width) else f" ± {scale * found.half_width:.2f}"
    return f"{scale * found.value:+.2f}{half} {unit} ({found.count} trials)"


def _accuracy(rows: Sequence[Row], better: str, worse: str, data: str, point: str | None = None) -> Part:
    found = difference(rows, "test_accuracy", better, worse, point)
    where = f", {point} dB" if point else ""
    return Part(
        f"{NAMES[better]} above {NAMES[worse]}, {data}{where}", above(found), _text(found, "points", 100.0)
    )


def _c1(rows: Rows) -> list[Part]:
    return [
        _accuracy(rows[figure], "airpass", other, data)
        for figure, data in (("fig2", "MNIST"), ("fig3", "CIFAR-10"))
        if figure in rows
        for other in ("mimo-m", "mimo-mn")
    ]


def _c2(rows: Rows) -> list[Part]:
    parts = []
    for figure, data in (("fig2", "MNIST"), ("fig3", "CIFAR-10")):
        if figure in rows:
            over_m = difference(rows[figure], "test_accuracy", "airpass", "mimo-m")
            parts.append(
                Part(
                    f"gain over M large (more than {CLOSE_POINTS:g} points), {data}",
                    above(over_m, CLOSE_POINTS / 100.0),
                    _text(over_m, "points", 100.0),
                )
            )
            parts.append(_accuracy(rows[figure], "airpass", "mimo-mn", data))
    return parts


def _c3(rows: Rows) -> list[Part]:
    parts = []
    for figure, data in (("fig2", "MNIST"), ("fig3", "CIFAR-10")):
        if figure in rows:
            gap = difference(rows[figure], "test_accuracy", "fedavg", "airpass")
            parts.append(
                Part(
                    f"FedAvg ahead by less than {CLOSE_POINTS:g} points, {data}",
                    below(gap, CLOSE_POINTS / 100.0),
                    _text(gap, "points", 100.0),
                )
            )
    return parts


def _c4(rows: Rows) -> list[Part]:
    parts = []
    for figure, data in (("fig4", "MNIST"), ("fig5", "CIFAR-10")):
        for point in ("10", "-4"):
            if figure not in rows:
                continue
            parts.append(_accuracy(rows[figure], "airpass", "airpass-mp", data, point))
            lead = difference(rows[figure], "test_accuracy", "airpass-sdr-dc", "airpass", point)
            parts.append(
                Part(
                    f"SDR-DC ahead by less than {SLIGHTLY_POINTS:g} points, {data}, {point} dB",
                    below(lead, SLIGHTLY_POINTS / 100.0),
                    _text(lead, "points", 100.0),
                )
            )
    return parts


def _falls(rows: Sequence[Row], scheme: str, letter: str) -> list[Part]:
    """Loss falls along the axis, and the first step gains more than the last."""
    found: dict[str, dict[int, float]] = {}
    for row in last_round(rows):
        if row.metric == "train_loss" and row.scheme == scheme:
            found.setdefault(row.x_label, {})[row.trial] = row.value
    points = sorted(found, key=float)
    if len(points) < 3:
        return []

    def fall(first: str, second: str) -> dict[int, float]:
        both = found[first].keys() & found[second].keys()
        return {trial: found[first][trial] - found[second][trial] for trial in sorted(both)}

    whole = mean(list(fall(points[0], points[-1]).values()))
    early, late = fall(points[0], points[1]), fall(points[-2], points[-1])
    bend = mean([early[trial] - late[trial] for trial in early.keys() & late.keys()])
    return [
        Part(
            f"loss falls from {letter} = {points[0]} to {points[-1]}, {NAMES[scheme]}",
            above(whole),
            _text(whole, ""),
        ),
        Part(f"the first step gains more than the last, {NAMES[scheme]}", above(bend), _text(bend, "")),
    ]


def _sweep(figure: str, letter: str) -> Callable[[Rows], list[Part]]:
    return lambda rows: _falls(rows[figure], "airpass", letter) if figure in rows else []


def _c8(rows: Rows) -> list[Part]:
    if "fig9" not in rows:
        return []
    found = rows["fig9"]
    parts = []
    points = sorted({row.x_label for row in found}, key=float)
    for point in points:
        gaps = {
            "airpass above mimo-m": difference(found, "selected_count", "airpass", "mimo-m", point),
            "airpass above mimo-mn": difference(found, "selected_count", "airpass", "mimo-mn", point),
            "airpass above airpass-mp": difference(found, "selected_count", "airpass", "airpass-mp", point),
        }
        # Where nobody can be selected, or everyone is, there is nothing to tell apart.
        counts = [
            mean_.value
            for mean_ in (by.get(point) for by in means_by_point(found, "selected_count").values())
            if mean_
        ]
        if counts and (max(counts) == 0.0 or min(counts) == max(counts)):
            continue
        parts += [
            Part(f"{what}, {point} dB", above(gap), _text(gap, "devices")) for what, gap in gaps.items()
        ]
    return parts


def _c9(rows: Rows) -> list[Part]:
    if "table1" not in rows:
        return []
    found = rows["table1"]
    in_k = table1.exponent(found, "hrmc", "K")
    pursuit = table1.exponent(found, "mp", "K")
    times = means_by_point(found, SECONDS)
    ratio = times["sdr-dc"]["M=8"].value / times["hrmc"]["M=8"].value
    return [
        Part(
            "HRMC linear in K (exponent at most 1.2)", HOLDS if in_k <= 1.2 else FAILS, f"exponent {in_k:.2f}"
        ),
        Part(
            "SDR-DC far heavier (100 times) at K = 50, M = 8",
            HOLDS if ratio >= 100 else FAILS,
            f"{ratio:.0f} times",
        ),
        Part(
            "matching pursuit quadratic in K (exponent 1.7 to 2.3)",
            HOLDS if 1.7 <= pursuit <= 2.3 else FAILS,
            f"exponent {pursuit:.2f}",
        ),
    ]


CLAIMS: tuple[tuple[str, str, tuple[str, ...], Callable[[Rows], list[Part]]], ...] = (
    ("C1", "AirPASS beats co-located arrays of M and M x N antennas in test accuracy", ("fig2", "fig3"), _c1),
    ("C2", "the gain over M is large, over M x N still clear", ("fig2", "fig3"), _c2),
    ("C3", "AirPASS stays close to FedAvg", ("fig2", "fig3"), _c3),
    ("C4", "AirPASS clearly beats AirPASS-MP, and is slightly below AirPASS-SDR-DC", ("fig4", "fig5"), _c4),
    ("C5", "training loss falls with M, with diminishing returns", ("fig6",), _sweep("fig6", "M")),
    ("C6", "training loss falls with N, with diminishing returns", ("fig7",), _sweep("fig7", "N")),
    ("C7", "training loss falls with SNR, with diminishing returns", ("fig8",), _sweep("fig8", "SNR")),
    ("C8", "AirPASS selects more devices than both arrays and than MP, most at low SNR", ("fig9",), _c8),
    ("C9", "HRMC is linear in K, SDR-DC far heavier, MP quadratic in K", ("table1",), _c9),
)


def judge(rows: Rows) -> list[Verdict]:
    """Every claim on the figures that there are rows of."""
    return [
        Verdict(name, text, figures, tuple(test(rows)))
        for name, text, figures, test in CLAIMS
        if any(figure in rows for figure in figures)
    ]
