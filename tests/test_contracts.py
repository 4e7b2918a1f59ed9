"""Contracts of all registered methods. A new method is covered automatically."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import InvalidInput, Scenario, aircomp, certify, contracts, select, selection
from airpass.core.registry import Method, Report
from airpass.core.types import Complex, Mask, Real
from airpass.geometry.base import GeometryMethod, LayoutSearch
from airpass.selection.base import BeamSearch, SelectionMethod
from command_line import assert_refused

SELECTION = sorted(selection.METHODS.methods())
SLOW = ("airpass-plus", "airpass-sdr-dc", "elementwise", "sdr-dc")


def registered() -> list[Any]:
    """Every method; of designs, one seed is enough."""
    return [
        pytest.param(
            method, seed, id=f"{kind}-{name}-{seed}", marks=[pytest.mark.slow] if name in SLOW else []
        )
        for kind, known in contracts.KINDS.items()
        for name, method in known.methods().items()
        for seed in (contracts.SEEDS if kind != "design" else contracts.SEEDS[:1])
    ]


@pytest.mark.parametrize("check", contracts.CHECKS.values(), ids=contracts.CHECKS)
@pytest.mark.parametrize(("method", "seed"), registered())
def test_contract(check: Callable[[Method, int], None], method: Method, seed: int) -> None:
    check(method, seed)


def instance(seed: int, count: int = 9) -> tuple[Complex, Real, float]:
    scenario = Scenario.paper(count, 4, 3, 8.0, seed)
    return scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget


@pytest.mark.parametrize("method", SELECTION)
@pytest.mark.parametrize("seed", range(4))
class TestSelectionContract:
    def test_selected_means_a_score_of_one(self, method: str, seed: int) -> None:
        channels, weights, budget = instance(seed)
        picked = select(channels, weights, budget, method)
        expected = budget * np.abs(np.conj(picked.beam) @ channels) ** 2 / weights**2
        np.testing.assert_allclose(picked.scores, expected, rtol=1e-9)
        assert (picked.selected == (picked.scores >= 1)).all()

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


@pytest.mark.parametrize("method", SELECTION)
def test_one_device_one_chain(method: str) -> None:
    picked = select(np.array([[2.0j]]), [1.0], 0.5, method)
    assert picked.scores == pytest.approx([2.0])
    assert aircomp.selected(picked.scores).all()
