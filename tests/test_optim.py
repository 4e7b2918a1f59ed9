"""The optimisation core: sphere, line search, schedules, soft minimum, conjugate gradient."""

import math
from collections.abc import Callable

import numpy as np
import pymanopt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError

from airpass.core.types import Complex, Real
from airpass.kernels import sums as lanes
from airpass.kernels.blocks import BLOCK, borrowed, part
from airpass.kernels.interrupts import current_flag
from airpass.kernels.jit import kernel
from airpass.optim import conjugate_gradient as cg
from airpass.optim import curvature, line_search, projections, schedules, sphere
from airpass.optim.objectives import Hill, Objective, Saturating, Softmin, evaluate, softmin
from taylor import remainder_slope


def random_complex(rng: np.random.Generator, *shape: int) -> Complex:
    values: Complex = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return values


def unit(vector: Complex) -> Complex:
    result: Complex = vector / np.linalg.norm(vector)
    return result


def project(point: Complex, vector: Complex) -> Complex:
    out = np.empty_like(vector)
    sphere.project(point, vector, out)
    return out


def retract(point: Complex, direction: Complex, step: float) -> Complex:
    out = np.empty_like(point)
    sphere.retract(point, direction, step, out)
    return out


class TestSphere:
    @given(st.integers(1, 20), st.integers(0, 2**32))
    def test_projection_is_tangent_and_idempotent(self, size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        point, vector = unit(random_complex(rng, size)), random_complex(rng, size)
        tangent = project(point, vector)
        assert abs(np.vdot(point, tangent).real) < 1e-12
        np.testing.assert_allclose(project(point, tangent), tangent, atol=1e-12)
        # What was taken away is normal: a real multiple of the point.
        np.testing.assert_allclose(vector - tangent, point * np.vdot(point, vector).real, atol=1e-12)

    @given(st.integers(1, 20), st.integers(0, 2**32), st.floats(-1e3, 1e3))
    def test_retraction_stays_on_the_sphere(self, size: int, seed: int, step: float) -> None:
        rng = np.random.default_rng(seed)
        point = unit(random_complex(rng, size))
        direction = project(point, random_complex(rng, size))
        moved = retract(point, direction, step)
        assert math.isclose(np.linalg.norm(moved), 1.0, rel_tol=1e-12)

    def test_retraction_follows_the_direction_to_first_order(self) -> None:
        rng = np.random.default_rng(1)
        point = unit(random_complex(rng, 6))
        direction = project(point, random_complex(rng, 6))
        probe = random_complex(rng, 6)  # the derivative of <probe, R(t d)> is <probe, d>

        def along(t: float) -> complex:
            return complex(np.vdot(probe, retract(point, direction, t)))

        assert 1.9 < remainder_slope(along, complex(np.vdot(probe, direction))) < 2.1

    def test_transport_lands_in_the_tangent_space(self) -> None:
        rng = np.random.default_rng(2)
        arrival, vector = unit(random_complex(rng, 5)), random_complex(rng, 5)
        carried = np.empty_like(vector)
        sphere.transport(arrival, vector, carried)
        assert abs(sphere.inner(arrival, carried)) < 1e-14

    def test_results_may_go_where_arguments_are(self) -> None:
        rng = np.random.default_rng(3)
        point, vector = unit(random_complex(rng, 5)), random_complex(rng, 5)
        tangent, moved = project(point, vector), retract(point, vector, 0.3)
        sphere.retract(point, vector, 0.3, point)
        np.testing.assert_array_equal(point, moved)
        point = unit(random_complex(np.random.default_rng(3), 5))
        sphere.project(point, vector, vector)
        np.testing.assert_array_equal(vector, tangent)


class TestLineSearch:
    def test_accepts_what_armijo_accepts(self) -> None:
        assert line_search.sufficient_decrease(1.0, 0.9, 0.5, -1.0)
        assert not line_search.sufficient_decrease(1.0, 1.0 - 1e-6, 0.5, -1.0)
        assert not line_search.sufficient_decrease(1.0, math.nan, 0.5, -1.0)

    def test_next_trial_is_the_minimum_of_the_parabola(self) -> None:
        # f(t) = 1 - t + 2 t^2 has its minimum at t = 1/4; tried at t = 1.
        assert math.isclose(line_search.next_trial(1.0, 2.0, 1.0, -1.0), 0.25)

    @given(st.floats(0.0, 1e6), st.floats(1e-9, 1e3), st.floats(1e-9, 1e6))
    def test_next_trial_is_a_bounded_cut(self, rise: float, step: float, steepness: float) -> None:
        cut = line_search.next_trial(1.0, 1.0 + rise, step, -steepness)
        assert 0.0999 * step <= cut <= 0.5001 * step

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_next_trial_recovers_from_overflow(self, bad: float) -> None:
        assert 0.0 < line_search.next_trial(1.0, bad, 1.0, -1.0) <= 0.5


class TestCurvature:
    """Steps on the quadratic function -x.Hx/2, whose gradient is -Hx."""

    @staticmethod
    def history(rng: np.random.Generator, size: int, memory: int, count: int) -> tuple[Real, curvature.Pairs]:
        root = rng.standard_normal((size, size))
        hessian = root @ root.T + np.eye(size)
        pairs = curvature.new_pairs(memory, size)
        for _ in range(count):
            old, new = rng.standard_normal((2, size))
            curvature.remember(pairs, old, new, -hessian @ old, -hessian @ new)
        return hessian, pairs

    @given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32))
    def test_direction_is_that_of_the_dense_update(
        self, size: int, memory: int, count: int, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        _, pairs = self.history(rng, size, memory, count)
        order = [index % memory for index in range(max(0, count - memory), count)]
        s, y = pairs.steps[order[-1]], pairs.changes[order[-1]]
        inverse = np.eye(size) * (s @ y) / (y @ y)
        for slot in order:  # Nocedal and Wright, eq. (6.17)
            s, y = pairs.steps[slot], pairs.changes[slot]
            left = np.eye(size) - np.outer(s, y) / (s @ y)
            inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
        vector = rng.standard_normal(size)
        expected = inverse @ vector
        curvature.newton_direction(pairs, vector)
        np.testing.assert_allclose(vector, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())

    @given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**32))
    def test_steps_are_inverse_curvatures(self, size: int, count: int, seed: int) -> None:
        hessian, pairs = self.history(np.random.default_rng(seed), size, 3, count)
        eigenvalues = np.linalg.eigvalsh(hessian)
        step = curvature.trial_step(pairs, 7.0)
        assert 1.0 / eigenvalues[-1] <= step * (1 + 1e-9)
        assert step <= (1 + 1e-9) / eigenvalues[0]
        s, y = (values[(count - 1) % 3] for values in (pairs.steps, pairs.changes))
        assert step == pytest.approx(s @ y / (y @ y) if count % 2 == 1 else s @ s / (s @ y))

    def test_a_step_without_curvature_is_forgotten(self) -> None:
        pairs = curvature.new_pairs(2, 2)
        assert curvature.trial_step(pairs, 7.0) == 7.0
        curvature.remember(pairs, np.zeros(2), np.ones(2), np.ones(2), np.zeros(2))
        assert curvature.trial_step(pairs, 7.0) == 1.0
        curvature.remember(pairs, np.zeros(2), np.ones(2), np.zeros(2), np.ones(2))  # convex
        assert curvature.trial_step(pairs, 7.0) == 7.0


def test_schedules_move_geometrically_and_stop_at_their_bound() -> None:
    sharpness, level = [10.0], [0.08]
    for _ in range(8):
        sharpness.append(schedules.grow(sharpness[-1], 2.0, 100.0))
        level.append(schedules.shrink(level[-1], 0.5, 0.01))
    assert sharpness == [10, 20, 40, 80, 100, 100, 100, 100, 100]
    assert level == [0.08, 0.04, 0.02, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01]


class TestLanes:
    @given(st.lists(st.floats(-1e6, 1e6), max_size=70))
    def test_sum_and_minimum(self, values: list[float]) -> None:
        x = np.array(values)
        scale = 1e-13 * float(np.abs(x).sum() if x.size else 0.0)
        assert abs(lanes.lane_sum(x) - math.fsum(values)) <= scale
        assert lanes.lane_min(x) == min(values, default=math.inf)

    @given(st.integers(0, 40), st.integers(0, 5), st.integers(0, 9), st.integers(0, 2**32))
    def test_product_sums(self, size: int, rows: int, shift: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        x, y = random_complex(rng, rows, shift + size + 3), random_complex(rng, size)
        parts = [np.ascontiguousarray(part).reshape(-1) for part in (x.real, x.imag, y.real, y.imag)]
        found = np.full(rows, 2.0 - 1.0j)
        lanes.add_lane_products(parts[0], parts[1], shift, x.shape[1], parts[2], parts[3], size, found)
        wanted = 2.0 - 1.0j + x[:, shift : shift + size] @ y
        assert np.all(np.abs(found - wanted) <= 1e-13 * (1.0 + size))

    def test_order_of_the_sum_is_fixed(self) -> None:
        # 1e16 swallows a 1 that is added to it alone. Lanes 0 and 4 meet first, then 0+4 and 1+5.
        values = np.zeros(9)
        values[0], values[4], values[1], values[8] = 1e16, -1e16, 1.0, 1.0
        assert lanes.lane_sum(values) == 2.0
        values[4], values[2] = 0.0, -1e16
        assert lanes.lane_sum(values) == 1.0

    def test_arrays_with_gaps_are_refused(self) -> None:
        with pytest.raises(TypingError, match="contiguous"):
            lanes.lane_sum(np.zeros(20)[::2])


@kernel
def twice(values: Real, start: int, stop: int) -> Real:
    view = part(borrowed(values), start, stop)
    for k in range(view.size):
        view[k] *= 2.0
    return view.copy()


class TestViews:
    def test_a_part_shares_memory(self) -> None:
        values = np.arange(7.0)
        np.testing.assert_array_equal(twice(values, 2, 5), [4.0, 6.0, 8.0])
        np.testing.assert_array_equal(values, [0.0, 1.0, 4.0, 6.0, 8.0, 5.0, 6.0])
        assert twice(values, 7, 7).size == 0

    def test_arrays_with_gaps_are_refused(self) -> None:
        with pytest.raises(TypingError, match="contiguous"):
            twice(np.zeros(20)[::2], 0, 3)


class TestSoftmin:
    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e3))
    def test_lies_below_the_minimum_by_at_most_t_log_k(self, values: list[float], temperature: float) -> None:
        x = np.array(values)
        weights = np.empty(x.size)
        value = softmin(x, temperature, weights)
        slack = 1e-9 * max(1.0, abs(x.min()))
        assert x.min() - temperature * math.log(x.size) - slack <= value <= x.min() + slack
        assert math.isclose(weights.sum(), 1.0, rel_tol=1e-12)
        assert (weights >= 0).all()

    def test_gradient_by_taylor(self) -> None:
        rng = np.random.default_rng(0)
        x, d = rng.uniform(0, 3, 12), rng.standard_normal(12)
        weights = np.empty(12)
        softmin(x, 0.3, weights)
        rate = float(weights @ d)
        assert remainder_slope(lambda t: softmin(x + t * d, 0.3, np.empty(12)), rate, 0.1) > 1.9

    def test_tends_to_the_minimum(self) -> None:
        # eq. (57): the gap to the minimum vanishes with the temperature.
        x = np.array([0.7, 0.9, 1.4])
        gaps = [x.min() - softmin(x, t, np.empty(3)) for t in (1.0, 0.1, 0.01)]
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] < 1e-9


class Problem:
    """A random instance of K columns in C^n, with the two objectives written plainly."""

    def __init__(self, size: int, count: int, seed: int, scale: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.columns = scale * random_complex(rng, size, count)
        self.re = np.ascontiguousarray(self.columns.real)
        self.im = np.ascontiguousarray(self.columns.imag)
        self.weights = rng.uniform(0.5, 2.0, count)
        self.start = unit(random_complex(rng, size))
        self.direction = project(self.start, random_complex(rng, size))

    def scores(self, beam: Complex) -> Real:
        values: Real = np.abs(self.columns.conj().T @ beam) ** 2
        return values

    def saturating(self, beam: Complex, sharpness: float, level: float) -> float:
        violation = np.logaddexp(0.0, sharpness * (1.0 - self.scores(beam))) / sharpness  # eq. (33)
        return float(np.sum(self.weights * (1.0 - np.exp(-violation / level))))  # eqs. (34), (35)

    def margin(self, beam: Complex, temperature: float) -> float:
        return float(temperature * np.logaddexp.reduce(-self.scores(beam) / temperature))  # -eq. (43)

    def value(self, objective: Objective, beam: Complex) -> float:
        if isinstance(objective, Softmin):
            return self.margin(beam, objective.temperature)
        assert isinstance(objective, Saturating)
        return self.saturating(beam, objective.sharpness, objective.level)

    def gradient(self, objective: Objective, beam: Complex) -> Complex:
        slopes = np.empty(self.weights.size)
        evaluate(objective, 0, self.scores(beam), slopes, np.empty(slopes.size))
        a = self.columns.conj().T @ beam
        result = np.empty_like(beam)
        parts = np.ascontiguousarray(a.real), np.ascontiguousarray(a.imag)
        projections.gradient(self.re, self.im, slopes, *parts, projections.new_scratch(slopes.size), result)
        return project(beam, result)

    def minimise(self, objective: Objective, iterations: int = 400, tolerance: float = 1e-12) -> cg.Minimum:
        return cg.minimise(
            self.re, self.im, objective, self.start, cg.Limits(3e-2, iterations, tolerance), current_flag()
        )

    def soft_count(self) -> Saturating:
        return Saturating(self.weights, 10.0, 0.08)


MakeObjective = Callable[[Problem], Objective]
OBJECTIVES = [
    pytest.param(Problem.soft_count, id="saturating-soft"),
    pytest.param(lambda problem: Saturating(problem.weights, 100.0, 0.01), id="saturating-sharp"),
    pytest.param(lambda problem: Softmin(0.3), id="softmin"),
    pytest.param(lambda problem: Softmin(0.01), id="softmin-cold"),
]


class TestConjugateGradient:
    @pytest.mark.parametrize("make", OBJECTIVES)
    @pytest.mark.parametrize("scale", [0.01, 0.3, 3.0])
    def test_values_match_the_formulas(self, make: MakeObjective, scale: float) -> None:
        problem = Problem(5, 30, 3, scale)
        objective = make(problem)
        got = evaluate(objective, 0, problem.scores(problem.start), np.empty(30), np.empty(30))
        assert math.isclose(got, problem.value(objective, problem.start), rel_tol=1e-10, abs_tol=1e-12)

    def test_the_surrogate_does_not_overflow(self) -> None:
        # At sharpness 1e4, exp(sharpness (1 - z)) is beyond floats; the violation is 1 - z itself.
        scores, slopes = np.array([0.0, 0.9, 2.0]), np.empty(3)
        value = evaluate(Saturating(np.ones(3), 1e4, 0.08), 0, scores, slopes, np.empty(3))
        kept = np.exp(-np.array([1.0, 0.1]) / 0.08)
        assert value == pytest.approx(np.sum(1 - kept), rel=1e-12)
        np.testing.assert_allclose(slopes, [*(-kept / 0.08), 0.0], rtol=1e-10, atol=1e-300)

    @pytest.mark.parametrize("make", OBJECTIVES)
    def test_sphere_gradients_by_taylor(self, make: MakeObjective) -> None:
        """Also proves the factor two of the Wirtinger convention in `sphere.slope`."""
        problem = Problem(5, 30, 4, 0.4)
        objective = make(problem)
        gradient = problem.gradient(objective, problem.start)
        rate = sphere.slope(problem.direction, gradient)
        assert abs(rate) > 1e-3

        def along(t: float) -> float:
            return problem.value(objective, retract(problem.start, problem.direction, t))

        assert 1.9 < remainder_slope(along, rate, 1e-3) < 2.1
        assert remainder_slope(along, rate / 2, 1e-3) < 1.1, "the halved gradient must fail"

    @pytest.mark.parametrize("make", OBJECTIVES)
    @pytest.mark.parametrize(
        ("size", "count"), [(1, 1), (1, 7), (4, 1), (3, 2), (10, 50), (4, 2 * BLOCK + 5)]
    )
    def test_ends_on_the_sphere_at_a_stationary_point_no_higher_than_the_start(
        self, make: MakeObjective, size: int, count: int
    ) -> None:
        problem = Problem(size, count, 5, 0.5)
        objective = make(problem)
        beam, value, *_ = problem.minimise(objective, 3000)
        assert math.isclose(np.linalg.norm(beam), 1.0, rel_tol=1e-10)
        assert math.isclose(value, problem.value(objective, beam), rel_tol=1e-8, abs_tol=1e-9)
        assert value <= problem.value(objective, problem.start) + 1e-12
        before = float(np.linalg.norm(problem.gradient(objective, problem.start)))
        after = np.linalg.norm(problem.gradient(objective, beam))
        assert after <= max(1e-2 * before, 1e-6)

    @given(st.integers(1, 8), st.integers(1, 20), st.integers(0, 2**32), st.integers(0, 60))
    def test_the_objective_never_rises(self, size: int, count: int, seed: int, iterations: int) -> None:
        problem = Problem(size, count, seed, 0.7)
        _, fewer, *_ = problem.minimise(problem.soft_count(), iterations)
        _, more, *_ = problem.minimise(problem.soft_count(), iterations + 7)
        assert more <= fewer

    def test_hill_functions_of_many_devices_are_summed_in_blocks(self) -> None:
        problem = Problem(3, 2 * BLOCK + 5, 8, 0.5)
        beam, value, *_ = problem.minimise(Hill(problem.weights, 1, 0.5))
        expected = np.sum(problem.weights / (0.5 + problem.scores(beam) ** 2))
        assert math.isclose(value, expected, rel_tol=1e-9)
        assert value < np.sum(problem.weights / (0.5 + problem.scores(problem.start) ** 2))

    def test_the_margin_of_one_column_is_reached_by_matching_it(self) -> None:
        # max |h^H m|^2 over the sphere is ||h||^2, by Cauchy and Schwarz.
        problem = Problem(6, 1, 6)
        beam, value, *_ = problem.minimise(Softmin(0.01))
        assert math.isclose(-value, np.linalg.norm(problem.columns) ** 2, rel_tol=1e-9)
        assert math.isclose(abs(np.vdot(beam, unit(problem.columns[:, 0]))), 1.0, rel_tol=1e-6)

    def test_operation_counts_do_not_creep_up(self) -> None:
        """Guards the algorithm's cost without a clock: evaluations per iteration stay near one."""
        problem = Problem(10, 50, 7, 0.5)
        _, _, iterations, evaluations, status = problem.minimise(problem.soft_count(), 400, 1e-6)
        assert status == cg.CONVERGED
        assert iterations <= 60
        assert evaluations <= 2 * iterations + 5

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize(("size", "count", "scale"), [(5, 20, 0.5), (10, 50, 0.35)])
    def test_surrogate_agrees_with_pymanopt(self, seed: int, size: int, count: int, scale: float) -> None:
        """Neither solver can improve on where the other ended, and from a start near a minimum
        both reach the same one. (From far away the two may fall into different minima.)
        """
        problem = Problem(size, count, seed, scale)
        ours, value, *_ = problem.minimise(problem.soft_count(), 5000)
        confirmed, _ = pymanopt_minimise(problem, ours)
        assert math.isclose(confirmed, value, rel_tol=1e-7)

        theirs_value, theirs = pymanopt_minimise(problem, problem.start)
        problem.start = unit(theirs)
        _, refined, *_ = problem.minimise(problem.soft_count(), 5000)
        assert math.isclose(refined, theirs_value, rel_tol=1e-7)

        noise = random_complex(np.random.default_rng(seed), size)
        problem.start = unit(ours + 0.02 * unit(noise))
        _, from_near, *_ = problem.minimise(problem.soft_count(), 5000)
        theirs_from_near, _ = pymanopt_minimise(problem, problem.start)
        assert math.isclose(from_near, theirs_from_near, rel_tol=1e-7)


def pymanopt_minimise(problem: Problem, start: Complex) -> tuple[float, Complex]:
    """The surrogate at (10, 0.08) minimised by pymanopt over the real sphere of 2n dimensions."""
    size = start.size
    manifold = pymanopt.manifolds.Sphere(2 * size)

    def to_complex(point: Real) -> Complex:
        joined: Complex = point[:size] + 1j * point[size:]
        return joined

    @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
    def cost(point: Real) -> float:
        return problem.saturating(to_complex(point), 10.0, 0.08)

    @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator]
    def euclidean_gradient(point: Real) -> Real:
        beam = to_complex(point)
        scores = problem.scores(beam)
        sigmoid = 1.0 / (1.0 + np.exp(-10.0 * (1.0 - scores)))
        violation = np.logaddexp(0.0, 10.0 * (1.0 - scores)) / 10.0
        alpha = problem.weights * np.exp(-violation / 0.08) / 0.08 * sigmoid  # below eq. (37)
        real = -2.0 * problem.columns @ (alpha * (problem.columns.conj().T @ beam))
        return np.concatenate([real.real, real.imag])

    solver = pymanopt.optimizers.ConjugateGradient(
        verbosity=0, min_gradient_norm=1e-9, max_iterations=2000, max_time=60
    )
    result = solver.run(
        pymanopt.Problem(manifold, cost, euclidean_gradient=euclidean_gradient),
        initial_point=np.concatenate([start.real, start.imag]),
    )
    return float(result.cost), to_complex(result.point)
