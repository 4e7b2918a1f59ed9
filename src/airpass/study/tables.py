"""Tables of a study: means over trials with half the width of their confidence intervals."""

from collections.abc import Mapping, Sequence

import numpy as np

from airpass.core.display import looks
from airpass.study.charts import METRICS
from airpass.study.summary import Mean, means_by_point
from airpass.study.trial import Row

Table = tuple[list[str], list[list[str]]]  # headings, and cells as text


def cell(mean: Mean | None, scale: float = 1.0, digits: int = 1) -> str:
    """A mean as text."""
    if mean is None or mean.count == 0:
        return "-"
    text = f"{scale * mean.value:.{digits}f}"
    return text if np.isnan(mean.half_width) else f"{text} ± {scale * mean.half_width:.{digits}f}"


def by_point(rows: Sequence[Row], metric: str, titles: Mapping[str, str] | None = None) -> Table:
    """A table with a line per scheme and a column per point of the axis.

    Parameters
    ----------
    rows
        Rows of a study.
    metric
        A key of `METRICS`.
    titles
        Headings by point, in the order of the columns; None for the points as rows name them.

    Returns
    -------
    Table
        Headings and cells. The first column has the schemes as rows name them.
    """
    means = means_by_point(rows, metric)
    shown = METRICS[metric]
    found = dict.fromkeys(row.x_label for row in rows)
    named = {point: title for point, title in (titles or {}).items() if point in found}
    columns = named | {point: point for point in found if point not in named}
    heads = ["scheme", *(title or metric.replace("_", " ") for title in columns.values())]
    cells = [
        [scheme, *(cell(means[scheme].get(point), shown.scale, shown.digits) for point in columns)]
        for scheme in looks(means)
    ]
    return heads, cells
