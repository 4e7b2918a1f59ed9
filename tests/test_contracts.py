"""Contracts of all registered selection and geometry methods. A new method is covered automatically."""

import numpy as np
import pytest

from airpass import Scenario, aircomp, certify, geometry, select, selection
from airpass.core.types import Complex, Real

SELECTION = sorted(selection.METHODS.methods())
GEOMETRY = sorted(geometry.METHODS.methods())


def instance(seed: int, count: int = 9) -> tuple[Complex, Real, float]:
    scenario = Scenario.paper(count, 4, 3, 8.0, seed)
    return scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget


@pytest.mark.parametrize("method", SELECTION)
@pytest.mark.parametrize("seed", range(4))
class TestSelectionContract:
    def test_unit_beam_and_selected_means_score_of_one(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        picked = select(channels, weights, budget, method)
        assert np.linalg.norm(picked.beam) == pytest.approx(1.0, abs=1e-12)
        expected = budget * np.abs(np.conj(picked.beam) @ channels) ** 2 / weights**2
        np.testing.assert_allclose(picked.scores, expected, rtol=1e-9)
        assert (picked.selected == (picked.scores >= 1)).all()
        assert picked.status

    def test_same_seed_same_answer(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        first, again = (select(channels, weights, budget, method, seed=seed) for _ in range(2))
        np.testing.assert_array_equal(first.beam, again.beam)

    def test_a_common_phase_changes_nothing(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        picked = select(channels, weights, budget, method)
        turned = select(channels * np.exp(0.7j), weights, budget, method)
        assert turned.selected_count == picked.selected_count

    def test_the_order_of_devices_does_not_matter(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        order = np.random.default_rng(seed).permutation(weights.size)
        picked = select(channels, weights, budget, method)
        shuffled = select(channels[:, order], weights[order], budget, method)
        assert shuffled.selected_count == picked.selected_count

    def test_never_above_exhaustive_nor_above_the_certificate(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        picked = select(channels, weights, budget, method)
        assert picked.selected_count <= select(channels, weights, budget, "exhaustive").selected_count
        assert picked.selected_count <= certify(channels, weights, budget=budget).at_most

    def test_the_input_is_left_alone(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        before = channels.copy(), weights.copy()
        select(channels, weights, budget, method)
        np.testing.assert_array_equal(channels, before[0])
        np.testing.assert_array_equal(weights, before[1])


@pytest.mark.parametrize("method", SELECTION)
def test_one_device_one_chain(method: str) -> None:
    picked = select(np.array([[2.0j]]), [1.0], 0.5, method)
    assert picked.scores == pytest.approx([2.0])
    assert aircomp.selected(picked.scores).all()


@pytest.mark.parametrize("method", GEOMETRY)
@pytest.mark.parametrize("seed", range(3))
class TestGeometryContract:
    def test_feasible_never_worse_and_repeatable(self, method: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        scenario = Scenario.paper(6, 3, 4, 10.0, seed)
        beam = rng.standard_normal(3) + 1j * rng.standard_normal(3)
        beam /= np.linalg.norm(beam)
        start = scenario.uniform_layout() + rng.uniform(-0.5, 0.5, (3, 4))
        before = start.copy()
        chosen = np.array([True, True, False, True, True, False])
        found = geometry.METHODS.resolve(method)
        first, again = (found.move(scenario, start, beam, chosen, np.random.default_rng(1)) for _ in range(2))
        layout = scenario.checked_layout(first.layout)
        np.testing.assert_array_equal(layout, again.layout)
        np.testing.assert_array_equal(start, before)
        gain = np.abs(np.conj(beam) @ scenario.channels(layout) / scenario.weights) ** 2
        assert first.objective[1] == pytest.approx(gain[chosen].min())
        assert first.objective[1] >= first.objective[0]
