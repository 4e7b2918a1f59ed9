"""Verdicts on comparisons, and how the verdicts on parts combine into the verdict on a claim.

A comparison within trials gives a mean difference with its 95 % confidence interval (Student's t). It holds
if the whole interval is on the claimed side of the limit, does not hold if it is on the other side, and is
not decided otherwise, or with fewer than three trials. It is a tie if every trial equals the limit.

The parts of a claim are combined for each comparison and each data set on its own:

- does not hold, if a part does not hold;
- no rows, if no part has rows;
- holds, if all parts hold. Ties are left out, as they neither support nor refute: with ties it holds, with
  ties, and if there are only ties it is a tie;
- not decided otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from airpass.study.paper.schemes import AS_PRINTED
from airpass.study.summary import CONFIDENCE, MOST_DRAWS, Mean, draws_to_exclude, holm, mean, p_value

HOLDS, FAILS, OPEN, TIE, NO_ROWS = "holds", "does not hold", "not decided", "tie", "no rows"
WITH_TIES = "holds, with ties"
FEWEST = 3  # trials needed for a decision; the paper has three
UNKNOWN = float("nan")
NO_LIMIT = float("inf")

Values = Mapping[int, float]  # by trial


@dataclass(frozen=True)
class Part:
    """One comparison.

    Parameters
    ----------
    what
        What is compared.
    verdict
        One of the five verdicts.
    effect
        Mean with its interval, and the number of trials.
    comparison
        Which schemes, or which setting, it is about.
    data
        Data set; "" if the claim is about one only.
    interim
        Whether trials of the plan are missing.
    p
        p-value of a mean at the nearest limit; NaN if nothing was tested.
    holm
        The same, adjusted for all comparisons that were judged together.
    """

    what: str
    verdict: str
    effect: str
    comparison: str = AS_PRINTED
    data: str = ""
    interim: bool = False
    p: float = UNKNOWN
    holm: float = UNKNOWN


@dataclass(frozen=True)
class Verdict:
    """A claim and its parts."""

    claim: str
    text: str
    figures: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def comparisons(self) -> dict[str, tuple[Part, ...]]:
        """Parts by comparison."""
        names = dict.fromkeys(part.comparison for part in self.parts)
        return {name: tuple(part for part in self.parts if part.comparison == name) for name in names}

    @property
    def by_comparison(self) -> dict[str, str]:
        """Verdict for each comparison, with the data sets if there are several."""
        return {name: _summary(parts) for name, parts in self.comparisons.items()}

    @property
    def verdict(self) -> str:
        """Verdict on the claim as the paper ran it."""
        return self.by_comparison.get(AS_PRINTED, NO_ROWS)


def _summary(parts: Sequence[Part]) -> str:
    texts = []
    for data in dict.fromkeys(part.data for part in parts):
        found = [part for part in parts if part.data == data]
        text = combined(part.verdict for part in found)
        text += " (interim)" if text != NO_ROWS and any(part.interim for part in found) else ""
        texts.append(f"{data}: {text}" if data else text)
    return "; ".join(texts)


def combined(verdicts: Iterable[str]) -> str:
    """The verdict on several parts."""
    found = set(verdicts)
    if FAILS in found:
        return FAILS
    if found <= {NO_ROWS}:
        return NO_ROWS
    if found <= {HOLDS, TIE}:
        return WITH_TIES if len(found) == 2 else found.pop()
    return OPEN


def within(found: Mean, low: float = -NO_LIMIT, high: float = NO_LIMIT) -> str:
    """Whether a mean is between two limits, according to its confidence interval.

    Parameters
    ----------
    found
        Mean over trials.
    low, high
        The limits; one may be infinite.

    Returns
    -------
    str
        One of the five verdicts.
    """
    if found.count == 0:
        return NO_ROWS
    if found.count < FEWEST:
        return OPEN
    if found.half_width == 0.0 and found.value in (low, high):
        return TIE
    least, most = found.value - found.half_width, found.value + found.half_width
    if low < least and most < high:
        return HOLDS
    return FAILS if most < low or least > high else OPEN


@dataclass(frozen=True)
class Unit:
    """How an effect is written."""

    name: str = ""
    scale: float = 1.0


POINTS, DEVICES, TIMES, NUMBER = Unit("points", 100.0), Unit("devices"), Unit("times"), Unit()


def compare(
    what: str,
    values: Values,
    unit: Unit,
    *,
    low: float = -NO_LIMIT,
    high: float = NO_LIMIT,
    declared: int | None = None,
    comparison: str = AS_PRINTED,
    data: str = "",
) -> Part:
    """Compare the mean of values within trials with limits.

    Parameters
    ----------
    what
        What is compared.
    values
        Values by trial.
    unit
        Unit of the effect.
    low, high
        Limits of the values.
    declared
        Number of trials in the plan; None if there is no plan.
    comparison, data
        Copied to the part.

    Returns
    -------
    Part
        Verdict and effect.
    """
    found = mean(list(values.values()))
    interim = declared is not None and len(values) < declared
    verdict = within(found, low, high) if found.count or not values else OPEN
    p_values = [p_value(found, limit) for limit in (low, high) if abs(limit) < NO_LIMIT]
    return Part(
        what=what,
        verdict=verdict,
        effect=_effect(found, len(values), unit, declared if interim else None)
        + (_outlook(found, low, high) if verdict == OPEN else ""),
        comparison=comparison,
        data=data,
        interim=interim,
        p=max(p_values) if found.count >= FEWEST and verdict != TIE else UNKNOWN,
    )


def _outlook(found: Mean, low: float, high: float) -> str:
    """How many trials would decide, if they were like those that there are."""
    if found.count < 2:
        return ""
    nearest = min((low, high), key=lambda limit: abs(found.value - limit))
    needed = draws_to_exclude(found, nearest)
    number = f"more than {MOST_DRAWS:,}" if needed is None else f"about {max(needed, FEWEST):,}"
    return f"; would be decided by {number} trials"


def _effect(found: Mean, trials: int, unit: Unit, declared: int | None) -> str:
    """A mean as text. `declared` is the number of trials if some are missing."""
    if trials == 0:
        return "no rows"
    count = f"{trials} trial{'s' * (trials != 1)}"
    if declared is not None:
        count = f"{trials} of {declared} trials; interim"
    if found.count < trials:
        count += f"; {trials - found.count} undefined"
    if found.count == 0:
        return f"undefined ({count})"
    half = f" ± {unit.scale * found.half_width:.2f}" if found.count > 1 else ""
    value = round(unit.scale * found.value, 2) + 0.0  # no minus before zero
    return f"{value:+.2f}{half} {unit.name}".rstrip() + f" ({count})"


def adjusted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts with the p-values of all distinct comparisons adjusted by Holm's method."""
    tests = {_test(part): part.p for found in verdicts for part in found.parts if part.p == part.p}
    new = dict(zip(tests, holm(list(tests.values())), strict=True))
    return [
        replace(found, parts=tuple(replace(part, holm=new.get(_test(part), UNKNOWN)) for part in found.parts))
        for found in verdicts
    ]


def _test(part: Part) -> tuple[str, ...]:
    """Identity of a comparison: two claims may rest on the same one."""
    return part.what, part.comparison, part.data, part.effect


def multiplicity(verdicts: Sequence[Verdict]) -> str:
    """How many comparisons were made, and how many of them chance alone would decide."""
    tests = {_test(part): part for found in verdicts for part in found.parts if part.p == part.p}
    if not tests:
        return "No comparison has enough trials for a decision."
    level = 1.0 - CONFIDENCE
    decided = [part for part in tests.values() if part.verdict in (HOLDS, FAILS)]
    remain = sum(part.holm <= level for part in decided)
    return (
        f"Comparisons at {100.0 * CONFIDENCE:.0f} % confidence: {len(tests)}. "
        f"If every true mean were exactly at its limit, chance would decide {level * len(tests):.1f} of them "
        "on average. "
        f"Decided: {len(decided)}; after Holm's correction for all {len(tests)}: {remain}."
    )
