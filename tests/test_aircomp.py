"""Over-the-air computation: formulas, their optimality, and a simulation of the signal."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpass import aircomp
from airpass.core.types import Complex, Mask, Real
from airpass.optim.ranking import rank


class Setting:
    """Random channels and powers in which the devices of the first half send."""

    def __init__(self, seed: int, chains: int = 4, count: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.channels: Complex = rng.standard_normal((chains, count)) + 1j * rng.standard_normal(
            (chains, count)
        )
        self.weights: Real = rng.uniform(0.1, 1.0, count)
        beam = rng.standard_normal(chains) + 1j * rng.standard_normal(chains)
        self.beam: Complex = beam / np.linalg.norm(beam)
        self.chosen: Mask = np.arange(count) < (count + 1) // 2
        self.power = float(rng.uniform(0.5, 2.0))
        self.noise = float(rng.uniform(0.01, 1.0))
        self.eta = aircomp.denoising_factor(self.beam, self.channels, self.weights, self.chosen, self.power)
        self.transmit = aircomp.transmit_scaling(
            self.beam, self.channels, self.weights, self.chosen, self.eta
        )

    def mse(self, transmit: Complex, eta: float) -> float:
        return aircomp.mse(self.beam, self.channels, self.weights, self.chosen, transmit, eta, self.noise)


seeds = st.integers(0, 2**32)


def test_budget() -> None:
    # P0 = 2, eps = 0.03, sigma^2 = 0.1: 2*0.03/0.1 = 0.6
    assert math.isclose(aircomp.budget(2.0, 0.03, 0.1), 0.6)


def test_scores_by_hand() -> None:
    # Gamma = 4, g = (3, 4j), phi = 2, m = (1, 0): z = 4*|3|^2/2^2 = 9; m = (0, 1): 4*16/4 = 16.
    channels = np.array([[3.0], [4.0j]])
    effective = aircomp.effective_channels(channels, np.array([2.0]), 4.0)
    assert aircomp.scores(np.array([1.0 + 0j, 0.0]), effective)[0] == pytest.approx(9.0)
    assert aircomp.scores(np.array([0j, 1.0]), effective)[0] == pytest.approx(16.0)


def test_scores_are_quadratic_forms() -> None:
    # eqs. (28), (31): z_k = m^H Q_k m with Q_k = Gamma/phi_k^2 g_k g_k^H, positive semidefinite.
    link = Setting(3)
    effective = aircomp.effective_channels(link.channels, link.weights, 0.7)
    for k, z in enumerate(aircomp.scores(link.beam, effective)):
        g = link.channels[:, k : k + 1]
        q = 0.7 / link.weights[k] ** 2 * (g @ g.conj().T)
        assert z == pytest.approx(np.vdot(link.beam, q @ link.beam).real)
        assert np.linalg.eigvalsh(q).min() > -1e-12


def test_violations_and_selection_agree() -> None:
    scores = np.array([0.0, 0.4, 1.0, 1.0 + 1e-12, 3.0])
    np.testing.assert_allclose(aircomp.violations(scores), [1.0, 0.6, 0.0, 0.0, 0.0])
    assert aircomp.selected(scores).tolist() == [False, False, True, True, True]


@given(seeds)
def test_the_scaling_aligns_every_sender_within_its_power(seed: int) -> None:
    link = Setting(seed)
    received = np.conj(link.beam) @ link.channels
    aligned = received * link.transmit / np.sqrt(link.eta)
    np.testing.assert_allclose(aligned[link.chosen], link.weights[link.chosen], rtol=1e-12)
    assert (link.transmit[~link.chosen] == 0).all()
    powers = np.abs(link.transmit[link.chosen]) ** 2
    assert powers.max() == pytest.approx(link.power)  # somebody is at the limit, eq. (21)
    # eq. (19) as printed
    printed = np.sqrt(link.eta) * link.weights * np.conj(received) / np.abs(received) ** 2
    np.testing.assert_allclose(link.transmit[link.chosen], printed[link.chosen], rtol=1e-12)


@given(seeds)
def test_the_general_error_at_the_optimum_is_the_short_formula(seed: int) -> None:
    # eq. (17) at the b_k of (19) and the eta of (21) equals eq. (22).
    link = Setting(seed)
    short = aircomp.optimal_mse(link.beam, link.channels, link.weights, link.chosen, link.power, link.noise)
    assert link.mse(link.transmit, link.eta) == pytest.approx(short, rel=1e-12)


@given(seeds, st.floats(0.5, 2.0))
def test_the_short_formula_does_not_depend_on_the_beams_length(seed: int, length: float) -> None:
    # eq. (22) is homogeneous of degree zero in m, which is why ||m|| = 1 loses nothing (27).
    link = Setting(seed)
    one, other = (
        aircomp.optimal_mse(beam, link.channels, link.weights, link.chosen, link.power, link.noise)
        for beam in (link.beam, length * link.beam)
    )
    assert one == pytest.approx(other, rel=1e-12)


@given(seeds, st.floats(0.05, 0.99))
def test_a_smaller_denoising_factor_is_worse(seed: int, shrink: float) -> None:
    link = Setting(seed)
    eta = shrink * link.eta
    transmit = aircomp.transmit_scaling(link.beam, link.channels, link.weights, link.chosen, eta)
    assert link.mse(transmit, eta) > link.mse(link.transmit, link.eta)


@given(seeds)
def test_threshold_on_scores_is_threshold_on_error(seed: int) -> None:
    # eqs. (22)-(24): MSE <= eps if and only if all senders have z_k >= 1 with Gamma = P0 eps/sigma^2.
    link = Setting(seed)
    error = aircomp.optimal_mse(link.beam, link.channels, link.weights, link.chosen, link.power, link.noise)
    for threshold in (0.999 * error, 1.001 * error):
        gamma = aircomp.budget(link.power, threshold, link.noise)
        effective = aircomp.effective_channels(link.channels, link.weights, gamma)
        feasible = aircomp.scores(link.beam, effective)[link.chosen].min() >= 1.0
        assert feasible == (error <= threshold)


@pytest.mark.parametrize("seed", range(4))
def test_simulated_error_matches_the_formula(seed: int) -> None:
    """Eqs. (13)-(16) simulated symbol by symbol, with misaligned scaling so that both terms count.

    The squared errors of n independent symbols have mean MSE; the sample mean must lie within
    4 standard errors (false alarm below 1e-4).
    """
    link = Setting(seed)
    rng = np.random.default_rng(100 + seed)
    n = 200_000
    count, chains = link.weights.size, link.beam.size
    transmit = link.transmit * np.exp(1j * rng.uniform(-0.3, 0.3, count))
    shape = (count, n)
    symbols = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / math.sqrt(2)
    noise = rng.standard_normal((chains, n)) + 1j * rng.standard_normal((chains, n))
    senders = link.chosen
    received = link.channels[:, senders] @ (transmit[senders, None] * symbols[senders])
    received = received + math.sqrt(link.noise / 2) * noise
    estimate = np.conj(link.beam) @ received / math.sqrt(link.eta)
    wanted = link.weights[senders] @ symbols[senders]
    squared = np.abs(estimate - wanted) ** 2
    standard_error = squared.std() / math.sqrt(n)
    assert abs(squared.mean() - link.mse(transmit, link.eta)) < 4 * standard_error


def test_nobody_sends() -> None:
    link = Setting(0)
    nobody = np.zeros(6, dtype=bool)
    eta = aircomp.denoising_factor(link.beam, link.channels, link.weights, nobody, link.power)
    assert math.isnan(eta)
    error = aircomp.optimal_mse(link.beam, link.channels, link.weights, nobody, link.power, link.noise)
    assert math.isnan(error)
    assert (aircomp.transmit_scaling(link.beam, link.channels, link.weights, nobody, eta) == 0).all()


class TestLink:
    """`aircomp.Link` is the formulas put together."""

    @given(seeds)
    def test_follows_from_the_formulas(self, seed: int) -> None:
        setting = Setting(seed)
        threshold = 0.4
        gamma = aircomp.budget(setting.power, threshold, setting.noise)
        link = aircomp.Link(setting.channels, setting.weights, setting.beam, gamma, setting.power, threshold)
        received = np.abs(np.conj(setting.beam) @ setting.channels)
        np.testing.assert_allclose(link.scores, gamma * (received / setting.weights) ** 2, rtol=1e-12)
        assert link.noise_power == pytest.approx(setting.noise)
        assert link.selected_count == int((link.scores >= 1.0).sum())
        if not link.selected_count:
            assert link.weakest_score == link.scores.max()
            assert math.isnan(link.mse)
            return
        assert link.weakest_score == link.scores[link.selected].min()
        # The error with the best scaling, by the general formula (17) and by eps/z of the weakest, eq. (23).
        general = aircomp.mse(
            link.beam,
            link.channels,
            link.weights,
            link.selected,
            link.transmit,
            link.denoising_factor,
            setting.noise,
        )
        assert link.mse == pytest.approx(general)
        assert link.mse == pytest.approx(threshold / link.weakest_score)
        signal = np.sum(link.weights[link.selected] ** 2)
        assert link.sdr_db == pytest.approx(10 * math.log10(signal * link.weakest_score / threshold))
        assert (np.abs(link.transmit) ** 2 <= link.power * (1 + 1e-12)).all()
        assert (link.transmit[~link.selected] == 0).all()

    def test_without_a_threshold_the_error_is_not_known(self) -> None:
        setting = Setting(1)
        link = aircomp.Link(setting.channels, setting.weights, setting.beam, 100.0)
        assert link.selected_count > 0
        assert link.noise_power is None
        assert math.isnan(link.mse)
        assert math.isnan(link.sdr_db)


def test_estimation_errors_have_the_stated_variance() -> None:
    # Entry errors are circular normal with variance 0.2 ||g_k||^2/M. Their mean square over n draws has
    # the relative standard error 1/sqrt(n M) per device; 5 of these for 6 devices (p < 1e-5).
    setting = Setting(2)
    rng = np.random.default_rng(0)
    draws = 4000
    errors = np.array(
        [aircomp.with_estimation_errors(setting.channels, 0.2, rng) - setting.channels for _ in range(draws)]
    )
    chains = len(setting.channels)
    expected = 0.2 * np.linalg.norm(setting.channels, axis=0) ** 2 / chains
    measured = np.mean(np.abs(errors) ** 2, axis=(0, 1))
    np.testing.assert_allclose(measured, expected, rtol=5 / math.sqrt(draws * chains))
    bound = 5 * np.sqrt(expected / draws).max()
    assert np.abs(errors.mean(axis=0)).max() < bound
    assert (aircomp.with_estimation_errors(setting.channels, 0.0, rng) == setting.channels).all()


def test_rank_by_hand() -> None:
    assert rank(np.array([0.5, 3.0, 1.0, 2.0])) == (3, 1.0)
    assert rank(np.array([0.5, 0.25])) == (0, 0.5)
