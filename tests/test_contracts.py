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


def failed(method: Any, kind: str | None = None) -> dict[str, str]:
    """The checks that a method does not pass, with the reasons."""
    found = contracts.check_method(contracts.resolve(method, kind))
    return {outcome.check: outcome.detail for outcome in found if not outcome.ok}


class TestWrongMethods:
    """Every check fails for a method that breaks its rule, and for no other reason."""

    def test_a_method_that_is_right(self) -> None:
        def first(effective: Complex, rng: np.random.Generator) -> Any:
            return effective[:, 0] + 1e-3 * rng.standard_normal(len(effective))

        assert failed(first, "selection") == {}

    def test_input_that_changes(self) -> None:
        def greedy(effective: Complex, rng: np.random.Generator) -> Any:
            effective /= 2.0
            return effective[:, 0]

        assert failed(greedy, "selection").keys() == {"input unchanged"}

    def test_random_numbers_from_elsewhere(self) -> None:
        def own(effective: Complex, rng: np.random.Generator) -> Any:
            return np.random.default_rng().standard_normal(len(effective))

        def of_all(effective: Complex, rng: np.random.Generator) -> Any:
            np.random.random()  # noqa: NPY002
            return effective[:, 0]

        assert failed(own, "selection").keys() == {"same seed, same result"}
        assert failed(of_all, "selection").keys() == {"only the given random numbers"}

    def test_output(self) -> None:
        def loud(effective: Complex, rng: np.random.Generator) -> Any:
            print("here")  # noqa: T201
            return effective[:, 0]

        assert failed(loud, "selection")["prints nothing"].startswith("it prints 'here")

    def test_sizes(self) -> None:
        def second(effective: Complex, rng: np.random.Generator) -> Any:
            return effective[:, 1]

        assert "K=1" in failed(second, "selection")["degenerate sizes"]

    def test_different_causes_are_all_given(self) -> None:
        calls = iter(range(1000))

        def fails_in_two_ways(effective: Complex, rng: np.random.Generator) -> Any:
            if next(calls) % 2:
                raise ValueError("odd")
            return np.zeros(7)  # of a wrong shape

        causes = [cause for cause in failed(fails_in_two_ways, "selection").values() if "as for" not in cause]
        assert len(causes) == 2
        assert "odd" in "".join(causes)

    def test_options(self) -> None:
        @dataclass(frozen=True)
        class Table(SelectionMethod):
            """A set is not plain data."""

            name = "table"

            places: Any = frozenset({1})

            def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
                return BeamSearch(effective[:, 0] / np.linalg.norm(effective[:, 0]))

        assert "number" in failed(Table())["options"]

    def test_layouts(self) -> None:
        class Worse(GeometryMethod):
            name = "worse"

            def move(
                self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: Any
            ) -> LayoutSearch:
                return LayoutSearch(scenario.uniform_layout(), (0.0, 1.0))

        class Infeasible(Worse):
            name = "infeasible"

            def move(
                self, scenario: Scenario, layout: Real, beam: Complex, devices: Mask, rng: Any
            ) -> LayoutSearch:
                return LayoutSearch(np.zeros_like(layout), (0.0, 1.0))

        assert re.search("weakest gain|objective", failed(Worse())["result"])
        assert "apart" in failed(Infeasible())["result"]

    def test_errors_have_their_place(self) -> None:
        def divides(effective: Complex, rng: np.random.Generator) -> Any:
            return 1 / 0

        reasons = failed(divides, "selection")
        reason = reasons.pop("result")
        assert reasons.keys() == contracts.CHECKS.keys() - {"result", "options"} | {"time"}
        assert set(reasons.values()) == {"as for result"}  # a cause is given once
        assert reason.startswith("ZeroDivisionError: division by zero (test_contracts.py, line ")


class TestCheckMethod:
    def test_a_method_that_is_right(self, run: Any) -> None:
        outcome = run("check-method", "hrmc", "--option", "starts=2")
        assert outcome.code == 0
        assert outcome.out.count("ok  ") == len(contracts.CHECKS) + 1
        assert "ms for" in outcome.out

    def test_a_function_in_a_file_that_is_wrong(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "mine.py"
        path.write_text("def mine(effective, rng):\n    effective *= 2\n    return effective[:, 0]\n")
        outcome = run("check-method", f"{path}:mine", "--kind", "selection")
        assert outcome.code == 1
        assert "FAILED  input unchanged" in outcome.out
        assert "Traceback" not in outcome.err
        assert_refused(run("check-method", f"{path}:mine"), "kind", "selection")
        assert_refused(run("check-method", f"{path}:mine", "--kind", "design", "--option", "a=1"), "option a")

    def test_what_cannot_be_checked(self, run: Any) -> None:
        assert_refused(run("check-method", "magic"), "magic", "hrmc")
        assert_refused(run("check-method", "none.py:Name"), "none.py")
        assert_refused(run("check-method", "hrmc", "--kind", "design"), "hrmc", "airpass")
        assert_refused(run("check-method", "hrmc", "--option", "warp=9"), "warp")

    def test_kinds(self) -> None:
        assert contracts.kind_of(contracts.resolve("hago")) == "geometry"
        assert contracts.kind_of(contracts.resolve("airpass")) == "design"
        with pytest.raises(InvalidInput, match="derived from"):
            contracts.resolve("pathlib:Path")
