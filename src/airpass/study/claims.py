"""The paper's claims, each with a test on the rows of a study.

Two schemes are compared within trials, as both see the same devices, data and noise; `verdicts` has the
rules. Where the paper uses words ("close", "slightly"), the limits are chosen here and given in the text.

A claim is about AirPASS as printed. Where there are rows, the same claim is tested for other comparisons:
with equal effort on both sides, and for the best known method on both sides (see `paper.schemes`). Claims
4 and 8 are tested with shares as weights; claim 4 also in the two settings that figures 4 and 5 add.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airpass.core.display import display_name
from airpass.learning import FEDAVG
from airpass.study.paper import table1
from airpass.study.paper.curves import PANELS
from airpass.study.paper.fig9 import of_rule
from airpass.study.paper.schemes import (
    AS_PRINTED,
    BEST_KNOWN,
    BY_TURNS,
    COMPARISONS,
    TRAINED,
    TURNS,
    Comparison,
)
from airpass.study.summary import mean
from airpass.study.trial import SECONDS, Row
from airpass.study.values import Results, Rival, Rows, best_array, minus
from airpass.study.verdicts import (
    DEVICES,
    FAILS,
    HOLDS,
    NO_LIMIT,
    NO_ROWS,
    NUMBER,
    OPEN,
    POINTS,
    TIMES,
    Part,
    Values,
    Verdict,
    adjusted,
    compare,
)

# Limits that the paper does not give.
CLOSE = 0.03  # of accuracy: "close"
SLIGHTLY = 0.02  # "slightly" better
MARGINAL_DEVICES = 2.0  # "marginally" more devices
TOGETHER_DEVICES = 1.0  # schemes "meet"
HEAVIER = 100.0  # ratio of times: "far heavier"
# Accuracy that FedAvg itself must reach before "close to FedAvg" is judged. Early in training all schemes are
# close, as none has learned much. On MNIST FedAvg needs about 120 rounds to reach 85 %, and gains only
# 5 points in the next 280. On CIFAR-10 60 % is more than networks without convolutions commonly reach.
TRAINED_ACCURACY = {"MNIST": 0.85, "CIFAR-10": 0.60}
# Of claims without arrays. By turns all devices are heard, so that only closeness to FedAvg is judged.
SUBJECTS = {AS_PRINTED: "airpass", BEST_KNOWN: "airpass-plus"}
CLOSE_SUBJECTS = {**SUBJECTS, BY_TURNS: TURNS}


@dataclass(frozen=True)
class Study:
    """The rows that claims are judged on."""

    rows: Rows
    scale: str | None = None

    def figure(self, name: str) -> Results:
        """Results of a figure; empty if it was not run."""
        return Results(name, self.rows.get(name, ()), self.scale)

    def data(self, mnist: str, cifar: str) -> Iterator[tuple[Results, str]]:
        """Results and data set of two figures."""
        yield self.figure(mnist), "MNIST"
        yield self.figure(cifar), "CIFAR-10"


Test = Callable[[Study], list[Part]]


def _ahead(found: Results, scheme: str, other: str, point: str = "") -> Values:
    """Difference of test accuracy within trials."""
    return minus(*(found.values("test_accuracy", name, point) for name in (scheme, other)))


def _above(found: Results, data: str, comparison: str, scheme: str, other: str, point: str = "") -> Part:
    what = f"{display_name(scheme)} above {display_name(other)}"
    return compare(
        what,
        _ahead(found, scheme, other, point),
        POINTS,
        low=0.0,
        declared=found.declared(scheme, other),
        comparison=comparison,
        data=data,
    )


def _c1(study: Study) -> list[Part]:
    return [
        _above(found, data, comparison.name, comparison.subject, other)
        for comparison in TRAINED
        for found, data in study.data("fig2", "fig3")
        for other in (*comparison.small, *comparison.large)
    ]


def _c2(study: Study) -> list[Part]:
    parts = []
    for comparison in TRAINED:
        subject = comparison.subject
        for found, data in study.data("fig2", "fig3"):
            for other in comparison.small:
                parts.append(
                    compare(
                        f"gain over {display_name(other)} more than {100.0 * CLOSE:g} points",
                        _ahead(found, subject, other),
                        POINTS,
                        low=CLOSE,
                        declared=found.declared(subject, other),
                        comparison=comparison.name,
                        data=data,
                    )
                )
            parts += [_above(found, data, comparison.name, subject, other) for other in comparison.large]
    return parts


def _untrained(part: Part, found: Results, data: str, doubtful: str) -> Part:
    """The part, not decided if FedAvg has not reached the accuracy that training must have.

    Early in training all schemes are close. That makes one of the verdicts doubtful; the other one stays.
    """
    reached, needed = mean(list(found.values("test_accuracy", FEDAVG).values())), TRAINED_ACCURACY[data]
    if part.verdict == NO_ROWS or reached.value >= needed:
        return part
    level, least = f"{100.0 * reached.value:.0f} %", f"{100.0 * needed:.0f} %"
    effect = f"{part.effect}; FedAvg on {data} is at {level}, and closeness is judged from {least} on"
    if part.verdict != doubtful:
        return replace(part, effect=effect)
    return replace(part, verdict=OPEN, effect=effect, p=float("nan"))


def _c3(study: Study) -> list[Part]:
    parts = []
    mnist, cifar = study.data("fig2", "fig3")
    for comparison, subject in CLOSE_SUBJECTS.items():
        name = display_name(subject)
        for found, data in (mnist, cifar):
            part = compare(
                f"{name} below FedAvg by less than {100.0 * CLOSE:g} points",
                _ahead(found, FEDAVG, subject),
                POINTS,
                high=CLOSE,
                declared=found.declared(FEDAVG, subject),
                comparison=comparison,
                data=data,
            )
            parts.append(_untrained(part, found, data, doubtful=HOLDS))
        gaps = [_ahead(found, FEDAVG, subject) for found, _ in (cifar, mnist)]
        part = compare(
            f"the gap of {name} to FedAvg is larger on CIFAR-10",
            minus(*gaps),
            POINTS,
            low=0.0,
            declared=cifar[0].declared(FEDAVG, subject),
            comparison=comparison,
            data="both",
        )
        part = _untrained(part, *cifar, doubtful=FAILS)  # its gap may still grow
        parts.append(_untrained(part, *mnist, doubtful=HOLDS))
    return parts


def _c4(study: Study) -> list[Part]:
    parts, subject, slow = [], "airpass", "airpass-sdr-dc"
    for place, point in enumerate(PANELS):
        comparison = point.title if place else AS_PRINTED
        for found, data in study.data("fig4", "fig5"):
            parts.append(_above(found, data, comparison, subject, "airpass-mp", point.label))
            parts.append(
                compare(
                    f"{display_name(slow)} ahead by 0 to {100.0 * SLIGHTLY:g} points",
                    _ahead(found, slow, subject, point.label),
                    POINTS,
                    low=0.0,
                    high=SLIGHTLY,
                    declared=found.declared(slow, subject),
                    comparison=comparison,
                    data=data,
                )
            )
    return parts


def _falls(figure: str, letter: str) -> Test:
    """Test that the loss falls along the axis, and that the first step gains more than the last."""

    def test(study: Study) -> list[Part]:
        found, parts = study.figure(figure), []
        for comparison, subject in SUBJECTS.items():
            points = list(found.places(subject))
            name = display_name(subject)
            declared = found.declared(subject)
            if len(points) < 3:
                verdict, why = (OPEN, "fewer than three points") if points else (NO_ROWS, "no rows")
                what, interim = f"loss of {name} falls with {letter}", declared is not None
                parts.append(Part(what, verdict, why, comparison, interim=interim))
                continue
            loss = [found.values("train_loss", subject, point) for point in points]
            whole = minus(loss[0], loss[-1])
            bend = minus(minus(loss[0], loss[1]), minus(loss[-2], loss[-1]))
            for what, values in (
                (f"loss of {name} falls from {letter} = {points[0]} to {points[-1]}, by", whole),
                (f"the first step of {name} gains more than the last, by", bend),
            ):
                declared = found.declared(subject)
                parts.append(compare(what, values, NUMBER, low=0.0, declared=declared, comparison=comparison))
        return parts

    return test


@dataclass(frozen=True)
class _Counts:
    """Numbers of selected devices in figure 9, for one comparison."""

    found: Results
    comparison: Comparison

    @cached_property
    def snr_db(self) -> dict[str, float]:
        """SNR by point, in ascending order."""
        return self.found.places(*self.comparison.schemes)

    def of(self, *names: str) -> dict[str, Rival]:
        """A scheme, or the best array if there are several, by point."""
        if len(names) > 1:
            return {point: best_array(self.found, point, names) for point in self.snr_db}
        (name,) = names
        return {
            point: Rival(display_name(name), self.found.values("selected_count", name, point))
            for point in self.snr_db
        }

    def separating(self, *rivals: Mapping[str, Rival]) -> list[str]:
        """SNRs except those at which all select no device, or all devices."""
        most = max((row.value for row in self.found.rows if row.metric == "selected_count"), default=0.0)
        seen = {
            point: {value for rival in rivals for value in rival[point].values.values()}
            for point in self.snr_db
        }
        return [point for point in self.snr_db if seen[point] - {0.0} and seen[point] - {most}]

    def part(self, what: str, values: Values, schemes: Sequence[str], low: float, high: float) -> Part:
        """A comparison of numbers of devices."""
        declared = self.found.declared(*schemes)
        return compare(
            what, values, DEVICES, low=low, high=high, declared=declared, comparison=self.comparison.name
        )


def _rival_name(names: Sequence[str]) -> str:
    return display_name(names[0]) if len(names) == 1 else "the best array"


def _leads(counts: _Counts, scheme: str, others: Sequence[str], margin: float = NO_LIMIT) -> list[Part]:
    """A scheme selects more devices, by `margin` at most: a part for each SNR that separates the two."""
    first, second = counts.of(scheme), counts.of(*others)
    leads = {point: minus(first[point].values, second[point].values) for point in counts.snr_db}
    by = "" if margin == NO_LIMIT else f" by 0 to {margin:g} devices"
    if not any(leads.values()):
        what = f"{display_name(scheme)} above {_rival_name(others)}{by}"
        return [counts.part(what, {}, (scheme, *others), 0.0, margin)]
    return [
        counts.part(
            f"{display_name(scheme)} above {second[point].name}{by}, {point} dB",
            leads[point],
            (scheme, *others),
            0.0,
            margin,
        )
        for point in counts.separating(first, second)
    ]


def _average(values: Sequence[Values]) -> Values:
    """Mean of several values within each trial."""
    common = set.intersection(*(set(value) for value in values)) if values else set()
    return {trial: float(np.mean([value[trial] for value in values])) for trial in sorted(common)}


def _gain_at_low_snr(counts: _Counts, others: Sequence[str]) -> list[Part]:
    """The mean gain is larger below 0 dB than from 0 dB on, if there are SNRs on both sides."""
    if len({snr_db < 0.0 for snr_db in counts.snr_db.values()}) < 2:
        return []
    subject = counts.comparison.subject
    first, second = counts.of(subject), counts.of(*others)
    leads = {point: minus(first[point].values, second[point].values) for point in counts.snr_db}
    low, high = (
        _average([leads[point] for point, snr_db in counts.snr_db.items() if (snr_db < 0.0) == is_low])
        for is_low in (True, False)
    )
    what = f"mean gain over {_rival_name(others)} larger below 0 dB than above, by"
    return [counts.part(what, minus(low, high), (subject, *others), 0.0, NO_LIMIT)]


def _meeting(counts: _Counts, groups: Sequence[Sequence[str]]) -> Part:
    """All schemes select nearly the same number of devices at the highest SNR."""
    schemes = [name for names in groups for name in names]
    if not counts.snr_db:
        return counts.part("all meet at high SNR", {}, schemes, -NO_LIMIT, TOGETHER_DEVICES)
    point = list(counts.snr_db)[-1]
    values = [counts.of(*names)[point].values for names in groups]
    trials = sorted(set.intersection(*(set(value) for value in values)))
    spread = {t: max(v[t] for v in values) - min(v[t] for v in values) for t in trials}
    what = f"all within {TOGETHER_DEVICES:g} device at {point} dB"
    return counts.part(what, spread, schemes, -NO_LIMIT, TOGETHER_DEVICES)


def _c8(study: Study) -> list[Part]:
    shares = Results("fig9", of_rule(study.figure("fig9").rows, energy=False), study.scale)
    parts = []
    for comparison in COMPARISONS:
        counts, subject = _Counts(shares, comparison), comparison.subject
        arrays = [names for names in (comparison.small, comparison.large) if names]
        rivals = [*arrays, *((name,) for name in comparison.variants if name == "airpass-mp")]
        for others in rivals:
            parts += _leads(counts, subject, others)
        for others in arrays:
            parts += _gain_at_low_snr(counts, others)
        if "airpass-sdr-dc" in comparison.variants:
            parts += _leads(counts, "airpass-sdr-dc", (subject,), MARGINAL_DEVICES)
        parts.append(_meeting(counts, [(subject,), *rivals]))
    return parts


def _c9(study: Study) -> list[Part]:
    found = study.figure("table1")
    by_trial: dict[int, list[Row]] = {}
    for row in found.rows:
        by_trial.setdefault(row.trial, []).append(row)

    def exponents(method: str) -> Values:
        return {
            trial: table1.exponent(rows, method, "K")
            for trial, rows in by_trial.items()
            if any(row.scheme == method for row in rows)
        }

    slow, fast = (found.values(SECONDS, method, "M=8") for method in ("sdr-dc", "hrmc"))
    ratio = {trial: slow[trial] / fast[trial] for trial in sorted(slow.keys() & fast.keys())}
    return [
        compare(
            "HRMC linear in K: exponent at most 1.2",
            exponents("hrmc"),
            NUMBER,
            high=1.2,
            declared=found.declared("hrmc"),
        ),
        compare(
            "matching pursuit quadratic in K: exponent 1.7 to 2.3",
            exponents("mp"),
            NUMBER,
            low=1.7,
            high=2.3,
            declared=found.declared("mp"),
        ),
        compare(
            f"SDR-DC far heavier, {HEAVIER:g} times, at K = 50, M = 8",
            ratio,
            TIMES,
            low=HEAVIER,
            declared=found.declared("hrmc", "sdr-dc"),
        ),
    ]


# Name, text, figures, test.
CLAIMS: tuple[tuple[str, str, tuple[str, ...], Test], ...] = (
    ("C1", "AirPASS beats co-located arrays of M and M x N antennas in test accuracy", ("fig2", "fig3"), _c1),
    ("C2", "the gain over M is large, over M x N still clear", ("fig2", "fig3"), _c2),
    ("C3", "AirPASS stays close to FedAvg, closest on MNIST", ("fig2", "fig3"), _c3),
    (
        "C4",
        "AirPASS clearly beats AirPASS-MP, and is slightly below AirPASS-SDR-DC",
        ("fig4", "fig5"),
        _c4,
    ),
    ("C5", "training loss falls with M, with diminishing returns", ("fig6",), _falls("fig6", "M")),
    ("C6", "training loss falls with N, with diminishing returns", ("fig7",), _falls("fig7", "N")),
    ("C7", "training loss falls with SNR, with diminishing returns", ("fig8",), _falls("fig8", "SNR")),
    (
        "C8",
        "AirPASS selects more devices than both arrays, most at low SNR, and than MP (SDR-DC marginally "
        "above AirPASS); all meet at high SNR",
        ("fig9",),
        _c8,
    ),
    ("C9", "HRMC is linear in K, SDR-DC far heavier, MP quadratic in K", ("table1",), _c9),
)


# Data sets of the parts that a figure is about; figures that are not listed have one data set.
_DATA = {
    **dict.fromkeys(("fig2", "fig4"), ("MNIST",)),
    **dict.fromkeys(("fig3", "fig5"), ("CIFAR-10", "both")),
}


def claims_of(verdicts: Sequence[Verdict], figure: str) -> tuple[Verdict, ...]:
    """The claims about a figure, with the parts that its rows test.

    Parameters
    ----------
    verdicts
        Verdicts on all claims.
    figure
        Name of the figure.

    Returns
    -------
    tuple[Verdict, ...]
        Empty if no claim is about the figure.
    """
    found = []
    for one in verdicts:
        parts = tuple(part for part in one.parts if part.data in _DATA.get(figure, (part.data,)))
        if figure in one.figures and parts:
            found.append(replace(one, parts=parts))
    return tuple(found)


def judge(rows: Rows, scale: str | None = None) -> list[Verdict]:
    """Judge the claims.

    Parameters
    ----------
    rows
        Rows by figure, which may be empty. Claims about other figures are left out.
    scale
        Scale of the rows. If given, parts with fewer trials than declared say so.

    Returns
    -------
    list[Verdict]
        A verdict for each claim.
    """
    study = Study(rows, scale)
    found = [
        Verdict(name, text, figures, tuple(test(study)))
        for name, text, figures, test in CLAIMS
        if any(figure in rows for figure in figures)
    ]
    return adjusted(found)
