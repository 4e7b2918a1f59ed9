"""The paper's claims, each with a test on the rows of a study.

Two schemes are compared within trials, as both see the same devices, data and noise: the mean difference
with its 95 % confidence interval (Student's t). A comparison holds if the whole interval is on the claimed
side, does not hold if it is on the other side, and is not decided otherwise, or with fewer than three
trials. A claim of several parts holds if all parts hold, and does not hold if one does not. Where the
paper uses words ("close", "slightly"), the limits are chosen here and given in the text.

The claims are about the paper's method. The same tests are applied to `airpass-plus`, compared with
the best design of the array of M x N antennas.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airpass.core.display import display_name
from airpass.study.paper import table1
from airpass.study.summary import Mean, last_round, mean
from airpass.study.trial import SECONDS, Row

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
FEWEST = 3  # trials needed for a decision; the paper has three
# Limits that the paper does not give.
CLOSE_POINTS = 3.0  # percentage points of accuracy: "close"
SLIGHTLY_POINTS = 2.0  # "slightly" better
MARGINAL_DEVICES = 2.0  # "marginally" more devices
TOGETHER_DEVICES = 1.0  # schemes "meet"
HEAVIER = 100.0  # ratio of times: "far heavier"
PAPER_METHOD, PLUS_METHOD = "airpass", "airpass-plus"

Rows = Mapping[str, Sequence[Row]]  # by figure


@dataclass(frozen=True)
class Part:
    """One comparison: what is compared, the verdict, and the effect with its interval."""

    what: str
    verdict: str
    effect: str


Test = Callable[[Rows, str], list[Part]]  # rows, and the scheme that the claim is about


@dataclass(frozen=True)
class Verdict:
    """A claim and its parts."""

    claim: str
    text: str
    figures: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> str:
        """Verdict on the whole claim."""
        found = {part.verdict for part in self.parts}
        if FAILS in found:
            return FAILS
        return HOLDS if found == {HOLDS} else OPEN


Values = Mapping[int, float]  # by trial


def last_values(rows: Sequence[Row], metric: str, scheme: str, point: str | None = None) -> Values:
    """A metric at the last round, by trial."""
    return {
        row.trial: row.value
        for row in last_round(rows)
        if row.metric == metric and row.scheme == scheme and (point is None or row.x_label == point)
    }


def minus(first: Values, second: Values) -> Values:
    """Differences within trials."""
    return {trial: first[trial] - second[trial] for trial in sorted(first.keys() & second.keys())}


def difference(rows: Sequence[Row], metric: str, better: str, worse: str, point: str | None = None) -> Mean:
    """Mean over trials of metric(better) - metric(worse) at the last round."""
    found = minus(last_values(rows, metric, better, point), last_values(rows, metric, worse, point))
    return mean(list(found.values()))


def above(found: Mean, limit: float = 0.0) -> str:
    """Whether a mean is above a limit, according to its confidence interval."""
    if found.count < FEWEST:
        return OPEN
    if found.value - found.half_width > limit:
        return HOLDS
    # With zero spread, equality counts as not above.
    return FAILS if found.value + found.half_width <= limit else OPEN


def below(found: Mean, limit: float) -> str:
    """Whether a mean is below a limit."""
    return above(Mean(-found.value, found.half_width, found.count), -limit)


def between(found: Mean, low: float, high: float) -> str:
    """Whether a mean is between two limits, both included."""
    least, most = found.value - found.half_width, found.value + found.half_width
    if found.count < FEWEST:
        return OPEN
    if low <= least and most <= high:
        return HOLDS
    return FAILS if most < low or least > high else OPEN


def _text(found: Mean, unit: str, scale: float = 1.0) -> str:
    if found.count == 0:
        return "no rows"
    half = "" if np.isnan(found.half_width) else f" ± {scale * found.half_width:.2f}"
    trials = "1 trial" if found.count == 1 else f"{found.count} trials"
    return f"{scale * found.value:+.2f}{half} {unit}".rstrip() + f" ({trials})"


def _points(found: Mean) -> str:
    return _text(found, "points", 100.0)


def _accuracy(rows: Sequence[Row], better: str, worse: str, where: str, point: str | None = None) -> Part:
    found = difference(rows, "test_accuracy", better, worse, point)
    return Part(f"{display_name(better)} above {display_name(worse)}, {where}", above(found), _points(found))


def _data(rows: Rows, mnist: str, cifar: str) -> Iterator[tuple[Sequence[Row], str]]:
    """Rows and data set of two figures; no rows if a figure was not run."""
    for figure, data in ((mnist, "MNIST"), (cifar, "CIFAR-10")):
        yield rows.get(figure, ()), data


def _array(subject: str) -> str:
    """The array of M x N antennas that a scheme is compared with."""
    return "mimo-mn-plus" if subject == PLUS_METHOD else "mimo-mn"


def _c1(rows: Rows, subject: str) -> list[Part]:
    return [
        _accuracy(found, subject, other, data)
        for found, data in _data(rows, "fig2", "fig3")
        for other in ("mimo-m", _array(subject))
    ]


def _c2(rows: Rows, subject: str) -> list[Part]:
    parts = []
    for found, data in _data(rows, "fig2", "fig3"):
        gain = difference(found, "test_accuracy", subject, "mimo-m")
        what = f"gain over M more than {CLOSE_POINTS:g} points, {data}"
        parts.append(Part(what, above(gain, CLOSE_POINTS / 100.0), _points(gain)))
        parts.append(_accuracy(found, subject, _array(subject), data))
    return parts


def _c3(rows: Rows, subject: str) -> list[Part]:
    parts, gaps = [], []
    for found, data in _data(rows, "fig2", "fig3"):
        gap = minus(*(last_values(found, "test_accuracy", scheme) for scheme in ("fedavg", subject)))
        gaps.append(gap)
        lag = mean(list(gap.values()))
        what = f"FedAvg ahead by less than {CLOSE_POINTS:g} points, {data}"
        parts.append(Part(what, below(lag, CLOSE_POINTS / 100.0), _points(lag)))
    more = mean(list(minus(gaps[1], gaps[0]).values()))
    return [*parts, Part("the gap is larger on CIFAR-10", above(more), _points(more))]


def _c4(rows: Rows, subject: str) -> list[Part]:
    parts = []
    for found, data in _data(rows, "fig4", "fig5"):
        for point in ("10", "-4"):
            where = f"{data}, {point} dB"
            parts.append(_accuracy(found, subject, "airpass-mp", where, point))
            lead = difference(found, "test_accuracy", "airpass-sdr-dc", subject, point)
            what = f"SDR-DC ahead by 0 to {SLIGHTLY_POINTS:g} points, {where}"
            parts.append(Part(what, between(lead, 0.0, SLIGHTLY_POINTS / 100.0), _points(lead)))
    return parts


def _falls(figure: str, letter: str) -> Test:
    """Test that the loss falls along the axis, and that the first step gains more than the last."""

    def test(rows: Rows, subject: str) -> list[Part]:
        found = rows[figure]
        points = sorted({row.x_label for row in found if row.scheme == subject}, key=float)
        if len(points) < 3:
            return [Part(f"loss falls with {letter}", OPEN, "fewer than three points")]
        loss = [last_values(found, "train_loss", subject, point) for point in points]
        whole = mean(list(minus(loss[0], loss[-1]).values()))
        bend = mean(list(minus(minus(loss[0], loss[1]), minus(loss[-2], loss[-1])).values()))
        return [
            Part(
                f"loss falls from {letter} = {points[0]} to {points[-1]}, by", above(whole), _text(whole, "")
            ),
            Part("the first step gains more than the last, by", above(bend), _text(bend, "")),
        ]

    return test


def _average(values: Sequence[Values]) -> Values:
    """Mean of several values within each trial."""
    common = set.intersection(*(set(value) for value in values)) if values else set()
    return {trial: float(np.mean([value[trial] for value in values])) for trial in sorted(common)}


@dataclass(frozen=True)
class _Counts:
    """Numbers of selected devices in figure 9."""

    rows: Sequence[Row]

    @property
    def points(self) -> list[str]:
        """The SNRs, in ascending order."""
        return sorted({row.x_label for row in self.rows}, key=float)

    def at(self, scheme: str, point: str) -> Values:
        return last_values(self.rows, "selected_count", scheme, point)

    def lead(self, scheme: str, other: str, point: str) -> Values:
        return minus(self.at(scheme, point), self.at(other, point))

    def separating(self, scheme: str, other: str) -> list[str]:
        """SNRs except those at which both schemes select no device, or all devices."""
        most = max((row.value for row in self.rows if row.metric == "selected_count"), default=0.0)
        seen = {p: {*self.at(scheme, p).values(), *self.at(other, p).values()} for p in self.points}
        return [point for point in self.points if seen[point] - {0.0} and seen[point] - {most}]


def _leads(counts: _Counts, what: str, scheme: str, other: str, judged: Callable[[Mean], str]) -> list[Part]:
    """One part for each SNR that separates two schemes."""
    if not {scheme, other} <= {row.scheme for row in counts.rows if row.metric == "selected_count"}:
        return [Part(what, OPEN, "no rows")]
    leads = {
        point: mean(list(counts.lead(scheme, other, point).values()))
        for point in counts.separating(scheme, other)
    }
    return [
        Part(f"{what}, {point} dB", judged(lead), _text(lead, "devices")) for point, lead in leads.items()
    ]


def _gain_at_low_snr(counts: _Counts, subject: str, other: str) -> Part:
    """The mean gain is larger below 0 dB than from 0 dB on."""
    low = _average([counts.lead(subject, other, point) for point in counts.points if float(point) < 0.0])
    high = _average([counts.lead(subject, other, point) for point in counts.points if float(point) >= 0.0])
    more = mean(list(minus(low, high).values()))
    what = f"mean gain over {display_name(other)} larger below 0 dB than above, by"
    return Part(what, above(more), _text(more, "devices"))


def _meeting(counts: _Counts, schemes: Sequence[str]) -> Part:
    """All schemes select nearly the same number of devices at the highest SNR."""
    point = counts.points[-1]
    values = [counts.at(scheme, point) for scheme in schemes]
    trials = sorted(set.intersection(*(set(value) for value in values)))
    spread = mean([max(v[t] for v in values) - min(v[t] for v in values) for t in trials])
    what = f"all within {TOGETHER_DEVICES:g} device at {point} dB"
    return Part(what, below(spread, TOGETHER_DEVICES), _text(spread, "devices"))


def _c8(rows: Rows, subject: str) -> list[Part]:
    counts = _Counts(rows["fig9"])
    arrays = ("mimo-m", _array(subject))
    others = (*arrays, "airpass-mp")
    parts = []
    for other in others:
        what = f"{display_name(subject)} above {display_name(other)}"
        parts += _leads(counts, what, subject, other, above)
    parts += [_gain_at_low_snr(counts, subject, other) for other in arrays]
    if subject == PAPER_METHOD:
        slow = "airpass-sdr-dc"
        what = f"{display_name(slow)} ahead by 0 to {MARGINAL_DEVICES:g} devices"
        parts += _leads(counts, what, slow, subject, lambda gap: between(gap, 0.0, MARGINAL_DEVICES))
    return [*parts, _meeting(counts, (subject, *others))]


def _c9(rows: Rows, subject: str) -> list[Part]:
    by_trial: dict[int, list[Row]] = {}
    for row in rows["table1"]:
        by_trial.setdefault(row.trial, []).append(row)

    def exponent(method: str) -> Mean:
        return mean([table1.exponent(found, method, "K") for found in by_trial.values()])

    def seconds(method: str) -> Values:
        return last_values(rows["table1"], SECONDS, method, "M=8")

    linear, quadratic = exponent("hrmc"), exponent("mp")
    slow, fast = seconds("sdr-dc"), seconds("hrmc")
    ratio = mean([slow[trial] / fast[trial] for trial in sorted(slow.keys() & fast.keys())])
    return [
        Part("HRMC linear in K: exponent at most 1.2", below(linear, 1.2), _text(linear, "")),
        Part(
            "matching pursuit quadratic in K: exponent 1.7 to 2.3",
            between(quadratic, 1.7, 2.3),
            _text(quadratic, ""),
        ),
        Part(
            f"SDR-DC far heavier, {HEAVIER:g} times, at K = 50, M = 8",
            above(ratio, HEAVIER),
            _text(ratio, "times"),
        ),
    ]


# Name, text, figures, whether it is tested for airpass-plus as well, test.
CLAIMS: tuple[tuple[str, str, tuple[str, ...], bool, Test], ...] = (
    (
        "C1",
        "{} beats co-located arrays of M and M x N antennas in test accuracy",
        ("fig2", "fig3"),
        True,
        _c1,
    ),
    ("C2", "the gain over M is large, over M x N still clear", ("fig2", "fig3"), True, _c2),
    ("C3", "{} stays close to FedAvg, closest on MNIST", ("fig2", "fig3"), True, _c3),
    (
        "C4",
        "{} clearly beats AirPASS-MP, and is slightly below AirPASS-SDR-DC",
        ("fig4", "fig5"),
        False,
        _c4,
    ),
    ("C5", "training loss falls with M, with diminishing returns", ("fig6",), True, _falls("fig6", "M")),
    ("C6", "training loss falls with N, with diminishing returns", ("fig7",), True, _falls("fig7", "N")),
    ("C7", "training loss falls with SNR, with diminishing returns", ("fig8",), True, _falls("fig8", "SNR")),
    (
        "C8",
        "{} selects more devices than both arrays, most at low SNR, and than MP (SDR-DC marginally above "
        "AirPASS); all meet at high SNR",
        ("fig9",),
        True,
        _c8,
    ),
    ("C9", "HRMC is linear in K, SDR-DC far heavier, MP quadratic in K", ("table1",), False, _c9),
)


def judge(rows: Rows) -> list[Verdict]:
    """Judge the claims about the paper's method, then, as C1+ and so on, about airpass-plus.

    Parameters
    ----------
    rows
        Rows by figure. Claims about other figures are left out.

    Returns
    -------
    list[Verdict]
        A verdict for each claim.
    """
    found = []
    for subject in (PAPER_METHOD, PLUS_METHOD):
        for name, text, figures, for_both, test in CLAIMS:
            asked = [row.scheme for figure in figures for row in rows.get(figure, ())]
            if not asked or (subject == PLUS_METHOD and not (for_both and subject in asked)):
                continue
            mark = "+" if subject == PLUS_METHOD else ""
            parts = tuple(test(rows, subject))
            found.append(Verdict(name + mark, text.format(display_name(subject)), figures, parts))
    return found
