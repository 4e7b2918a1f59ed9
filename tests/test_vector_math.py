"""The vectorising elementary functions against NumPy's."""

import numpy as np
import pytest

from airpass.core.types import Real
from airpass.kernels import math as vector_math
from airpass.kernels.jit import kernel


@kernel
def apply_exp(x: Real) -> Real:
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = vector_math.exp(x[i])
    return out


@kernel
def apply_log(x: Real) -> Real:
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = vector_math.log(x[i])
    return out


@kernel
def apply_cos_sin(x: Real) -> Real:
    out = np.empty((2, x.size))
    for i in range(x.size):
        out[0, i], out[1, i] = vector_math.cos_sin_turns(x[i])
    return out


def test_exp_is_accurate_over_its_range() -> None:
    x = np.linspace(-707.9, 708.9, 200_001)
    np.testing.assert_allclose(apply_exp(x), np.exp(x), rtol=5e-16)


def test_exp_saturates() -> None:
    x = np.array([-np.inf, -1e9, -708.1, 709.1, 1e9, np.inf, np.nan])
    np.testing.assert_array_equal(apply_exp(x), [0, 0, 0, np.inf, np.inf, np.inf, np.nan])


def test_log_is_accurate() -> None:
    x = np.concatenate([np.logspace(-300, 300, 100_001), 1 + np.linspace(-0.5, 0.5, 100_001)])
    np.testing.assert_allclose(apply_log(x), np.log(x), rtol=1e-15, atol=1e-17)


@pytest.mark.parametrize("span", [1.0, 1e3, 1e9])
def test_cos_sin_of_turns(span: float) -> None:
    turns = np.random.default_rng(0).uniform(-span, span, 100_000)
    fraction = turns - np.rint(turns)  # exact, so the reference loses nothing to large arguments
    expected = [np.cos(2 * np.pi * fraction), np.sin(2 * np.pi * fraction)]
    np.testing.assert_allclose(apply_cos_sin(turns), expected, atol=6e-16)


def test_cos_sin_of_quarter_turns() -> None:
    turns = np.array([0.0, 0.25, 0.5, 0.75, 1.0, -0.25])
    expected = [[1, 0, -1, 0, 1, 0], [0, 1, 0, -1, 0, -1]]
    np.testing.assert_allclose(apply_cos_sin(turns), expected, atol=2e-16)
