"""Stored studies and training runs as data for charts, and the scenarios behind their points."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from airpass.core import checks
from airpass.core.display import display_name
from airpass.core.errors import InvalidInput
from airpass.core.text import one_line
from airpass.explore.answers import looks_table, number
from airpass.figures.chart import Chart, Line, Panel
from airpass.learning import FEDAVG
from airpass.learning.history import Runs
from airpass.scenario import Scenario
from airpass.study import sweep
from airpass.study.charts import ROUND, shape_of, shown, sweep_chart
from airpass.study.figure_table import FigureTable
from airpass.study.replot import STUDY, redraw
from airpass.study.stored import StoredStudy
from airpass.study.trial import Row, Trial


@dataclass(frozen=True, eq=False)
class OpenStudy:
    """A study that the page shows.

    Parameters
    ----------
    title
        Title.
    about
        Lines about how it was run.
    rows
        All rows.
    shown_first
        The chart that is shown first.
    verdicts
        Verdicts on the paper's claims.
    trials
        What was computed, if it is known.
    titles
        `x_label` of the rows by title of a panel.
    """

    title: str
    about: Sequence[str]
    rows: Sequence[Row]
    shown_first: Chart | None
    verdicts: Sequence[dict[str, Any]] = ()
    trials: Sequence[Trial] = field(default=(), repr=False)
    titles: Mapping[str, str] = field(default_factory=dict, repr=False)

    def describe(self) -> dict[str, Any]:
        """Everything but the charts."""
        metrics = sorted({row.metric for row in self.rows})
        return {
            "title": self.title,
            "about": [one_line(line) for line in self.about],
            "metrics": [{"name": name, "label": shown(name).label} for name in metrics],
            "verdicts": list(self.verdicts),
            "rows": len(self.rows),
            "trained": any(row.round > 0 for row in self.rows),
            "trials": sorted({row.trial for row in self.rows}),
        }

    def chart(self, metric: Any, over: Any) -> dict[str, Any]:
        """A chart as JSON.

        Parameters
        ----------
        metric
            A metric of the rows; None for the chart of the study itself.
        over
            "points" or "rounds"; None for the usual.

        Returns
        -------
        dict[str, Any]
            Panels with lines, and the looks of the lines.
        """
        if metric is None:
            chart = self.shown_first
        else:
            checks.one_of("metric", metric, sorted({row.metric for row in self.rows}))
            table = FigureTable(metric=(metric,), over="rounds" if over == "rounds" else "")
            chart = sweep_chart(self.rows, shape_of(self.rows), table)
        if chart is None:
            raise InvalidInput("this study has neither an axis nor rounds of training, so there is no chart")
        found = chart_json(chart)
        for panel in found["panels"]:
            for line in panel["lines"]:
                line.update(self._origin(panel, line))
        return found

    def _origin(self, panel: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
        """Scheme of a line, and `x_label` of the rows behind each of its points."""
        schemes = {row.scheme for row in self.rows}
        labels = {row.x_label: row.x for row in self.rows}
        count = len(line["x"])
        if line["key"] not in schemes:  # a line per point, in the panel of a scheme
            named = [scheme for scheme in schemes if display_name(scheme) == panel["title"]]
            return {"scheme": named[0] if named else None, "points": [line["key"]] * count}
        if panel["over_rounds"]:
            only = next(iter(labels)) if len(labels) == 1 else None
            return {"scheme": line["key"], "points": [self.titles.get(panel["title"], only)] * count}
        return {"scheme": line["key"], "points": [_label_at(labels, x, panel["xlabel"]) for x in line["x"]]}

    def scenario(self, scheme: Any, point: Any, trial: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
        """What was computed at a point.

        Parameters
        ----------
        scheme, point, trial
            `scheme`, `x_label` and `trial` of rows; any scheme but FedAvg if `scheme` is None.

        Returns
        -------
        scenario : dict[str, Any]
            Tables.
        method : dict[str, Any]
            Arguments of `design`.
        seed : int
            Seed of the search.
        """
        for one in self.trials:
            fits = scheme in (None, one.scheme) and (scheme is not None or one.scheme != FEDAVG)
            if fits and one.x_label == point and one.trial == trial:
                if one.channels is not None:
                    raise InvalidInput(
                        "this study is about given channels: there is no room behind its points"
                    )
                return dict(one.scenario), dict(one.method), one.seed
        raise InvalidInput(f"the scenario of {one_line(str(scheme))} at {one_line(str(point))} is not known")


def _label_at(labels: Mapping[str, float | None], x: float, axis: str) -> str | None:
    """The `x_label` at a place of an axis; places of an axis without numbers are counted."""
    found = [label for label, place in labels.items() if place == x]
    if not found and all(place is None for place in labels.values()):
        found = list(labels)[int(x) : int(x) + 1]
    if len(found) > 1:  # two axes in a study, such as K=10 and M=10
        found = [label for label in found if label.startswith(f"{axis[-1]}=")] or found
    return found[0] if found else None


def open_stored(study: StoredStudy) -> OpenStudy:
    """A folder of `airpass reproduce` or `airpass sweep` for the page."""
    folder = study.path if study.path.is_dir() else study.path.parent
    if study.figure is not None:
        trials: Iterable[Trial] = study.figure.trials(study.provenance["scale"])
    elif (folder / STUDY).is_file():
        trials = sweep.load(folder / STUDY).trials
    else:
        trials = ()
    try:
        chart = redraw(study.path)
    except InvalidInput:
        chart = None
    verdicts = [
        {
            "claim": found.claim,
            "text": found.text,
            "verdicts": [{"comparison": name, "verdict": text} for name, text in found.by_comparison.items()],
            "parts": [
                {
                    "what": part.what,
                    "comparison": part.comparison,
                    "verdict": part.verdict,
                    "effect": part.effect,
                }
                for part in found.parts
            ],
        }
        for found in study.verdicts()
    ]
    lines = study.about()
    titles = {point.title: point.label for point in getattr(study.figure, "points", ())}
    if study.figure is None:
        shape = sweep.load(folder / STUDY).shape if (folder / STUDY).is_file() else shape_of(study.rows)
        titles = {shape.named_point(point): point for point in shape.points}
    return OpenStudy(lines[0], lines[1:], study.rows, chart, verdicts, tuple(trials), titles)


def open_runs(runs: Runs, path: Path) -> OpenStudy:
    """The folder of `airpass train` for the page."""
    metrics = ("test_accuracy", "test_loss", "train_loss", "measured_mse", "measured_sdr_db")
    rows = [
        Row(path.name, run.scheme, None, "", 0, record.round, metric, float(getattr(record, metric)), 0, "")
        for run in runs
        for record in run.history
        for metric in metrics
    ]
    table = FigureTable(metric=("test_accuracy",), over="rounds")
    chart = sweep_chart(rows, shape_of(rows), table)
    trials = [
        Trial(
            job="design",
            figure=path.name,
            scheme=run.scheme,
            x=None,
            x_label="",
            trial=0,
            seed=0 if run.design is None else run.design.seed,
            scenario=run.scenario.to_dict(),
            method={},
        )
        for run in runs
        if isinstance(run.scenario, Scenario)
    ]
    about = [f"{run.scheme}: {run.dataset}, {run.history[-1].round} rounds, {run.status}" for run in runs]
    return OpenStudy(f"Training run {path.name}", about, rows, chart, (), trials)


def chart_json(chart: Chart) -> dict[str, Any]:
    """A chart as JSON.

    Parameters
    ----------
    chart
        The chart.

    Returns
    -------
    dict[str, Any]
        Panels, and the looks of their lines.
    """
    keys = [line.key for panel in chart.panels for line in panel.lines]
    ordered = [key for key in chart.order if key in keys] + [key for key in keys if key not in chart.order]
    return {
        "panels": [_panel(panel) for panel in chart.panels],
        "looks": looks_table(ordered),
        "log": chart.log,
        "trials": chart.trials,
    }


def _text(label: str) -> str:
    """A label without formulas: what is between dollar signs loses them, and commands of TeX."""
    parts = label.replace(r"\$", "\0").split("$")
    parts[1::2] = [re.sub(r"\\[a-zA-Z]+|[{}\\]", "", part) for part in parts[1::2]]
    return "".join(parts).replace("\0", "$")


def _panel(panel: Panel) -> dict[str, Any]:
    ticks = None
    if panel.ticks is not None:
        ticks = {
            "at": [float(place) for place in panel.ticks[0]],
            "text": [_text(text) for text in panel.ticks[1]],
        }
    return {
        "title": _text(panel.title),
        "xlabel": _text(panel.xlabel),
        "ylabel": _text(panel.ylabel),
        "over_rounds": panel.xlabel == ROUND,
        "percent": panel.percent,
        "ticks": ticks,
        "lines": [_line(line) for line in panel.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "key": line.key,
        "label": _text(line.label),
        "x": [float(value) for value in line.x],
        "value": [number(value) for value in line.value],
        "half_width": [number(value) if isfinite(value) else None for value in line.half_width],
        "count": [int(count) for count in line.count],
    }
