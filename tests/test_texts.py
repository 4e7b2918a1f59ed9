"""Texts of users in tables, pictures and pages: shown as they are, and never taken for markup or formulas."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass.figures.chart import Chart, Line, Panel, plain
from airpass.figures.study import draw_chart
from airpass.figures.style import render
from airpass.study.report import Section, render_page

NAMES = [
    "[/x]",
    "[bold]x",
    ":smile:",
    "$\\frac{$",
    "$a$ and $b_{$",
    "\\$",
    "<script>alert(1)</script>",
    "two\nlines",
    "\x1b[31mred\x07",
    "\u202eright to left",
    "中文标签",
    "\udcff",
    "x" * 5000,
    "{task} %s {0}",
    "",
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every kind of command that is quick."""
    from airpass import Scenario, design, life, select

    folder = tmp_path_factory.mktemp("stored")
    scenario = Scenario.paper(devices=3, waveguides=2, antennas=2, seed=1)
    found = design(scenario, "airpass")
    found.save(folder / "design.json")
    life(found, draws=2).save(folder / "life.json")
    select(scenario.channels(scenario.uniform_layout()), None, 0.3).save(folder / "selection.json")
    return folder


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize("kind", ["design", "life", "selection"])
def test_names_in_stored_results(run: Any, stored: Path, tmp_path: Path, kind: str, name: str) -> None:
    document = json.loads((stored / f"{kind}.json").read_text())
    document.pop("sha256", None)
    if kind == "life":
        document["method"] = name
    else:
        document["method"]["name"] = name
        document["status"] = name
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    outcome = run("show", path)
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.replace("\n", "").isprintable()
    if kind != "life" and len(name) < 20 and name.isprintable():
        assert name in outcome.out
    if kind == "life" or name == "$\\frac{$":  # the others have the same way of writing a name
        assert run("plot", path, "--out", tmp_path / "picture.png").code == 0


@pytest.mark.parametrize("name", ["[/x]", "$\\frac{$", "中文", "a\nb", "\x1b[31m", "<b>"])
def test_names_of_folders_and_files(
    run: Any, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / name.replace("/", "")
    folder.mkdir()
    shutil.copy(stored / "design.json", folder / "a.json")
    assert run("show", folder / "a.json").code == 0
    outcome = run("plot", folder / "a.json")
    assert outcome.code == 0
    assert (folder / "a.png").is_file()
    assert outcome.out.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_charts(name: str) -> None:
    line = Line(name, plain(name), [0.0, 1.0], [1.0, 2.0], [0.1, 0.1], [3, 3])
    panel = Panel(plain(name), plain(name), [line], ([0.0, 1.0], [plain(name), "b"]), plain(name))
    figure = draw_chart(Chart([panel]))
    for kind in ("png", "pdf", "svg") if len(name) < 10 else ("png",):
        assert render(figure, kind)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_training_curves(name: str) -> None:
    from airpass.figures.training import draw_training
    from airpass.learning.history import Record, TrainingRun

    values: dict[str, Any] = dict.fromkeys(Record.__dataclass_fields__, 1.0) | {
        "round": 0,
        "selected_count": 1,
    }
    run = TrainingRun(
        scheme=name,
        dataset=name,
        devices=1,
        scenario=None,
        link=None,
        config={},
        parameters=1,
        history=(Record(**values), Record(**values | {"round": 1})),
        state=np.empty(0, np.float32),
        finished=True,
        status="done",
    )
    assert render(draw_training([run]), "png")


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_pages(name: str, tmp_path: Path) -> None:
    section = Section(name, name, None, ([name, "x"], [[name, name]]), [name], name, command=name)
    page = render_page(
        "sweep.html", title=name, summary=[name], sections=[section], failed={name: name}, command=name
    ).decode()
    assert "<script" not in page
    assert page.replace("\n", "").isprintable()
