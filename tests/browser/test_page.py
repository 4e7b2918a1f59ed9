"""The explorer's page in a real browser: what is shown and exported is what the package computes."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import airpass
from airpass import Scenario, select
from airpass.designs.api import Design
from airpass.explore.opened import open_path
from airpass.explore.server import Server
from browsing import Serve, Visitor

pytestmark = pytest.mark.slow

PAINTED = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
  return count / (canvas.width * canvas.height);
}"""  # part of a canvas that is not transparent
KEPT_PINS = """() => JSON.parse(sessionStorage.getItem("airpass") ?? '{"pins": []}').pins.length"""
# Changes are sent once per frame, and drawn in the frame after their answer.
ANSWERED = """async () => {
  const { store } = await import("/page/store.js");
  const frame = () => new Promise(requestAnimationFrame);
  for (let i = 0; i < 3; i++) await frame();
  while (store.live.busy) await frame();
  for (let i = 0; i < 3; i++) await frame();
}"""


def saved(page: Page, kind: str, folder: Path) -> Path:
    """A file that the page exports."""
    page.locator("#tab-export").click()
    with page.expect_download() as found:
        page.locator(f"#export-{kind}").click()
    path = folder / found.value.suggested_filename
    found.value.save_as(path)
    return path


def shown_design(page: Page, folder: Path) -> Design:
    """The design that the page shows."""
    found = airpass.load(saved(page, "json", folder))
    assert isinstance(found, Design)
    return found


def middle(item: Locator) -> tuple[float, float]:
    """Where an item is on the screen, by its transform."""
    x, y = map(float, re.findall(r"-?[\d.]+", item.get_attribute("transform") or "")[:2])
    box = item.page.locator("#room svg").bounding_box()
    assert box is not None
    return box["x"] + x, box["y"] + y


def drag(item: Locator, dx: float, dy: float, steps: int = 12) -> None:
    """Drag an item of the room with the mouse."""
    x, y = middle(item)
    mouse = item.page.mouse
    mouse.move(x, y)
    mouse.down()
    for step in range(1, steps + 1):
        mouse.move(x + dx * step / steps, y + dy * step / steps)
    mouse.up()
    settled(item.page)


def settled(page: Page) -> None:
    """Wait until the last change is answered and drawn."""
    page.wait_for_timeout(200)
    page.evaluate(ANSWERED)


def eventually(holds: Callable[[], bool], page: Page) -> None:
    """Wait until a condition holds; fail after a minute."""
    end = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def selected_in(page: Page) -> list[bool]:
    """Which devices the room shows as selected."""
    classes = page.locator(".devices .device").evaluate_all(
        "items => items.map((item) => item.getAttribute('class'))"
    )
    return ["device selected" in found for found in classes]


def as_selected(found: Design) -> list[bool]:
    """Which devices `airpass.select` chooses on the channels of a design."""
    scenario = found.scenario
    assert found.layout is not None
    channels = scenario.channels(found.layout)
    chosen = select(channels, scenario.weights, scenario.budget, "hrmc+", seed=found.seed)
    assert np.array_equal(chosen.scores, found.scores)
    selected: list[bool] = chosen.selected.tolist()
    return selected


class TestRoom:
    def test_a_drag_changes_the_selection_to_what_select_says(self, page: Page, tmp_path: Path) -> None:
        before = shown_design(page, tmp_path)
        assert selected_in(page) == as_selected(before)
        drag(page.locator('[data-device="0"]'), -150.0, 30.0)
        drag(page.locator('[data-device="7"]'), -60.0, 0.0)
        after = shown_design(page, tmp_path)
        assert after.scenario.devices.x_m[0] < before.scenario.devices.x_m[0] - 1.0
        assert after.scenario.devices.y_m[0] < before.scenario.devices.y_m[0] - 0.5
        assert np.array_equal(after.scenario.devices.x_m[1:7], before.scenario.devices.x_m[1:7])
        assert selected_in(page) == as_selected(after)
        assert page.locator("#count").inner_text() == str(after.selected_count)

    def test_antennas_keep_order_and_gaps(self, page: Page, tmp_path: Path) -> None:
        before = shown_design(page, tmp_path)
        assert before.layout is not None
        drag(page.locator('[data-antenna="2,1"]'), 230.0, 40.0)
        after = shown_design(page, tmp_path)
        assert after.layout is not None
        assert np.array_equal(after.layout[[0, 1, 3, 4]], before.layout[[0, 1, 3, 4]])
        assert after.layout[2, 1] > before.layout[2, 2]  # it has pushed its neighbour
        assert np.diff(after.layout[2]).min() >= after.scenario.receiver.min_gap_m - 1e-9
        assert selected_in(page) == as_selected(after)
        drag(page.locator('[data-antenna="2,4"]'), 2000.0, 0.0)
        assert page.locator("#error").is_hidden()

    def test_add_remove_undo_redo(self, page: Page, tmp_path: Path) -> None:
        page.locator("#add-device").click()
        box = page.locator("#room svg").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator("#of")).to_have_text("of 11 devices")
        page.locator("#remove-device").click()
        expect(page.locator("#of")).to_have_text("of 10 devices")
        page.locator("#undo").click()
        expect(page.locator("#of")).to_have_text("of 11 devices")
        page.locator("#undo").click()
        expect(page.locator("#of")).to_have_text("of 10 devices")
        settled(page)
        assert np.array_equal(shown_design(page, tmp_path).scenario.devices.x_m, Scenario.paper().devices.x_m)
        page.locator("#redo").click()
        expect(page.locator("#of")).to_have_text("of 11 devices")

    def test_a_drag_is_undone_at_once(self, page: Page, tmp_path: Path) -> None:
        drag(page.locator('[data-device="3"]'), 90.0, 20.0)
        page.keyboard.press("Control+z")
        settled(page)
        found = shown_design(page, tmp_path)
        assert np.array_equal(found.scenario.devices.x_m, Scenario.paper().devices.x_m)

    def test_keys(self, page: Page, tmp_path: Path) -> None:
        before = Scenario.paper().devices
        room = page.locator("#room svg")
        room.focus()
        room.press("n")
        room.press("n")
        expect(page.locator("#said")).to_contain_text("Device 1")
        for key in ("ArrowRight", "Shift+ArrowRight", "Alt+ArrowUp"):
            room.press(key)
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.devices.x_m[1] == pytest.approx(before.x_m[1] + 1.1, abs=2e-4)
        assert found.scenario.devices.y_m[1] == pytest.approx(before.y_m[1] + 0.01, abs=2e-4)
        room.focus()
        room.press("Delete")
        expect(page.locator("#of")).to_have_text("of 9 devices")
        room.press("Insert")
        expect(page.locator("#of")).to_have_text("of 10 devices")
        room.press("a")
        expect(page.locator("#said")).to_contain_text("Antenna 0 of waveguide 0")
        layout = Scenario.paper().uniform_layout()
        room.press("Shift+ArrowLeft")
        settled(page)
        moved = shown_design(page, tmp_path).layout
        assert moved is not None
        assert moved[0, 0] == pytest.approx(layout[0, 0] - 1.0, abs=2e-4)

    def test_touch(self, visitor: Visitor, server: Server, tmp_path: Path) -> None:
        page = visitor.visit(server, viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
        x, y = middle(page.locator('[data-device="2"]'))
        touch = page.context.new_cdp_session(page)

        def send(kind: str, *points: tuple[float, float]) -> None:
            touch.send(
                "Input.dispatchTouchEvent",
                {"type": kind, "touchPoints": [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]},
            )

        send("touchStart", (x, y))
        for step in range(1, 9):
            send("touchMove", (x - 10 * step, y + step))
        send("touchEnd")
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.devices.x_m[2] < Scenario.paper().devices.x_m[2] - 2.0
        assert selected_in(page) == as_selected(found)
        box = page.locator("#room svg").bounding_box()
        assert box is not None
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] - 12)

        def width() -> float:
            first, last = (page.locator(f'[data-antenna="0,{n}"]') for n in (0, 4))
            return middle(last)[0] - middle(first)[0]

        before = width()
        send("touchStart", (at[0] - 20, at[1]), (at[0] + 20, at[1]))
        for step in range(1, 9):
            send("touchMove", (at[0] - 20 - 6 * step, at[1]), (at[0] + 20 + 6 * step, at[1]))
        send("touchEnd")
        eventually(lambda: width() > 1.5 * before, page)

    def test_zoom_and_pan(self, page: Page) -> None:
        device = page.locator('[data-device="4"]')
        x, _ = middle(device)
        page.locator("#zoom-in").click()
        eventually(lambda: middle(device)[0] != x, page)
        page.locator("#fit").click()
        eventually(lambda: abs(middle(device)[0] - x) < 0.1, page)
        box = page.locator("#room svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 60, box["y"] + box["height"] - 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 110, box["y"] + box["height"] - 30, steps=4)
        page.mouse.up()
        eventually(lambda: abs(middle(device)[0] - (x + 50.0)) < 2.0, page)
        assert page.locator("#undo").is_disabled()  # the view is not undone

    def test_the_map_and_the_cut(self, page: Page) -> None:
        canvas = page.locator("#room canvas")
        expect(page.locator("#map-range")).to_be_visible()
        eventually(lambda: canvas.evaluate(PAINTED) > 0.9, page)
        page.locator("#cut-on").check()
        eventually(lambda: page.locator("#cut canvas").evaluate(PAINTED) > 0.9, page)
        expect(page.locator("#cut circle")).to_have_count(10)
        page.locator("#map-on").uncheck()
        eventually(lambda: canvas.evaluate(PAINTED) == 0.0, page)
        expect(page.locator("#map-range")).to_be_hidden()

    def test_the_map_comes_back_with_its_scale(self, page: Page) -> None:
        expect(page.locator("#map-range")).to_be_visible()
        page.locator("#map-on").uncheck()
        page.locator("#map-on").check()
        expect(page.locator("#map-range")).to_be_visible()

    def test_a_marked_antenna_that_is_gone(self, page: Page) -> None:
        room = page.locator("#room svg")
        room.focus()
        room.press("Shift+A")
        room.press("a")
        for name in ("waveguides", "antennas"):
            page.locator(f"#field-{name}").fill("1")
            page.keyboard.press("Tab")
        settled(page)
        room.focus()
        room.press("ArrowRight")  # an error in the console would fail the test

    def test_obstacles_and_blocked_links(self, visitor: Visitor, serve: Serve, tmp_path: Path) -> None:
        (tmp_path / "room.toml").write_text(
            '[channel]\nmodel = "cylinders"\nx_m = [12.0, 20.0]\ny_m = [4.0, 6.0]\nradius_m = 1.0\n'
            "blockage_per_m = 0.1\n"
        )
        page = visitor.visit(serve(open_path(str(tmp_path / "room.toml"))))
        expect(page.locator(".obstacles circle")).to_have_count(2)
        page.locator('[data-device="3"] .hit').click(force=True)
        links = page.locator(".links line")
        expect(links).to_have_count(25)
        blocked = page.locator(".links .blocked").count()
        scenario = Scenario.load(tmp_path / "room.toml")
        factor = scenario.uplink.factor(scenario.uniform_layout())  # type: ignore[attr-defined]
        assert blocked == int((np.abs(factor[:, :, 3]) <= 0.7).sum())
        assert 0 < blocked < 25

    def test_arrays(self, page: Page) -> None:
        page.locator("#tab-design").click()
        page.locator("#method").select_option("mimo-mn-plus")
        page.locator("#run-design").click()
        expect(page.locator("#by")).to_contain_text("co-located")
        expect(page.locator(".antennas .array")).to_have_count(25)
        drag(page.locator('[data-device="0"]'), -90.0, 0.0)
        expect(page.locator(".antennas .array")).to_have_count(25)
        page.locator("#even").click()
        expect(page.locator(".antennas .antenna")).to_have_count(25)


class TestSetUp:
    def test_sliders(self, page: Page, tmp_path: Path) -> None:
        page.locator("#slider-snr").focus()
        for _ in range(10):
            page.keyboard.press("ArrowRight")
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.radio.snr_db == 15.0
        assert selected_in(page) == as_selected(found)
        page.locator("#undo").click()
        settled(page)
        assert shown_design(page, tmp_path).scenario.radio.snr_db == 10.0

    @pytest.mark.parametrize(
        ("name", "value", "read"),
        [
            ("threshold", "0.3", lambda scenario: scenario.radio.mse_threshold == 0.3),
            ("devices", "25", lambda scenario: scenario.devices.count == 25),
            ("waveguides", "7", lambda scenario: scenario.receiver.waveguides == 7),
            ("antennas", "3", lambda scenario: scenario.receiver.antennas == 3),
            ("gap", "0.25", lambda scenario: scenario.receiver.min_gap_m == 0.25),
            ("height", "6", lambda scenario: scenario.receiver.height_m == 6.0),
            ("carrier", "28", lambda scenario: abs(scenario.radio.wavelength_m - 299792458 / 28e9) < 1e-12),
        ],
    )
    def test_fields(
        self, page: Page, tmp_path: Path, name: str, value: str, read: Callable[[Scenario], bool]
    ) -> None:
        page.locator(f"#field-{name}").fill(value)
        page.keyboard.press("Tab")
        settled(page)
        found = shown_design(page, tmp_path)
        assert read(found.scenario)
        assert selected_in(page) == as_selected(found)

    def test_weights_and_seeds(self, page: Page, tmp_path: Path) -> None:
        page.locator("#weights").select_option("energy")
        page.locator("#draw-seed").fill("7")
        page.locator("#redraw").click()
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.weighting.normalisation == "energy"
        assert np.array_equal(found.scenario.devices.x_m, Scenario.paper(seed=7).devices.x_m)
        assert found.seed == 7
        assert selected_in(page) == as_selected(found)

    def test_the_marked_device(self, page: Page, tmp_path: Path) -> None:
        page.locator('[data-device="6"] .hit').click(force=True)
        page.locator("#device-samples").fill("60000")
        page.keyboard.press("Tab")
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.devices.samples[6] == 60000
        assert found.weights[6] > 3.0 * found.weights[5]

    def test_what_does_not_fit_is_explained(self, page: Page) -> None:
        page.locator("#field-gap").fill("30")
        page.keyboard.press("Tab")
        expect(page.locator("#error")).to_contain_text("antennas 30 m apart need at least")
        page.locator("#undo").click()
        expect(page.locator("#error")).to_be_hidden()

    def test_bad_numbers(self, page: Page, tmp_path: Path) -> None:
        field = page.locator("#field-snr")
        field.fill("")
        page.keyboard.press("Tab")
        expect(field).to_have_value("10")
        page.locator("#field-threshold").fill("0")
        page.keyboard.press("Tab")
        expect(page.locator("#error")).to_contain_text("must be > 0")
        page.locator("#field-threshold").fill("0.1")
        page.keyboard.press("Tab")
        settled(page)
        assert shown_design(page, tmp_path).scenario.radio.mse_threshold == 0.1
        assert page.locator("#slider-threshold").get_attribute("min") == "-4"

    def test_a_new_draw_is_like_the_last_one(self, page: Page, tmp_path: Path) -> None:
        page.locator("#preset").select_option("indoor-28ghz")
        expect(page.locator("#of")).to_have_text("of 50 devices")
        settled(page)
        drag(page.locator('[data-device="1"]'), 20.0, 5.0)
        page.locator("#draw-seed").fill("3")
        page.locator("#redraw").click()
        settled(page)
        expected = Scenario.preset("indoor-28ghz", seed=3).devices
        assert np.array_equal(shown_design(page, tmp_path).scenario.devices.x_m, expected.x_m)

    def test_a_layout_comes_back_when_the_gap_does(self, page: Page, tmp_path: Path) -> None:
        drag(page.locator('[data-antenna="0,1"]'), 60.0, 0.0)
        before = shown_design(page, tmp_path).layout
        page.locator("#tab-setup").click()
        for value in ("8", "0.95"):
            page.locator("#field-gap").fill(value)
            page.keyboard.press("Tab")
            settled(page)
        after = shown_design(page, tmp_path).layout
        assert before is not None
        assert after is not None
        assert np.array_equal(after, before)

    def test_presets(self, page: Page) -> None:
        page.locator("#preset").select_option("indoor-28ghz")
        expect(page.locator("#of")).to_have_text("of 50 devices")
        expect(page.locator("#radio")).to_contain_text("28 GHz")
        page.locator("#field-waveguides").fill("4")
        page.keyboard.press("Tab")
        expect(page.locator(".antennas .antenna")).to_have_count(40)


class TestDesigns:
    def test_run_pin_compare(self, page: Page, tmp_path: Path) -> None:
        page.locator("#tab-design").click()
        page.locator("#pin").click()
        page.locator("#run-design").click()
        expect(page.locator("#design-status")).to_contain_text("10 of 10 devices")
        expected = airpass.design(Scenario.paper(), "airpass-plus", seed=0)
        found = shown_design(page, tmp_path)
        assert expected.layout is not None
        assert found.layout is not None
        assert np.array_equal(found.layout, expected.layout)
        assert np.array_equal(found.beam, expected.beam)
        assert np.array_equal(found.scores, expected.scores)
        page.locator("#tab-design").click()
        page.locator("#pin").click()
        expect(page.locator("#pins li")).to_have_count(2)
        page.locator("#pins li").first.get_by_role("button", name="Compare").click()
        gained = 10 - first_count()
        expect(page.locator("#pins .difference")).to_contain_text(f"{gained} devices more and 0 fewer")
        expect(page.locator(".device.gained")).to_have_count(gained)
        expect(page.locator(".ghosts rect")).to_have_count(25)
        page.locator("#pins li").first.get_by_role("button", name="Show").click()
        expect(page.locator("#count")).to_have_text(str(first_count()))
        page.locator("#undo").click()
        expect(page.locator("#count")).to_have_text("10")
        assert np.array_equal(shown_design(page, tmp_path).scores, expected.scores)
        page.locator("#tab-design").click()
        page.locator("#pins li").first.get_by_role("button", name="Unpin").click()
        expect(page.locator("#pins li")).to_have_count(1)

    def test_cancel(self, page: Page) -> None:
        for name, value in (("snr", "-14"), ("devices", "60"), ("waveguides", "12"), ("antennas", "12")):
            page.locator(f"#field-{name}").fill(value)
            page.keyboard.press("Tab")
        page.locator("#tab-design").click()
        page.locator("#option-effort").select_option("thorough")
        page.locator("#run-design").click()
        expect(page.locator(".antenna.moving").first).to_be_visible(timeout=90_000)
        expect(page.locator("#run-design")).to_be_disabled()
        page.locator("#cancel-design").click()
        expect(page.locator("#design-status")).to_have_text("Cancelled.", timeout=10_000)
        expect(page.locator("#run-design")).to_be_enabled()
        expect(page.locator(".antenna.moving")).to_have_count(0)

    def test_options_are_checked(self, page: Page) -> None:
        page.locator("#tab-design").click()
        page.get_by_text("More options").click()
        page.locator("#option-kicks").fill("-5")
        page.locator("#run-design").click()
        expect(page.locator("#design-status")).to_contain_text("kicks")


def first_count() -> int:
    """Devices that the first page shows as selected."""
    scenario = Scenario.paper()
    channels = scenario.channels(scenario.uniform_layout())
    return select(channels, scenario.weights, scenario.budget, "hrmc+").selected_count


class TestEvaluations:
    def test_on_request(self, page: Page) -> None:
        page.locator("#tab-evaluate").click()
        page.locator("#run-certificate").click()
        expect(page.locator("#result-certificate")).to_contain_text("With these antennas at most")
        page.locator("#run-life").click()
        expect(page.locator("#result-life .plot canvas")).to_be_visible()
        page.locator("#result-life summary").click()
        expect(page.locator("#result-life tbody tr")).to_have_count(12)
        page.locator("#run-tolerance").click()
        expect(page.locator("#result-tolerance .plot canvas")).to_be_visible()

    def test_turns(self, page: Page) -> None:
        page.locator("#field-snr").fill("0")
        page.keyboard.press("Tab")
        page.locator("#tab-evaluate").click()
        page.locator("#turn-count").fill("3")
        page.locator("#run-turns").click()
        expect(page.locator("#turn-text")).to_contain_text("Turn 1 of 3")
        expect(page.locator("#by")).to_have_text("a turn of a book")
        page.locator("#turn-next").click()
        expect(page.locator("#turn-text")).to_contain_text("Turn 2 of 3")
        before = page.locator('[data-antenna="4,4"]').get_attribute("transform")
        drag(page.locator('[data-antenna="0,0"]'), -5.0, 0.0)  # leaves the turn, with its antennas
        assert page.locator('[data-antenna="4,4"]').get_attribute("transform") == before
        expect(page.locator("#by")).to_contain_text("HRMC+")
        expect(page.locator("#turn-text")).to_be_empty()
        expect(page.locator("#status-turns")).to_have_text("The room has changed since.")
        expect(page.locator("#turn-next")).to_be_disabled()
        page.locator("#undo").click()
        page.locator("#turn-next").click()
        expect(page.locator("#turn-text")).to_contain_text("Turn 1 of 3")
        page.locator("#turn-close").click()
        expect(page.locator("#by")).to_contain_text("HRMC+")

    def test_a_book_can_be_opened(self, visitor: Visitor, serve: Serve, tmp_path: Path) -> None:
        airpass.schedule(Scenario.paper(snr_db=0.0), 2).save(tmp_path / "book.json")
        page = visitor.visit(serve(open_path(str(tmp_path / "book.json"))))
        expect(page.locator("#turn-text")).to_contain_text("Turn 1 of 2")


class TestLearning:
    def test_train_and_cancel(self, page: Page) -> None:
        page.locator("#tab-design").click()
        page.locator("#pin").click()
        page.locator("#tab-learn").click()
        page.locator("#rounds").fill("6")
        page.locator("#run-train").click()
        expect(page.locator("#train-status")).to_have_text("Done.", timeout=90_000)
        rows = page.locator("#train-table tbody tr")
        expect(rows).to_have_count(3)
        scenario, data = airpass.prepare(Scenario.paper(), "mnist-mini", seed=0)
        ideal = airpass.train(None, data, 6, 0, scenario=scenario, progress=False)
        accuracy = 100.0 * ideal.history[-1].test_accuracy
        expect(rows.first.locator("td").first).to_have_text(f"{accuracy:.1f}")
        page.locator("#rounds").fill("2000")
        page.locator("#run-train").click()
        expect(page.locator("#train-status")).to_contain_text("round", timeout=60_000)
        page.locator("#cancel-train").click()
        expect(page.locator("#train-status")).to_contain_text("Cancelled", timeout=15_000)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "snr"
    airpass.sweep(
        {
            "name": "snr",
            "schemes": ["distributed-m", {"method": "mimo-m", "label": "mimo-m", "options": {"axis": "y"}}],
            "trials": 3,
            "axis": {"field": "radio.snr_db", "values": [0.0, 5.0, 10.0]},
        },
        folder,
        workers=1,
    )
    return folder


class TestStudies:
    def test_numbers_filter_and_points(
        self, visitor: Visitor, serve: Serve, study: Path, tmp_path: Path
    ) -> None:
        page = visitor.visit(serve(open_path(str(study))))
        expect(page.locator("#tab-study")).to_have_attribute("aria-selected", "true")
        charts = page.locator("#study-charts")
        charts.locator("summary").click()
        expect(charts.locator("tbody tr")).to_have_count(3)
        rows = [row for row in airpass.study.stored.open_study(study).rows if row.metric == "selected_count"]
        heads = charts.locator("thead th").all_inner_texts()
        names = {"distributed, M": "distributed-m", "co-located, M": "mimo-m"}
        for line in charts.locator("tbody tr").all():
            x = float(line.locator("th").inner_text())
            for name, cell in zip(heads[1:], line.locator("td").all_inner_texts(), strict=True):
                values = [row.value for row in rows if row.scheme == names[name] and row.x == x]
                assert float(cell.split(" ")[0]) == pytest.approx(np.mean(values), rel=1e-3)
                assert "n = 3" in cell
        first = page.get_by_role("button", name="distributed, M")
        first.click()
        page.locator("#trial").select_option("1")
        point = charts.locator(".u-over").bounding_box()
        assert point is not None
        page.mouse.move(point["x"] + point["width"] * 0.5, point["y"] + 20)
        page.mouse.click(point["x"] + point["width"] * 0.5, point["y"] + 20)
        expect(page.locator("#panel-setup")).to_be_visible()
        page.locator("#tab-design").click()
        expect(page.locator("#method")).to_have_value("mimo-m")
        expect(page.locator("#option-axis")).to_have_value("y")
        page.locator("#tab-study").click()
        first.click()
        page.get_by_role("button", name="co-located, M").click()
        expect(charts.locator("thead th")).to_have_count(2)
        page.locator("#trial").select_option("2")
        plot = charts.locator(".u-over").bounding_box()
        assert plot is not None
        page.mouse.move(plot["x"] + plot["width"] * 0.97, plot["y"] + plot["height"] / 2)
        expect(charts.locator(".readout")).to_contain_text("distributed, M")
        page.mouse.click(plot["x"] + plot["width"] * 0.97, plot["y"] + plot["height"] / 2)
        expect(page.locator("#panel-setup")).to_be_visible()
        settled(page)
        found = shown_design(page, tmp_path)
        assert found.scenario.radio.snr_db == 10.0
        assert np.array_equal(found.scenario.devices.x_m, Scenario.paper(seed=2).devices.x_m)
        (count,) = [r.value for r in rows if (r.scheme, r.x, r.trial) == ("distributed-m", 10.0, 2)]
        assert found.selected_count == count

    def test_another_metric(self, visitor: Visitor, serve: Serve, study: Path) -> None:
        page = visitor.visit(serve(open_path(str(study))))
        page.locator("#metric").select_option("sdr_db")
        expect(page.locator("#study-charts .plot")).to_have_attribute(
            "aria-label", re.compile("signal-to-distortion ratio")
        )

    def test_training_runs(self, visitor: Visitor, serve: Serve, tmp_path: Path) -> None:
        runs = airpass.compare(
            Scenario.paper(), ["fedavg"], options=airpass.TrainOptions(rounds=4, evaluate_every=2)
        )
        (tmp_path / "run").mkdir()
        runs.save(tmp_path / "run" / "history.json")
        page = visitor.visit(serve(open_path(str(tmp_path / "run"))))
        expect(page.locator("#study-title")).to_contain_text("Training run")
        expect(page.locator("#study-charts .plot canvas")).to_be_visible()


class TestOut:
    @pytest.mark.parametrize("searched", [True, False])
    def test_the_command_reproduces_the_design(
        self, page: Page, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searched: bool
    ) -> None:
        drag(page.locator('[data-device="5"]'), 40.0, -20.0)
        if searched:
            page.locator("#tab-design").click()
            page.locator("#option-effort").select_option("fast")
            page.locator("#run-design").click()
            expect(page.locator("#design-status")).to_contain_text("of 10 devices")
        else:
            drag(page.locator('[data-antenna="1,2"]'), 33.0, 0.0)
        found = shown_design(page, tmp_path)
        saved(page, "toml", tmp_path)
        words = (page.locator("#text-command").text_content() or "").split()
        monkeypatch.chdir(tmp_path)
        assert run(*words[1:]).code == 0
        again = airpass.load(tmp_path / words[-1])
        assert found.layout is not None
        assert np.array_equal(again.layout, found.layout)
        assert np.array_equal(again.beam, found.beam)
        assert np.array_equal(again.scores, found.scores)
        assert again.selected.tolist() == selected_in(page)
        scope: dict[str, Any] = {"print": lambda _: None}
        exec(page.locator("#text-python").text_content() or "", scope)  # noqa: S102
        assert np.array_equal(scope["design"].scores, found.scores)

    def test_pictures(self, page: Page, tmp_path: Path) -> None:
        starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
        for kind, start in starts.items():
            assert saved(page, kind, tmp_path).read_bytes().startswith(start)

    def test_copy(self, page: Page) -> None:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#tab-export").click()
        page.locator("#copy-command").click()
        expect(page.locator("#copy-command")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator("#text-command").text_content()

    def test_a_link_restores_the_state(
        self, page: Page, visitor: Visitor, server: Server, tmp_path: Path
    ) -> None:
        page.locator("#tab-design").click()
        page.locator("#run-design").click()
        expect(page.locator("#design-status")).to_contain_text("of 10 devices")
        page.locator("#tab-export").click()
        page.locator("#make-link").click()
        expect(page.locator("#text-link")).to_contain_text("#state=")
        link = page.locator("#text-link").text_content() or ""
        assert server.token not in link
        found = shown_design(page, tmp_path)
        other = page.context.new_page()
        visitor.watch(other, server)
        other.goto(link)
        expect(other.locator("#count")).to_have_text(str(found.selected_count))
        assert np.array_equal(shown_design(other, tmp_path).scores, found.scores)
        third = page.context.new_page()  # a tab keeps its state when it is loaded again
        visitor.watch(third, server)
        third.goto(f"http://127.0.0.1:{server.port}/")
        expect(third.locator("#count")).to_have_text(str(first_count()))
        third.evaluate("link => { location.hash = new URL(link).hash; }", link)  # pasted into the address
        expect(third.locator("#count")).to_have_text(str(found.selected_count))
        state = open_path(link).state
        assert json.loads(json.dumps(state))["layout_m"] == found.layout.tolist()  # type: ignore[union-attr]


class TestLooks:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1200, 400])
    def test_accessibility(
        self, visitor: Visitor, serve: Serve, study: Path, axe: str, theme: str, width: int
    ) -> None:
        page = visitor.visit(
            serve(open_path(str(study))), viewport={"width": width, "height": 900}, color_scheme=theme
        )
        page.locator("#cut-on").check()
        page.locator('[data-device="1"] .hit').click(force=True)
        page.locator("#tab-design").click()
        page.locator("#pin").click()
        page.evaluate(axe)
        for tab in ("setup", "design", "evaluate", "learn", "study", "export"):
            page.locator(f"#tab-{tab}").click()
            page.wait_for_timeout(200)
            found = page.evaluate("axe.run()")
            serious = [
                f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], tab
        page.locator("#help").click()
        assert page.evaluate("axe.run('#help-dialog')")["violations"] == []

    @pytest.mark.parametrize("width", [400, 900, 1920])
    def test_nothing_is_wider_than_the_screen(self, visitor: Visitor, server: Server, width: int) -> None:
        page = visitor.visit(server, viewport={"width": width, "height": 900})
        for tab in ("setup", "design", "evaluate", "learn", "export"):
            page.locator(f"#tab-{tab}").click()
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    def test_tabs_by_keys(self, page: Page) -> None:
        page.locator("#tab-setup").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#tab-design")).to_be_focused()
        expect(page.locator("#panel-design")).to_be_visible()
        page.keyboard.press("End")
        expect(page.locator("#panel-export")).to_be_visible()

    def test_texts_of_users_are_not_markup(self, visitor: Visitor, serve: Serve, tmp_path: Path) -> None:
        name = "<img src=x onerror=alert(1)>.toml"
        Scenario.paper().save(tmp_path / name)
        page = visitor.visit(serve(open_path(str(tmp_path / name))))
        expect(page.locator("#opened")).to_have_text(name)
        expect(page.locator("#opened img")).to_have_count(0)


class TestConnections:
    def test_two_pages_do_not_disturb_each_other(self, visitor: Visitor, server: Server) -> None:
        first, second = visitor.visit(server), visitor.visit(server)
        second.locator("#field-devices").fill("33")
        second.keyboard.press("Tab")
        expect(second.locator("#of")).to_have_text("of 33 devices")
        expect(first.locator("#of")).to_have_text("of 10 devices")
        second.close()
        drag(first.locator('[data-device="0"]'), -50.0, 0.0)
        expect(first.locator("#lost")).to_be_hidden()

    def test_reload_keeps_access_and_hides_the_token(self, page: Page) -> None:
        assert "token" not in page.url
        page.locator("#field-devices").fill("12")
        page.keyboard.press("Tab")
        page.locator("#tab-design").click()
        page.locator("#pin").click()
        expect(page.locator("#of")).to_have_text("of 12 devices")
        eventually(lambda: page.evaluate(KEPT_PINS) == 1, page)
        page.reload()
        expect(page.locator("#of")).to_have_text("of 12 devices")
        page.locator("#tab-design").click()
        expect(page.locator("#pins li")).to_have_count(1)

    def test_the_end_of_the_server_is_shown(self, visitor: Visitor, serve: Serve) -> None:
        running = serve(open_path(None))
        page = visitor.visit(running)
        for one in list(running.pages):
            assert one.session is not None
            assert running.loop is not None
            running.loop.call_soon_threadsafe(one.close)
        expect(page.locator("#lost")).to_be_visible()
        expect(page.locator("#lost")).to_be_hidden(timeout=10_000)  # it has connected again
        drag(page.locator('[data-device="0"]'), -50.0, 0.0)
        expect(page.locator("#error")).to_be_hidden()
