"""HRMC: known answers, invariances, edge cases, and the devices it finds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpass import InvalidInput, Scenario, aircomp, select
from airpass.core.types import Complex
from airpass.selection import hrmc
from airpass.selection.base import dominant_eigenvector, random_beams
from airpass.selection.hrmc import Hrmc


def random_channels(seed: int, chains: int, count: int, scale: float = 1.0) -> Complex:
    rng = np.random.default_rng(seed)
    real, imaginary = rng.standard_normal((2, chains, count))
    return np.asarray(scale * (real + 1j * imaginary), dtype=np.complex128)


def overlap(beam: Complex, vector: Complex) -> float:
    """|cos| of the angle between a unit beam and a vector: one if they are parallel."""
    return float(abs(np.vdot(beam, vector)) / np.linalg.norm(vector))


class TestKnownAnswers:
    @given(st.integers(1, 8), st.integers(0, 2**32))
    def test_one_device_is_matched(self, chains: int, seed: int) -> None:
        channels = random_channels(seed, chains, 1)
        budget = float(1.5 / np.linalg.norm(channels) ** 2)
        picked = select(channels, [1.0], budget)
        assert overlap(picked.beam, channels[:, 0]) == pytest.approx(1.0, abs=1e-6)
        assert picked.scores[0] == pytest.approx(1.5, rel=1e-6)
        assert picked.selected_count == 1

    @pytest.mark.parametrize("strength", [0.9, 1.5])
    def test_orthogonal_devices_share_the_beam(self, strength: float) -> None:
        # K orthogonal channels of equal size: the best common score is Gamma s^2/K, reached with
        # equal shares. All K fit if that is >= 1; otherwise at least one is left out. (The
        # dominant eigenvector, one of the channels, is a stationary point: random starts leave it.)
        count = 4
        size = math.sqrt(count * strength)
        picked = select(size * np.eye(count), np.ones(count), 1.0, options={"starts": 32})
        if strength > 1:
            assert picked.selected_count == count
            np.testing.assert_allclose(picked.scores, strength, rtol=1e-2)
        else:
            assert picked.selected_count == count - 1

    def test_collinear_devices_all_follow_one_beam(self) -> None:
        # g_k = c_k g: the best beam is g/||g|| for all, and z_k = Gamma |c_k|^2 ||g||^2/phi^2.
        direction = random_channels(1, 5, 1)[:, 0]
        factors = np.array([0.5, 0.9, 1.1 * 1j, -2.0, 3.0])
        channels = direction[:, None] * factors
        budget = float(1.0 / np.linalg.norm(direction) ** 2)
        picked = select(channels, np.ones(5), budget)
        assert picked.selected.tolist() == [False, False, True, True, True]
        assert overlap(picked.beam, direction) == pytest.approx(1.0, abs=1e-6)

    def test_identical_devices_have_identical_scores(self) -> None:
        channel = random_channels(2, 4, 1)
        budget = float(0.5 / np.linalg.norm(channel) ** 2)
        picked = select(np.tile(channel, (1, 6)), np.full(6, 0.5), budget)
        np.testing.assert_allclose(picked.scores, 2.0, rtol=1e-6)
        assert picked.selected_count == 6

    def test_two_devices_at_an_angle(self) -> None:
        # Unit channels with |<g1, g2>| = c: the max-min beam bisects them, z = Gamma (1 + c)/2.
        c = 0.6
        channels = np.array([[1.0, c], [0.0, math.sqrt(1 - c**2)]])
        picked = select(channels, np.ones(2), 1.3)
        assert picked.selected_count == 2
        np.testing.assert_allclose(picked.scores, 1.3 * (1 + c) / 2, rtol=5e-3)


class TestInvariance:
    @given(st.integers(0, 2**32), st.floats(-math.pi, math.pi))
    def test_common_phase(self, seed: int, phase: float) -> None:
        channels = random_channels(seed, 4, 8)
        one = select(channels, np.ones(8), 0.3)
        other = select(channels * np.exp(1j * phase), np.ones(8), 0.3)
        assert other.selected_count == one.selected_count

    def test_scaling_channel_and_weight_together(self) -> None:
        # z depends on g_k/phi_k alone.
        channels = random_channels(3, 4, 8)
        factors = np.geomspace(1.0, 1000.0, 8)
        one = select(channels, np.ones(8), 0.3)
        other = select(channels * factors, factors, 0.3)
        np.testing.assert_allclose(other.scores, one.scores, rtol=1e-6)

    def test_same_seed_same_beam(self) -> None:
        channels = random_channels(4, 5, 20)
        first, again = (select(channels, budget=2.0, options={"starts": 5}, seed=3).beam for _ in range(2))
        np.testing.assert_array_equal(first, again)


class TestStarts:
    @pytest.mark.parametrize("seed", range(5))
    def test_more_starts_never_select_fewer(self, seed: int) -> None:
        scenario = Scenario.paper(30, 6, 4, 0.0, seed)
        channels = scenario.channels(scenario.uniform_layout())
        counts = [
            select(channels, scenario.weights, scenario.budget, options={"starts": starts}).selected_count
            for starts in (1, 4, 16)
        ]
        assert counts == sorted(counts)

    def test_threads_do_not_show(self) -> None:
        scenario = Scenario.paper(20, 5, 5, 5.0, 2000)
        channels = scenario.channels(scenario.uniform_layout())
        one, *others = (
            select(channels, scenario.weights, scenario.budget, options={"starts": 9, "threads": threads})
            for threads in (1, 2, 4)
        )
        for other in others:
            np.testing.assert_array_equal(other.beam, one.beam)
            assert other.work == one.work

    def test_more_starts_begin_with_the_same_ones(self) -> None:
        few, many = (random_beams(n, 3, np.random.default_rng(1)) for n in (2, 5))
        np.testing.assert_array_equal(few, many[:2])

    def test_the_first_start_is_the_dominant_eigenvector(self) -> None:
        effective = random_channels(5, 4, 9)
        start = dominant_eigenvector(effective)
        total = effective @ effective.conj().T
        assert np.vdot(start, total @ start).real == pytest.approx(np.linalg.eigvalsh(total)[-1])

    def test_random_beams_are_uniform_on_the_sphere(self) -> None:
        # E|m_i|^2 = 1/M with variance (M-1)/(M^2 (M+1)); 4 standard errors of the mean of n.
        n, size = 20_000, 4
        beams = random_beams(n, size, np.random.default_rng(0))
        np.testing.assert_allclose(np.linalg.norm(beams, axis=1), 1.0)
        error = 4 * math.sqrt((size - 1) / (size**2 * (size + 1)) / n)
        assert np.abs((np.abs(beams) ** 2).mean(axis=0) - 1 / size).max() < error


def test_reweighting_by_hand() -> None:
    # eq. (41) with beta = 10, eps_w = 0.1: at z = 1 the softplus violation is log(2)/10; far
    # above it vanishes, at z = 0 it is log(1 + e^10)/10.
    weights = np.empty(3)
    hrmc.reweights(np.array([1.0, 50.0, 0.0]), 10.0, 0.1, np.ones(3), weights)
    expected = [1 / (math.log(2) / 10 + 0.1), 10.0, 1 / (math.log1p(math.exp(10)) / 10 + 0.1)]
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


@given(st.integers(0, 2**32))
def test_consolidation_never_loses_devices(seed: int) -> None:
    """The accept rule (Alg. 1, line 14): with the margin stage all but off, no more are selected."""
    effective = random_channels(seed, 3, 10, 0.6)
    rng = np.random.default_rng(0)
    with_margin = Hrmc().search(effective, rng, print)
    # An active set of nobody but the feasible, at a temperature that makes the stage a no-op.
    without = Hrmc(margin=1e-12, margin_temperature=1e12).search(effective, rng, print)
    counts = [
        int(aircomp.selected(aircomp.scores(found.beam, effective)).sum()) for found in (with_margin, without)
    ]
    assert counts[0] >= counts[1]


def mean_count(**options: float) -> float:
    counts = []
    for seed in range(12):
        scenario = Scenario.paper(50, 10, 10, 0.0, seed)
        channels = scenario.channels(scenario.uniform_layout())
        counts.append(select(channels, scenario.weights, scenario.budget, options=options).selected_count)
    return float(np.mean(counts))


def test_the_active_set_takes_in_devices_below_the_threshold() -> None:
    # eq. (42): with a slow schedule, a wide margin recovers devices that a narrow one leaves out.
    slow = {"sharpness_growth": 1.5, "level_shrink": 1.5}
    assert mean_count(margin=0.5, **slow) > mean_count(margin=1e-9, **slow)


def test_reweighting_steers_the_search() -> None:
    # eq. (41): a huge floor makes all weights equal, and the beam another one.
    channels = random_channels(9, 5, 20, 0.5)
    weighted, equal = (
        select(channels, np.ones(20), 1.0, options={"reweight_floor": floor}).beam for floor in (0.01, 1e6)
    )
    assert abs(np.vdot(weighted, equal)) < 1 - 1e-6


def test_strong_channels_are_consolidated_as_well_as_weak_ones() -> None:
    # Scores scale with Gamma; far above the threshold the weakest must not fall behind.
    ratios = []
    for seed in range(6):
        scenario = Scenario.paper(10, 5, 5, 40.0, seed)
        channels = scenario.channels(scenario.uniform_layout())
        strong, stronger = (
            select(channels, scenario.weights, scenario.budget * factor) for factor in (1.0, 1e6)
        )
        ratios.append(stronger.weakest_score / (1e6 * strong.weakest_score))
    assert np.mean(ratios) > 0.85


class TestEdges:
    @pytest.mark.parametrize("chains", [1, 2, 6])
    @pytest.mark.parametrize("count", [1, 2, 30])
    def test_small_sizes(self, chains: int, count: int) -> None:
        picked = select(random_channels(0, chains, count), budget=0.5)
        assert np.linalg.norm(picked.beam) == pytest.approx(1.0)
        assert picked.scores.shape == (count,)

    @pytest.mark.parametrize(("snr_db", "expected"), [(-60.0, 0), (60.0, 50)])
    def test_hopeless_and_easy(self, snr_db: float, expected: int) -> None:
        scenario = Scenario.paper(50, 10, 10, snr_db, 1)
        picked = select(scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget)
        assert np.isfinite(picked.scores).all()
        assert picked.selected_count == expected
        if not expected:
            assert math.isnan(picked.denoising_factor)
            assert picked.weakest_score == picked.scores.max()

    def test_one_chain_selects_every_device_that_is_strong_enough(self) -> None:
        # With M = 1 the beam is a phase: z_k = Gamma |g_k|^2/phi_k^2 whatever it is.
        channels = random_channels(7, 1, 20)
        picked = select(channels, np.ones(20), 0.8)
        np.testing.assert_allclose(picked.scores, 0.8 * np.abs(channels[0]) ** 2, rtol=1e-12)

    def test_weights_spread_over_a_thousand(self) -> None:
        scenario = Scenario.paper(50, 10, 10, 5.0, 2)
        weights = np.geomspace(1.0, 1000.0, 50)
        weights /= weights.sum()
        picked = select(scenario.channels(scenario.uniform_layout()), weights, scenario.budget)
        # Light devices are far easier than heavy ones; all of the lightest half fit.
        assert picked.selected[:25].all()
        assert np.isfinite(picked.scores).all()

    def test_a_hundred_thousand_devices(self) -> None:
        # Work is counted, not timed: the number of passes over the data does not grow with K.
        picked = select(random_channels(8, 16, 100_000), np.ones(100_000), 0.05)
        assert 0 < picked.selected_count < 100_000
        assert picked.work["evaluations"] < 4_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"starts": 0}, ["starts", "0", ">= 1"]),
        ({"sharpness_growth": 1.0}, ["sharpness_growth", "> 1"]),
        ({"margin": 1.5}, ["margin", "1.5", "< 1"]),
        ({"level": 0.001}, ["level", "0.001", ">= 0.01"]),
        ({"no_such": 1}, ["no_such", "unknown", "sharpness"]),
        ({"starts": "many"}, ["starts", "many", "whole"]),
    ],
)
def test_bad_options(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        select(random_channels(0, 2, 3), budget=1.0, options=options)
    for word in words:
        assert word in str(caught.value)


def test_mean_devices_from_one_start() -> None:
    """K=50, M=N=10, uniform layout, 0 dB, 20 seeds that no setting was chosen on: at least 33."""
    counts = []
    for seed in range(20):
        scenario = Scenario.paper(50, 10, 10, 0.0, seed)
        picked = select(scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget)
        counts.append(picked.selected_count)
    assert np.mean(counts) >= 33


def test_a_limit_that_ends_the_homotopy_is_reported() -> None:
    channels = random_channels(0, 4, 12)
    assert select(channels, budget=1.0).status == "done"
    cut = select(channels, budget=1.0, options={"max_stages": 3, "starts": 2})
    assert cut.status == "stage limit in 2 of 2 starts"
