"""Progress of training in Python: shown to a reader, silent elsewhere."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import airpass
from airpass import Scenario, TrainOptions, compare, train
from airpass.learning import progress
from airpass.learning.progress import RoundLine

OPTIONS = TrainOptions(rounds=3, evaluate_every=3, local_steps=1, batch=4, test_images=20, probe_images=20)
SCENARIO = Scenario.paper(3, 2, 2, 10.0, 1)


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(terminal: bool) -> Screen:
        made = Screen(terminal)
        monkeypatch.setattr(sys, "stderr", made)
        monkeypatch.setattr(progress, "TERMINAL_S", 0.0)
        monkeypatch.setattr(progress, "LOG_S", 0.0)
        return made

    return make


def run(**arguments: Any) -> None:
    train(None, scenario=SCENARIO, options=OPTIONS, workers=1, **arguments)


@pytest.mark.parametrize(
    ("terminal", "arguments", "shown"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"progress": True}, True),
        (True, {"progress": False}, False),
        (True, {"on_round": lambda number, values: None}, False),
        (True, {"on_round": lambda number, values: None, "progress": True}, True),
    ],
)
def test_who_sees_it(screen: Any, terminal: bool, arguments: dict[str, Any], shown: bool) -> None:
    made = screen(terminal)
    run(**arguments)
    assert bool(made.getvalue()) == shown


def test_a_terminal_has_one_line(screen: Any) -> None:
    made = screen(True)
    run()
    states = [state.rstrip() for state in made.getvalue().split("\r")]
    assert made.getvalue().count("\n") == 1
    assert made.getvalue().endswith("\n")
    assert states[1] == "airpass: fedavg: starting"
    assert [state.split(",")[0] for state in states[2:]] == [
        f"airpass: fedavg: round {number} of 3" for number in (1, 2, 3)
    ]
    assert "accuracy" in states[-1]
    assert "3 devices" in states[-1]


def test_a_log_has_a_line_now_and_then(screen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = screen(False)
    monkeypatch.setattr(progress, "LOG_S", 1e9)
    run(progress=True)
    lines = made.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "airpass: fedavg: starting",
        "airpass: fedavg: round 3 of 3",  # the last is always there
    ]


def test_a_comparison_names_its_schemes(screen: Any) -> None:
    made = screen(True)
    compare(SCENARIO, {"ideal": "fedavg", "again": "fedavg"}, options=OPTIONS, workers=1)
    assert "airpass: ideal: round 3 of 3" in made.getvalue()
    assert "airpass: again: round 3 of 3" in made.getvalue()


def test_a_line_that_is_broken_off_is_ended(screen: Any) -> None:
    made = screen(True)

    def fail(number: int, values: Any) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(on_round=fail, progress=True)
    assert made.getvalue().endswith("\n")


def test_a_notebook_is_a_reader(screen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    screen(False)
    assert RoundLine(None, "s", 1).shown
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not RoundLine(None, "s", 1).shown


def test_it_does_not_change_the_result(screen: Any) -> None:
    screen(True)
    one, other = (
        train(None, scenario=SCENARIO, options=OPTIONS, workers=1, progress=shown) for shown in (True, False)
    )
    assert isinstance(one, airpass.TrainingRun)
    assert one.state.tolist() == other.state.tolist()
