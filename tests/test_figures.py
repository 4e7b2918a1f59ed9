"""Figures to submit: the table [figure], labels, looks, drawing again, and the pages."""

import json
import math
import re
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.font_manager import findfont, get_font
from matplotlib.text import Text

from airpass import InvalidInput, Scenario, design
from airpass.core.display import LOOKS, looks
from airpass.core.fields import FIELDS, named, with_unit
from airpass.figures.chart import FONTS, Chart, Format, Line, Panel
from airpass.figures.room import draw_design, floor_gain
from airpass.figures.study import draw_chart, render_chart
from airpass.figures.style import FAMILIES, typeset
from airpass.figures.training import draw_training
from airpass.learning.options import TrainOptions
from airpass.scenario.devices import DeviceDraw
from airpass.scenario.radio import LinkBudget, Radio
from airpass.scenario.receiver import Receiver
from airpass.scenario.weights import Weighting
from airpass.study import figure_table, runner, sweep
from airpass.study.charts import METRICS, Shape, shown, sweep_chart
from airpass.study.known import known_figures
from airpass.study.paper import figures
from airpass.study.replot import redraw, sweep_tables, write_chart
from airpass.study.report import Section, claims_summary, render_page
from airpass.study.run import run_sweep
from airpass.study.store import Store
from airpass.study.summary import mean
from airpass.study.tables import best, by_point, numbers
from airpass.study.trial import DESIGN_METRICS, ROUND_METRICS, SECONDS, Row, Trial
from airpass.study.verdicts import Part, Verdict
from command_line import assert_refused

SWEEP = {
    "name": "heights",
    "schemes": ["mimo-mn", {"label": "own <b>$_$", "method": "airpass"}, "airpass-plus"],
    "trials": 2,
    "axis": {"field": "receiver.height_m", "values": [8, 2.5]},
}
PAPER = {
    "metric": ["selected_count", "sdr_db"],
    "x_label": r"height $a$",
    "x_unit": "m",
    "y_label": ["devices", "SDR, dB"],
    "width": "ieee-1",
    "legend": "below",
    "x_limits": [1, 9],
    "y_limits": [[0, 12], [-5, 10]],
    "font": "times",
    "mode": "paper",
    "order": ["airpass-plus"],
    "labels": {"airpass-plus": r"proposed, $\lambda/2$"},
}


class Here:
    """Trials that are not computed: values follow from scheme, point and seed."""

    about = "no process"

    def __call__(self, trials: Any) -> runner.Results:
        for one in trials:
            height = one.x or 1.0
            base = len(one.scheme) + 10.0 / height + one.seed % 3
            yield one, [one.row("selected_count", base), one.row("sdr_db", base - 9.0), one.row(SECONDS, 1.0)]

    def close(self) -> None:
        pass


def study(**figure: Any) -> sweep.Sweep:
    return sweep.from_dict(SWEEP | ({"figure": figure} if figure else {}))


def drawn(out: Path, **figure: Any) -> tuple[sweep.Sweep, list[Row]]:
    one = study(**figure)
    _, _, rows = run_sweep(one, out, Here(), "airpass sweep <x>", lambda _: None)
    return one, rows


def trained_rows(trials: tuple[Trial, ...]) -> list[Row]:
    return [
        one.row(metric, 0.1 * number + 0.01 * one.seed, number)
        for one in trials
        for metric in ("test_accuracy", "train_loss")
        for number in (0, 2, 4)
    ]


class TestTable:
    @pytest.mark.parametrize(
        ("figure", "words"),
        [
            ({"colour": "red"}, ["figure.colour", "unknown key", "x_label", "labels"]),
            ({"width": "ieee-3"}, ["ieee-1, ieee-2", "inches"]),
            ({"width": 0.2}, ["1 to 30 inches"]),
            ({"height_in": "tall"}, ["figure.height_in", "number"]),
            ({"legend": "outside"}, ["figure.legend", "below", "upper left"]),
            ({"x_limits": [3, 1]}, ["figure.x_limits", "less than"]),
            ({"x_limits": 3}, ["two numbers"]),
            ({"y_limits": [[0, 1], [0, 1]]}, ["2 entries for 1 metric"]),
            ({"log": "z"}, ["x, y, xy"]),
            ({"over": "time"}, ["axis, rounds"]),
            ({"font": "comic"}, ["sans, times"]),
            ({"mode": "poster"}, ["screen, paper"]),
            ({"metric": ["a", "b", "c"]}, ["one metric or two"]),
            ({"metric": ["a", "a"]}, ["different"]),
            ({"metric": "beauty"}, ["figure.metric", "selected_count, weakest_score, mse"]),
            ({"metric": "test_accuracy"}, ["figure.metric", "seconds"]),
            ({"over": "rounds"}, ["[train]"]),
            ({"title": 3}, ["must be text"]),
            ({"labels": "airpass"}, ["table of texts"]),
            ({"labels": {"nobody": "x"}}, ["figure.labels", "nobody", "airpass-plus"]),
            ({"order": ["nobody"]}, ["figure.order", "nobody", "mimo-mn"]),
            ({"x_label": r"$\nonsense{$"}, ["figure.x_label", "not a formula"]),
        ],
    )
    def test_refusals_name_what_is_allowed(self, figure: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            study(**figure)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)

    def test_metrics_of_a_design_have_no_rounds(self) -> None:
        with pytest.raises(InvalidInput, match="'mse': must be one of test_accuracy"):
            sweep.from_dict(SWEEP | {"train": {}, "figure": {"over": "rounds", "metric": "mse"}})

    def test_it_must_be_a_table(self) -> None:
        with pytest.raises(InvalidInput, match="must be a table"):
            sweep.from_dict(SWEEP | {"figure": 3})

    def test_every_key_has_a_reader(self) -> None:
        assert {entry.name for entry in fields(figure_table.FigureTable)} == set(figure_table._READERS)

    def test_what_is_read(self) -> None:
        table = study(**PAPER).figure
        assert (table.width, table.y_limits) == (3.5, ((0.0, 12.0), (-5.0, 10.0)))
        assert table.in_order(["mimo-mn", "airpass-plus"]) == ["airpass-plus", "mimo-mn"]
        assert study(width="ieee-2").figure.width == 7.16
        assert study(width=5).figure.width == 5.0


class TestLabels:
    def test_every_field_has_words_and_no_key(self) -> None:
        parts = {"receiver": Receiver, "radio": Radio, "devices": DeviceDraw, "weights": Weighting}
        known = [f"{name}.{one.name}" for name, part in parts.items() for one in fields(part)]
        known += [f"radio.{one.name}" for one in fields(LinkBudget)]
        known += [f"train.{one.name}" for one in fields(TrainOptions)]
        for field in known:
            text = with_unit(*named(field))
            assert "_" not in text
            assert "." not in text
        assert with_unit(*named("receiver.height_m")) == "height of the waveguides, m"
        nested = {"train.dataset", "train.partition.kind"}
        assert set(FIELDS) - nested <= set(known)  # none that no longer exists

    def test_an_unknown_field_is_named_by_its_key(self) -> None:
        assert named("receiver.feed_offset_m") == ("feed offset (receiver)", "m")
        assert named("radio.guard_band_mhz") == ("guard band (radio)", "MHz")
        assert named("plain") == ("plain", "")

    def test_every_metric_has_a_label(self) -> None:
        assert {*DESIGN_METRICS, *ROUND_METRICS, SECONDS} <= set(METRICS)
        assert shown("some_metric").label == "some metric"

    def test_labels_of_the_axes(self, tmp_path: Path) -> None:
        one, rows = drawn(tmp_path)
        chart = sweep_chart(rows, one.shape, one.figure)
        assert chart is not None
        assert (chart.panels[0].xlabel, chart.panels[0].ylabel) == (
            "height of the waveguides, m",
            "selected devices",
        )
        chart = redraw(tmp_path, PAPER)
        assert [panel.xlabel for panel in chart.panels] == [r"height $a$, m"] * 2
        assert [panel.ylabel for panel in chart.panels] == ["devices", "SDR, dB"]
        assert redraw(tmp_path, {"x_unit": "metres"}).panels[0].xlabel == "height of the waveguides, metres"

    def test_names_are_not_formulas(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        texts = {line.label for line in redraw(tmp_path).panels[0].lines}
        assert r"own <b>\$_\$" in texts
        assert r"proposed, $\lambda/2$" in {line.label for line in redraw(tmp_path, PAPER).panels[0].lines}


class TestLooks:
    def test_twelve_labels_differ_in_pairs_and_from_every_scheme(self) -> None:
        found = looks([f"own {i}" for i in range(12)])
        drawn_as = [(one.dash, one.marker, one.filled) for one in (*found.values(), *LOOKS.values())]
        assert all(one != other for one, other in combinations(drawn_as, 2))

    def test_looks_do_not_depend_on_the_order_of_the_legend(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        styles = []
        for order in (["airpass-plus"], ["own <b>$_$", "mimo-mn"]):
            axes = draw_chart(redraw(tmp_path, {"order": order})).axes[0]
            styles.append({line.get_label(): (line.get_color(), line.get_marker()) for line in axes.lines})
        assert styles[0] == styles[1]

    def test_wide_lines_are_below(self) -> None:
        line = {"x": [0.0, 1.0], "value": [1.0, 2.0], "half_width": [0.1, 0.1], "count": [5, 5]}
        lines = [Line(key, key, **line) for key in ("airpass", "fedavg")]  # type: ignore[arg-type]
        axes = draw_chart(Chart([Panel("", "", lines)], order=["airpass", "fedavg"])).axes[0]
        assert axes.lines[1].get_zorder() < axes.lines[0].get_zorder()


def chart_of(count: int, half: float, rounds: bool = True, trials: int = 2, **panel: Any) -> Chart:
    lines = [
        Line(f"own {i}", f"own {i}", [0.0, 5.0, 10.0], [2.0, 1.0, 0.5 + i], [half] * 3, [trials] * 3)
        for i in range(count)
    ]
    return Chart([Panel("", "x", lines, **panel)], over_rounds=rounds)


class TestConfidence:
    @pytest.mark.parametrize("rounds", [True, False])
    @pytest.mark.parametrize(("count", "half"), [(2, 0.1), (3, 40.0), (7, 0.5), (12, 50.0)])
    def test_nothing_leaves_the_axes(self, count: int, half: float, rounds: bool) -> None:
        axes = draw_chart(chart_of(count, half, rounds)).axes[0]
        low, high = axes.get_ylim()
        assert high < 0.5 + count + 1.0 + 0.6 * count  # from the means, whatever the intervals
        found: list[Any] = [np.zeros((0, 2))]
        parts: list[Any] = list(axes.collections)
        for part in parts:
            if isinstance(part, LineCollection):
                found += part.get_segments()
            elif isinstance(part, PathCollection):
                found.append(part.get_offsets())
            else:
                found += [path.vertices for path in part.get_paths()]
        heights = np.vstack(found)[:, 1]
        assert heights.size
        assert low <= np.nanmin(heights)
        assert np.nanmax(heights) <= high

    def test_bands_for_few_lines_bars_for_many(self) -> None:
        def kinds(chart: Chart) -> set[str]:
            return {type(part).__name__ for part in draw_chart(chart).axes[0].collections}

        assert kinds(chart_of(4, 0.1)) == {"FillBetweenPolyCollection"}
        assert "FillBetweenPolyCollection" not in kinds(chart_of(5, 0.1))
        assert "FillBetweenPolyCollection" not in kinds(chart_of(2, 9.0))  # bands that would hide the rest

    def test_two_trials_are_enough_and_one_is_not(self) -> None:
        assert draw_chart(chart_of(2, 0.1, trials=2)).axes[0].collections
        assert not draw_chart(chart_of(2, float("nan"), trials=1)).axes[0].collections

    def test_the_number_of_trials_is_stated(self) -> None:
        assert chart_of(1, 0.1, trials=5).trials == "mean of 5 trials with 95 % confidence interval"
        assert chart_of(1, 0.1, trials=1).trials == "one trial"
        mixed = replace(
            chart_of(1, 0.1, trials=5), panels=[*chart_of(1, 0.1).panels, *chart_of(1, 0.1, trials=5).panels]
        )
        assert mixed.trials.startswith("mean of 2 to 5 trials")
        texts = [text.get_text() for part in draw_chart(chart_of(1, 0.1)).subfigs for text in part.texts]
        assert "mean of 2 trials with 95 % confidence interval" in texts

    def test_an_infinite_value_has_no_interval(self) -> None:
        found = mean([float("inf"), 3.0])
        assert (found.value, found.count) == (float("inf"), 2)
        assert np.isnan(found.half_width)

    def test_rounds_have_whole_ticks(self) -> None:
        axes = draw_chart(chart_of(2, 0.1)).axes[0]
        assert all(float(tick).is_integer() for tick in axes.get_xticks())

    def test_whole_numbers_have_whole_ticks(self) -> None:
        chart = chart_of(2, 0.1, rounds=False)  # at 0, 5 and 10; matplotlib would choose 2.5, too
        assert all(float(tick).is_integer() for tick in draw_chart(chart).axes[0].get_xticks())
        lines = [replace(line, x=[0.25, 0.5, 1.0]) for line in chart.panels[0].lines]
        axes = draw_chart(replace(chart, panels=[replace(chart.panels[0], lines=lines)])).axes[0]
        assert any(not float(tick).is_integer() for tick in axes.get_xticks())

    @pytest.mark.parametrize(("half", "bars"), [(0.01, 0), (1.0, 3 * 7)])
    def test_bars_beside_points_are_longer_than_markers(self, half: float, bars: int) -> None:
        found: list[Any] = list(draw_chart(chart_of(7, half, rounds=False)).axes[0].collections)
        assert sum(len(part.get_segments()) for part in found if isinstance(part, LineCollection)) == bars

    @pytest.mark.parametrize("log", ["x", "y", "xy"])
    def test_logarithmic_axes(self, log: str) -> None:
        chart = chart_of(2, 9.0, rounds=False)
        lines = [replace(line, x=[1.0, 5.0, 10.0]) for line in chart.panels[0].lines]
        axes = draw_chart(replace(chart, panels=[replace(chart.panels[0], lines=lines)], log=log)).axes[0]
        assert (axes.get_xscale(), axes.get_yscale()) == (
            "log" if "x" in log else "linear",
            "log" if "y" in log else "linear",
        )


class TestFormat:
    @pytest.mark.parametrize(("width", "inches"), [("ieee-1", 3.5), ("ieee-2", 7.16), (4.2, 4.2)])
    def test_the_pdf_has_the_width(self, width: Any, inches: float, tmp_path: Path) -> None:
        drawn(tmp_path, width=width, height_in=2.5)
        found = re.search(
            rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", (tmp_path / "heights.pdf").read_bytes()
        )
        assert found is not None
        assert float(found[1]) == pytest.approx(72.0 * inches, abs=0.01)
        assert float(found[2]) == pytest.approx(72.0 * 2.5, abs=0.01)

    def test_fonts_of_a_paper(self, tmp_path: Path) -> None:
        drawn(tmp_path, **PAPER)
        content = (tmp_path / "heights.pdf").read_bytes()
        assert b"STIXGeneral" in content
        assert b"DejaVu" not in content
        figure = draw_chart(redraw(tmp_path))
        for place, axes in enumerate(figure.axes):
            assert axes.get_title(loc="left") == ""
            assert axes.get_xlabel().endswith(f"\n({'ab'[place]})")
            assert axes.xaxis.label.get_fontsize() == 8.0
        assert not [text for part in figure.subfigs for text in part.texts]

    @pytest.mark.parametrize("legend", ["below", "ends", "none", "upper left"])
    def test_places_of_the_legend(self, legend: str) -> None:
        figure = draw_chart(replace(chart_of(2, 0.1), format=Format(legend=legend)))
        assert bool(figure.subfigs[0].legends) == (legend == "below")
        assert (figure.axes[0].get_legend() is not None) == (legend == "upper left")

    def test_wide_figures_have_panels_side_by_side(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        two = {"metric": ["selected_count", "sdr_db"]}
        assert redraw(tmp_path, two).columns == 1
        assert redraw(tmp_path, two | {"width": "ieee-2"}).columns == 2

    def test_curves_over_rounds(self) -> None:
        one = sweep.from_dict(SWEEP | {"train": {"rounds": 4}, "figure": {"over": "rounds"}})
        chart = sweep_chart(trained_rows(one.trials), one.shape, one.figure)
        assert chart is not None
        assert chart.over_rounds
        assert [panel.title for panel in chart.panels] == [
            "height of the waveguides: 8 m",
            "height of the waveguides: 2.5 m",
        ]
        assert list(chart.panels[0].lines[0].x) == [0, 2, 4]

    def test_rounds_need_training(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        with pytest.raises(InvalidInput, match="nothing was trained"):
            redraw(tmp_path, {"over": "rounds"})
        with pytest.raises(InvalidInput, match="the rows have sdr_db, seconds, selected_count"):
            redraw(tmp_path, {"metric": "beauty"})


class TestOrder:
    def test_rows_are_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        one, rows = drawn(tmp_path)
        heads, cells = by_point(rows, "selected_count", order=one.figure.in_order(one.shape.schemes))
        assert heads == ["scheme", "8", "2.5"]
        assert [line[0] for line in cells] == ["mimo-mn", "own <b>$_$", "airpass-plus"]
        first = draw_chart(redraw(tmp_path)).axes[0].lines[0]
        assert first.get_label() == "co-located, MN"

    def test_the_table_may_ask_for_another(self, tmp_path: Path) -> None:
        drawn(tmp_path, **PAPER)
        labels = [line.get_label() for line in draw_chart(redraw(tmp_path)).axes[0].lines]
        assert labels[0] == r"proposed, $\lambda/2$"

    def test_numbers(self, tmp_path: Path) -> None:
        one, rows = drawn(tmp_path)
        found = numbers(rows, ["selected_count"], one.shape.schemes)
        assert [entry["scheme"] for entry in found[::2]] == list(one.shape.schemes)
        assert [entry["x"] for entry in found[:2]] == [8.0, 2.5]
        assert {entry["trials"] for entry in found} == {2}
        assert found[0]["mean"] == pytest.approx(7 + 10 / 8 + 0.5)
        assert found[0]["half_width"] == pytest.approx(12.7062 * 0.5, rel=1e-4)

    def test_who_is_best_in_a_sentence(self, tmp_path: Path) -> None:
        one, rows = drawn(tmp_path)
        assert best(rows, "selected_count", one.axis) == (
            "Selected devices along height of the waveguides: largest mean with AirPASS-plus at all points "
            "(13.8 to 16.5)."
        )


class TestRedraw:
    @pytest.mark.parametrize("figure", [{}, PAPER])
    def test_bytes_are_those_of_the_first_drawing(self, figure: dict[str, Any], tmp_path: Path) -> None:
        drawn(tmp_path / "run", **figure)
        given = figure or None
        for path, config in ((tmp_path / "run", None), (tmp_path / "run" / "rows.parquet", given)):
            write_chart(redraw(path, config), tmp_path / "again")
            for kind in ("pdf", "png"):
                first = (tmp_path / "run" / f"heights.{kind}").read_bytes()
                assert (tmp_path / f"again.{kind}").read_bytes() == first

    def test_rows_alone(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        (tmp_path / "sweep.toml").unlink()
        chart = redraw(tmp_path / "rows.parquet", {"x_label": "height"})
        assert (len(chart.panels[0].lines), chart.panels[0].xlabel) == (3, "height")

    def test_rows_alone_of_a_sweep_with_the_name_of_a_figure(self, tmp_path: Path) -> None:
        one = sweep.from_dict(SWEEP | {"name": "tolerance"})
        run_sweep(one, tmp_path, Here(), "airpass sweep", lambda _: None)
        (tmp_path / "sweep.toml").unlink()
        assert len(redraw(tmp_path).panels[0].lines) == 3

    def test_a_figure_of_the_paper(self, tmp_path: Path) -> None:
        figure = figures()["fig9"]
        kept = Store(tmp_path)
        trials = figure.trials("smoke")
        for one in trials:
            kept.write(one, [one.row("selected_count", 1.0 + one.seed)])
        rows = kept.merge(trials)
        chart = redraw(tmp_path, {"font": "times", "width": "ieee-2"})
        assert chart.format == Format(width_in=7.16, font="times")
        assert len(chart.panels) == len(figure.chart(rows).panels)

    def test_the_command(self, run: Any, tmp_path: Path) -> None:
        drawn(tmp_path / "run")
        (tmp_path / "fig.toml").write_text('[figure]\nwidth = "ieee-2"\nfont = "times"\n')
        out = tmp_path / "fig.pdf"
        outcome = run(
            "plot", tmp_path / "run" / "rows.parquet", "--config", tmp_path / "fig.toml", "--out", out
        )
        assert outcome.code == 0
        assert "mean of 2 trials" in outcome.out
        assert b"STIXGeneral" in out.read_bytes()
        before = (tmp_path / "run" / "heights.pdf").read_bytes()
        (tmp_path / "run" / "heights.pdf").unlink()
        assert run("plot", tmp_path / "run").code == 0
        assert (tmp_path / "run" / "heights.pdf").read_bytes() == before

    def test_refusals_of_the_command(self, run: Any, tmp_path: Path) -> None:
        drawn(tmp_path)
        assert_refused(run("plot", tmp_path / "nowhere"), "nowhere", "No such file")
        assert_refused(run("plot", tmp_path, "--out", "fig.bmp"), "fig.bmp", ".pdf")
        (tmp_path / "fig.toml").write_text("width = 3\n")
        assert_refused(run("plot", tmp_path, "--config", tmp_path / "fig.toml"), "no table [figure]")
        (tmp_path / "fig.toml").write_text("[figure]\nwidht = 3\n")
        assert_refused(run("plot", tmp_path, "--config", tmp_path / "fig.toml"), "figure.widht", "width")

    @pytest.mark.parametrize("words", range(1, 12))
    def test_values_and_units_stay_together(self, words: int) -> None:
        title = "word " * words + "K = 10, M = N = 5, 10 dB"
        chart = replace(chart_of(1, 0.1), panels=[replace(chart_of(1, 0.1).panels[0], title=title)])
        lines = draw_chart(chart).axes[0].get_title(loc="left").splitlines()
        assert " ".join(lines) == title
        assert any("M = N = 5" in line for line in lines)
        assert any("10 dB" in line for line in lines)

    def test_long_titles_are_wrapped(self, tmp_path: Path) -> None:
        drawn(tmp_path / "words", title="many words " * 30)
        drawn(tmp_path / "one", title="W" * 300)  # matplotlib warns if nothing is left for the axes
        assert (tmp_path / "one" / "heights.png").exists()


class TestPages:
    def test_a_sweep_has_one(self, tmp_path: Path) -> None:
        drawn(tmp_path, title="Heights & <i>more</i>")
        page = (tmp_path / "report.html").read_text()
        assert "Heights &amp; &lt;i&gt;more&lt;/i&gt;" in page
        assert "own &lt;b&gt;$_$" in page
        assert "airpass sweep &lt;x&gt;" in page
        assert "<b>" not in page
        assert "<i>" not in page
        assert page.index('id="summary"') < page.index("<nav") < page.index("<figure")
        assert "://" not in page

    def test_links_lead_somewhere(self, tmp_path: Path) -> None:
        drawn(tmp_path)
        page = (tmp_path / "report.html").read_text()
        ways = re.findall(r'href="([^"]+)"', page)
        assert {"heights.pdf", "heights.png", "rows.parquet", "provenance.json", "sweep.toml"} <= set(ways)
        for way in ways:
            assert f'id="{way[1:]}"' in page if way.startswith("#") else (tmp_path / way).is_file()

    def test_links_are_relative_and_only_to_what_exists(self, tmp_path: Path) -> None:
        (tmp_path / "a b").mkdir()
        (tmp_path / "a b" / "fig.pdf").write_bytes(b"")
        files = (tmp_path / "a b" / "fig.pdf", tmp_path / "a b" / "fig.png")
        section = Section("fig", "", b"", files=files)
        found = section.linked(tmp_path / "all" / "report.html")
        assert found.links == {"fig.pdf": "../a%20b/fig.pdf"}
        assert found.pdf == "../a%20b/fig.pdf"
        assert section.pdf == ""

    def test_the_summary_of_claims(self) -> None:
        def verdict(name: str, *parts: tuple[str, str]) -> Verdict:
            found = tuple(Part("", word, "", data=data) for data, word in parts)
            return Verdict(name, "", (), found)

        verdicts = [
            verdict("C1", ("MNIST", "not decided"), ("CIFAR-10", "holds")),
            verdict("C2", ("", "holds")),
            verdict("C3", ("", "does not hold")),
        ]
        assert claims_summary(verdicts) == {
            "holds": [("C1", "CIFAR-10"), ("C2", "")],
            "does not hold": [("C3", "")],
            "not decided": [("C1", "MNIST")],
        }

    def test_pages_share_one_style(self) -> None:
        common = {"sections": [], "summary": [], "command": ""}
        pages = [
            render_page("sweep.html", title="", failed={}, **common),
            render_page("demo.html", rows=[], rounds=1, seed=0, **common),
            render_page(
                "report.html",
                verdicts=[],
                multiplicity="",
                scale="",
                findings=[],
                missing=[],
                anchors={},
                **common,
            ),
        ]
        styles = {re.search(rb"<style>.*</style>", page, re.DOTALL)[0] for page in pages}  # type: ignore[index]
        (style,) = styles
        for words in (b"prefers-color-scheme: dark", b"max-width: 40rem", b"overflow-x: auto"):
            assert words in style

    def test_json_has_numbers(self, run: Any, tmp_path: Path) -> None:
        text = (
            'name = "n"\nschemes = ["mimo-m"]\ntrials = 2\n[axis]\nfield = "radio.snr_db"\nvalues = [3, 9]\n'
            "[scenario.receiver]\nwaveguides = 2\nantennas = 2\n[scenario.devices]\ncount = 3\n"
        )
        (tmp_path / "n.toml").write_text(text)
        outcome = run("sweep", tmp_path / "n.toml", "--out", tmp_path / "n", "--workers", 1, "--json", "-")
        document = json.loads(outcome.out)
        assert document["axis"] == "radio.snr_db"
        first = document["means"][0]
        assert (first["scheme"], first["x"], first["metric"], first["trials"]) == (
            "mimo-m",
            3.0,
            "selected_count",
            2,
        )
        assert isinstance(first["mean"], float)
        assert isinstance(first["half_width"], float)
        assert (tmp_path / "n" / "report.html").exists()


class TestRoom:
    def test_the_background_is_smooth_at_millimetre_waves(self) -> None:
        tables = {"radio": {"wavelength_m": 0.0107}, "devices": {"count": 4}}
        result = design(Scenario.from_dict(tables), "airpass", seed=0)
        x, y = np.arange(-1.0, 41.0, 0.2), np.arange(-1.0, 9.0, 0.2)
        level = 10.0 * np.log10(floor_gain(result, x, y))
        assert np.abs(np.diff(level, axis=0)).max() < 0.5
        assert np.abs(np.diff(level, axis=1)).max() < 0.5

    @pytest.mark.parametrize("method", ["airpass", "mimo-m"])
    def test_it_is_the_local_mean(self, method: str) -> None:
        """Of the gain over points some wavelengths around, for antennas that are far apart."""
        result = design(Scenario.paper(seed=1), method, seed=1)
        rng = np.random.default_rng(0)
        around = 10.0 + rng.uniform(-1.5, 1.5, 20_000), 5.0 + rng.uniform(-1.5, 1.5, 20_000)
        there = float(result.receive_gain(*around).mean())
        smooth = float(result.mean_gain(*around).mean())
        factor = 1.5 if method == "airpass" else 20.0  # a co-located array is directive
        assert there / factor < smooth < there * factor

    @pytest.mark.parametrize(("snr_db", "scale"), [(10.0, "linear"), (40.0, "log")])
    def test_axis_of_scores(self, snr_db: float, scale: str) -> None:
        result = design(Scenario.paper(snr_db=snr_db, seed=1), "airpass", seed=1)
        axes = draw_design(result).axes[1]
        assert axes.get_yscale() == scale
        assert axes.get_ylim()[1] > result.scores.max()


def test_logarithmic_axes_have_numbers_and_refuse_what_they_cannot_show() -> None:
    line = Line("airpass", "AirPASS", [1.0, 2.0, 3.0], [0.021, 0.024, 0.031], [0.0] * 3, [2] * 3)
    chart = Chart(panels=[Panel("", "x", [line], None, "mean error")], log="y")
    figure = draw_chart(chart)
    figure.draw_without_rendering()
    assert len([text for text in figure.axes[0].get_yticklabels() if text.get_text()]) >= 2
    zero = replace(line, value=[0.0, 0.024, 0.031])
    with pytest.raises(InvalidInput, match="mean error has values <= 0"):
        render_chart(replace(chart, panels=[replace(chart.panels[0], lines=[zero])]), "png")


def test_the_same_chart_gives_the_same_bytes() -> None:
    chart = chart_of(3, 0.2)
    for kind in ("png", "pdf"):
        assert render_chart(chart, kind) == render_chart(chart, kind)


class TestWithoutError:
    """Ideal FedAvg has no error: it is left out of figures of errors, and has dashes in tables."""

    METRICS = (
        ("measured_mse", 0.0),
        ("predicted_mse", 0.0),
        ("mse", 0.0),
        ("measured_sdr_db", math.inf),
        ("largest_power", math.nan),
    )

    @staticmethod
    def rows(metric: str, ideal: float) -> list[Row]:
        return [
            Row("f", scheme, x, f"{x:g}", trial, number, metric, value, trial, "k")
            for scheme, value in (("fedavg", ideal), ("ideal too", ideal), ("airpass", 0.25))
            for x in (1.0, 2.0)
            for trial in (0, 1)
            for number in (0, 5)
        ]

    @pytest.mark.parametrize(("metric", "ideal"), METRICS)
    @pytest.mark.parametrize("over", ["axis", "rounds"])
    def test_figures(self, metric: str, ideal: float, over: str) -> None:
        rows = self.rows(metric, ideal)
        shape = Shape("f", "radio.snr_db", ("fedavg", "ideal too", "airpass"), ("1", "2"))
        chart = sweep_chart(rows, shape, figure_table.read({"metric": metric, "over": over}))
        assert chart is not None
        assert {line.key for panel in chart.panels for line in panel.lines} == {"airpass"}
        (legend,) = [legend for part in draw_chart(chart).subfigs for legend in part.legends]
        assert [text.get_text() for text in legend.get_texts()] == ["AirPASS"]

    @pytest.mark.parametrize(("metric", "ideal"), METRICS)
    def test_tables(self, metric: str, ideal: float) -> None:
        rows = self.rows(metric, ideal)
        _, cells = by_point(rows, metric)
        table = {line[0]: line[1:] for line in cells}
        assert table["fedavg"] == table["ideal too"] == ["-", "-"]
        assert table["airpass"][0].startswith("0.2")
        assert "AirPASS" in best(rows, metric, "radio.snr_db")
        assert "FedAvg" not in best(rows, metric, "radio.snr_db")

    def test_an_accuracy_of_zero_is_a_value(self) -> None:
        _, cells = by_point(self.rows("test_accuracy", 0.0), "test_accuracy")
        assert cells[0] == ["fedavg", "0.0 ± 0.0", "0.0 ± 0.0"]


class TestNumbersInTables:
    """Times span orders of magnitude, and need significant digits."""

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            ((0.000391, 0.000391), "0.00039 ± 0.00000"),
            ((0.0002, 0.0004), "0.00030 ± 0.00127"),  # 12.706 times 0.0001
            ((1.935, 1.935), "1.9 ± 0.0"),
            ((83.6, 83.6), "84 ± 0"),
            ((0.0, 0.0), "0.00 ± 0.00"),
        ],
    )
    def test_seconds(self, seconds: tuple[float, float], text: str) -> None:
        rows = [
            Row("f", "hrmc", 1.0, "1", trial, 0, "seconds", value, trial, "k")
            for trial, value in enumerate(seconds)
        ]
        assert by_point(rows, "seconds")[1] == [["hrmc", text]]

    def test_arrays_with_few_chains_have_names(self) -> None:
        figure = known_figures()["devices-chains"]
        rows = [
            Row("devices-chains", scheme, 2.0, "2", 0, 0, "selected_count", 1.0, 0, "k")
            for scheme in ("airpass", "mimo-m-plus-xz")
        ]
        assert [line[0] for line in figure.table(rows)[1]] == ["airpass", "co-located, M, plus (xz)"]


class TestLabelsInTables:
    def test_of_the_terminal_and_the_page(self, run: Any, tmp_path: Path) -> None:
        labels = {"airpass-plus": r"proposed [b], $\lambda/2$", "mimo-mn": "array, <25>"}
        one, rows = drawn(tmp_path, labels=labels)
        _, cells = sweep_tables(one, rows)["selected_count"]
        assert [line[0] for line in cells] == ["array, <25>", "own <b>$_$", "proposed [b], λ/2"]
        page = (tmp_path / "report.html").read_text()
        assert "<td>proposed [b], λ/2</td>" in page
        assert "<td>array, &lt;25&gt;</td>" in page
        assert "AirPASS-plus</td>" not in page
        assert re.search("largest mean with proposed \\[b\\], λ/2", page)
        shown = run("show", tmp_path)
        assert "Selected devices, by height of the waveguides, m\n" in shown.out
        assert "proposed [b], λ/2" in shown.out
        assert "airpass-plus" not in shown.out

    @pytest.mark.parametrize(
        ("label", "text"),
        [
            ("plain, 5 \\$", "plain, 5 $"),
            (r"$\alpha_k \leq 0.5$ dB", "\N{GREEK SMALL LETTER ALPHA}_k ≤ 0.5 dB"),
            (r"$\mathrm{SNR} = -4\,\mathrm{dB}$", "SNR = -4 dB"),
            (r"$10^{-3}$, $\Lambda\varepsilon$", "10^-3, Λε"),
            (r"$\unknown$", "unknown"),
        ],
    )
    def test_formulas(self, label: str, text: str) -> None:
        assert figure_table.as_text(label) == text


class TestMinus:
    @pytest.mark.parametrize(
        ("given", "drawn"),
        [
            ("-4 dB, share", "−4 dB, share"),  # noqa: RUF001
            ("SNR: -10 dB (-.5)", "SNR: −10 dB (−.5)"),  # noqa: RUF001
            ("AirPASS-plus, co-located, 3-5, x-2", "AirPASS-plus, co-located, 3-5, x-2"),
        ],
    )
    def test_before_numbers_only(self, given: str, drawn: str) -> None:
        assert typeset(given) == drawn

    @pytest.mark.parametrize("mode", ["screen", "paper"])
    def test_a_figure_has_one_kind(self, mode: str) -> None:
        rows = [
            Row("f", scheme, x, f"{x:g}", 0, number, "train_loss", 1.0 + number, 0, "k")
            for scheme in ("airpass", "own at -3 dB")
            for x in (-10.0, 5.0)
            for number in (0, 5)
        ]
        shape = Shape("f", "radio.snr_db", ("airpass", "own at -3 dB"), ("-10", "5"))
        for over in ("axis", "rounds"):
            table = figure_table.read({"metric": "train_loss", "over": over, "mode": mode, "title": "-1"})
            chart = sweep_chart(rows, shape, table)
            assert chart is not None
            figure = draw_chart(chart)
            texts = [text.get_text() for text in figure.findobj(Text)]
            assert any("\N{MINUS SIGN}10" in text for text in texts)
            assert any("own at \N{MINUS SIGN}3 dB" in text for text in texts)
            assert not any(re.search(r"(?<!\w)-\d", text) for text in texts)

    def test_the_room_too(self) -> None:
        figure = draw_design(design(Scenario.paper(3, 2, 2, -10.0, 1), "mimo-m"))
        assert "at \N{MINUS SIGN}10 dB" in figure.axes[0].get_title(loc="left")

    @pytest.mark.parametrize("font", FONTS)
    def test_every_font_has_every_character(self, font: str) -> None:
        words = [*(name + unit for name, unit in FIELDS.values()), *(one.label for one in METRICS.values())]
        words += [look.name for look in LOOKS.values()] + ["\N{MINUS SIGN}0123456789±"]
        words += [panel.title for one in figures().values() for panel in one.chart([]).panels]
        files = [get_font(findfont(name)) for name in FAMILIES[font]["font.family"]]
        for character in {typeset(letter) for letter in "".join(words) if letter.isprintable()}:
            assert any(file.get_char_index(ord(character)) for file in files), character


def test_an_axis_of_accuracy_does_not_enlarge_one_answer() -> None:
    line = Line("airpass", "AirPASS", [0, 2, 4], [8.5, 8.5, 8.6], [math.nan] * 3, [1] * 3)
    panel = Panel("", "round", [line], percent=True)
    (axes,) = draw_chart(Chart([panel], over_rounds=True)).axes
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(2.0)
    assert low < 8.5
    assert high > 8.6


def test_counts_have_whole_ticks() -> None:
    line = Line("airpass", "AirPASS", [2, 4], [16.0, 2.0], [math.nan] * 2, [1] * 2)
    (axes,) = draw_chart(Chart([Panel("", "m", [line], ylabel="selected devices")])).axes
    ticks = np.array(axes.get_yticks())
    np.testing.assert_array_equal(ticks, np.round(ticks))
    assert ticks.size >= 4


@pytest.mark.parametrize(("snr_db", "names"), [(60.0, ["selected"]), (-60.0, ["not selected"])])
def test_the_legend_of_a_room_has_only_what_is_there(snr_db: float, names: list[str]) -> None:
    legend = draw_design(design(Scenario.paper(3, 2, 2, snr_db, 1), "mimo-m")).axes[0].get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert [text.removeprefix("device, ") for text in texts if text.startswith("device")] == names


def test_the_legend_of_training_has_the_range_of_selected_devices() -> None:
    records = [
        SimpleNamespace(round=i, selected_count=count, test_accuracy=0.5, train_loss=1.0)
        for i, count in enumerate((40, 36, 39, 38))
    ]
    run: Any = SimpleNamespace(
        scheme="hrmc+", history=records, dataset="d", devices=50, scenario=None, diverged=False
    )
    (legend,) = draw_training([run]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["HRMC+, 36 to 39 devices"]


def test_a_legend_has_as_many_columns_as_fit() -> None:
    def legend(labels: list[str], width: float) -> Any:
        lines = [Line(f"k{i}", label, [0, 1], [i, i], [0.0, 0.0], [2, 2]) for i, label in enumerate(labels)]
        figure = draw_chart(Chart([Panel("", "x", lines)], format=Format(width_in=width)))
        figure.canvas.draw()
        (found,) = [legend for part in figure.subfigs for legend in part.legends]
        box = found.get_window_extent()
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.x1
        return found._ncols  # type: ignore[attr-defined]

    six = ["FedAvg (ideal)", "AirPASS-plus", "AirPASS", "co-located, MN (1 start)"]
    six += ["co-located, M (1 start)", "co-located, MN, plus (xz)"]
    assert legend(six, 3.5) == 2
    assert legend(six, 7.16) == 3
    assert legend(["m" * 30, "n"], 3.5) == 1
    assert legend([r"$\frac{\alpha}{\beta}$"] * 4, 3.5) == 4
