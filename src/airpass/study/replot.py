"""Figures of stored rows, drawn without computing anything."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.figures.chart import Chart
from airpass.scenario import read_tables
from airpass.study import figure_table, sweep
from airpass.study.charts import formatted, shape_of, sweep_chart, sweep_metrics
from airpass.study.figure_table import FigureTable
from airpass.study.known import known_figures
from airpass.study.store import MERGED, decode
from airpass.study.tables import Table, by_point
from airpass.study.trial import Row

ROWS = "rows.parquet"
STUDY = "sweep.toml"  # the file of a sweep, beside its rows


def redraw(rows_path: str | Path, config: str | Path | Mapping[str, Any] | None = None) -> Chart:
    """The figure of stored rows.

    Parameters
    ----------
    rows_path
        A file of rows, or the folder of `airpass sweep` or `airpass reproduce`.
    config
        A file with a table [figure], such as the file of the sweep, or that table; None for the table
        that the sweep was run with.

    Returns
    -------
    Chart
        The figure, for `write_chart` or `airpass.figures.study.draw_chart`.
    """
    folder, rows = _rows(Path(rows_path))
    given = config if isinstance(config, Mapping) else _figure(config)
    study = sweep.load(folder / STUDY) if (folder / STUDY).is_file() else None
    if study is not None:
        table = study.figure if given is None else figure_table.read(given, study.shape.schemes)
        chart = sweep_chart(rows, study.shape, table)
    else:
        schemes = list(dict.fromkeys(row.scheme for row in rows))
        table = figure_table.read(given or {}, schemes)
        chart = _known_chart(rows, table) or sweep_chart(rows, shape_of(rows), table)
    if chart is None:
        raise InvalidInput(f"{rows_path}: has neither an axis nor training, so that there is no figure")
    return chart


def sweep_tables(study: sweep.Sweep, rows: Sequence[Row]) -> dict[str, Table]:
    """The tables of a sweep, per metric that it shows."""
    order = study.figure.in_order(study.shape.schemes)
    labels = study.figure.plain_labels
    return {
        metric: by_point(rows, metric, order=order, labels=labels)
        for metric in sweep_metrics(rows, study.figure)
    }


def _rows(path: Path) -> tuple[Path, list[Row]]:
    """The folder of rows, and the rows with their times."""
    folder, name = (path, ROWS) if path.is_dir() else (path.parent, path.name)
    if not (folder / name).is_file():
        raise InvalidInput(f"{folder / name}: no such file; give rows.parquet, or a folder that has it")
    files = MERGED if name in MERGED else [name]
    rows = [row for file in files if (folder / file).is_file() for row in decode(folder / file)]
    if not rows:
        raise InvalidInput(f"{folder / name}: has no rows")
    return folder, rows


def _figure(path: str | Path | None) -> Mapping[str, Any] | None:
    """The table [figure] of a file."""
    if path is None:
        return None
    tables = read_tables(path)
    if "figure" not in tables:
        raise InvalidInput(f"{path}: has no table [figure]")
    table: Mapping[str, Any] = tables["figure"]
    return table


def _known_chart(rows: Sequence[Row], table: FigureTable) -> Chart | None:
    """The chart of one of the package's figures, unless the table asks for another."""
    figure = known_figures().get(rows[0].figure)
    if figure is None or table.metric or table.over:
        return None
    if not any(panel.lines for panel in figure.chart(rows).panels):
        return None  # a sweep with the name of a figure
    panels = [
        replace(
            panel,
            xlabel=panel.xlabel if table.x_label is None else table.x_label,
            ylabel=table.y_label[0] if table.y_label else panel.ylabel,
            y_limits=table.y_limits[0] if table.y_limits else panel.y_limits,
        )
        for panel in figure.chart(rows).panels
    ]
    return formatted(replace(figure.chart(rows), panels=panels), table)


def stem_of(path: Path) -> Path:
    """Path of the pictures of stored rows, without ending: beside the rows, with the name of the study."""
    folder, rows = _rows(path)
    return folder / rows[0].figure


def write_chart(chart: Chart, stem: Path, kinds: Sequence[str] = ("pdf", "png")) -> bytes:
    """Write a chart as STEM.pdf and STEM.png, and return the last."""
    from airpass.figures.study import render_chart

    for kind in kinds:
        picture = render_chart(chart, kind)  # drawn anew, as saving moves things by a hair
        write_atomically(stem.with_name(f"{stem.name}.{kind}"), picture)
    return picture
