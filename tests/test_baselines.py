"""The schemes to compare with: each against known answers, an oracle or a theory of its own."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import InvalidInput, Scenario, aircomp, certify, design, select
from airpass.core.types import Complex, Real
from airpass.geometry.base import weakest_gain
from airpass.geometry.elementwise import Elementwise
from airpass.geometry.hago import Hago
from airpass.kernels.interrupts import current_flag
from airpass.optim import conic
from airpass.selection import certificate, exhaustive, random_beam, sdr_dc
from airpass.selection.base import random_beams
from airpass.selection.certificate import check_set, upper_bound


def columns_of(seed: int, size: int, count: int, scale: float = 1.0) -> Complex:
    rng = np.random.default_rng(seed)
    real, imaginary = rng.standard_normal((2, size, count))
    return np.asarray(scale * (real + 1j * imaginary), dtype=np.complex128)


def effective_of(scenario: Scenario) -> Complex:
    channels = scenario.channels(scenario.uniform_layout())
    return aircomp.effective_channels(channels, scenario.weights, scenario.budget)


class TestLiftedProgram:
    @pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
    @pytest.mark.parametrize("seed", range(4))
    def test_agrees_with_cvxpy(self, seed: int) -> None:
        """The same program written plainly in CVXPY and solved by another solver (Clarabel).

        Clarabel calls some of these "almost solved": it is right to about 1e-6.
        """
        cvxpy: Any = importlib.import_module("cvxpy")  # untyped
        size, count = 4, 9
        columns = columns_of(seed, size, count, 0.5)
        rng = np.random.default_rng(seed)
        beam = columns_of(seed + 50, size, 1)[:, 0]
        beam /= np.linalg.norm(beam)
        cost = np.eye(size) - np.outer(beam, beam.conj())
        penalties = rng.uniform(0.0, 2.0, count) * (rng.random(count) < 0.7)

        found = conic.LiftedProgram(columns).solve(cost, penalties)
        assert found.accurate
        matrix = found.matrix
        np.testing.assert_allclose(matrix, matrix.conj().T)
        assert np.trace(matrix).real == pytest.approx(1.0)
        assert np.linalg.eigvalsh(matrix).min() > -1e-6
        value = self.value(matrix, columns, cost, penalties)

        lifted = cvxpy.Variable((size, size), hermitian=True)
        scores = [cvxpy.real(cvxpy.trace(np.outer(h, h.conj()) @ lifted)) for h in columns.T]
        objective = cvxpy.real(cvxpy.trace(cost @ lifted)) + sum(
            p * cvxpy.pos(1 - z) for p, z in zip(penalties, scores, strict=True)
        )
        problem = cvxpy.Problem(
            cvxpy.Minimize(objective), [lifted >> 0, cvxpy.real(cvxpy.trace(lifted)) == 1]
        )
        problem.solve(solver=cvxpy.CLARABEL)
        assert value == pytest.approx(problem.value, abs=1e-5)
        # Strong duality: the multipliers prove the value.
        slack = cost - (columns * found.multipliers) @ columns.conj().T
        dual = found.multipliers.sum() + np.linalg.eigvalsh(slack)[0]
        assert dual == pytest.approx(value, abs=1e-5)

    @staticmethod
    def value(matrix: Complex, columns: Complex, cost: Complex, penalties: Real) -> float:
        scores = np.einsum("ik,ij,jk->k", columns.conj(), matrix, columns).real
        return float(np.trace(cost @ matrix).real + penalties @ np.maximum(1 - scores, 0))

    def test_a_warm_start_changes_nothing(self) -> None:
        columns = columns_of(1, 4, 8, 0.5)
        program = conic.LiftedProgram(columns)
        costs = [np.diag(np.arange(4.0)).astype(complex), np.eye(4, dtype=complex)[::-1].copy()]
        ones = np.ones(8)
        again = [program.solve(cost, ones) for cost in (*costs, costs[0])][-1]
        fresh = conic.LiftedProgram(columns).solve(costs[0], ones)
        assert self.value(again.matrix, columns, costs[0], ones) == pytest.approx(
            self.value(fresh.matrix, columns, costs[0], ones), abs=1e-6
        )

    @pytest.mark.parametrize(("strength", "feasible"), [(0.8, False), (1.2, True)])
    def test_hard_constraints(self, strength: float, feasible: bool) -> None:
        # Orthogonal columns of squared length n*strength: X = I/n is the fairest, with z = strength.
        found = conic.LiftedProgram(
            math.sqrt(3 * strength) * np.eye(3).astype(np.complex128), hard=True
        ).solve(np.zeros((3, 3), dtype=complex))
        assert found.feasible == feasible
        if feasible:
            assert np.diag(found.matrix).real.min() * 3 * strength >= 1 - 1e-6


class TestSdrDc:
    @pytest.mark.parametrize("search", sdr_dc.SEARCHES)
    def test_selects_everyone_when_all_fit(self, search: str) -> None:
        direction = columns_of(2, 4, 1)[:, 0]
        channels = direction[:, None] * np.array([1.0, 1.5j, -2.0])
        budget = float(1.2 / np.linalg.norm(direction) ** 2)
        picked = select(channels, np.ones(3), budget, "sdr-dc", options={"size_search": search})
        assert picked.selected_count == 3

    @pytest.mark.parametrize("seed", range(5))
    def test_close_to_exhaustive_on_small_cases(self, seed: int) -> None:
        scenario = Scenario.paper(9, 4, 4, 9.0, seed)
        channels = scenario.channels(scenario.uniform_layout())
        counts = {
            name: select(channels, scenario.weights, scenario.budget, name).selected_count
            for name in ("sdr-dc", "exhaustive")
        }
        assert counts["exhaustive"] - 2 <= counts["sdr-dc"] <= counts["exhaustive"]

    def test_bisection_finds_what_the_linear_search_finds(self) -> None:
        differences = []
        for seed in range(6):
            scenario = Scenario.paper(12, 4, 4, 8.0, seed)
            channels = scenario.channels(scenario.uniform_layout())
            counts = [
                select(
                    channels, scenario.weights, scenario.budget, "sdr-dc", options={"size_search": search}
                ).selected_count
                for search in sdr_dc.SEARCHES
            ]
            differences.append(counts[1] - counts[0])
        assert max(differences) <= 1
        assert np.mean(differences) < 0.5

    def test_time_limit_returns_the_best_so_far(self) -> None:
        scenario = Scenario.paper(40, 8, 5, 0.0, 1)
        picked = select(
            scenario.channels(scenario.uniform_layout()),
            scenario.weights,
            scenario.budget,
            "sdr-dc",
            options={"time_limit_s": 1e-6},
        )
        assert picked.status == "time limit"
        assert np.linalg.norm(picked.beam) == pytest.approx(1.0)
        assert picked.work["solves"] <= 3

    def test_progress_is_told(self) -> None:
        said: list[str] = []
        select(columns_of(3, 3, 6), budget=0.02, method="sdr-dc", report=said.append)
        assert any("dropping" in text for text in said)
        assert any("fitting" in text for text in said)


class TestMatchingPursuit:
    def test_first_device_is_the_strongest(self) -> None:
        # Two orthogonal devices of which one beam serves only one: the stronger is taken.
        picked = select(np.diag([1.0, 1.2]), np.ones(2), 1.0, "mp")
        assert picked.selected.tolist() == [False, True]

    @pytest.mark.parametrize("method", ["mp", "mp-backward"])
    def test_collinear_devices(self, method: str) -> None:
        channels = columns_of(4, 3, 1) * np.array([0.5, 1.1, 2.0])
        budget = float(1.0 / np.linalg.norm(columns_of(4, 3, 1)) ** 2)
        assert select(channels, np.ones(3), budget, method).selected.tolist() == [False, True, True]

    def test_refit_finds_the_common_beam_of_orthogonal_devices(self) -> None:
        # Three orthogonal devices of squared length 4: the common beam gives 4/3 >= 1 to each.
        assert select(2.0 * np.eye(3), np.ones(3), 1.0, "mp").selected_count == 3

    @pytest.mark.parametrize("method", ["mp", "mp-backward"])
    def test_every_scheduled_device_is_selected(self, method: str) -> None:
        for seed in range(10):
            scenario = Scenario.paper(30, 6, 5, 2.0, seed)
            picked = select(
                scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget, method
            )
            assert picked.selected_count >= picked.work.get("scheduled", picked.work.get("left", 0))


class TestExhaustive:
    def test_refuses_many_devices(self) -> None:
        with pytest.raises(InvalidInput, match=r"13 devices.*at most 12"):
            select(columns_of(0, 2, 13), budget=1.0, method="exhaustive")

    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_pair_margin_is_the_best_of_all_beams(self, seed: int, size: int) -> None:
        columns = columns_of(seed, size, 2)
        margin = exhaustive.pair_margin(columns[:, 0].copy(), columns[:, 1].copy())
        starts = random_beams(30, size, np.random.default_rng(0))
        _, found = exhaustive.best_beam(
            np.ascontiguousarray(columns.real),
            np.ascontiguousarray(columns.imag),
            starts,
            400,
            current_flag(),
        )
        assert found == pytest.approx(margin, rel=5e-3)
        assert found <= margin * (1 + 1e-9)

    @pytest.mark.parametrize("strength", [0.95, 1.05])
    def test_orthogonal_devices(self, strength: float) -> None:
        # As in the HRMC test, but exact: with Gamma s^2/K = strength all K fit if it is >= 1, else K-1.
        count = 5
        size = math.sqrt(count * strength)
        picked = select(size * np.eye(count), np.ones(count), 1.0, "exhaustive")
        assert picked.selected_count == (count if strength > 1 else count - 1)

    def test_nobody_feasible(self) -> None:
        picked = select(columns_of(5, 3, 4), np.ones(4), 1e-6, "exhaustive")
        assert picked.selected_count == 0


def test_random_beams_select_as_many_as_theory_says() -> None:
    """Mean over n seeds within 4 standard errors of sum_k (1 - 1/||h_k||^2)^(M-1)."""
    scenario = Scenario.paper(20, 4, 4, 6.0, 1)
    channels = scenario.channels(scenario.uniform_layout())
    n = 4000
    counts = np.array(
        [
            select(channels, scenario.weights, scenario.budget, "random", seed=seed).selected_count
            for seed in range(n)
        ]
    )
    expected = random_beam.expected_count(effective_of(scenario))
    assert 0.5 < expected < 19.5
    assert abs(counts.mean() - expected) < 4 * counts.std() / math.sqrt(n)


class TestElementwise:
    def test_one_device_one_antenna_ends_above_it(self) -> None:
        scenario = Scenario.from_dict(
            {
                "receiver": {"waveguides": 1, "antennas": 1},
                "devices": {"x_m": [31.234], "y_m": [2.0], "gain": [1.0], "samples": [1]},
            }
        )
        found = Elementwise().move(
            scenario,
            scenario.uniform_layout(),
            np.array([1.0 + 0j]),
            np.array([True]),
            np.random.default_rng(0),
        )
        assert found.layout[0, 0] == pytest.approx(31.234, abs=1e-3)

    def test_finds_what_a_ten_times_finer_grid_finds_for_one_antenna(self) -> None:
        scenario = Scenario.paper(5, 2, 2, 10.0, 3)
        layout = scenario.uniform_layout()
        beam = np.array([0.6, 0.8j])
        everyone = np.ones(5, dtype=bool)
        grid = np.arange(0.0, layout[0, 1] - 0.95, 0.0005)
        best = max(
            weakest_gain(scenario, np.array([[p, layout[0, 1]], layout[1]]), beam, everyone) for p in grid
        )
        method = Elementwise(max_sweeps=1)
        found = method.move(scenario, layout, beam, everyone, np.random.default_rng(0))
        # The sweep goes on to other antennas, so it can only end higher than the first move's best.
        assert found.objective[1] >= best * (1 - 1e-3)

    def test_climbs_higher_than_gradient_ascent_from_the_same_start(self) -> None:
        # The gradient climbs the nearest ripple; a search over the whole interval sees them all.
        ratios = []
        for seed in range(8):
            scenario = Scenario.paper(seed=seed)
            layout = scenario.uniform_layout()
            picked = select(scenario.channels(layout), scenario.weights, scenario.budget)
            by_search, by_gradient = (
                method.move(
                    scenario,
                    layout,
                    picked.beam,
                    np.ones(10, dtype=bool),
                    np.random.default_rng(0),
                ).objective[1]
                for method in (Elementwise(), Hago())
            )
            ratios.append(by_search / by_gradient)
        assert np.median(ratios) > 1

    def test_coarse_grids_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"step_wavelengths = 0\.2"):
            Elementwise(step_wavelengths=0.2)


class TestColocated:
    def test_arrays_have_the_sizes_of_the_paper(self) -> None:
        scenario = Scenario.paper(seed=1)
        for name, antennas in (("mimo-m", 5), ("mimo-mn", 25)):
            result = design(scenario, name)
            assert result.layout is None
            assert result.array is not None
            assert result.array.shape == (antennas, 3)
            assert result.beam.shape == (antennas,)

    def test_orientation_is_an_option(self) -> None:
        scenario = Scenario.paper(seed=1)
        along, across = (design(scenario, "mimo-m", options={"axis": axis}).array for axis in "xy")
        assert along is not None
        assert across is not None
        assert np.ptp(along[:, 0]) == pytest.approx(np.ptp(across[:, 1]))

    @pytest.mark.parametrize("seed", range(6))
    def test_a_whole_array_is_no_worse_than_a_part_of_it(self, seed: int) -> None:
        """True of the optimum, as unused antennas can get weight zero; with 16 starts HRMC keeps it."""
        scenario = Scenario.paper(50, 10, 10, -5.0, seed)
        channels = scenario.colocated(100).channels()
        part = channels[45:55]
        whole, some = (
            select(g, scenario.weights, scenario.budget, options={"starts": 16}).selected_count
            for g in (channels, part)
        )
        assert whole >= some


class TestCertificates:
    @settings(max_examples=25)
    @given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 7), st.floats(0.3, 1.5))
    def test_no_subset_beats_the_bound(self, seed: int, size: int, count: int, scale: float) -> None:
        effective = columns_of(seed, size, count, scale)
        certificate = upper_bound(effective)
        best = select(effective, np.ones(count), 1.0, "exhaustive")
        assert best.selected_count <= certificate.at_most <= count
        # The proof itself, checked by hand.
        able = np.linalg.norm(effective, axis=0) ** 2 >= 1
        y = certificate.multipliers
        assert ((y >= 0) & (y <= 1)).all()
        assert (y[~able] == 0).all()
        proof = (1 - y[able]).sum()
        if able.any():
            proof += np.linalg.eigvalsh((effective * y) @ effective.conj().T)[-1]
        assert certificate.at_most <= proof + 1e-6

    def test_tight_for_orthogonal_devices(self) -> None:
        # X = I/n gives each of n orthogonal columns of squared length s the score s/n, so for
        # s <= n the relaxed count is sum min(1, z) = s: at most floor(s) can be selected.
        for square in (1.5, 2.5, 3.0):
            certificate = upper_bound(math.sqrt(square) * np.eye(4).astype(np.complex128))
            assert certificate.bound == pytest.approx(square, abs=1e-5)
            assert certificate.at_most == math.floor(square)

    def test_a_careless_solver_cannot_make_the_bound_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # The bound holds for multipliers from 0 to 1. For three orthonormal columns y = 2 would give
        # 3 - 6 + 2 = -1 devices, although one beam serves one of them; y = 1 gives 1.
        class Careless:
            def __init__(self, columns: Complex) -> None:
                self.count = columns.shape[1]

            def solve(self, cost: Complex, penalties: Real) -> conic.LiftedSolution:
                return conic.LiftedSolution(cost, np.full(self.count, 2.0), True, True)

        monkeypatch.setattr(certificate, "LiftedProgram", Careless)
        found = upper_bound(np.eye(3, dtype=np.complex128))
        assert (found.multipliers <= 1).all()
        assert found.bound == pytest.approx(1.0)
        assert found.at_most == 1

    def test_nobody(self) -> None:
        assert certify(columns_of(1, 3, 5), np.ones(5), budget=1e-9).at_most == 0

    @settings(max_examples=25)
    @given(st.integers(0, 2**32), st.floats(0.4, 1.2))
    def test_a_proof_of_infeasibility_is_never_contradicted(self, seed: int, scale: float) -> None:
        effective = columns_of(seed, 3, 4, scale)
        check = check_set(effective, [0, 1, 2, 3])
        best = select(effective, np.ones(4), 1.0, "exhaustive")
        if check.verdict == "infeasible":
            assert best.selected_count < 4
            assert check.multipliers is not None
            top = np.linalg.eigvalsh((effective * check.multipliers) @ effective.conj().T)[-1]
            assert check.multipliers.sum() > top
        if check.verdict == "feasible":
            assert check.beam is not None
            assert aircomp.scores(check.beam, effective).min() >= 1
            assert best.selected_count == 4

    def test_both_verdicts_occur(self) -> None:
        verdicts = {check_set(columns_of(seed, 3, 4, 0.8), [0, 1, 2, 3]).verdict for seed in range(30)}
        assert {"feasible", "infeasible"} <= verdicts
