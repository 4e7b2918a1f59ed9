"""How much the solvers do: a guard against getting slower that no busy machine can upset.

Counts follow from seeds and strict arithmetic. They are bounds and not equalities, because the start of a
search is an eigenvector, whose last bits depend on the library of linear algebra; a tenth is left for that.
When a change makes a method do more on purpose, measure with `make bench` and move the bound.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from airpass import Scenario, design, select
from airpass.designs import joint
from airpass.optim import conjugate_gradient as cg

SEEDS = range(2000, 2010)


def total(works: list[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(work[name] for work in works) for name in works[0]}


def selections(method: str, size: tuple[int, int, int, float], **options: Any) -> dict[str, int]:
    works = []
    for seed in SEEDS:
        scenario = Scenario.paper(*size, seed)
        channels = scenario.channels(scenario.uniform_layout())
        works.append(select(channels, scenario.weights, scenario.budget, method, options=options).work)
    return total(works)


def at_most(found: Mapping[str, int], measured: Mapping[str, int]) -> None:
    assert found.keys() == measured.keys()
    for name, count in measured.items():
        assert 0 < found[name] <= 1.1 * count, (name, found[name], count)


@pytest.mark.parametrize(
    ("size", "measured"),
    [
        ((10, 5, 5, 10.0), {}),
        ((50, 10, 10, 0.0), {}),
    ],
)
def test_hrmc(size: tuple[int, int, int, float], measured: dict[str, int]) -> None:
    at_most(selections("hrmc", size), measured)
