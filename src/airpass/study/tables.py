"""Tables of a study: means over trials with the half-width of their confidence interval."""

from collections.abc import Sequence

import numpy as np

from airpass.study.figure import Table
from airpass.study.summary import Mean, means_by_point
from airpass.study.trial import Row


def cell(mean: Mean | None, scale: float = 1.0, digits: int = 1) -> str:
    """A mean as text."""
    if mean is None or mean.count == 0:
        return "-"
    text = f"{scale * mean.value:.{digits}f}"
    return text if np.isnan(mean.half_width) else f"{text} ± {scale * mean.half_width:.{digits}f}"


def by_point(rows: Sequence[Row], metric: str, unit: str, scale: float = 1.0, digits: int = 1) -> Table:
    """Schemes down, points of the axis across."""
    means = means_by_point(rows, metric)
    points = list(dict.fromkeys(row.x_label for row in rows))
    heads = ["scheme", *(f"{point} {unit}".strip() or metric.replace("_", " ") for point in points)]
    cells = [
        [scheme, *(cell(found.get(point), scale, digits) for point in points)]
        for scheme, found in means.items()
    ]
    return heads, cells
