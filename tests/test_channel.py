"""Channels: known answers, derivatives, and agreement of the two models where they meet."""

import cmath
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airpass import design
from airpass.channel.colocated import line_array, plane_array
from airpass.channel.pass_uplink import PassUplink
from airpass.scenario import Receiver, Scenario
from taylor import remainder_slope


def one_device(x: float, y: float, **changes: float) -> PassUplink:
    values: Any = {"height": 4.0, "wavelength": 0.125, "refractive_index": 1.5, "path_gain": 1.0} | changes
    return PassUplink(
        device_x=np.array([x]),
        device_y=np.array([y]),
        gain=np.array([1.0]),
        waveguide_y=np.array([0.0]),
        **values,
    )


class TestPassUplink:
    def test_right_below_the_antenna(self) -> None:
        # Device at (2, 0), antenna at l = 2, height 4: D = 4 = 32 wavelengths, and the guide
        # adds 1.5*2 = 3 m = 24 wavelengths. Whole turns only, so g = 1/(sqrt(1)*4) exactly.
        g = one_device(2.0, 0.0).channels(np.array([[2.0]]))
        np.testing.assert_allclose(g, [[0.25]], atol=1e-15)

    def test_a_quarter_turn(self) -> None:
        # As above with lambda = 16: D = 4 m is a quarter turn, exp(-j pi/2) = -j; the guide's
        # 3 m are 3/16 of a turn.
        g = one_device(2.0, 0.0, wavelength=16.0).channels(np.array([[2.0]]))
        np.testing.assert_allclose(g, [[0.25 * cmath.exp(-2j * math.pi * 7 / 16)]], atol=1e-15)

    def test_two_antennas_add_with_equal_share_of_power(self) -> None:
        # Device in the middle, antennas 3 m to either side at height 4: both D = 5 (40 turns).
        # Guides of 1.5*2 = 3 m (24 turns) and 1.5*8 = 12 m (96 turns): in phase, 2/(sqrt(2)*5).
        g = one_device(5.0, 0.0).channels(np.array([[2.0, 8.0]]))
        np.testing.assert_allclose(g, [[math.sqrt(2) / 5]], atol=1e-14)

    def test_opposite_phases_cancel(self) -> None:
        # The second antenna moved symmetrically, and an index that puts half a turn between.
        uplink = one_device(5.0, 0.0, refractive_index=(0.125 / 2) / 6.0 + 1.0)
        assert abs(uplink.channels(np.array([[2.0, 8.0]]))[0, 0]) < 1e-12

    def test_distance_uses_every_coordinate(self) -> None:
        # dx = 2, dy = 3 - 0, a = 6: D = 7 (2, 3, 6, 7 is a Pythagorean quadruple).
        uplink = one_device(5.0, 3.0, height=6.0)
        assert math.isclose(abs(uplink.channels(np.array([[3.0]]))[0, 0]), 1 / 7)

    def test_the_first_waveguide_lies_at_zero(self) -> None:
        # eq. (2): lateral coordinate (m-1) d with m from one.
        assert Receiver(waveguides=3, spacing_m=2.5).waveguide_y.tolist() == [0.0, 2.5, 5.0]

    def test_gain_and_path_gain_scale_the_channel(self) -> None:
        scenario = Scenario.paper(devices=4, waveguides=2, antennas=3, seed=1)
        layout = scenario.uniform_layout()
        base = scenario.uplink
        assert isinstance(base, PassUplink)
        scaled = replace(base, gain=2.0 * base.gain, path_gain=3.0)
        np.testing.assert_allclose(scaled.channels(layout), 6.0 * base.channels(layout), rtol=1e-14)

    def test_shape_is_waveguides_by_devices(self) -> None:
        scenario = Scenario.paper(devices=7, waveguides=3, antennas=4)
        assert scenario.channels(scenario.uniform_layout()).shape == (3, 7)

    @pytest.mark.parametrize("k", [0, 3])
    @pytest.mark.parametrize(("m", "n"), [(0, 0), (1, 3), (2, 1)])
    def test_derivative_by_taylor(self, k: int, m: int, n: int) -> None:
        scenario = Scenario.paper(devices=4, waveguides=3, antennas=4, seed=2)
        layout = scenario.uniform_layout()
        derivative = scenario.uplink.derivative(layout)
        assert derivative.shape == (3, 4, 4)

        def moved(t: float) -> complex:
            shifted = layout.copy()
            shifted[m, n] += t
            return complex(scenario.uplink.channels(shifted)[m, k])

        assert 1.95 < remainder_slope(moved, complex(derivative[m, n, k]), 1e-3) < 2.05

    def test_a_position_moves_its_own_waveguide_only(self) -> None:
        # eq. (68)
        scenario = Scenario.paper(devices=4, waveguides=3, antennas=4, seed=2)
        layout = scenario.uniform_layout()
        shifted = layout.copy()
        shifted[1, 2] += 0.01
        change = scenario.uplink.channels(shifted) - scenario.uplink.channels(layout)
        assert (np.abs(change[[0, 2]]) == 0).all()
        assert (np.abs(change[1]) > 0).all()


class TestColocatedArray:
    def test_antennas_are_half_a_wavelength_apart_about_the_midpoint(self) -> None:
        scenario = Scenario.paper(waveguides=5, antennas=5)
        array = scenario.colocated(4)
        np.testing.assert_allclose(array.positions.mean(axis=0), [20.0, 4.0, 4.0])
        np.testing.assert_allclose(np.diff(array.positions[:, 0]), 0.0625)
        assert (array.positions[:, 1] == 4.0).all()

    @pytest.mark.parametrize(("axis", "column"), [("x", 0), ("y", 1), ("z", 2)])
    def test_orientation(self, axis: str, column: int) -> None:
        positions = line_array(np.array([1.0, 2.0, 3.0]), 3, 0.5, axis)
        np.testing.assert_allclose(positions[:, column], np.array([1.0, 2.0, 3.0])[column] + [-0.5, 0, 0.5])
        assert np.ptp(np.delete(positions, column, axis=1), axis=0).max() == 0

    @pytest.mark.parametrize("plane", ["xy", "xz", "yz"])
    @pytest.mark.parametrize("antennas", [1, 7, 25, 100])
    def test_planes_are_near_square_grids(self, plane: str, antennas: int) -> None:
        centre = np.array([20.0, 4.0, 4.0])
        positions = plane_array(centre, antennas, 0.0625, plane)
        assert positions.shape == (antennas, 3)
        assert len(np.unique(positions, axis=0)) == antennas
        (fixed,) = ("xyz".index(axis) for axis in set("xyz") - set(plane))
        assert (positions[:, fixed] == centre[fixed]).all()
        distances = np.linalg.norm(positions[:, None] - positions, axis=2)[~np.eye(antennas, dtype=bool)]
        if antennas > 1:
            assert distances.min() == pytest.approx(0.0625)
        rows, columns = (len(np.unique(positions[:, "xyz".index(axis)].round(9))) for axis in plane)
        assert abs(rows - columns) <= 1
        if "z" in plane:  # hangs below the ceiling
            assert positions[:, 2].max() == pytest.approx(4.0)
        else:
            full = positions[: (antennas // rows) * rows]
            np.testing.assert_allclose(full[:, 0].mean(), 20.0)

    def test_antennas_of_the_uniform_layout_with_a_chain_each(self) -> None:
        # Apart from the phase in the guide and the split of power among N antennas, the term of eq. (64).
        scenario = Scenario.paper(devices=6, waveguides=3, antennas=4, seed=4)
        found = design(scenario, "distributed-mn")
        layout = scenario.uniform_layout()
        guide = np.exp(2j * np.pi / 0.125 * 1.45 * layout)[:, :, None]
        terms = 2.0 * scenario.uplink.terms(layout) * guide
        np.testing.assert_allclose(found.channels, terms.reshape(12, 6), atol=1e-9)
        one_chain = design(scenario, "distributed-m")
        assert one_chain.layout is not None
        np.testing.assert_allclose(one_chain.layout, layout)

    def test_known_answer(self) -> None:
        # One antenna at (20, 4, 4), device right below: D = 4 m = 32 turns, so g = gamma/4.
        scenario = Scenario.from_dict(
            {"devices": {"x_m": [20.0], "y_m": [4.0], "gain": [0.8], "samples": [1]}}
        )
        np.testing.assert_allclose(scenario.colocated(1).channels(), [[0.2]], atol=1e-14)

    def test_equals_one_pinching_antenna_apart_from_the_guide(self) -> None:
        # N = 1 and M = 1, the antenna at the midpoint: same distance, plus the guide's phase.
        scenario = Scenario.paper(devices=6, waveguides=1, antennas=1, seed=4)
        guide = 2 * np.pi / 0.125 * 1.45 * 20.0
        np.testing.assert_allclose(
            scenario.channels(np.array([[20.0]])),
            scenario.colocated(1).channels() * np.exp(-1j * guide),
            atol=1e-11,
        )
