"""Channel models for arrays without waveguides."""

import cmath
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Circle

from airpass import Channel, Design, InvalidInput, Scenario, design, load, tolerance
from airpass.channel.blockage import Cylinders
from airpass.channel.colocated import SHAPES
from airpass.channel.factor import ChannelFactor
from airpass.channel.factored import FactoredUplink
from airpass.channel.pattern import Pattern
from airpass.core.types import Complex, Real
from airpass.figures.room import draw_design

# Waveguides at y = 0, 2, ..., 8 m and 4 m above the floor; a device above them.
PLAIN = Scenario.paper(devices=9, waveguides=5, antennas=4, snr_db=12.0, seed=3)
PLAIN = replace(PLAIN, devices=replace(PLAIN.devices, z_m=np.array([0, 1.5, 0, 0, 6.0, 0, 0.5, 0, 2.0])))
PATTERN = Channel(models=(Pattern(2.0),))
BLOCKAGE = Channel(blockage_per_m=0.1, seed=1)
CYLINDERS = Channel(models=(Cylinders((17.0, 22.0), (3.8, 4.0), 0.8, 3.6),))
RICIAN = Channel(rician_k_db=3.0, seed=1)


def modelled(channel: Channel, scenario: Scenario = PLAIN) -> Scenario:
    return replace(scenario, channel=channel)


def factor_at(channel: Channel, points: Real, scenario: Scenario = PLAIN) -> Complex:
    """f of antennas at points, as the ratio of channels."""
    faded = modelled(channel, scenario).array_at(points).channels()
    ratio: Complex = faded / scenario.array_at(points).channels()
    return ratio


def device(k: int) -> tuple[float, float, float]:
    devices = PLAIN.devices
    return float(devices.x_m[k]), float(devices.y_m[k]), float(devices.z_m[k])


def points_of(shape: str) -> Real:
    return PLAIN.colocated(25, shape).positions


class TestLimits:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize(
        "channel",
        [
            Channel(blockage_per_m=0.0),
            Channel(blockage_per_m=0.2, blockage_residual=1.0),
            Channel(rician_k_db=300.0),
            Channel(models=(Pattern(0.0), Cylinders())),
        ],
    )
    def test_models_without_effect_are_the_plain_array(self, channel: Channel, shape: str) -> None:
        found = modelled(channel).colocated(25, shape).channels()
        np.testing.assert_allclose(found, PLAIN.colocated(25, shape).channels(), rtol=1e-12)

    def test_loss_split_and_places_leave_arrays_as_they_are(self) -> None:
        channel = Channel(loss_db_per_m=0.5, power_split="proportional", candidates_m=0.5)
        for shape in SHAPES:
            found = modelled(channel).colocated(25, shape).channels()
            np.testing.assert_array_equal(found, PLAIN.colocated(25, shape).channels())

    @pytest.mark.parametrize("channel", [PATTERN, BLOCKAGE, CYLINDERS])
    def test_antennas_on_waveguides_have_the_same_factor(self, channel: Channel) -> None:
        uplink = modelled(channel).uplink
        assert isinstance(uplink, FactoredUplink)
        layout = PLAIN.uniform_layout()
        y, z = np.repeat(PLAIN.receiver.waveguide_y, 4), np.full(20, 4.0)
        points = np.column_stack([layout.ravel(), y, z])
        expected = uplink.factor(layout).reshape(20, 9)
        found = modelled(channel).array_at(points).channels()
        np.testing.assert_array_equal(found, PLAIN.array_at(points).channels() * expected)


class TestPattern:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_formula(self, shape: str) -> None:
        points = points_of(shape)
        expected = [
            [max(point[2] - device(k)[2], 0.0) / math.dist(point, device(k)) for k in range(9)]
            for point in points.tolist()
        ]
        found = factor_at(PATTERN, points)
        np.testing.assert_allclose(found, np.maximum(expected, 1e-9), rtol=1e-12)  # zero: -180 dB
        above_the_device = points[:, 2] > 6.0
        assert (np.abs(found[~above_the_device, 4]) < 2e-9).all()
        assert (found[above_the_device, 4].real > 0.0).all()


class TestCylinders:
    def test_points_along_the_lines(self) -> None:
        """Sampled lines; a pillar under the middle of an array hides devices behind it."""
        points = points_of("xz")
        found = np.abs(factor_at(CYLINDERS, points)) > 0.5
        share = np.linspace(0.0, 1.0, 20001)[:, None]
        disputed = 0
        for i, k in np.ndindex(found.shape):
            line = points[i] + share * (np.array(device(k)) - points[i])
            depth = np.full(len(line), np.inf)
            for x, y in ((17.0, 3.8), (22.0, 4.0)):
                outside = np.hypot(line[:, 0] - x, line[:, 1] - y) - 0.8
                depth = np.minimum(depth, np.maximum(outside, line[:, 2] - 3.6))
            if abs(depth.min()) < 1e-3:
                disputed += 1
            else:
                assert found[i, k] == (depth.min() > 0.0)
        assert disputed < 5
        assert 0 < (~found).sum() < found.size


class TestBlockage:
    def expected(self, point: Any, k: int) -> float:
        """1 or 0.3, from the streams (5, 30, k) of waveguides and (5, 30, cube) elsewhere."""
        size = 0.8
        x, y, z = point
        m = min(range(5), key=lambda m: math.hypot(y - 2.0 * m, z - 4.0))
        if abs(y - 2.0 * m) <= size / 2 and abs(z - 4.0) <= size / 2:
            stretch = min(max(math.floor(x / size), 0), 50)
            u = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(30, k))).random((5, 51))
            drawn, middle = u[m, stretch], ((stretch + 0.5) * size, 2.0 * m, 4.0)
        else:
            cube = (math.floor(x / size), round(y / size), round(z / size))
            folded = [2 * i if i >= 0 else -2 * i - 1 for i in cube]
            seeds = np.random.SeedSequence(5, spawn_key=(30, *folded))
            drawn = np.random.default_rng(seeds).random(k + 1)[k]
            middle = ((cube[0] + 0.5) * size, cube[1] * size, cube[2] * size)
        return 1.0 if drawn < math.exp(-0.2 * math.dist(middle, device(k))) else 0.3

    def test_the_cells(self) -> None:
        rng = np.random.default_rng(2)
        points = rng.uniform([-3.0, -4.0, -1.0], [43.0, 12.0, 6.0], (150, 3))
        points[:50, 2] = rng.uniform(3.5, 4.5, 50)
        points[:50, 1] = 2.0 * rng.integers(0, 5, 50) + rng.uniform(-0.5, 0.5, 50)
        expected = [[self.expected(point, k) for k in range(9)] for point in points.tolist()]
        found = factor_at(
            Channel(blockage_per_m=0.2, blockage_stretch_m=0.8, blockage_residual=0.3, seed=5), points
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert 0.2 < (np.array(expected) < 1.0).mean() < 0.95

    def test_antennas_of_a_cell_are_blocked_together(self) -> None:
        # A cube around y = 5 m and z = 3 m, half-way between waveguides and below them, and its neighbour.
        rng = np.random.default_rng(1)
        scenario = Scenario.paper(devices=60, waveguides=5, antennas=4, seed=3)
        cube = rng.uniform([7.0, 4.51, 2.51], [8.0, 5.49, 3.49], (30, 3))
        found = factor_at(BLOCKAGE, cube, scenario)
        np.testing.assert_allclose(found, np.tile(found[:1], (30, 1)), rtol=1e-12)
        assert 0 < (np.abs(found[0]) > 0.5).sum() < 60
        others = [factor_at(BLOCKAGE, cube[:1] + by, scenario)[0] for by in np.eye(3)]
        for other in others:
            assert (np.abs(other - found[0]) > 0.5).any()

    def test_small_errors_of_positions_change_nothing(self) -> None:
        scenario = modelled(Channel(blockage_per_m=0.1))
        points = np.column_stack([[3.4, 20.6, 30.2], [2.0, 4.0, 8.0], [4.0, 4.0, 4.0]])
        moved = points + 0.005 * np.random.default_rng(0).standard_normal((3, 3))
        before, after = (factor_at(scenario.channel, at) for at in (points, moved))
        np.testing.assert_allclose(before, after, rtol=1e-12)

    def test_the_share_of_free_lines(self) -> None:
        """exp(-beta d) for independent cells, within four standard deviations (1 in 16 000)."""
        scenario = Scenario.paper(devices=400, waveguides=5, antennas=4, seed=3)
        grid = np.meshgrid(np.arange(0.5, 40.0, 2.0), [1.0, 3.0, 5.0, 7.0], [2.0, 3.0])
        points = np.column_stack([axis.ravel() for axis in grid])  # middles of cubes
        free = np.abs(factor_at(Channel(blockage_per_m=0.1, seed=8), points, scenario)) > 0.5
        devices = scenario.devices
        offsets = points[:, None] - np.column_stack([devices.x_m, devices.y_m, devices.z_m])
        probability = np.exp(-0.1 * np.linalg.norm(offsets, axis=2))
        error = math.sqrt((probability * (1.0 - probability)).sum())
        assert abs(free.sum() - probability.sum()) < 4.0 * error
        array = modelled(Channel(blockage_per_m=0.1), scenario).array_at(points)
        power = array.mean_powers() / np.abs(scenario.array_at(points).channels()) ** 2
        np.testing.assert_allclose(power, probability, rtol=1e-9)
        # Different cells are independent: the product of two centred draws has mean zero.
        centred = (free - probability) / np.sqrt(probability * (1.0 - probability))
        assert abs((centred[:-1] * centred[1:]).mean()) < 4.0 / math.sqrt(centred[1:].size)


class TestRician:
    def test_the_formula(self) -> None:
        kappa = 2 * math.pi / 0.125
        points = np.vstack([points_of("xz"), [[1.0, 17.0, 0.3], [38.0, -2.0, 4.0]]])
        found = factor_at(Channel(rician_k_db=10 * math.log10(2), rician_waves=6, seed=4), points)
        for k in range(9):
            drawn = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(31, k, 0))).random((3, 6))
            for i, point in enumerate(points.tolist()):
                scatter = 0j
                for phase, cosine, turn in drawn.T:
                    along = 2 * cosine - 1
                    across = math.sqrt(1 - along**2) * cmath.exp(2j * math.pi * turn)
                    path = along * point[0] + across.real * point[1] + across.imag * point[2]
                    scatter += cmath.exp(2j * math.pi * phase + 1j * kappa * path)
                scatter *= cmath.exp(1j * kappa * math.dist(point, device(k))) / math.sqrt(6)
                expected = math.sqrt(2 / 3) + math.sqrt(1 / 3) * scatter
                assert found[i, k] == pytest.approx(expected, abs=1e-10)

    def scatter(self, points: Real) -> Complex:
        """w exp(j kappa D) for a thousand devices."""
        scenario = Scenario.paper(devices=1000, waveguides=5, antennas=4, seed=3)
        return factor_at(Channel(rician_k_db=-300.0, seed=2), points, scenario)

    def test_the_mean_power_is_one(self) -> None:
        """|w|^2 has the variance 1 - 1/S; four standard deviations (1 in 16 000)."""
        points = np.array([[20.0, 4.0, 4.0], [3.0, 8.0, 3.5], [37.0, 0.0, 4.0]])
        power = np.abs(self.scatter(points)) ** 2
        assert (np.abs(power.mean(axis=1) - 1.0) < 4.0 * math.sqrt((1 - 1 / 16) / 1000)).all()
        np.testing.assert_array_equal(
            modelled(Channel(rician_k_db=3.0)).array_at(points).mean_powers(),
            np.abs(PLAIN.array_at(points).channels()) ** 2,
        )

    @pytest.mark.parametrize("direction", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8)])
    @pytest.mark.parametrize("wavelengths", [0.25, 0.5, 0.75, 3.0])
    def test_waves_are_coherent_over_an_array(self, direction: Any, wavelengths: float) -> None:
        """The correlation of w at distance d is sin(kappa d)/(kappa d), for all directions."""
        step = 0.125 * wavelengths * np.array(direction, dtype=float)
        points = np.array([20.0, 4.0, 4.0]) + np.array([0.0 * step, step])
        scenario = Scenario.paper(devices=1000, waveguides=5, antennas=4, seed=3)
        # Without the phase of the line of sight, which f contains.
        plain = scenario.array_at(points).channels()
        first, second = self.scatter(points) * (plain / np.abs(plain))
        kappa_d = 2 * math.pi * wavelengths
        expected = math.sin(kappa_d) / kappa_d
        assert abs((first.conj() * second).mean() - expected) < 4.0 / math.sqrt(1000)


@dataclass(frozen=True)
class Wall(ChannelFactor):
    """A wall of half the power, and what a wrong model returns."""

    name = "wall"

    x_m: float = 20.0
    wrong: bool = False

    def factor(self, room: Any, places: Real) -> Any:
        if self.wrong:
            return np.ones(3)
        behind = (places[:, :, None] < self.x_m) != (room.device_x < self.x_m)
        return np.where(behind, math.sqrt(0.5), 1.0)


class TestDesigns:
    def test_a_model_of_ones_own(self) -> None:
        points = points_of("x")
        behind = (points[:, :1] < 20.0) != (PLAIN.devices.x_m < 20.0)
        np.testing.assert_allclose(
            np.abs(factor_at(Channel(models=(Wall(),)), points)) ** 2, np.where(behind, 0.5, 1.0)
        )
        with pytest.raises(InvalidInput, match=r"'wall': point_factor .*\(25, 9\), antennas x devices"):
            factor_at(Channel(models=(Wall(wrong=True),)), points)

    def test_factors_are_multiplied(self) -> None:
        points = points_of("yz")
        both = modelled(Channel(rician_k_db=3.0, models=(Pattern(2.0),), seed=1)).array_at(points).channels()
        parts = factor_at(RICIAN, points) * factor_at(PATTERN, points)
        np.testing.assert_allclose(
            both, PLAIN.array_at(points).channels() * parts, rtol=1e-9, atol=1e-9
        )  # zero: -180 dB

    @pytest.mark.parametrize("method", ["mimo-m", "mimo-mn-plus", "distributed-mn"])
    def test_designs_and_files(self, method: str, tmp_path: Path) -> None:
        for channel in (PATTERN, BLOCKAGE, CYLINDERS, RICIAN):
            found = design(modelled(channel), method)
            assert found.array is not None
            channels = found.scenario.array_at(found.array).channels()
            np.testing.assert_array_equal(found.channels, channels)
            assert found.selected_count > 0
            found.save(tmp_path / "design.json")
            stored = load(tmp_path / "design.json")
            assert isinstance(stored, Design)
            np.testing.assert_allclose(stored.scores, found.scores, rtol=1e-12)
            np.testing.assert_array_equal(stored.channels, found.channels)

    @pytest.mark.parametrize("key", ["blockage_per_m=0.1", "rician_k_db=10", "model=pattern"])
    def test_the_command_line(self, run: Any, key: str, tmp_path: Path) -> None:
        path = tmp_path / "design.json"
        arguments = ("--set", f"channel.{key}", "--method", "mimo-mn-plus", "--json", path)
        assert run("design", *arguments, "--figure", tmp_path / "room.png").code == 0
        assert json.loads(path.read_text())["scenario"]["channel"]
        assert run("show", path).code == 0
        stored = load(path)
        assert isinstance(stored, Design)
        stored.scenario.save(tmp_path / "room.toml")
        assert stored.array is not None
        again = Scenario.load(tmp_path / "room.toml").array_at(stored.array).channels()
        np.testing.assert_array_equal(again, stored.channels)

    def test_maps_show_the_mean(self) -> None:
        found = design(modelled(Channel(blockage_per_m=0.1)), "mimo-m")
        plain = replace(found, scenario=PLAIN)
        x, y = np.array([20.0]), np.array([4.0])  # below the array, in the middle of the room
        ratio = found.mean_gain(x, y) / plain.mean_gain(x, y)
        assert ratio == pytest.approx(math.exp(-0.1 * math.hypot(4.0, 0.5)), rel=0.02)

    def test_errors_of_positions(self) -> None:
        found = design(modelled(Channel(rician_k_db=10.0, blockage_per_m=0.02)), "mimo-mn-plus")
        errors = tolerance(found, displacement_mm=0.01, draws=5)
        assert errors.nominal > 0
        assert errors.outcomes["as designed"].mean == errors.nominal


class TestPictures:
    def test_cylinders_and_places_are_drawn(self) -> None:
        channel = Channel(candidates_m=4.0, models=(Cylinders((5.0, 22.0), (3.0, 4.0), (0.8, 0.3)),))
        axes = draw_design(design(modelled(channel), "distributed-m")).axes[0]
        circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
        assert [(*circle.center, circle.radius) for circle in circles] == [(5.0, 3.0, 0.8), (22.0, 4.0, 0.3)]
        marked = [line for line in axes.lines if np.size(line.get_xdata()) == 11]
        assert len(marked) == 5
        assert np.ravel(marked[0].get_xdata()).tolist() == [4.0 * i for i in range(11)]
        legend = axes.get_legend()
        assert legend is not None
        assert {"obstacle", "place"} <= {text.get_text() for text in legend.get_texts()}

    def test_shadows_without_gain_do_not_set_the_scale(self) -> None:
        scenario = modelled(Channel(models=(Cylinders((20.0,), (4.0,), 0.5),)))
        image = draw_design(design(scenario, "distributed-m")).axes[0].images[0]
        lowest, highest = image.get_clim()
        assert highest - lowest <= 60.0  # twice the range of the shading
