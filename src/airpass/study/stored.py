"""Stored studies: the folders of `airpass reproduce` and `airpass sweep`, opened again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.study import sweep
from airpass.study.charts import shown_metric
from airpass.study.claims import judge
from airpass.study.known import known_figures
from airpass.study.paper.base import SCALES, PaperFigure
from airpass.study.provenance import machine, read_provenance
from airpass.study.replot import STUDY, redraw, sweep_tables
from airpass.study.store import MERGED, Store, decode
from airpass.study.tables import Table, by_point, heading
from airpass.study.trial import Row
from airpass.study.verdicts import Verdict


@dataclass(frozen=True, eq=False, repr=False)
class StoredStudy:
    """Rows of a study, and how they were computed.

    Parameters
    ----------
    path
        Folder, or file of rows.
    name
        Name of the study.
    figure
        The figure of the paper that it reproduces; None for a sweep.
    rows
        All rows, with times.
    provenance
        Content of provenance.json; empty if there is none.
    """

    path: Path
    name: str
    figure: PaperFigure | None
    rows: Sequence[Row]
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        trials = len({row.key for row in self.rows})
        return f"StoredStudy({self.name}: {trials} trials in {self.path})"

    def about(self) -> list[str]:
        """Lines for the terminal: title, trials, time and machine, command."""
        scale = self.provenance.get("scale", "")
        title = self.name if self.figure is None else f"{self.name}: {self.figure.titled(scale)}"
        lines = [f"{title}, scale {scale}" if scale else title]
        if self.provenance:
            failed = len(self.provenance["failed"])
            lines.append(f"{self.provenance['trials']} trials" + (f"; {failed} failed" if failed else ""))
            lines += [*machine(self.provenance), self.provenance["command"]]
        return lines

    def tables(self) -> dict[str, Table]:
        """Means over trials, per metric that the study shows."""
        if self.figure is not None:
            return {self.name: self.figure.table(self.rows)}
        study = (self.path if self.path.is_dir() else self.path.parent) / STUDY
        if study.is_file():
            return sweep_tables(sweep.load(study), self.rows)
        metric = shown_metric(self.rows)
        return {metric: by_point(self.rows, metric)}

    def headings(self) -> dict[str, str]:
        """Headings of `tables`; none for a figure of the paper, which has one table."""
        if self.figure is not None:
            return {}
        return {metric: heading(metric, self._axis) for metric in self.tables()}

    @property
    def _axis(self) -> str:
        study = (self.path if self.path.is_dir() else self.path.parent) / STUDY
        return sweep.load(study).axis if study.is_file() else ""

    def plot(self, path: str | Path | None = None, config: Mapping[str, Any] | None = None) -> Any:
        """Draw the study.

        Parameters
        ----------
        path
            Picture to write: .png, .pdf or .svg.
        config
            Entries of a table [figure]; those of the sweep if not given.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.
        """
        from airpass.figures.study import draw_chart
        from airpass.figures.style import save

        drawn = draw_chart(redraw(self.path, config))
        if path is not None:
            save(drawn, Path(path))
        return drawn

    def to_frame(self) -> Any:
        """All rows as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise InvalidInput("to_frame needs pandas: pip install 'airpass[frames]'") from None
        return pandas.DataFrame([asdict(row) for row in self.rows])

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
    provenance = read_provenance(folder, complete=True)
    name = str(provenance.get("study", path.stem))
    figure = known_figures().get(name) if provenance.get("scale") in SCALES else None
    rows: list[Row] = []
    if figure is not None:  # the folder may also hold rows of an earlier version
        rows = Store(folder).read(figure.trials(provenance["scale"]))
    if not rows:
        files = [folder / file for file in MERGED] if path.is_dir() else [path]
        rows = [row for file in files if file.exists() for row in decode(file)]
    if not rows:
        raise InvalidInput(f"{path}: holds no rows; run airpass reproduce or airpass sweep first")
    return StoredStudy(path, name, figure, rows, provenance)
