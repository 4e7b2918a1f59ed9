"""Channel models: loss along the waveguide, and factors on the paper's closed form."""

import cmath
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from airpass import Channel, Design, InvalidInput, Scenario, certify_layouts, design, load
from airpass.channel.factor import ChannelFactor
from airpass.channel.pattern import Pattern
from airpass.core.types import Complex, Real
from airpass.designs.joint.ascent import new_workspace, value_and_gradient
from airpass.designs.joint.space import scores_at, space_of
from airpass.designs.joint.wanted import respond, wanted_of
from airpass.geometry import hago
from airpass.kernels.jit import kernel
from independent import check_design
from taylor import remainder_slope

# Feeds of all kinds, heights and lengths that differ, and a device above the waveguides.
ROOM: dict[str, Any] = {
    "receiver": {
        "waveguides": 3,
        "antennas": 3,
        "length_m": [12.0, 10.0, 9.0],
        "height_m": [3.0, 3.5, 2.5],
        "waveguide_y_m": [-1.0, 4.0, 7.5],
        "feed": ["left", "centre", "right"],
        "min_gap_m": 0.4,
    },
    "radio": {"snr_db": 6.0},
    "devices": {
        "x_m": [1.0, 3.5, 8.0, 11.0, 6.0],
        "y_m": [0.0, 6.0, 2.0, 5.0, 3.0],
        "z_m": [0.0, 1.2, 0.8, 5.0, 0.0],
        "gain": [1.0, 0.9, 1.1, 1.0, 0.8],
        "samples": 600,
    },
}
LAYOUT = np.array([[0.7, 4.1, 11.2], [1.3, 4.9, 8.8], [2.0, 5.5, 8.1]])


def room(channel: Any = None, **receiver: Any) -> Scenario:
    tables = ROOM | {"receiver": ROOM["receiver"] | receiver}
    return Scenario.from_dict(tables if channel is None else tables | {"channel": channel})


def term(place: float, m: int, k: int, loss_db_per_m: float = 0.0) -> complex:
    """g_{k,m,n} from the tables: straight path, then along the waveguide to its feed."""
    receiver, devices = ROOM["receiver"], ROOM["devices"]
    length = receiver["length_m"][m]
    feed = {"left": 0.0, "right": length, "centre": length / 2}[receiver["feed"][m]]
    device = (devices["x_m"][k], devices["y_m"][k], devices["z_m"][k])
    free = math.dist((place, receiver["waveguide_y_m"][m], receiver["height_m"][m]), device)
    guided = abs(place - feed)
    phase = 2 * math.pi / 0.125 * (free + 1.45 * guided)
    amplitude = devices["gain"][k] / (math.sqrt(3) * free) * 10 ** (-loss_db_per_m * guided / 20)
    return complex(amplitude * cmath.exp(-1j * phase))


def by_formula(layout: Real, loss_db_per_m: float) -> Complex:
    return np.array(
        [
            [sum(term(place, m, k, loss_db_per_m) for place in row) for k in range(5)]
            for m, row in enumerate(layout)
        ]
    )


@kernel
def packed_responses(place: float, waveguide: int, space: Any, wanted: Any) -> Any:
    re, im = np.empty(wanted.device.size, np.float32), np.empty(wanted.device.size, np.float32)
    respond(place, waveguide, 0, space, wanted, wanted.offset_square[waveguide], re, im)
    return re, im


class Loops:
    """What compiled loops compute, next to what the model says."""

    def __init__(self, scenario: Scenario, error: float) -> None:
        self.scenario = scenario
        self.error = error  # of the tabulated factor, relative to the largest response
        self.scale = np.sqrt(scenario.budget) / scenario.weights
        self.space = space_of(scenario, self.scale, 0.25, 2**20)
        self.wanted = wanted_of(self.space, np.array([4, 0, 3]), np.ones(3))
        rng = np.random.default_rng(0)
        self.beam = rng.standard_normal(3) + 1j * rng.standard_normal(3)
        self.beam /= np.linalg.norm(self.beam)

    def check_values(self) -> None:
        """Double precision, single precision, and the table of the joint search."""
        uplink = self.scenario.uplink
        exact = np.abs(self.beam.conj() @ (self.scale * uplink.channels(LAYOUT))) ** 2
        found = scores_at(self.space, LAYOUT, self.beam)
        np.testing.assert_allclose(found, exact, atol=(1e-12 + 4 * self.error) * exact.max())
        places = np.linspace(0.0, 9.0, 37)  # a step of 0.25 m, within all waveguides
        terms = self.scale * uplink.terms(np.tile(places, (3, 1)), 3)
        largest = np.abs(terms).max()
        for p, place in enumerate(places):
            for m in range(3):
                re, im = packed_responses(place, m, self.space, self.wanted)
                expected = terms[m, p, self.wanted.device]
                np.testing.assert_allclose(
                    self.space.reference * (re + 1j * im), expected, atol=(1e-6 + self.error) * largest
                )
                unit = self.space.row_scale[m] * self.space.reference
                table = self.space.table[m, :, :, p].astype(float)
                entries = unit * (table[:, 0] + 1j * table[:, 1])
                assert (np.abs(entries - terms[m, p]) < 3.0 * unit + self.error * largest).all()

    def check_gradients(self) -> None:
        """HAGO's gradient, and that of the joint ascent, by Taylor's formula."""
        scenario, rng = self.scenario, np.random.default_rng(1)
        field = scenario.uplink.field(3)
        workspace = hago.new_workspace(3, 3, 5)
        pull, gradient, direction = rng.random(5), np.empty((3, 3)), rng.standard_normal((3, 3))

        def value(layout: Real) -> float:
            hago.gains(layout, self.beam, field, workspace)
            return float(pull @ (workspace.gain_re**2 + workspace.gain_im**2))

        value(LAYOUT)
        hago.layout_gradient(LAYOUT, self.beam, field, workspace, pull, gradient)
        along = float((gradient * direction).sum())
        assert 1.95 < remainder_slope(lambda t: value(LAYOUT + t * direction), along, 1e-4) < 2.05
        joint = new_workspace(3, 3, self.wanted.device.size)

        def ascent(t: float) -> float:
            shifted = LAYOUT + t * direction
            return value_and_gradient(shifted, self.beam, self.space, self.wanted, 1, joint)[0]

        ascent(0.0)
        expected = float((joint.by_layout * direction).sum())
        t = 3e-5
        assert (ascent(t) - ascent(-t)) / (2 * t) == pytest.approx(expected, rel=2e-3)  # single precision


def check_derivative(scenario: Scenario, layout: Real = LAYOUT) -> None:
    """d g/d l by Taylor's formula, for every antenna and device."""
    derivative = scenario.uplink.derivative(layout)
    for m, n in np.ndindex(layout.shape):
        for k in range(scenario.devices.count):

            def moved(t: float, m: int = m, n: int = n, k: int = k) -> complex:
                shifted = layout.copy()
                shifted[m, n] += t
                return complex(scenario.uplink.channels(shifted)[m, k])

            assert 1.95 < remainder_slope(moved, complex(derivative[m, n, k]), 1e-3) < 2.05


class TestLoss:
    @pytest.mark.parametrize("loss", [0.0, 0.08, 1.3])
    def test_channels_follow_the_formula(self, loss: float) -> None:
        found = room({"loss_db_per_m": loss}).channels(LAYOUT)
        np.testing.assert_allclose(found, by_formula(LAYOUT, loss), atol=1e-12)

    def test_power_after_forty_metres(self) -> None:
        # 0.08 dB/m over 40 m are 3.2 dB.
        plain = Scenario.paper(devices=1, waveguides=1, antennas=1, seed=1)
        scenario = replace(plain, channel=Channel(loss_db_per_m=0.08))
        end = np.array([[40.0]])
        ratio = np.abs(scenario.channels(end) / plain.channels(end)) ** 2
        assert ratio[0, 0] == pytest.approx(10**-0.32, rel=1e-12)

    def test_derivative_by_taylor(self) -> None:
        check_derivative(room({"loss_db_per_m": 1.3}))

    def test_compiled_loops(self) -> None:
        loops = Loops(room({"loss_db_per_m": 1.3}), 0.0)
        loops.check_values()
        loops.check_gradients()

    def test_designs_are_as_claimed_and_weaker(self, run: Any) -> None:
        weakest = []
        for loss in (0.0, 0.3):
            scenario = Scenario.paper(devices=6, waveguides=3, antennas=3, snr_db=10.0, seed=3)
            scenario = replace(scenario, channel=Channel(loss_db_per_m=loss))
            weakest.append(design(scenario, options={"effort": "fast"}).weakest_score)
        assert weakest[1] < weakest[0]
        for method in ("airpass", "airpass-plus"):
            arguments = ("--set", "channel.loss_db_per_m=0.08", "--method", method, "--json", "-")
            document = json.loads(run("design", *arguments).out)
            assert document["scenario"]["channel"] == {"loss_db_per_m": 0.08}
            check_design(document)

    def test_margins_see_the_loss(self) -> None:
        # A robust design is at least as robust as it claims to be; only its powers depend on the loss.
        from airpass.designs.margins import margins

        lossy, plain = (margins(room({"loss_db_per_m": loss}), 2.0, 0.95) for loss in (0.5, 0.0))
        assert (lossy < plain).all()

    def test_bounds_hold(self) -> None:
        scenario = Scenario.paper(devices=6, waveguides=2, antennas=2, snr_db=4.0, seed=3)
        scenario = replace(scenario, channel=Channel(loss_db_per_m=0.3))
        found = design(scenario, options={"effort": "fast"})
        bound = certify_layouts(scenario)
        assert found.selected_count <= bound.at_most
        assert (found.scores <= bound.best_scores).all()

    @pytest.mark.parametrize("loss", [-0.1, 1e3, "much"])
    def test_wrong_values(self, loss: Any) -> None:
        with pytest.raises(InvalidInput, match=r"channel\.loss_db_per_m"):
            room({"loss_db_per_m": loss})


def device_height(m: int, k: int) -> float:
    """How far device k is below waveguide m."""
    return float(ROOM["receiver"]["height_m"][m] - ROOM["devices"]["z_m"][k])


def free_path(place: float, m: int, k: int) -> float:
    """D."""
    receiver, devices = ROOM["receiver"], ROOM["devices"]
    device = (devices["x_m"][k], devices["y_m"][k], devices["z_m"][k])
    return math.dist((place, receiver["waveguide_y_m"][m], receiver["height_m"][m]), device)


def with_factor(factor: Any) -> Complex:
    """Channels at `LAYOUT` with a factor (place, m, k)."""
    return np.array(
        [
            [sum(term(place, m, k) * factor(place, m, k) for place in row) for k in range(5)]
            for m, row in enumerate(LAYOUT)
        ]
    )


def check_channels(found: Design) -> None:
    """Channels and scores are those of the model itself, not of a table."""
    assert found.layout is not None
    channels = found.scenario.channels(found.layout)
    np.testing.assert_array_equal(found.channels, channels)
    received = np.conj(found.beam) @ channels / found.scenario.weights
    np.testing.assert_allclose(found.scores, found.scenario.budget * np.abs(received) ** 2, rtol=1e-12)


class TestPattern:
    @pytest.mark.parametrize("exponent", [0.0, 1.0, 3.5])
    def test_channels_follow_the_formula(self, exponent: float) -> None:
        def factor(place: float, m: int, k: int) -> float:
            angle = math.acos(device_height(m, k) / free_path(place, m, k))
            return math.cos(angle) ** (exponent / 2) if angle < math.pi / 2 or exponent == 0 else 0.0

        scenario = room({"model": "pattern", "exponent": exponent})
        np.testing.assert_allclose(scenario.channels(LAYOUT), with_factor(factor), atol=2e-9)  # -180 dB

    def test_without_exponent_it_is_the_papers_model(self) -> None:
        plain, scenario = room(), room({"model": "pattern", "exponent": 0.0})
        np.testing.assert_allclose(scenario.channels(LAYOUT), plain.channels(LAYOUT), rtol=1e-14)
        np.testing.assert_allclose(
            scenario.uplink.derivative(LAYOUT), plain.uplink.derivative(LAYOUT), rtol=1e-14
        )

    def test_derivative_by_taylor(self) -> None:
        # Without the device above the waveguides, whose channel is zero.
        scenario = room({"model": "pattern", "exponent": 3.0})
        devices = replace(scenario.devices, z_m=np.minimum(scenario.devices.z_m, 1.2))
        check_derivative(replace(scenario, devices=devices))

    def test_compiled_loops(self) -> None:
        loops = Loops(room({"model": "pattern", "exponent": 3.0}), 1e-5)
        loops.check_values()
        loops.check_gradients()

    def test_designs_and_bounds(self) -> None:
        scenario = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=6.0, seed=3)
        plain = design(scenario, options={"effort": "fast"})
        pattern = replace(scenario, channel=Channel(models=(Pattern(2.0),)))
        found = design(pattern, options={"effort": "fast"})
        assert 0 < found.selected_count <= plain.selected_count
        check_channels(found)
        assert found.trace[-1].selected_count == found.selected_count
        bound = certify_layouts(pattern)
        assert found.selected_count <= bound.at_most
        assert (found.scores <= bound.best_scores).all()
        assert bound.bounds["correlations"] is None

    @pytest.mark.parametrize("geometry", ["hago", "elementwise"])
    def test_geometry_methods(self, geometry: str) -> None:
        scenario = room({"model": "pattern", "exponent": 2.0})
        start = design(scenario, selection="hrmc+", geometry="fixed")
        found = design(scenario, selection="hrmc+", geometry=geometry, options={"max_iterations": 3})
        assert (found.selected_count, found.weakest_score) > (start.selected_count, start.weakest_score)
        check_channels(found)

    def test_a_layout_for_many_draws(self) -> None:
        scenario = replace(
            Scenario.paper(devices=5, waveguides=2, antennas=2, seed=1),
            channel=Channel(models=(Pattern(2.0),)),
        )
        found = design(scenario, "airpass-lasting", options={"draws": 3, "sweeps": 1})
        check_channels(found)

    def test_maps_of_the_room(self) -> None:
        scenario = room({"model": "pattern", "exponent": 2.0})
        found = design(scenario, selection="hrmc", geometry="fixed")
        devices = scenario.devices
        gain = found.receive_gain(devices.x_m, devices.y_m, devices.z_m) * devices.gain**2
        np.testing.assert_allclose(scenario.budget * gain / scenario.weights**2, found.scores, rtol=1e-9)
        assert (found.mean_gain(devices.x_m, devices.y_m, devices.z_m) >= 0.0).all()


class TestSplit:
    DELTA = 0.6

    def scenario(self, **changes: Any) -> Scenario:
        split = {"power_split": "proportional", "power_split_delta": self.DELTA}
        return room(split | changes, feed=["left", "right", "right"])

    def test_channels_follow_the_formula(self) -> None:
        # Each antenna takes 0.36 of the power that is left, so that 0.64 pass it.
        plain = room(feed=["left", "right", "right"]).uplink.terms(LAYOUT) * math.sqrt(3)
        amplitude = 0.6 * np.array([1.0, 0.8, 0.64])
        shares = np.array([amplitude, amplitude[::-1], amplitude[::-1]])
        np.testing.assert_allclose(
            self.scenario().channels(LAYOUT), (shares[:, :, None] * plain).sum(axis=1), rtol=1e-12, atol=1e-15
        )
        assert (amplitude**2).sum() == pytest.approx(1.0 - 0.64**3)

    def test_one_antenna_that_takes_all_is_the_papers_model(self) -> None:
        plain = Scenario.paper(devices=4, waveguides=2, antennas=1, seed=1)
        layout = np.array([[3.0], [20.0]])
        for delta in (1.0, None):
            channel = Channel(power_split="proportional", power_split_delta=delta)
            found = replace(plain, channel=channel).channels(layout)
            np.testing.assert_array_equal(found, plain.channels(layout))

    def test_the_antenna_next_to_the_feed_has_an_equal_share_by_default(self) -> None:
        scenario = room({"power_split": "proportional"}, feed="left")
        assert scenario.to_dict()["channel"] == {"power_split": "proportional"}
        terms = room(feed="left").uplink.terms(LAYOUT)  # a third of the power leaves at each antenna
        expected = terms[:, 0] + math.sqrt(2 / 3) * terms[:, 1] + 2 / 3 * terms[:, 2]
        np.testing.assert_allclose(scenario.channels(LAYOUT), expected, rtol=1e-12, atol=1e-15)

    def test_derivative_by_taylor(self) -> None:
        check_derivative(self.scenario())

    def test_compiled_loops(self) -> None:
        loops = Loops(self.scenario(loss_db_per_m=0.5), 0.0)
        exact = np.abs(loops.beam.conj() @ (loops.scale * loops.scenario.channels(LAYOUT))) ** 2
        np.testing.assert_allclose(scores_at(loops.space, LAYOUT, loops.beam), exact, rtol=1e-12)
        loops.check_gradients()

    @pytest.mark.parametrize("changes", [{}, {"candidates_m": 0.25}])
    def test_designs_and_bounds(self, changes: Any) -> None:
        scenario = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=8.0, seed=3)
        channel = Channel(power_split="proportional", power_split_delta=0.5, **changes)
        scenario = replace(scenario, receiver=replace(scenario.receiver, feed="right"), channel=channel)
        found = design(scenario, options={"effort": "fast"})
        check_channels(found)
        assert found.trace[-1].selected_count == found.selected_count > 0
        bound = certify_layouts(scenario)
        assert found.selected_count <= bound.at_most
        assert (found.scores <= bound.best_scores).all()

    @pytest.mark.parametrize("geometry", ["hago", "elementwise"])
    def test_geometry_methods(self, geometry: str) -> None:
        scenario = self.scenario()
        start = design(scenario, selection="hrmc+", geometry="fixed")
        found = design(scenario, selection="hrmc+", geometry=geometry, options={"max_iterations": 2})
        check_channels(found)
        assert (found.selected_count, found.weakest_score) > (start.selected_count, start.weakest_score)

    @pytest.mark.parametrize("delta", [0.0, 1.1, "half"])
    def test_wrong_values(self, delta: Any) -> None:
        with pytest.raises(InvalidInput, match=r"channel\.power_split_delta"):
            room({"power_split": "proportional", "power_split_delta": delta}, feed="left")

    def test_feeds_in_the_centre_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"channel\.power_split.*receiver\.feed must be left or right"):
            room({"power_split": "proportional"}, feed="centre")


class TestBlockage:
    def test_channels_follow_the_drawn_lines(self) -> None:
        """u of device k from the stream (seed, 30, k), one number per waveguide and stretch."""
        lines = {
            k: np.random.default_rng(np.random.SeedSequence(5, spawn_key=(30, k))).random((3, 25))
            for k in range(5)
        }

        def factor(place: float, m: int, k: int) -> float:
            stretch = int(place // 0.5)
            distance = free_path(0.5 * stretch + 0.25, m, k)
            return 1.0 if lines[k][m, stretch] < math.exp(-0.3 * distance) else 0.2

        scenario = room(
            {"blockage_per_m": 0.3, "blockage_stretch_m": 0.5, "blockage_residual": 0.2, "seed": 5}
        )
        # Waveguides of up to 12 m have 24 stretches of 0.5 m and one beyond the end.
        np.testing.assert_allclose(scenario.channels(LAYOUT), with_factor(factor), atol=1e-12)

    def test_the_share_of_free_lines(self) -> None:
        scenario = Scenario.paper(devices=200, waveguides=5, antennas=5, seed=3)
        places = np.tile(np.linspace(0.5, 39.5, 40), (5, 1))
        blocked = replace(scenario, channel=Channel(blockage_per_m=0.1))
        free = np.abs(blocked.uplink.terms(places) / scenario.uplink.terms(places)) > 0.5
        probability = np.exp(-0.1 / np.abs(scenario.uplink.terms(places, 1)) * scenario.devices.gain)
        error = np.sqrt((probability * (1 - probability)).sum())
        assert abs(free.sum() - probability.sum()) < 4.0 * error
        power = blocked.uplink.mean_powers(places) / np.abs(scenario.uplink.terms(places)) ** 2
        np.testing.assert_allclose(power, probability, rtol=1e-9)

    @pytest.mark.parametrize(
        "options", [{"blockage_per_m": 0.0}, {"blockage_per_m": 0.3, "blockage_residual": 1.0}]
    )
    def test_without_blockage_it_is_the_papers_model(self, options: Any) -> None:
        found = room(options).channels(LAYOUT)
        np.testing.assert_allclose(found, room().channels(LAYOUT), rtol=1e-14)

    def test_compiled_loops(self) -> None:
        Loops(room({"blockage_per_m": 0.2, "blockage_residual": 0.1, "seed": 1}), 1e-7).check_values()

    def test_the_seed_stays_with_the_scenario(self, tmp_path: Path) -> None:
        scenario = Scenario.from_dict({"devices": {"seed": 7}, "channel": {"blockage_per_m": 0.1}})
        assert scenario.to_dict()["channel"]["seed"] == 7
        layout = scenario.uniform_layout()
        scenario.save(tmp_path / "room.toml")  # devices as lists, without their seed
        np.testing.assert_array_equal(
            Scenario.load(tmp_path / "room.toml").channels(layout), scenario.channels(layout)
        )

    def test_designs(self) -> None:
        scenario = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=8.0, seed=3)
        plain = design(scenario, options={"effort": "fast"})
        found = design(replace(scenario, channel=Channel(blockage_per_m=0.1)), options={"effort": "fast"})
        check_channels(found)
        assert found.trace[-1].selected_count == found.selected_count
        assert 0 < found.selected_count <= plain.selected_count
        with pytest.raises(InvalidInput, match=r"channel\.blockage_per_m = 0\.1 has no derivative"):
            design(found.scenario, "airpass")
        with pytest.raises(InvalidInput, match=r"channel\.blockage_per_m = 0\.1 is drawn for given devices"):
            design(found.scenario, "airpass-lasting")


class TestCylinders:
    SHAPES: ClassVar[dict[str, Any]] = {
        "x_m": [4.0, 7.5, 2.0],
        "y_m": [3.0, 4.0, 5.5],
        "radius_m": [0.6, 0.4, 0.9],
        "height_m": [1.8, 2.9, 2.0],
        "residual": 0.1,
    }

    def test_against_points_along_the_lines(self) -> None:
        receiver, devices = ROOM["receiver"], ROOM["devices"]
        seen = set()

        def factor(place: float, m: int, k: int) -> float:
            start = np.array([place, receiver["waveguide_y_m"][m], receiver["height_m"][m]])
            end = np.array([devices[axis][k] for axis in ("x_m", "y_m", "z_m")])
            points = start + np.linspace(0.0, 1.0, 20001)[:, None] * (end - start)
            blocked = False
            for x, y, radius, height in zip(*list(self.SHAPES.values())[:4], strict=True):
                inside = (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2 < radius**2
                blocked |= bool((inside & (points[:, 2] < height)).any())
            seen.add(blocked)
            return 0.1 if blocked else 1.0

        scenario = room({"model": "cylinders"} | self.SHAPES)
        np.testing.assert_allclose(scenario.channels(LAYOUT), with_factor(factor), atol=1e-12)
        assert seen == {False, True}

    def test_a_device_behind_a_pillar(self) -> None:
        # Antenna at (5, 0, 4), device at (5, 8, 0): at y = 4 the line is 2 m high.
        devices = {"x_m": [5.0], "y_m": 8.0, "gain": 1.0, "samples": 1}
        for height, left in ((1.9, 1.0), (2.1, 0.0)):
            channel = {"model": "cylinders", "x_m": [5.0], "y_m": [4.0], "radius_m": 0.1, "height_m": height}
            tables = {"receiver": {"waveguides": 1, "antennas": 1, "length_m": 10.0}, "devices": devices}
            blocked, free = Scenario.from_dict(tables | {"channel": channel}), Scenario.from_dict(tables)
            place = np.array([[5.0]])
            ratio = abs(blocked.channels(place)[0, 0] / free.channels(place)[0, 0])
            assert ratio == pytest.approx(left, abs=1e-8)

    def test_without_cylinders_it_is_the_papers_model(self) -> None:
        np.testing.assert_array_equal(room({"model": "cylinders"}).channels(LAYOUT), room().channels(LAYOUT))

    def test_designs_and_wrong_values(self) -> None:
        found = design(room({"model": "cylinders"} | self.SHAPES), options={"effort": "fast"})
        check_channels(found)
        for changes in (
            {"y_m": [1.0]},
            {"radius_m": [1.0]},
            {"height_m": 0.0},
            {"residual": 2.0},
            {"x_m": 3.0},
        ):
            with pytest.raises(InvalidInput, match=rf"channel\.{next(iter(changes))}"):
                room({"model": "cylinders"} | self.SHAPES | changes)


class TestRician:
    def test_channels_follow_the_formula(self) -> None:
        drawn = [
            np.random.default_rng(np.random.SeedSequence(4, spawn_key=(31, k))).random((2, 3, 6))
            for k in range(5)
        ]
        kappa = 2 * math.pi / 0.125

        def factor(place: float, m: int, k: int) -> complex:
            waves = [
                cmath.exp(2j * math.pi * phase + 1j * kappa * (2 * cosine - 1) * place)
                for phase, cosine in zip(drawn[k][0, m], drawn[k][1, m], strict=True)
            ]
            scatter = sum(waves) / math.sqrt(6) * cmath.exp(1j * kappa * free_path(place, m, k))
            return math.sqrt(2 / 3) + math.sqrt(1 / 3) * scatter

        options = {"rician_k_db": 10 * math.log10(2), "rician_waves": 6, "seed": 4}
        found = room(options).channels(LAYOUT)
        np.testing.assert_allclose(found, with_factor(factor), atol=1e-11)

    def test_much_line_of_sight_is_the_papers_model(self) -> None:
        found = room({"rician_k_db": 300.0}).channels(LAYOUT)
        np.testing.assert_allclose(found, room().channels(LAYOUT), rtol=1e-12)

    def test_the_mean_power_is_that_of_the_line_of_sight(self) -> None:
        scenario = Scenario.paper(devices=300, waveguides=4, antennas=1, seed=3)
        places = np.array([[3.0], [11.0], [20.0], [33.0]])
        faded = replace(scenario, channel=Channel(rician_k_db=0.0))
        ratio = np.abs(faded.uplink.terms(places) / scenario.uplink.terms(places)) ** 2
        # |f|^2 has the variance 3/4 for K = 1 and many waves.
        assert abs(ratio.mean() - 1.0) < 4.0 * math.sqrt(0.75 / ratio.size)

    def test_derivative_by_taylor(self) -> None:
        check_derivative(room({"rician_k_db": 3.0, "seed": 2}))

    def test_compiled_loops(self) -> None:
        loops = Loops(room({"rician_k_db": 3.0, "seed": 2}), 2e-3)
        loops.check_values()
        loops.check_gradients()

    def test_designs(self) -> None:
        scenario = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=8.0, seed=3)
        scenario = replace(scenario, channel=Channel(rician_k_db=5.0))
        for method, options in (("airpass-plus", {"effort": "fast"}), ("airpass", {})):
            found = design(scenario, method, options=options)
            check_channels(found)
            assert found.selected_count > 0
        with pytest.raises(InvalidInput, match=r"channel\.rician_k_db = 5: .* bounds over all layouts"):
            certify_layouts(scenario)


@dataclass(frozen=True)
class Fading(ChannelFactor):
    """A model with an option and a seed that are called as keys of the channel."""

    name = "fading"

    loss_db_per_m: float = 0.0
    seed: int | None = None

    def factor(self, room: Any, places: Real) -> Any:
        return np.ones((*places.shape, room.device_x.size))


@dataclass(frozen=True)
class Wrong(ChannelFactor):
    """A model with mistakes."""

    name = "wrong"

    kind: str = "shape"

    def factor(self, room: Any, places: Real) -> Any:
        shape = (*places.shape, room.device_x.size)
        values = {"shape": np.ones(places.shape), "nan": np.full(shape, np.nan), "text": "one"}
        return values.get(self.kind, np.ones(shape))


CHANNELS: list[dict[str, Any]] = [
    {"model": "pattern", "exponent": 2.0},
    {"models": [{"model": "pattern"}, {"model": "pattern"}]},
    {"loss_db_per_m": 0.08, "model": "pattern"},
    {"blockage_per_m": 0.1, "rician_k_db": 6.0, "rician_waves": 4},
    {"blockage_per_m": 0.0, "blockage_residual": 0.5},
    {"candidates_m": 0.1, "blockage_per_m": 0.1, "blockage_stretch_m": 0.5, "seed": 4},
]


class TestModels:
    def test_round_trip_through_files(self, tmp_path: Path) -> None:
        for channel in CHANNELS:
            scenario = room(channel)
            scenario.save(tmp_path / "room.toml")
            again = Scenario.load(tmp_path / "room.toml")
            assert again.to_dict() == scenario.to_dict()
            np.testing.assert_array_equal(again.channels(LAYOUT), scenario.channels(LAYOUT))
            found = design(scenario, selection="hrmc", geometry="fixed")
            found.save(tmp_path / "design.json")
            stored = load(tmp_path / "design.json")
            assert isinstance(stored, Design)
            assert stored.scenario.channel == scenario.channel

    def test_two_factors_are_multiplied(self) -> None:
        one, two = room({"model": "pattern"}), room({"models": [{"model": "pattern", "exponent": 0.5}] * 2})
        np.testing.assert_allclose(one.channels(LAYOUT), two.channels(LAYOUT), rtol=1e-12)
        np.testing.assert_allclose(one.uplink.derivative(LAYOUT), two.uplink.derivative(LAYOUT), rtol=1e-12)

    def test_the_command_line(self, run: Any) -> None:
        given = ("--set", "channel.model=pattern", "--set", "channel.exponent=2", "--method", "airpass")
        document = json.loads(run("design", *given, "--json", "-").out)
        assert document["scenario"]["channel"] == {"model": "pattern", "exponent": 2.0}

    @pytest.mark.parametrize(
        ("channel", "words"),
        [
            ({"model": "patern"}, ["channel.model", "'patern'", "pattern"]),
            ({"model": "blockage"}, ["channel.model", "'blockage'", "cylinders"]),
            ({"model": 3}, ["channel.model", "3", "pattern"]),
            ({"exponent": 1.0}, ["channel.exponent", "unknown", "model"]),
            ({"model": "pattern", "power": 1.0}, ["channel.power", "exponent", "rician_k_db"]),
            ({"model": "pattern", "exponent": -1.0}, ["channel.exponent", "-1", ">= 0"]),
            ({"model": "pattern", "exponent": "wide"}, ["channel.exponent", "wide", "number"]),
            ({"model": "pattern", "models": []}, ["channel.model", "channel.models"]),
            ({"models": [{"model": "pattern", "seed": 1}]}, ["channel.models[0].seed", "exponent"]),
            ({"models": [{"exponent": 1.0}]}, ["channel.models[0].model", "None", "pattern"]),
            ({"models": [3]}, ["channel.models[0]", "3", "table"]),
            ({"models": "pattern"}, ["channel.models", "'pattern'", "list"]),
            ("pattern", ["channel", "'pattern'", "table"]),
            ([3], ["channel", "3", "table"]),
            ({"power_split": "uneven"}, ["channel.power_split", "'uneven'", "equal, proportional"]),
            ({"power_split_delta": 0.3}, ["channel.power_split_delta", "channel.power_split = 'prop"]),
            ({"blockage_residual": 0.3}, ["channel.blockage_residual", "without channel.blockage_per_m"]),
            ({"blockage_stretch_m": 2.0}, ["channel.blockage_stretch_m", "without channel.blockage_per_m"]),
            ({"blockage_per_m": -1}, ["channel.blockage_per_m", "-1", ">= 0"]),
            ({"blockage_per_m": 0.1, "blockage_residual": 2}, ["channel.blockage_residual", "<= 1"]),
            ({"rician_waves": 4}, ["channel.rician_waves", "without channel.rician_k_db"]),
            ({"rician_k_db": "strong"}, ["channel.rician_k_db", "'strong'", "number"]),
            ({"rician_k_db": 3.0, "rician_waves": 0}, ["channel.rician_waves", "0", ">= 1"]),
            ({"subcarriers": 16}, ["channel.bandwidth_mhz", "missing", "16"]),
            ({"seed": -1}, ["channel.seed", "-1", ">= 0"]),
        ],
    )
    def test_mistakes_end_in_one_line(self, channel: Any, words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            room(channel)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)

    def test_an_option_with_the_name_of_a_key(self) -> None:
        path = f"{Path(__file__).resolve()}:Fading"
        with pytest.raises(InvalidInput, match=r"channel\.loss_db_per_m: .* \[\[channel\.models\]\]"):
            room({"model": path, "loss_db_per_m": 0.1})
        scenario = room({"models": [{"model": path, "loss_db_per_m": 0.1}], "loss_db_per_m": 0.2})
        assert scenario.channel.loss_db_per_m == 0.2
        assert Scenario.from_dict(scenario.to_dict()).to_dict() == scenario.to_dict()
        assert scenario.to_dict()["channel"] == {
            "loss_db_per_m": 0.2,
            "seed": 0,
            "models": [{"model": path, "loss_db_per_m": 0.1, "seed": 0}],
        }

    def test_seeds(self) -> None:
        for given, used in (({}, 7), ({"seed": 4}, 4)):
            channel = {"model": f"{Path(__file__).resolve()}:Fading", "blockage_per_m": 0.1} | given
            found = Scenario.from_dict({"devices": {"seed": 7}, "channel": channel}).channel
            assert found.seed == used
            assert [one.seed for one in found.factors] == [used, used]  # type: ignore[attr-defined]

    def test_parts_are_multiplied(self) -> None:
        both = room({"blockage_per_m": 0.2, "rician_k_db": 3.0, "model": "pattern", "loss_db_per_m": 0.4})
        expected = room({"loss_db_per_m": 0.4}).uplink.terms(LAYOUT)
        for part in ({"blockage_per_m": 0.2}, {"rician_k_db": 3.0}, {"model": "pattern"}):
            expected = expected * (room(part).uplink.terms(LAYOUT) / room().uplink.terms(LAYOUT))
        np.testing.assert_allclose(both.uplink.terms(LAYOUT), expected, rtol=1e-9, atol=1e-8)  # zero: -180 dB

    def test_only_a_channel_is_a_channel(self) -> None:
        with pytest.raises(InvalidInput, match=r"channel = .*must be an airpass\.Channel"):
            replace(room(), channel=Pattern(2.0))  # type: ignore[arg-type]

    @pytest.mark.parametrize("kind", ["shape", "nan", "text"])
    def test_what_a_model_returns_is_checked(self, kind: str) -> None:
        with pytest.raises(InvalidInput, match=r"'wrong': factor returned .* \(3, 3, 5\)"):
            replace(room(), channel=Channel(models=(Wrong(kind),))).channels(LAYOUT)

    def test_what_a_model_does_not_support_is_refused(self) -> None:
        scenario = replace(room(), channel=Channel(models=(Wrong("fine"),)))
        with pytest.raises(InvalidInput, match="no derivative: use airpass-plus"):
            design(scenario, "airpass", start_layout=LAYOUT, options={"selection": {"starts": 1}})
        with pytest.raises(InvalidInput, match="no derivative"):
            scenario.uplink.derivative(LAYOUT)
        with pytest.raises(InvalidInput, match="bounds over all layouts"):
            certify_layouts(scenario)
        pattern = room({"model": "pattern"})
        with pytest.raises(InvalidInput, match="tolerance_mm"):
            design(pattern, options={"tolerance_mm": 1.0})
