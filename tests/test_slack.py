"""The slack map: always feasible, invertible, and with the right derivative."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from airpass.geometry import slack
from airpass.scenario import Receiver, Scenario
from taylor import remainder_slope

shapes = st.tuples(st.integers(1, 5), st.integers(2, 9))
raws = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(-800.0, 800.0)))


@given(raws, st.floats(0.0, 2.0), st.floats(0.0, 50.0))
def test_any_input_is_feasible(raw: np.ndarray, gap: float, free_length: float) -> None:
    waveguides, antennas = raw.shape[0], raw.shape[1] - 1
    length = free_length + (antennas - 1) * gap
    layout = slack.positions(raw, np.full(waveguides, free_length), gap)
    tolerance = 1e-12 * max(1.0, length)
    assert np.isfinite(layout).all()
    assert layout.min() >= 0.0
    assert layout.max() <= length + tolerance
    if antennas > 1:
        assert np.diff(layout, axis=1).min() >= gap - tolerance


@given(shapes, st.integers(0, 2**32), st.floats(0.0, 2.0), st.floats(0.1, 50.0))
def test_inverse_round_trips(shape: tuple[int, int], seed: int, gap: float, free_length: float) -> None:
    rng = np.random.default_rng(seed)
    free = np.full(shape[0], free_length)
    layout = slack.positions(rng.normal(0.0, 2.0, shape), free, gap)
    raw = slack.invert(layout, free, gap)
    np.testing.assert_allclose(slack.positions(raw, free, gap), layout, rtol=1e-9, atol=1e-9 * free_length)


def test_equal_raw_numbers_give_the_uniform_layout() -> None:
    scenario = Scenario.paper(waveguides=3, antennas=6)
    receiver = scenario.receiver
    layout = slack.positions(np.full((3, 7), 0.3), receiver.free_length, receiver.min_gap_m)
    np.testing.assert_allclose(layout, scenario.uniform_layout(), rtol=1e-14)
    np.testing.assert_allclose(
        slack.invert(scenario.uniform_layout(), receiver.free_length, receiver.min_gap_m), 0.0, atol=1e-12
    )


def test_by_hand() -> None:
    # N = 2, T = 6, gap 1; r = (log 2)(1, 2, 3) after softplus, so q = (1/6, 2/6, 3/6):
    # l_1 = 6/6 = 1, l_2 = 6*3/6 + 1 = 4.
    raw = np.log(np.expm1(math.log(2) * np.array([[1.0, 2.0, 3.0]])))
    np.testing.assert_allclose(slack.positions(raw, np.array([6.0]), 1.0), [[1.0, 4.0]])


@pytest.mark.parametrize(
    ("raw", "boundary"),
    [
        ([-30.0, 1.0, 1.0, 1.0], "start"),
        ([1.0, 1.0, 1.0, -30.0], "end"),
        ([1.0, -30.0, 1.0, 1.0], "gap"),
    ],
)
def test_boundaries_are_approached_but_not_crossed(raw: list[float], boundary: str) -> None:
    layout = slack.positions(np.array([raw]), np.array([10.0]), 0.5)[0]
    distance = {"start": layout[0], "end": 11.0 - layout[-1], "gap": layout[1] - layout[0] - 0.5}[boundary]
    assert 0.0 <= distance < 1e-11


def test_boundary_layouts_invert_to_nearby_ones() -> None:
    # Antennas packed at the start: every slack but the last is zero.
    packed = np.array([[0.0, 0.5, 1.0]])
    free_length = np.array([10.0])
    back = slack.positions(slack.invert(packed, free_length, 0.5), free_length, 0.5)
    np.testing.assert_allclose(back, packed, atol=1e-7)


def test_no_room_leaves_one_layout() -> None:
    receiver = Receiver(waveguides=2, antennas=5, length_m=3.8, min_gap_m=0.95)
    np.testing.assert_allclose(receiver.free_length, 0.0, atol=1e-12)
    free_length = np.zeros(2)
    layout = slack.positions(np.random.default_rng(0).normal(size=(2, 6)), free_length, 0.95)
    np.testing.assert_allclose(layout, [[0.0, 0.95, 1.9, 2.85, 3.8]] * 2)
    raw = slack.invert(layout, free_length, 0.95)
    assert np.isfinite(raw).all()


def test_chain_rule_by_taylor() -> None:
    rng = np.random.default_rng(5)
    raw, direction = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    outer = rng.normal(size=(3, 5))  # a function with known gradient: sum outer * layout
    free_length = np.array([5.0, 20.0, 31.0])
    gradient = np.empty_like(raw)
    slack.raw_gradient(raw, free_length, outer, gradient)

    def along(t: float) -> float:
        return float(np.sum(outer * slack.positions(raw + t * direction, free_length, 0.7)))

    assert 1.95 < remainder_slope(along, float(np.sum(gradient * direction)), 0.1) < 2.05
