"""When the conic solver breaks down: no errors, nothing on standard output, and Ctrl-C is not lost."""

import sys
from typing import Any

import numpy as np
import pytest

from airpass import certify, select
from airpass.optim.conic import LiftedProgram


def linear(scale: float, spread: float = 0.0) -> Any:
    """Channels that are nearly multiples of each other."""
    rng = np.random.default_rng(1)
    first, other = rng.standard_normal((2, 3, 5)) + 1j * rng.standard_normal((2, 3, 5))
    return scale * (first[:, :1] + spread * other)


@pytest.mark.parametrize("spread", [0.0, 1e-12])
def test_nearly_linear_channels(spread: float) -> None:
    """The solver gives wrong answers here; `eigh` of these raised LinAlgError."""
    found = select(linear(1e9, spread), budget=1.0, method="sdr-dc", options={"max_iterations": 3})
    assert found.selected_count == 5
    assert "inaccurate" in found.status
    assert certify(linear(1e9, spread), budget=1.0).at_most == 5


class Broken:
    """A solver that prints, and returns what it is given."""

    def __init__(self, status: str, value: float) -> None:
        self.status, self.value = status, value

    def update(self, **_: Any) -> None:
        pass

    def solve(self, warm_start: bool) -> dict[str, Any]:
        sys.stdout.write("Failure:" + self.status)
        return {
            "info": {"status": self.status},
            "x": np.full(5, self.value),
            "y": np.full(4 + 4 + 9, self.value),
        }


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("status", "value"), [("failure", np.nan), ("unbounded", 1.0), ("solved", 0.0)])
def test_failures(capsys: pytest.CaptureFixture[str], hard: bool, status: str, value: float) -> None:
    program = LiftedProgram(linear(1.0, 0.1)[:, :4], hard=hard)
    program._solver = Broken(status, value)
    found = program.solve(np.eye(3, dtype=np.complex128), None if hard else np.ones(4))
    assert found.feasible is not hard
    assert not (found.accurate and status != "unbounded")
    if not hard:
        np.testing.assert_allclose(found.matrix, np.eye(3) / 3.0)
        np.testing.assert_array_equal(found.multipliers, 0.0)
    assert capsys.readouterr().out == ""


def test_an_interrupt_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    program = LiftedProgram(linear(1.0, 0.1)[:, :4])
    program._solver = Broken("interrupted", np.nan)
    with pytest.raises(KeyboardInterrupt):
        program.solve(np.eye(3, dtype=np.complex128), np.ones(4))
    assert capsys.readouterr().out == ""


def test_a_program_that_the_solver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("ScsWork allocation error!")

    monkeypatch.setattr("scs.SCS", refuse)
    found = LiftedProgram(np.ones((2, 3), np.complex128)).solve(np.eye(2, dtype=np.complex128), np.ones(3))
    assert found.feasible
    assert not found.accurate
