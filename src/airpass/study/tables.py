"""Tables of a study: means over trials with half the width of their confidence intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airpass.core.display import display_name, looks
from airpass.core.fields import named, with_unit
from airpass.study.charts import Shown, has_values, shown
from airpass.study.summary import Mean, means_by_point
from airpass.study.trial import Row

Table = tuple[list[str], list[list[str]]]  # headings, and cells as text


def cell(mean: Mean | None, look: Shown) -> str:
    """A mean as text."""
    if mean is None or not np.isfinite(mean.value):
        return "-"
    digits = look.decimals(mean.value)
    text = f"{look.scale * mean.value:.{digits}f}"
    return text if np.isnan(mean.half_width) else f"{text} ± {look.scale * mean.half_width:.{digits}f}"


def heading(metric: str, axis: str) -> str:
    """Heading of a table of a sweep."""
    label = shown(metric).label
    return label[0].upper() + label[1:] + (f", by {with_unit(*named(axis))}" if axis else "")


def by_point(
    rows: Sequence[Row],
    metric: str,
    titles: Mapping[str, str] | None = None,
    order: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Table:
    """A table with a line per scheme and a column per point of the axis.

    Parameters
    ----------
    rows
        Rows of a study.
    metric
        A metric of the rows.
    titles
        Headings by point, in the order of the columns; None for the points as rows name them.
    order
        Schemes in the order of the lines; None for the order of legends.
    labels
        Names of schemes in the first column; others are those of the rows.

    Returns
    -------
    Table
        Headings and cells. A scheme without the metric, such as the error of ideal FedAvg, has dashes.
    """
    means = means_by_point(rows, metric)
    look = shown(metric)
    found = dict.fromkeys(row.x_label for row in rows)
    named = {point: title for point, title in (titles or {}).items() if point in found}
    columns = named | {point: point for point in found if point not in named}
    heads = ["scheme", *(title or metric.replace("_", " ") for title in columns.values())]
    cells = []
    for scheme in looks(means) if order is None else [name for name in order if name in means]:
        found_here = means[scheme] if has_values(metric, means[scheme].values()) else {}
        values = [cell(found_here.get(point), look) for point in columns]
        cells.append([(labels or {}).get(scheme, scheme), *values])
    return heads, cells


def numbers(rows: Sequence[Row], metrics: Sequence[str], order: Sequence[str]) -> list[dict[str, Any]]:
    """Means over trials as numbers, in the units of the rows.

    Parameters
    ----------
    rows
        Rows of a study, in the order of the points.
    metrics
        Metrics of the rows.
    order
        Schemes in the order wanted.

    Returns
    -------
    list[dict[str, Any]]
        Scheme, point, metric, mean, half the width of its 95 % confidence interval, and number of trials.
        The half width is NaN for one trial.
    """
    places = {row.x_label: row.x if row.x is not None else row.x_label or None for row in rows}
    found = []
    for metric in metrics:
        means = means_by_point(rows, metric)
        for scheme in (name for name in order if name in means):
            for point in (point for point in places if point in means[scheme]):
                one = means[scheme][point]
                found.append(
                    {
                        "scheme": scheme,
                        "x": places[point],
                        "metric": metric,
                        "mean": one.value,
                        "half_width": one.half_width,
                        "trials": one.count,
                    }
                )
    return found


def best(rows: Sequence[Row], metric: str, axis: str, labels: Mapping[str, str] | None = None) -> str:
    """Which scheme is best at which point of the axis, in a sentence; `labels` are names of schemes."""
    look = shown(metric)
    means = {
        scheme: found
        for scheme, found in means_by_point(rows, metric).items()
        if has_values(metric, found.values())
    }
    winners: dict[str, list[str]] = {}
    values: list[float] = []
    points = list(dict.fromkeys(row.x_label for row in rows))
    for point in points:
        known = {name: found[point].value for name, found in means.items() if point in found}
        finite = {name: value for name, value in known.items() if np.isfinite(value)}
        if finite:
            top = (max if look.most else min)(finite.values())
            values.append(top)
            names = [
                (labels or {}).get(name, display_name(name)) for name, value in finite.items() if value == top
            ]
            winners.setdefault(" and ".join(names), []).append(point)
    if not winners:
        return f"No trial has a value of: {look.label}."
    words = []
    for name, found in winners.items():
        where = f" at {', '.join(found)}" if found != points else " at all points" if axis else ""
        words.append(f"{name}{where}")
    low, high = (f"{look.scale * value:.{look.decimals(value)}f}" for value in (min(values), max(values)))
    span = low if low == high else f"{low} to {high}"
    along = f" along {named(axis)[0]}" if axis else ""
    extreme = "largest" if look.most else "smallest"
    return f"{look.label[0].upper()}{look.label[1:]}{along}: {extreme} mean with {'; '.join(words)} ({span})."
