"""How much the solvers do: a guard against getting slower that no busy machine can upset.

Counts follow from seeds and strict arithmetic. They are bounds and not equalities, because the start of a
search is an eigenvector, whose last bits depend on the library of linear algebra. Where many searches are
summed a tenth is left for that; a long search that may take another turn gets half. When a change makes a
method do more on purpose, measure with `make bench` and move the bound.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from airpass import Scenario, design, select

Size = tuple[int, int, int, float]  # K, M, N, SNR in dB
SMALL: Size = (10, 5, 5, 10.0)
LARGE: Size = (50, 10, 10, 0.0)


def total(works: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(work[name] for work in works) for name in works[0]}


def check(found: Mapping[str, int], measured: Mapping[str, int], slack: float) -> None:
    for name, count in measured.items():
        assert 0 < found[name] <= slack * count, (name, found[name], count)


@pytest.mark.parametrize(
    ("method", "size", "measured"),
    [
        ("hrmc", SMALL, {"stages": 233, "iterations": 1603, "evaluations": 2591}),
        ("hrmc", LARGE, {"stages": 230, "iterations": 2598, "evaluations": 4363}),
        ("hrmc+", LARGE, {"iterations": 20360, "evaluations": 36736}),
        ("sdr-dc", SMALL, {"solves": 385}),
    ],
)
def test_selection(method: str, size: Size, measured: dict[str, int]) -> None:
    works = []
    for seed in range(2000, 2010):
        scenario = Scenario.paper(*size, seed)
        channels = scenario.channels(scenario.uniform_layout())
        works.append(select(channels, scenario.weights, scenario.budget, method).work)
    check(total(works), measured, 1.1)


@pytest.mark.parametrize(
    ("method", "size", "seeds", "measured"),
    [
        ("airpass", SMALL, 10, {"selection_evaluations": 45101, "geometry_evaluations": 35107}),
        ("airpass", LARGE, 3, {"selection_evaluations": 191858, "geometry_evaluations": 38397}),
        ("airpass-plus", SMALL, 3, {"sweeps": 118, "places": 20580, "ascent evaluations": 274}),
        ("airpass-plus", LARGE, 2, {"sweeps": 67, "places": 46895, "ascent evaluations": 250}),
    ],
)
def test_design(method: str, size: Size, seeds: int, measured: dict[str, int]) -> None:
    works = [design(Scenario.paper(*size, seed), method, seed=0).work for seed in range(2000, 2000 + seeds)]
    check(total(works), measured, 1.5)


def test_line_searches_begin_near_the_step_that_they_take() -> None:
    # Two objective evaluations an iteration at most: the first trial and now and then another one.
    works = []
    for seed in range(2000, 2010):
        scenario = Scenario.paper(*LARGE, seed)
        channels = scenario.channels(scenario.uniform_layout())
        works.append(select(channels, scenario.weights, scenario.budget).work)
    found = total(works)
    assert found["iterations"] < found["evaluations"] <= 2 * found["iterations"]


def test_many_devices_take_no_more_trials() -> None:
    # The gradient grows with the number of devices: first steps meant for dozens of them would be cut
    # back at the start of every stage, three evaluations an iteration instead of two.
    rng = np.random.default_rng(2000)
    channels = rng.standard_normal((16, 50_000)) + 1j * rng.standard_normal((16, 50_000))
    work = select(channels, np.ones(50_000), 0.5 / np.log(2.0)).work
    assert work["iterations"] < work["evaluations"] <= 2.3 * work["iterations"]
