"""Rooms that differ from the paper's: feeds, heights and y of the waveguides, heights of the devices."""

import cmath
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpass import DeviceDraw, InvalidInput, Receiver, Scenario, design, tolerance
from airpass.designs.margins import exact_margins, margins
from airpass.figures.room import draw_design
from airpass.geometry import hago
from airpass.geometry.base import weakest_gain
from airpass.geometry.elementwise import Elementwise
from command_line import assert_refused
from independent import check_design
from taylor import remainder_slope

EXAMPLE = Path(__file__).parent.parent / "examples" / "workshop.toml"
ROOM: dict[str, Any] = {
    "receiver": {
        "waveguides": 4,
        "antennas": 4,
        "length_m": [12.0, 10.0, 12.0, 9.0],
        "height_m": [3.0, 3.5, 2.5, 4.0],
        "waveguide_y_m": [-1.0, 4.0, 4.0, 7.5],
        "feed": ["left", "centre", "right", "centre"],
        "min_gap_m": 0.4,
    },
    "radio": {"snr_db": 6.0},
    "devices": {
        "x_m": [1.0, 3.5, 8.0, 11.0, 14.0, 6.0],
        "y_m": [0.0, 6.0, 2.0, 5.0, 7.5, 3.0],
        "z_m": [0.0, 1.2, 0.8, 5.0, 4.0, 0.0],  # the fourth above all waveguides, the fifth in line with one
        "gain": 1.0,
        "samples": 600,
    },
}


@pytest.fixture(scope="module")
def room() -> Scenario:
    return Scenario.from_dict(ROOM)


def channel(scenario: dict[str, Any], layout: Any, m: int, k: int) -> complex:
    """g_{k,m} from the tables of a scenario: straight path, then along the waveguide to its feed."""
    receiver, radio, devices = scenario["receiver"], scenario["radio"], scenario["devices"]

    def at(values: Any, index: int) -> Any:
        return values[index] if isinstance(values, list) else values

    length, height = at(receiver["length_m"], m), at(receiver["height_m"], m)
    y = receiver["waveguide_y_m"][m] if "waveguide_y_m" in receiver else m * receiver["spacing_m"]
    feed = {"left": 0.0, "right": length, "centre": length / 2}[at(receiver["feed"], m)]
    device = [at(devices[name], k) for name in ("x_m", "y_m", "z_m")]
    total = 0j
    for position in layout[m]:
        free = math.dist((position, y, height), device)
        path = free + radio["refractive_index"] * abs(position - feed)
        total += cmath.exp(-2j * math.pi * path / radio["wavelength_m"]) / free
    return complex(radio["path_gain"] * at(devices["gain"], k) * total / math.sqrt(len(layout[m])))


@st.composite
def rooms(draw: st.DrawFn) -> tuple[Scenario, Any]:
    """A random room and a layout in it."""
    waveguides, antennas, count = (draw(st.integers(1, most)) for most in (4, 4, 5))
    size = st.floats(1.0, 9.0)

    def each(values: st.SearchStrategy[Any], number: int) -> Any:
        """One value for all, or a list."""
        return draw(values | st.lists(values, min_size=number, max_size=number))

    receiver = {
        "waveguides": waveguides,
        "antennas": antennas,
        "length_m": each(st.floats(6.0, 30.0), waveguides),
        "height_m": each(size, waveguides),
        "feed": each(st.sampled_from(["left", "right", "centre"]), waveguides),
    }
    if draw(st.booleans()):
        across = st.lists(st.floats(-9.0, 9.0), min_size=waveguides, max_size=waveguides)
        receiver["waveguide_y_m"] = draw(across)
    devices = {
        "x_m": draw(st.lists(st.floats(-5.0, 35.0), min_size=count, max_size=count)),
        "y_m": each(st.floats(-12.0, 12.0), count),
        "z_m": each(st.floats(-2.0, 0.9), count),
        "gain": each(st.floats(0.5, 2.0), count),
        "samples": each(st.integers(1, 900), count),
    }
    scenario = Scenario.from_dict({"receiver": receiver, "devices": devices})
    seed = draw(st.integers(0, 2**32 - 1))
    return scenario, scenario.random_layout(np.random.default_rng(seed))


class TestChannels:
    @given(rooms())
    def test_follow_the_formula_in_any_room(self, case: tuple[Scenario, Any]) -> None:
        scenario, layout = case
        tables = scenario.to_dict()
        found = scenario.channels(layout)
        expected = [
            [channel(tables, layout, m, k) for k in range(found.shape[1])] for m in range(found.shape[0])
        ]
        np.testing.assert_allclose(found, expected, atol=1e-10)

    @given(rooms())
    def test_round_trip_through_a_file(self, tmp_path_factory: Any, case: tuple[Scenario, Any]) -> None:
        scenario, layout = case
        path = tmp_path_factory.mktemp("rooms") / "room.toml"
        scenario.save(path)
        again = Scenario.load(path)
        assert again.to_dict() == scenario.to_dict()
        assert (again.channels(layout) == scenario.channels(layout)).all()

    @pytest.mark.parametrize(("m", "n"), [(0, 1), (1, 0), (1, 3), (2, 2), (3, 0), (3, 3)])
    def test_derivative_by_taylor_on_both_sides_of_a_feed(self, room: Scenario, m: int, n: int) -> None:
        layout = room.uniform_layout()
        feed = room.receiver.feed_x
        assert layout[1, 0] < feed[1] < layout[1, 3]
        assert layout[3, 0] < feed[3] < layout[3, 3]
        derivative = room.uplink.derivative(layout)
        for k in range(room.devices.count):

            def moved(t: float, k: int = k) -> complex:
                shifted = layout.copy()
                shifted[m, n] += t
                return complex(room.uplink.channels(shifted)[m, k])

            assert 1.95 < remainder_slope(moved, complex(derivative[m, n, k]), 1e-3) < 2.05

    def test_at_a_centre_feed_the_derivative_is_that_to_the_right(self, room: Scenario) -> None:
        layout = room.uniform_layout()
        layout[1, 1] = room.receiver.feed_x[1]
        derivative = room.uplink.derivative(layout)[1, 1]

        def along(sign: float, k: int) -> Any:
            def moved(t: float) -> complex:
                shifted = layout.copy()
                shifted[1, 1] += sign * t
                return complex(room.uplink.channels(shifted)[1, k])

            return moved

        for k in range(room.devices.count):
            assert 1.95 < remainder_slope(along(1.0, k), complex(derivative[k]), 1e-3) < 2.05
            # To the left the phase in the waveguide rises again: the remainder falls like t only.
            assert 0.9 < remainder_slope(along(-1.0, k), complex(-derivative[k]), 1e-3) < 1.1
        just_left = layout.copy()
        just_left[1, 1] = np.nextafter(layout[1, 1], 0.0)
        np.testing.assert_allclose(room.uplink.channels(just_left), room.uplink.channels(layout), atol=1e-12)
        jump = (derivative - room.uplink.derivative(just_left)[1, 1]) / room.uplink.terms(layout)[1, 1]
        # eq. (67): -j kappa i_ref ds/dl with ds/dl = 1 and -1.
        np.testing.assert_allclose(jump, -2j * 2 * np.pi / 0.125 * 1.45, rtol=1e-9)

    def test_a_right_feed_mirrors_a_left_feed(self) -> None:
        scenario = Scenario.paper(devices=6, seed=3)
        mirrored = replace(
            scenario,
            receiver=replace(scenario.receiver, feed="right"),
            devices=replace(scenario.devices, x_m=40.0 - scenario.devices.x_m),
        )
        layout = scenario.random_layout(np.random.default_rng(1))
        np.testing.assert_allclose(
            mirrored.channels(40.0 - layout[:, ::-1]), scenario.channels(layout), atol=1e-11
        )

    def test_the_phase_is_symmetric_about_a_centre_feed(self) -> None:
        receiver = Receiver(waveguides=1, antennas=2, length_m=10.0, feed="centre")
        devices = DeviceDraw(count=3, x_range_m=(5.0, 5.0)).draw()
        scenario = Scenario(receiver=receiver, devices=devices)
        terms = scenario.uplink.terms(np.array([[3.0, 7.0]]))
        np.testing.assert_allclose(terms[0, 0], terms[0, 1], rtol=1e-12)

    def test_the_defaults_are_written_out_the_same(self) -> None:
        plain = Scenario.paper(devices=5, seed=2)
        spelled = Scenario.from_dict(
            {
                "receiver": {
                    "waveguide_y_m": [0, 2, 4, 6, 8],
                    "height_m": [4] * 5,
                    "length_m": [40] * 5,
                    "feed": ["left"] * 5,
                },
                "devices": {"count": 5, "seed": 2, "z_m": [0, 0, 0, 0, 0]},
            }
        )
        layout = plain.random_layout(np.random.default_rng(0))
        assert (plain.channels(layout) == spelled.channels(layout)).all()
        assert (plain.uplink.derivative(layout) == spelled.uplink.derivative(layout)).all()
        assert (plain.colocated(4).channels() == spelled.colocated(4).channels()).all()

    def test_arrays_see_the_heights_of_devices(self, room: Scenario) -> None:
        array = room.colocated(3, "y")
        np.testing.assert_allclose(room.receiver.centre, [6.0, 3.625, 3.25])
        found = array.channels()
        devices = room.devices
        for i, antenna in enumerate(array.positions):
            for k in range(devices.count):
                path = math.dist(antenna, (devices.x_m[k], devices.y_m[k], devices.z_m[k]))
                expected = cmath.exp(-2j * math.pi * path / 0.125) / path
                assert abs(found[i, k] - expected) < 1e-11


class TestScenario:
    def test_one_number_for_all_devices(self) -> None:
        devices = Scenario.from_dict(ROOM).devices
        assert devices.gain.tolist() == [1.0] * 6
        assert devices.samples.tolist() == [600.0] * 6

    @pytest.mark.parametrize("heights", [1.5, [0.0, 1.0, 2.0]])
    def test_drawn_devices_have_heights(self, heights: Any) -> None:
        scenario = Scenario.from_dict({"devices": {"count": 3, "seed": 4, "z_m": heights}})
        plain = Scenario.from_dict({"devices": {"count": 3, "seed": 4}})
        assert scenario.devices.z_m.tolist() == np.broadcast_to(heights, 3).tolist()
        assert (scenario.devices.x_m == plain.devices.x_m).all()
        assert scenario.devices.drawn_from is not None
        assert (scenario.devices.drawn_from.draw(7).z_m == scenario.devices.z_m).all()

    def test_feeds(self, room: Scenario) -> None:
        assert room.receiver.feed_x.tolist() == [0.0, 5.0, 12.0, 4.5]
        assert room.receiver.feed_side.tolist() == [1.0, 0.0, -1.0, 0.0]

    @pytest.mark.parametrize(
        ("part", "changes", "words"),
        [
            ("receiver", {"waveguide_y_m": [1.0, 2.0]}, ["receiver.waveguide_y_m", "2 entries", "= 4)"]),
            ("receiver", {"waveguide_y_m": 1.0}, ["receiver.waveguide_y_m", "1.0", "list"]),
            ("receiver", {"waveguide_y_m": [0, 1, 2, "x"]}, ["receiver.waveguide_y_m[3]", "'x'", "number"]),
            ("receiver", {"height_m": [3.0]}, ["receiver.height_m", "1 entries", "one number", "= 4)"]),
            ("receiver", {"height_m": [3.0, 0.0, 1.0, 1.0]}, ["receiver.height_m[1]", "0.0", "> 0"]),
            ("receiver", {"feed": "top"}, ["receiver.feed", "'top'", "left, right, centre"]),
            ("receiver", {"feed": ["left", "left"]}, ["receiver.feed", "2 entries", "one word", "= 4)"]),
            ("receiver", {"feed": ["left", "up", "left", "left"]}, ["receiver.feed[1]", "'up'"]),
            ("receiver", {"feed": 3}, ["receiver.feed", "3", "left, right, centre"]),
            ("devices", {"z_m": [1.0]}, ["devices.z_m", "1 entries", "6"]),
            ("devices", {"z_m": "high"}, ["devices.z_m", "'high'", "number"]),
            ("devices", {"gain": 0.0}, ["devices.gain", "0", "> 0"]),
            ("devices", {"gain": [1.0, 2.0]}, ["devices.gain", "2 entries", "6"]),
            ("devices", {"samples": "many"}, ["devices.samples", "'many'", "number"]),
            ("devices", {"x_m": 3.0}, ["devices.x_m", "list"]),
            ("devices", {"y_m": 7.5, "z_m": 4.0}, ["devices.z_m[0]", "4", "waveguide 3", "distance"]),
        ],
    )
    def test_mistakes_end_in_one_line(self, part: str, changes: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict(ROOM | {part: ROOM[part] | changes})
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)

    def test_wrong_number_of_heights_of_drawn_devices(self) -> None:
        with pytest.raises(InvalidInput, match=r"devices.z_m has 2 entries.*\(3\)"):
            DeviceDraw(count=3, z_m=(1.0, 2.0))

    def test_a_device_at_the_place_of_an_antenna(self) -> None:
        devices = {"x_m": [20.0], "y_m": 4.0, "z_m": 4.0, "gain": 1.0, "samples": 1}
        receiver = {"waveguide_y_m": [0, 1, 2, 8, 9]}
        scenario = Scenario.from_dict({"receiver": receiver, "devices": devices})
        with pytest.raises(InvalidInput, match="distance zero"):
            scenario.colocated(1)

    def test_the_command_line_says_it_too(self, run: Any) -> None:
        assert_refused(
            run("design", "--scenario", EXAMPLE, "--waveguides", 3), "receiver.length_m", "4 entries", "= 3)"
        )


class TestDesigns:
    def test_gradient_of_hago_by_taylor(self, room: Scenario) -> None:
        layout = room.uniform_layout()
        rng = np.random.default_rng(0)
        beam = rng.standard_normal(4) + 1j * rng.standard_normal(4)
        beam /= np.linalg.norm(beam)
        field = room.uplink.field(4)
        workspace = hago.new_workspace(4, 4, 6)
        pull = rng.random(6)

        def value(positions: Any) -> float:
            hago.gains(positions, beam, field, workspace)
            return float(pull @ (workspace.gain_re**2 + workspace.gain_im**2))

        value(layout)
        gradient = np.empty((4, 4))
        hago.layout_gradient(layout, beam, field, workspace, pull, gradient)
        direction = rng.standard_normal((4, 4))
        slope = remainder_slope(
            lambda t: value(layout + t * direction), float((gradient * direction).sum()), 1e-4
        )
        assert 1.95 < slope < 2.05

    @pytest.mark.parametrize(
        "method", ["airpass", "airpass-plus", "mimo-mn", "distributed-mn", "distributed-m"]
    )
    def test_are_feasible_and_as_claimed(self, room: Scenario, method: str) -> None:
        from airpass.documents import design_document, encode

        found = design(room, method, seed=1)
        check_design(json.loads(encode(design_document(found))))
        if found.layout is not None:
            room.checked_layout(found.layout)

    @pytest.mark.parametrize("geometry", ["hago", "elementwise"])
    def test_moving_antennas_helps(self, room: Scenario, geometry: str) -> None:
        method = hago.Hago() if geometry == "hago" else Elementwise()
        layout, beam = room.uniform_layout(), np.full(4, 0.5 + 0j)
        everyone = np.ones(6, dtype=bool)
        found = method.move(room, layout, beam, everyone, np.random.default_rng(0))
        room.checked_layout(found.layout)
        assert found.objective[1] > found.objective[0]
        assert found.objective[1] == pytest.approx(weakest_gain(room, found.layout, beam, everyone))

    def test_the_table_of_airpass_plus_holds_the_channels(self, room: Scenario) -> None:
        from airpass.designs.joint.space import space_of

        one = replace(room, receiver=replace(room.receiver, antennas=1))
        space = space_of(one, np.ones(6), 0.25, 2**20)
        for p in range(37):  # 0 to 9 m, within all waveguides
            expected = one.uplink.channels(np.full((4, 1), 0.25 * p))
            unit = space.row_scale * space.reference
            entries = unit * (space.table[:, :, 0, p] + 1j * space.table[:, :, 1, p].astype(float))
            assert (np.abs(entries - expected) < 1e-4 * 32000.0 * unit).all()

    def test_tolerance_and_robust_designs(self, room: Scenario) -> None:
        found = design(room, seed=1, options={"effort": "fast", "tolerance_mm": 1.0})
        measured = tolerance(found, position_mm=1.0, draws=200)
        assert measured.nominal == found.selected_count > 0
        # Selected devices stay above the threshold with a probability of about 0.95.
        assert measured.outcomes["rescaled"].mean >= 0.85 * found.selected_count
        assert (margins(room, 1.0, 0.95) > 1.0).all()

    def test_exact_margins_use_the_side_of_the_feed(self, room: Scenario) -> None:
        # One antenna per waveguide and one waveguide: the mean shrinks by exp(-sigma^2/2) with
        # sigma = s kappa |dD/dl + i_ref ds/dl|; along the sum the variance is (1 - e^{-sigma^2})^2/2.
        receiver = Receiver(waveguides=1, antennas=1, length_m=10.0, feed="centre")
        scenario = replace(room, receiver=receiver)
        for place, sign in ((2.0, -1.0), (8.0, 1.0)):
            found = exact_margins(scenario, np.array([[place]]), np.ones(1, dtype=complex), 3.0, 0.5001)
            dx = place - room.devices.x_m
            distance = np.sqrt(dx**2 + room.devices.y_m**2 + (4.0 - room.devices.z_m) ** 2)
            sigma = 3e-3 * 2 * np.pi / 0.125 * (dx / distance + 1.45 * sign)
            np.testing.assert_allclose(found, np.exp(sigma**2), rtol=1e-2)

    def test_receive_gain_at_the_devices(self, room: Scenario) -> None:
        found = design(room, "airpass", seed=1)
        devices = room.devices
        gain = found.receive_gain(devices.x_m, devices.y_m, devices.z_m) * devices.gain**2
        np.testing.assert_allclose(room.budget * gain / room.weights**2, found.scores, rtol=1e-9)

    def test_picture(self, room: Scenario) -> None:
        found = design(room, "distributed-m")
        axes = draw_design(found).axes[0]
        drawn = {tuple(np.ravel(line.get_ydata())) for line in axes.lines if np.size(line.get_xdata()) == 2}
        assert {(y, y) for y in (-1.0, 4.0, 7.5)} <= drawn
        feeds = [line for line in axes.lines if line.get_marker() == "s" and np.size(line.get_xdata())]
        assert [np.ravel(line.get_xdata())[0] for line in feeds] == [0.0, 5.0, 12.0, 4.5]
        assert [np.ravel(line.get_ydata())[0] for line in feeds] == [-1.0, 4.0, 4.0, 7.5]
        assert axes.get_ylim() == (-2.0, 8.5)

    def test_waveguides_above_each_other_can_be_told_apart(self, room: Scenario) -> None:
        figure = draw_design(design(room, "distributed-m"))
        figure.canvas.draw()
        axes = figure.axes[0]
        guides = [
            line for line in axes.lines if line.get_marker() == "None" and np.size(line.get_xdata()) == 2
        ]
        places = [line.get_transform().transform(line.get_xydata())[0, 1] for line in guides]
        points = 72.0 / figure.dpi
        assert points * (places[1] - places[2]) == pytest.approx(16.0)  # 3.5 m high, and 2.5 m
        labels = {text.get_text(): text.get_window_extent() for text in axes.texts}
        lower, upper = (labels[f"y = 4 m, height {height} m"] for height in (2.5, 3.5))
        assert not lower.overlaps(upper)
        assert upper.y0 > lower.y0

    def test_the_example(self, run: Any) -> None:
        outcome = run("design", "--scenario", EXAMPLE, "--method", "airpass", "--json", "-")
        check_design(json.loads(outcome.out))
