"""Stored studies: the folders of `airpass reproduce` and `airpass sweep`, opened again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.figures.chart import Chart
from airpass.study.charts import shown_metric, sweep_chart
from airpass.study.claims import judge
from airpass.study.paper import figures
from airpass.study.paper.base import SCALES, PaperFigure
from airpass.study.provenance import machine
from airpass.study.store import MERGED, Store, decode
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row
from airpass.study.verdicts import Verdict


@dataclass(frozen=True, eq=False)
class StoredStudy:
    """Rows of a study, and how they were computed.

    Parameters
    ----------
    name
        Name of the study.
    figure
        The figure of the paper that it reproduces; None for a sweep.
    axis
        The field that a sweep varies, or "".
    rows
        All rows, with times.
    provenance
        Content of provenance.json; empty if there is none.
    """

    name: str
    figure: PaperFigure | None
    axis: str
    rows: Sequence[Row]
    provenance: Mapping[str, Any]

    def about(self) -> list[str]:
        """Lines for the terminal: title, trials, time and machine, command."""
        scale = self.provenance.get("scale", "")
        title = self.name if self.figure is None else f"{self.name}: {self.figure.title}"
        lines = [f"{title}, scale {scale}" if scale else title]
        if self.provenance:
            failed = len(self.provenance["failed"])
            lines.append(f"{self.provenance['trials']} trials" + (f"; {failed} failed" if failed else ""))
            lines += machine(self.provenance)
        return lines

    def table(self) -> Table:
        """Means over trials."""
        if self.figure is not None:
            return self.figure.table(self.rows)
        return by_point(self.rows, shown_metric(self.rows))

    def chart(self) -> Chart | None:
        """The chart; None for a sweep with neither an axis nor training."""
        if self.figure is not None:
            return self.figure.chart(self.rows)
        return sweep_chart(self.rows, self.axis, self.name)

    def verdicts(self) -> list[Verdict]:
        """Verdicts on the claims that a figure of the paper is about; none for a sweep."""
        if self.figure is None:
            return []
        return judge({self.name: self.rows}, self.provenance["scale"])


def open_study(path: Path) -> StoredStudy:
    """Open a stored study.

    Parameters
    ----------
    path
        Folder of `airpass reproduce` or `airpass sweep`, or a file of rows.

    Returns
    -------
    StoredStudy
        The rows, and what is known of them.
    """
    folder = path if path.is_dir() else path.parent
    provenance = _provenance(folder / "provenance.json")
    name = str(provenance.get("study", path.stem))
    figure = figures().get(name) if provenance.get("scale") in SCALES else None
    rows: list[Row] = []
    if figure is not None:  # the folder may also hold rows of an earlier version
        rows = Store(folder).read(figure.trials(provenance["scale"]))
    if not rows:
        files = [folder / file for file in MERGED] if path.is_dir() else [path]
        rows = [row for file in files if file.exists() for row in decode(file)]
    if not rows:
        raise InvalidInput(f"{path}: holds no rows; run airpass reproduce or airpass sweep first")
    has_axis = any(row.x_label for row in rows)
    return StoredStudy(name, figure, str(provenance.get("axis", "x" if has_axis else "")), rows, provenance)


def _provenance(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
        machine(found)
        len(found["failed"]), found["trials"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path}: damaged; delete it to open the rows without it") from None
    return dict(found)
