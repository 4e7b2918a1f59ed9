"""Means over the trials of a study, with confidence intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from airpass.study.trial import Row

CONFIDENCE = 0.95
MOST_DRAWS = 10_000  # numbers of trials above this are not worth naming


@dataclass(frozen=True)
class Mean:
    """A mean over trials, and half the width of its 95 % confidence interval (Student's t)."""

    value: float
    half_width: float  # NaN for fewer than two trials
    count: int


def mean(values: Sequence[float]) -> Mean:
    """Mean of the values that are not NaN."""
    known = np.array([value for value in values if not np.isnan(value)])
    if known.size == 0:
        return Mean(float("nan"), float("nan"), 0)
    if known.size == 1:
        return Mean(float(known[0]), float("nan"), 1)
    if not np.isfinite(known).all():  # such as the signal-to-distortion ratio of ideal aggregation
        return Mean(sum(known.tolist()) / known.size, float("nan"), int(known.size))
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, known.size - 1))
    half = quantile * float(known.std(ddof=1)) / float(np.sqrt(known.size))
    return Mean(float(known.mean()), half, int(known.size))


def p_value(found: Mean, limit: float) -> float:
    """Two-sided p-value of a mean that equals a limit (Student's t).

    It is below 5 % if the 95 % confidence interval excludes the limit. NaN for fewer than two trials, or
    if all trials equal the limit.
    """
    if found.count < 2 or (found.half_width == 0.0 and found.value == limit):
        return float("nan")
    if found.half_width == 0.0:
        return 0.0
    freedom = found.count - 1
    error = found.half_width / float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, freedom))
    return float(2.0 * stats.t.sf(abs(found.value - limit) / error, freedom))


def draws_to_exclude(found: Mean, limit: float) -> int | None:
    """Number of trials after which the confidence interval of a mean would exclude a limit.

    Mean and spread of further trials are taken to be those of the present ones.

    Parameters
    ----------
    found
        Mean of two or more trials.
    limit
        The limit.

    Returns
    -------
    int or None
        The smallest number; None if it is above `MOST_DRAWS`, or if the mean is at the limit.
    """
    if found.count < 2 or not np.isfinite(found.half_width):
        return None
    distance = abs(found.value - limit)
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2.0, found.count - 1)
    spread = found.half_width / float(quantile) * float(np.sqrt(found.count))
    numbers = np.arange(2, MOST_DRAWS + 1)
    half_widths = stats.t.ppf(0.5 + CONFIDENCE / 2.0, numbers - 1) * spread / np.sqrt(numbers)
    enough = np.flatnonzero(half_widths < distance)
    return int(numbers[enough[0]]) if enough.size else None


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values of several tests, adjusted by Holm's method.

    Parameters
    ----------
    p_values
        p-values without NaN.

    Returns
    -------
    list[float]
        Adjusted p-values in the same order. If those below 5 % are called significant, the
        probability of one or more errors among all tests is at most 5 %.
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def last_round(rows: Iterable[Row]) -> list[Row]:
    """For each trial and metric, the row of the last round."""
    latest: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = (row.figure, row.scheme, row.x, row.x_label, row.trial, row.metric)
        if key not in latest or row.round > latest[key].round:
            latest[key] = row
    return list(latest.values())


def means_by_point(rows: Iterable[Row], metric: str) -> dict[str, dict[str, Mean]]:
    """Means over trials at the last round, by scheme and point of the axis."""
    groups: dict[str, dict[str, list[float]]] = {}
    for row in last_round(rows):
        if row.metric == metric:
            groups.setdefault(row.scheme, {}).setdefault(row.x_label, []).append(row.value)
    return {
        scheme: {point: mean(values) for point, values in points.items()} for scheme, points in groups.items()
    }


def means_by_round(rows: Iterable[Row], metric: str) -> dict[tuple[str, str], dict[int, Mean]]:
    """Means over trials, by (scheme, point of the axis) and round."""
    groups: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        if row.metric == metric:
            groups.setdefault((row.scheme, row.x_label), {}).setdefault(row.round, []).append(row.value)
    return {
        line: {number: mean(values) for number, values in sorted(rounds.items())}
        for line, rounds in groups.items()
    }
