"""What came out of the figures, in a sentence each, with numbers from the stored rows.

A difference is a mean within trials with half the width of its 95 % confidence interval (Student's t).
"""

from collections.abc import Callable, Iterable, Sequence

from airpass.core.display import display_name
from airpass.learning import FEDAVG
from airpass.study.paper.curves import PANELS
from airpass.study.paper.fig9 import SCALES, of_rule
from airpass.study.paper.schemes import BEST_ARRAY, COMPARISONS, TRAINED_ARRAY, TURNS, Comparison
from airpass.study.summary import Mean, mean
from airpass.study.trial import SECONDS
from airpass.study.values import Results, Rows, best_array, minus
from airpass.study.verdicts import FAILS, FEWEST, HOLDS, Values, within

PLUS = "airpass-plus"
PERCENT = 100.0
MINUS = "\N{MINUS SIGN}"


def findings(rows: Rows, scale: str | None = None) -> list[str]:
    """The findings of all figures that have rows.

    Parameters
    ----------
    rows
        Rows by figure.
    scale
        Scale of the rows.

    Returns
    -------
    list[str]
        Sentences; figures without rows have none.
    """
    return [
        text
        for figures, find in _FINDINGS
        if all(rows.get(name) for name in figures)
        for text in [find(*(Results(name, rows[name], scale) for name in figures))]
        if text
    ]


def _by(found: Mean, scale: float = 1.0, digits: int = 1) -> str:
    """A difference without its sign."""
    half = f" ± {scale * found.half_width:.{digits}f}" if found.count > 1 else ""
    return f"{abs(scale * found.value):.{digits}f}{half}"


def _level(values: Values, scale: float = 1.0, digits: int = 1) -> str:
    return f"{scale * mean(list(values.values())).value:.{digits}f}"


def _levels(first: Values, second: Values, scale: float = 1.0) -> tuple[str, str]:
    """Both means over the trials that both have."""
    common = minus(first, second).keys()
    ours, theirs = ({trial: values[trial] for trial in common} for values in (first, second))
    return _level(ours, scale), _level(theirs, scale)


def _relation(first: str, second: str, found: Mean, unit: str, scale: float = 1.0, digits: int = 1) -> str:
    """Which of two is ahead, as far as the interval tells."""
    verdict = within(found, low=0.0)
    by = f"{_by(found, scale, digits)} {unit}"
    if verdict == HOLDS:
        return f"{first} is {by} above {second}"
    if verdict == FAILS:
        return f"{first} is {by} below {second}"
    return f"{first} and {second} differ by {by}"


def _where(leads: Iterable[tuple[str, Mean]], verdict: str) -> str:
    """The points with a verdict, each with its difference: "by 16.4 ± 1.9 at 5 dB"; "" if there are none."""
    found = [
        f"{_by(lead)} at {_signed(point)} dB" for point, lead in leads if within(lead, low=0.0) == verdict
    ]
    return f"by {' and '.join(', '.join(found).rsplit(', ', 1))}" if found else ""


def _ahead_and_behind(subject: str, verbs: tuple[str, str], leads: Sequence[tuple[str, Mean]]) -> str:
    """Where a scheme is ahead, and where behind, in a sentence."""
    ahead, behind = _where(leads, HOLDS), _where(leads, FAILS)
    begins = f"{subject} {verbs[0]} {ahead}" if ahead else f"{subject} nowhere {verbs[0]}"
    return f"{begins}, and {verbs[1]} {behind}." if behind else f"{begins}, and nowhere {verbs[1]}."


def _signed(point: str) -> str:
    return point.replace("-", MINUS)


def _leads(found: Results, comparison: Comparison) -> list[tuple[str, Mean]]:
    """Lead over the largest array, or the best one, by SNR."""
    leads = []
    for point in found.places(comparison.subject):
        first = found.values("selected_count", comparison.subject, point)
        second = best_array(found, point, comparison.large).values
        if differences := list(minus(first, second).values()):
            leads.append((point, mean(differences)))
    return leads


def _best_known(found: Results) -> str:
    shares = Results(found.name, of_rule(found.rows, energy=False), found.scale)
    comparison = COMPARISONS[-1]
    leads = _leads(shares, comparison)
    if not leads:
        return ""
    point, lead = max(leads, key=lambda one: one[1].value)
    rival = best_array(shares, point, comparison.large)
    ours = shares.values("selected_count", comparison.subject, point)
    ours_level, rival_level = _levels(ours, rival.values)
    devices, chains, antennas = SCALES[found.scale or "paper"][0]
    return (
        f"Devices, with shares as weights: at {_signed(point)} dB {display_name(PLUS)} selects {ours_level} "
        f"of {devices} devices with {chains} receive chains. The best of seven fixed arrays with "
        f"{chains * antennas} chains selects {rival_level}, {_by(lead)} "
        f"{'fewer' if lead.value >= 0.0 else 'more'}. "
        + _ahead_and_behind(display_name(PLUS), ("is significantly ahead", "significantly behind"), leads)
    )


def _best_known_energy(found: Results) -> str:
    """The same comparison with the other rule for the weights."""
    rows = Results(found.name, of_rule(found.rows, energy=True), found.scale)
    leads = [(point.partition(",")[0], lead) for point, lead in _leads(rows, COMPARISONS[-1])]
    if not leads:
        return ""
    verbs = "is significantly ahead of the best array", "significantly behind"
    return _ahead_and_behind(f"With energy weights, {display_name(PLUS)}", verbs, leads)


def _printed(place: int, words: str) -> Callable[[Results], str]:
    """AirPASS against the M x N array in one of the first two comparisons."""

    def find(found: Results) -> str:
        shares = Results(found.name, of_rule(found.rows, energy=False), found.scale)
        leads = _leads(shares, COMPARISONS[place])
        if not leads:
            return ""
        verbs = "selects more devices than the M x N array", "fewer"
        return _ahead_and_behind(f"{words} the paper's AirPASS", verbs, leads)

    return find


def _accuracy(data: str) -> Callable[[Results], str]:
    """Final accuracy of the schemes of figures 2 and 3."""

    def find(found: Results) -> str:
        def ahead(first: str, second: str) -> Mean:
            values = [found.values("test_accuracy", name) for name in (first, second)]
            return mean(list(minus(*values).values()))

        def said(first: str, second: str) -> str:
            lead = ahead(first, second)
            return _relation(display_name(first), display_name(second), lead, "points", PERCENT)

        if not ahead(PLUS, FEDAVG).count:
            return ""
        ideal = _level(found.values("test_accuracy", FEDAVG), PERCENT)
        rounds = max(row.round for row in found.rows)
        return (
            f"Accuracy on {data}, 10 devices, 10 dB, after {rounds} rounds (ideal FedAvg: {ideal} %): "
            + "; ".join(
                said(*pair)
                for pair in (
                    (PLUS, FEDAVG),
                    (PLUS, TRAINED_ARRAY),
                    ("airpass", "mimo-mn-1-start"),
                    ("airpass", "mimo-m-1-start"),
                )
                if ahead(*pair).count
            )
            + "."
        )

    return find


def _variants(data: str) -> Callable[[Results], str]:
    """AirPASS and its variants in figures 4 and 5."""

    def find(found: Results) -> str:
        texts = []
        for point in PANELS:
            pairs = []
            for first, second in (("airpass", "airpass-mp"), ("airpass-sdr-dc", "airpass")):
                values = [found.values("test_accuracy", name, point.label) for name in (first, second)]
                if lead := list(minus(*values).values()):
                    names = display_name(first), display_name(second)
                    pairs.append(_relation(*names, mean(lead), "points", PERCENT))
            if pairs:
                texts.append(f"{_signed(point.title)}: {'; '.join(pairs)}")
        return f"Selection methods on {data}, 50 devices. {'. '.join(texts)}." if texts else ""

    return find


def _axes(*figures: Results) -> str:
    """How far the loss falls along M, N and the SNR."""
    texts = []
    for found, letter in zip(figures, ("M", "N", "SNR"), strict=True):
        for scheme in ("airpass", PLUS):
            points = list(found.places(scheme))
            if len(points) < 2:
                continue
            first, last = (found.values("train_loss", scheme, point) for point in (points[0], points[-1]))
            fall = mean(list(minus(first, last).values()))
            if not fall.count:
                continue
            verdict = within(fall, low=0.0)
            if verdict in (HOLDS, FAILS):
                words = f"{'falls' if verdict == HOLDS else 'rises'} by {_by(fall, digits=2)}"
            else:
                way = "lower" if fall.value >= 0.0 else "higher"
                words = f"does not change measurably ({_by(fall, digits=2)} {way})"
            texts.append(f"{display_name(scheme)} {words} from {letter} = {points[0]} to {points[-1]}")
    return f"Training loss: {'; '.join(texts)}." if texts else ""


def _turns(found: Results) -> str:
    """Accuracy by turns against one design, where the gain is largest."""
    gains = []
    for point in found.places(TURNS):
        values = [found.values("test_accuracy", name, point) for name in (TURNS, PLUS)]
        if differences := list(minus(*values).values()):
            gains.append((mean(differences), point))
    if not gains:
        return ""
    gain, point = max(gains, key=lambda one: one[0].value)
    turns, one, rival = (found.values("test_accuracy", name, point) for name in (TURNS, PLUS, BEST_ARRAY))
    levels = _levels(turns, one, PERCENT)
    way = "more" if gain.value >= 0.0 else "less"
    return (
        f"By turns: at {_signed(point)} dB the accuracy on MNIST is {levels[0]} % instead of {levels[1]} % "
        f"with one design ({_by(gain, PERCENT)} points {way})"
        + (f"; the best array has {_level(rival, PERCENT)} %." if rival else ".")
    )


def _until(name: str, metric: str, unit: str) -> Callable[[Results], str]:
    """Where the array is ahead of `airpass-plus`."""

    def find(found: Results) -> str:
        points, verdicts, texts = [], [], []
        for point in found.places(PLUS):
            rival = best_array(found, point, metric=metric)
            ours = found.values(metric, PLUS, point)
            lead = mean(list(minus(rival.values, ours).values()))
            if lead.count < FEWEST:
                continue
            points.append(point)
            verdicts.append(within(lead, low=0.0))
            levels = _levels(rival.values, ours)
            texts.append((rival.name, f"{levels[0]} against {levels[1]} devices"))
        if not points:
            return ""
        ahead = [verdict == HOLDS for verdict in verdicts]
        if not any(ahead):
            if all(verdict == FAILS for verdict in verdicts):
                return f"{name}: {display_name(PLUS)} stays ahead of the best array at all points."
            return f"{name}: {display_name(PLUS)} is not measurably behind the best array at any point."
        first = ahead.index(True)
        rival_name, levels_text = texts[first]
        if all(ahead[first:]):
            where = f"from {points[first]} {unit} on"
        else:
            where = (
                f"at {', '.join(point for point, there in zip(points, ahead, strict=True) if there)} {unit}"
            )
        at = "" if all(ahead[first:]) else f" at {points[first]} {unit}"
        return f"{name}: with the beam solved again, {rival_name} is ahead {where} ({levels_text}{at})."

    return find


def _cost(found: Results) -> str:
    """Time of selection methods at K = 50, M = 8."""
    times = {name: found.values(SECONDS, name, "M=8") for name in ("hrmc", "mp", "sdr-dc")}
    if not all(times.values()):
        return ""
    hrmc, mp, sdr = (1e3 * mean(list(values.values())).value for values in times.values())
    said = f"HRMC {hrmc:.3g} ms, matching pursuit {mp:.3g} ms, SDR-DC {sdr:,.0f} ms"
    return f"Cost of selection at K = 50, M = 8: {said}."


_FINDINGS: Sequence[tuple[tuple[str, ...], Callable[..., str]]] = (
    (("fig9",), _best_known),
    (("fig9",), _best_known_energy),
    (("fig9",), _printed(0, "As printed (one start each, arrays along x),")),
    (("fig9",), _printed(1, "With 16 starts each,")),
    (("fig2",), _accuracy("MNIST")),
    (("fig3",), _accuracy("CIFAR-10")),
    (("fig4",), _variants("MNIST")),
    (("fig5",), _variants("CIFAR-10")),
    (("fig6", "fig7", "fig8"), _axes),
    (("turns-snr",), _turns),
    (("life",), _until("Motion of all devices", "aligned_re_solved", "wavelengths")),
    (("tolerance",), _until("Errors of the antennas' positions", "aligned_re_solved", "mm")),
    (("table1",), _cost),
)
