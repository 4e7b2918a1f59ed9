"""The error threshold as a signal-to-distortion ratio: the formulas of docs/concepts/error-scale.md."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import error_scale
from airpass import Link, Weighting
from airpass.core.types import Real
from airpass.scenario.weights import NORMALISATIONS

EPS = error_scale.THRESHOLD
seeds = st.integers(0, 2**32)
counts = st.lists(st.integers(1, 10_000), min_size=1, max_size=100).map(lambda n: np.array(n, float))


def random_link(normalisation: str, samples: Real, seed: int, chains: int = 4) -> Link:
    """Random channels and beam, all devices selected, MSE equal to the threshold."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((2, chains, samples.size + 1))
    channels, beam = np.split(drawn[0] + 1j * drawn[1], [samples.size], axis=1)
    unit = beam[:, 0] / np.linalg.norm(beam)
    link = Link(channels, Weighting(normalisation).weights(samples), unit, 1.0, 1.0, EPS)
    budget = (1.0 + 1e-12) / float(link.scores.min())
    return Link(channels, link.weights, unit, budget, 1.0, EPS)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@given(samples=counts, seed=seeds)
@settings(max_examples=50)
def test_the_ratio_at_the_threshold(normalisation: str, samples: Real, seed: int) -> None:
    link = random_link(normalisation, samples, seed)
    assert link.selected.all()
    assert link.mse == pytest.approx(EPS, rel=1e-9)
    assert link.sdr_db == pytest.approx(
        error_scale.limit_sdr_db(normalisation, samples, EPS), rel=1e-9, abs=1e-8
    )


@pytest.mark.parametrize("devices", error_scale.DEVICES)
def test_equal_counts_by_hand(devices: int) -> None:
    samples = np.full(devices, 60_000 / devices)
    expected = {"share": 1 / devices, "energy": 1.0, "count": 60_000**2 / devices}
    for name, power in expected.items():
        found = error_scale.limit_sdr_db(name, samples, EPS)
        assert found == pytest.approx(10 * math.log10(power / EPS), abs=1e-9)


def test_the_numbers_on_the_page() -> None:
    # 1/(10 * 0.03) = 3.33, 1/(50 * 0.03) = 0.667, 1/0.03 = 33.3, 60,000^2/(10 * 0.03) = 1.2e10
    def ratio(name: str, devices: int) -> float:
        return round(error_scale.limit_sdr_db(name, np.full(devices, 60_000 / devices), EPS), 1)

    assert (ratio("share", 10), ratio("share", 50)) == (5.2, -1.8)
    assert (ratio("energy", 10), ratio("energy", 50)) == (15.2, 15.2)
    assert (ratio("count", 10), ratio("count", 50)) == (100.8, 93.8)


@given(samples=counts)
@settings(max_examples=50)
def test_energy_is_share_with_another_threshold(samples: Real) -> None:
    # Only eps/phi_k^2 enters the scores: energy at eps is share at eps (1 + c^2)/K.
    spread = 1.0 + np.var(samples) / np.mean(samples) ** 2
    energy, share = (Weighting(name).weights(samples) for name in ("energy", "share"))
    np.testing.assert_allclose(EPS / energy**2, EPS * spread / samples.size / share**2, rtol=1e-9)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("samples", [np.full(10, 6000.0), np.arange(100.0, 900.0, 40.0)])
def test_transmitted_symbols_have_the_ratio(normalisation: str, samples: Real) -> None:
    """Within twice the half-width of the 95 % interval, 3.92 standard errors (false alarm below 1e-4)."""
    link = random_link(normalisation, samples, 7)
    found, half = error_scale.measured_sdr_db(link, 20_000, np.random.default_rng(8))
    assert half < 0.1
    assert abs(found - error_scale.limit_sdr_db(normalisation, samples, EPS)) < 2.0 * half


@pytest.mark.parametrize("normalisation", ["share", "energy"])
def test_a_part_of_the_devices(normalisation: str) -> None:
    # Sum_S phi_k^2 over the error; the guaranteed ratio falls with the part of the power that is selected.
    link = random_link(normalisation, np.full(10, 1.0), 3)
    half = Link(link.channels, link.weights, link.beam, link.budget / np.median(link.scores), 1.0, EPS)
    assert half.selected_count == 5
    guaranteed = error_scale.limit_sdr_db(normalisation, np.full(10, 1.0), EPS) + 10 * math.log10(0.5)
    assert half.sdr_db == pytest.approx(guaranteed + 10 * math.log10(half.weakest_score))
    found, width = error_scale.measured_sdr_db(half, 20_000, np.random.default_rng(9))
    assert abs(found - half.sdr_db) < 2.0 * width


@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
def test_power_of_correlated_symbols(correlation: float) -> None:
    """Sum phi^2 + rho ((sum phi)^2 - sum phi^2), within 4 standard errors (false alarm below 1e-4)."""
    rng = np.random.default_rng(11)
    weights = Weighting("share").weights(np.arange(1.0, 11.0))
    drawn = rng.standard_normal((2, weights.size + 1, 20_000)) / math.sqrt(2.0)
    unit = drawn[0] + 1j * drawn[1]
    symbols = math.sqrt(correlation) * unit[-1] + math.sqrt(1.0 - correlation) * unit[:-1]
    powers = np.abs(weights @ symbols) ** 2
    own = float(np.sum(weights**2))
    expected = own + correlation * (float(weights.sum()) ** 2 - own)
    assert abs(powers.mean() - expected) < 4.0 * powers.std() / math.sqrt(powers.size)


def test_the_stored_measurements_agree() -> None:
    # Of 125 independent 95 % intervals, 88 % or fewer contain the value with a probability below 0.002.
    rows = error_scale.rows()
    assert {tuple(row[name] for name in error_scale.KEYS) for row in rows} == {
        tuple(key.values()) for key in error_scale.wanted_rows()
    }
    gaps = [abs(float(row["measured_db"]) - float(row["expected_db"])) for row in rows]
    inside = [gap <= float(row["half_width_db"]) for gap, row in zip(gaps, rows, strict=True)]
    assert np.mean(inside) > 0.88
