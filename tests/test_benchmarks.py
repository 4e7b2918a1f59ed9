"""The benchmarks compare like with like: the other sides solve the same problems."""

import json

import numpy as np
import pytest

from airpass import Scenario, aircomp
from airpass.optim.conic import LiftedProgram
from suite import page
from suite.geometry import Problem
from suite.limits import Step
from suite.measure import Comparison, Section, Table, duration, exponent, in_turn
from suite.selection import ClarabelProgram, CvxpyProgram
from suite.stage import stage


@pytest.mark.parametrize("program", [ClarabelProgram, CvxpyProgram])
@pytest.mark.parametrize("hard", [False, True])
def test_semidefinite_programs_agree(program: type[LiftedProgram], hard: bool) -> None:
    scenario = Scenario.paper(12, 4, 4, 5.0, 2000)
    effective = aircomp.effective_channels(
        scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget
    )
    # Two columns of length three fit together, whatever their angle.
    columns = 3.0 * effective[:, :2] / np.linalg.norm(effective[:, :2], axis=0) if hard else effective
    rng = np.random.default_rng(2000)
    beam = rng.standard_normal(4) + 1j * rng.standard_normal(4)
    beam /= np.linalg.norm(beam)
    cost = np.eye(4) - np.outer(beam, beam.conj())
    penalties = None if hard else rng.integers(0, 2, columns.shape[1]).astype(float)

    def value(kind: type[LiftedProgram]) -> float:
        found = kind(columns, hard=hard).solve(cost, penalties)
        assert found.feasible
        scores = np.einsum("ik,ij,jk->k", columns.conj(), found.matrix, columns).real
        if hard:
            assert scores.min() > 1.0 - 1e-5
        missing = 0.0 if penalties is None else float(penalties @ np.maximum(1.0 - scores, 0.0))
        return float(np.trace(cost @ found.matrix).real) + missing

    assert value(program) == pytest.approx(value(LiftedProgram), abs=1e-5)


@pytest.mark.parametrize("program", [LiftedProgram, ClarabelProgram, CvxpyProgram])
def test_all_of_them_see_that_nothing_fits(program: type[LiftedProgram]) -> None:
    columns = 0.1 * np.eye(3, dtype=np.complex128)
    assert not program(columns, hard=True).solve(np.eye(3, dtype=np.complex128)).feasible


def test_both_stages_minimise_the_same_objective() -> None:
    # From the same start, to nearly the same local minimum in most draws; never to another function's.
    reached = np.array(
        [(here.ours(), here.theirs()) for here in (stage(50, seed) for seed in range(2000, 2010))]
    )
    assert np.median(np.abs(reached[:, 0] / reached[:, 1] - 1.0)) < 0.05


def test_gradients_are_of_the_same_objective() -> None:
    problem = Problem(10, 5, 5)
    (value, gradient), (other_value, other) = (
        call(problem.layout) for call in (problem.ours(), problem.autograd())
    )
    assert value == pytest.approx(other_value, rel=1e-9)
    np.testing.assert_allclose(gradient, other, rtol=1e-7, atol=1e-9 * float(np.abs(other).max()))


def test_work_of_a_step_by_hand() -> None:
    # One image: convolutions 28x28x16x9 and 14x14x32x144, linear layers 1568x64 and 64x10; two operations a
    # product; forward and both gradients, but for the first layer, which has none in its input.
    first, others = 28 * 28 * 16 * 9, 14 * 14 * 32 * 144 + 1568 * 64 + 64 * 10
    assert Step("mnist-cnn", 1, 28, 1).operations() == 2 * (2 * first + 3 * others)


def test_ratios_are_of_pairs() -> None:
    found = Comparison("case", {"airpass": [1.0, 2.0, 4.0], "other": [10.0, 40.0, 20.0]}).ratios()
    assert found == {"other": (10.0, 5.0, 20.0)}


def test_sides_take_turns() -> None:
    calls: list[str] = []
    seconds = in_turn(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=3, at_least_s=0.0
    )
    assert calls == [*"aabb", *"ababab"]
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}


def test_exponent_and_duration() -> None:
    assert exponent([1, 10, 100], [3.0, 300.0, 30_000.0]) == pytest.approx(2.0)
    assert [duration(1.5), duration(0.0015), duration(1.5e-6), duration(1.5e-9)] == [
        "1.5 s",
        "1.5 ms",
        "1.5 µs",
        "1.5 ns",
    ]


def test_the_page_shows_ratio_and_range() -> None:
    comparison = Comparison("K = 50", {"airpass": [1.0, 1.0], "other": [40.0, 20.0]})
    section = Section("Title", "About.", [comparison], [Table("More", ("a",), [("b",)], "Note.")]).document()
    section |= {"took_s": 3, "measured": page.provenance()}
    text = page.markdown(json.loads(json.dumps({"sections": {"stage": section}})))
    assert "| K = 50 | 1 s | other | 30 s | **30** | 20 to 40 |" in text
    assert "Note." in text
    assert f"airpass {page.provenance()['versions']['airpass']}" in text
