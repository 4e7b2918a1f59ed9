"""Methods as objects: names, classes, files, modules, entry points, options."""

import functools
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import InvalidInput, Scenario, design, designs, geometry, select, selection
from airpass.core import registry
from airpass.core.registry import Report, options_dict, parts, result_options, with_threads
from airpass.core.types import Complex
from airpass.designs.alternating import Airpass, Alternation
from airpass.designs.colocated import MimoMn
from airpass.designs.plus import AirpassPlus
from airpass.geometry.hago import Hago
from airpass.selection.base import BeamSearch, SelectionMethod
from airpass.selection.hrmc import Hrmc
from airpass.selection.hrmc_plus import HrmcPlus
from command_line import assert_refused

OWN_METHOD = '''
"""Beam matched to one device."""

from dataclasses import dataclass

import numpy as np

from airpass.selection.base import BeamSearch, SelectionMethod


@dataclass(frozen=True)
class Matched(SelectionMethod):
    """Beam matched to one device."""

    name = "matched+"

    device: int = 0

    def search(self, effective, rng, report):
        column = effective[:, self.device]
        return BeamSearch(beam=column / np.linalg.norm(column))


class NotAMethod:
    pass


def strongest(effective, rng, *, place=0):
    """Beam matched to the strongest device.

    The norm of a beam does not matter.
    """
    return effective[:, np.argsort(-np.linalg.norm(effective, axis=0))[place]]
'''


@dataclass(frozen=True)
class FirstDevice(SelectionMethod):
    """Beam matched to the first device."""

    name = "first-device"

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        return BeamSearch(beam=effective[:, 0] / np.linalg.norm(effective[:, 0]))


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(OWN_METHOD)
    return path


@pytest.fixture
def forget_registered() -> Iterator[None]:
    """Registered methods are looked up once per process."""
    registry._registered.cache_clear()
    yield
    registry._registered.cache_clear()


def channels() -> Complex:
    scenario = Scenario.paper(seed=2)
    return scenario.channels(scenario.uniform_layout())


def test_a_name_an_object_and_a_class_are_the_same_method() -> None:
    by_name, by_object, by_class = (
        select(channels(), budget=0.3, method=method) for method in ("hrmc", Hrmc(), Hrmc)
    )
    np.testing.assert_array_equal(by_name.beam, by_object.beam)
    np.testing.assert_array_equal(by_name.beam, by_class.beam)
    assert by_name.method == by_object.method == by_class.method == Hrmc()


def test_fields_and_options_mean_the_same() -> None:
    by_field = select(channels(), budget=0.3, method=Hrmc(starts=16), seed=4)
    by_option = select(channels(), budget=0.3, method="hrmc", options={"starts": "16"}, seed=4)
    assert by_field.method == by_option.method
    np.testing.assert_array_equal(by_field.beam, by_option.beam)


def test_options_change_an_object_that_is_given() -> None:
    picked = select(channels(), budget=0.3, method=Hrmc(starts=3), options={"margin": 0.2})
    assert picked.method == Hrmc(starts=3, margin=0.2)


def test_a_method_from_a_file(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picked = select(channels(), budget=0.3, method=f"{own_file}:Matched", options={"device": "3"})
    assert picked.method.name == "matched+"
    expected = channels()[:, 3]
    assert abs(np.vdot(picked.beam, expected)) == pytest.approx(float(np.linalg.norm(expected)))
    monkeypatch.chdir(own_file.parent)
    assert select(channels(), budget=0.3, method="mine.py:Matched").method.name == "matched+"


def test_a_method_from_a_module(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(own_file.parent)
    assert select(channels(), budget=0.3, method="mine:Matched").method.name == "matched+"


def test_a_method_of_ones_own_in_algorithm_3(own_file: Path) -> None:
    scenario = Scenario.paper(seed=2)
    found = design(scenario, selection=f"{own_file}:Matched", geometry="fixed")
    assert found.method.name == "matched++fixed"
    assert parts(found.method) == {"selection": "matched+", "geometry": "fixed"}
    # A design whose name has a plus in it stays what it is when it is run again.
    again = design(scenario, found.method, start_layout=found.layout)
    assert again.method == found.method


def test_an_entry_point_registers_a_method(monkeypatch: pytest.MonkeyPatch, forget_registered: None) -> None:
    entries = [EntryPoint("first-device", f"{__name__}:FirstDevice", "airpass.selection")]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if "selection" in group else [])
    assert "first-device" in selection.METHODS.methods()
    assert select(channels(), budget=0.3, method="first-device").method == FirstDevice()


def test_a_broken_entry_point_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, forget_registered: None
) -> None:
    entries = [EntryPoint("broken", "no_such_module:Thing", "airpass.selection")]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    with pytest.warns(UserWarning, match="no_such_module"):
        assert "hrmc" in selection.METHODS.methods()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("best", ["method", "'best'", "hrmc", "file.py:Name"]),
        ("{file}:Missing", ["Missing", "cannot be imported"]),
        ("{file}:NotAMethod", ["SelectionMethod"]),
        ("no_such_module:Thing", ["cannot be imported", "no_such_module"]),
        ("nowhere.py:Thing", ["cannot be imported", "nowhere.py"]),
        (Hago(), ["SelectionMethod"]),
        (print, ["SelectionMethod", "(effective, rng)"]),
        (lambda effective, rng: effective[:, 0], ["'<lambda>'", "letters", "def"]),
        (channels, ["channels", "takes 0 arguments", "channels(effective, rng)"]),
    ],
)
def test_what_is_not_a_method(own_file: Path, method: Any, words: list[str]) -> None:
    given = method.format(file=own_file) if isinstance(method, str) else method
    with pytest.raises(InvalidInput) as caught:
        select(channels(), budget=0.3, method=given)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def strongest(effective: Complex, rng: np.random.Generator, place: int = 0) -> Any:
    """Beam matched to a device. Its norm does not matter."""
    order = np.argsort(-np.linalg.norm(effective, axis=0))
    return effective[:, order[place]]


def matched_everywhere(scenario: Scenario, seed: int) -> Any:
    layout = scenario.random_layout(np.random.default_rng(seed))
    return layout, scenario.channels(layout)[:, 0]


def stay(scenario: Scenario, layout: Any, beam: Any, devices: Any, rng: Any) -> Any:
    """Leave the antennas where they are."""
    return layout


class TestFunctions:
    def test_a_function_selects(self) -> None:
        picked = select(channels(), budget=0.3, method=strongest, options={"place": "2"})
        assert picked.method.name == "strongest"
        assert picked.method.summary == "Beam matched to a device. Its norm does not matter"
        assert options_dict(picked.method) == {"place": 2}
        assert np.linalg.norm(picked.beam) == pytest.approx(1.0)
        column = picked.effective[:, np.argsort(-np.linalg.norm(picked.effective, axis=0))[2]]
        assert abs(np.vdot(picked.beam, column)) == pytest.approx(float(np.linalg.norm(column)))

    def test_a_function_and_a_class_that_do_the_same_give_the_same_bits(self) -> None:
        def first(effective: Complex, rng: np.random.Generator) -> Complex:
            column: Complex = effective[:, 0] / np.linalg.norm(effective[:, 0])
            return column

        by_function, by_class = (
            select(channels(), budget=0.3, method=method) for method in (first, FirstDevice)
        )
        np.testing.assert_array_equal(by_function.beam, by_class.beam)

    def test_a_function_from_a_file_and_from_a_module(
        self, own_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(own_file.parent)
        by_file, by_module = (
            select(channels(), budget=0.3, method=text)
            for text in (f"{own_file}:strongest", "mine:strongest")
        )
        assert by_file.method.name == by_module.method.name == "strongest"
        np.testing.assert_array_equal(by_file.beam, by_module.beam)

    def test_a_function_as_an_entry_point(
        self, monkeypatch: pytest.MonkeyPatch, forget_registered: None
    ) -> None:
        entries = [EntryPoint("strongest", f"{__name__}:strongest", "airpass.selection")]
        monkeypatch.setattr(registry, "entry_points", lambda group: entries if "selection" in group else [])
        assert select(channels(), budget=0.3, method="strongest").method.name == "strongest"

    def test_functions_that_design(self) -> None:
        scenario = Scenario.paper(seed=2)
        found = design(scenario, matched_everywhere, seed=3)
        assert found.method.name == "matched_everywhere"
        assert found.layout is not None
        np.testing.assert_array_equal(found.channels, scenario.channels(found.layout))
        pair = design(scenario, selection=strongest, geometry=stay, options={"selection": {"place": 1}})
        assert parts(pair.method) == {"selection": "strongest", "geometry": "stay"}

    def test_a_start_layout_reaches_a_function_that_takes_it(self) -> None:
        def again(scenario: Scenario, seed: int, start: Any = None) -> Any:
            layout = scenario.uniform_layout() if start is None else start
            return layout, np.ones(len(layout))

        scenario = Scenario.paper(seed=2)
        start = scenario.random_layout(np.random.default_rng(0))
        moved = design(scenario, again, start_layout=start)
        np.testing.assert_array_equal(moved.layout, start)
        assert options_dict(moved.method) == {}
        with pytest.raises(InvalidInput, match=r"start_layout: matched_everywhere.*parameter"):
            design(scenario, matched_everywhere, start_layout=start)

    def test_functions_are_compared_hashed_and_pickled(self) -> None:
        one, two = (selection.METHODS.resolve(strongest, {"place": 1}) for _ in range(2))
        assert one == two
        assert len({one, two}) == 1
        assert one != selection.METHODS.resolve(strongest)
        assert one != Hrmc()
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        assert replace(one) == one

    def test_objects_that_can_be_called(self) -> None:
        class Scaled:
            def __init__(self, factor: float) -> None:
                self.factor = factor

            def __call__(self, effective: Complex, rng: np.random.Generator) -> Complex:
                return self.factor * effective[:, 0]

        assert select(channels(), budget=0.3, method=Scaled(1e-200)).method.name == "Scaled"
        part = functools.partial(strongest, place=1)
        assert options_dict(select(channels(), budget=0.3, method=part).method) == {"place": 1}

    @pytest.mark.parametrize(
        ("returned", "words"),
        [
            (None, ["returned NoneType", "5 complex numbers"]),
            ("beam", ["returned str"]),
            ([[1.0], [2.0, 3.0]], ["returned list"]),
            (np.ones(4), ["shape (4,)", "(5,)", "receive chain"]),
            (np.ones((5, 1)), ["shape (5, 1)"]),
            (np.full(5, np.nan), ["not finite"]),
            (np.zeros(5), ["zeros"]),
        ],
    )
    def test_what_is_not_a_beam(self, returned: Any, words: list[str]) -> None:
        def wrong(effective: Complex, rng: np.random.Generator) -> Any:
            return returned

        with pytest.raises(InvalidInput) as caught:
            select(channels(), budget=0.3, method=wrong)
        for word in ["wrong", *words]:
            assert word in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("returned", "words"),
        [
            (None, ["NoneType", "(layout, beam)"]),
            ((np.zeros((5, 5)), np.ones(5)), ["layout[0]", "0.95 m apart"]),
            ((np.zeros((2, 5)), np.ones(5)), ["layout", "(5, 5)"]),
            (("uniform", np.ones(3)), ["shape (3,)", "(5,)"]),
        ],
    )
    def test_what_is_not_a_design(self, returned: Any, words: list[str]) -> None:
        def wrong(scenario: Scenario, seed: int) -> Any:
            if returned is not None and isinstance(returned[0], str):
                return scenario.uniform_layout(), returned[1]
            return returned

        with pytest.raises(InvalidInput) as caught:
            design(Scenario.paper(seed=2), wrong)
        for word in ["wrong", *words]:
            assert word in str(caught.value)

    def test_an_option_needs_a_default(self) -> None:
        def needs(effective: Complex, rng: np.random.Generator, *, place: int) -> Any:
            return effective[:, place]

        with pytest.raises(InvalidInput, match="place needs a number"):
            select(channels(), budget=0.3, method=needs)


@pytest.mark.parametrize("name", ["a/b", "../up", "", ".hidden", "a b", "a\nb", "x" * 101])
def test_names_that_cannot_be_file_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="letters, digits") as caught:
        type("Own", (FirstDevice,), {"name": name})
    assert "\n" not in str(caught.value)


def test_a_name_that_leaves_the_folder_is_refused_on_the_command_line(
    run: Any, own_file: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "G.npy", channels())
    own_file.write_text(OWN_METHOD.replace('"matched+"', '"../../matched"'))
    outcome = run(
        "select", "--channels", tmp_path / "G.npy", "--budget", 0.3, "--method", f"{own_file}:Matched"
    )
    assert_refused(outcome, "'../../matched'", "letters, digits")


def test_a_class_that_returns_something_else_is_refused_in_one_line() -> None:
    class NoBeam(FirstDevice):
        name = "no-beam"

        def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> Any:
            return effective[:, 0]

    class TwiceTheBeam(FirstDevice):
        name = "twice"

        def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
            return BeamSearch(2.0 * super().search(effective, rng, report).beam)

    with pytest.raises(InvalidInput, match="no-beam: search returned ndarray: must be a BeamSearch"):
        select(channels(), budget=0.3, method=NoBeam())
    with pytest.raises(InvalidInput, match="twice returned a beam of norm 2"):
        select(channels(), budget=0.3, method=TwiceTheBeam())


def test_a_file_that_raises_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('first\\nsecond')\n")
    with pytest.raises(InvalidInput, match="first second"):
        select(channels(), budget=0.3, method=f"{tmp_path / 'broken.py'}:Thing")


def test_every_method_can_be_compared_hashed_and_listed() -> None:
    for group in (selection.METHODS, geometry.METHODS, designs.METHODS):
        for name, method in group.methods().items():
            assert method == replace(method)
            assert len({method, replace(method)}) == 1
            assert method.name == name
            assert method.summary
            assert not method.summary.endswith(".")


def test_threads_do_not_count_as_options_of_the_result() -> None:
    one, four = AirpassPlus(threads=1), AirpassPlus(threads=4)
    assert result_options(one) == result_options(four)
    assert "effort" in result_options(one)
    nested = Airpass(selection=Hrmc(starts=4, threads=3))
    assert "threads" not in result_options(nested)["selection"]
    assert with_threads(nested, 1) == Airpass(selection=Hrmc(starts=4, threads=1))
    assert with_threads(Alternation(selection=HrmcPlus()), 2) == Alternation(selection=HrmcPlus())


def test_a_start_layout_that_cannot_be_used_is_refused() -> None:
    scenario = Scenario.paper(seed=2)
    with pytest.raises(InvalidInput, match="start_layout"):
        design(scenario, MimoMn(), start_layout=scenario.uniform_layout())


def test_results_have_a_short_repr() -> None:
    scenario = Scenario.paper(50, 10, 10, 10.0, seed=2)
    picked = select(channels(), budget=0.3)
    assert repr(picked).startswith("Selection(hrmc: ")
    assert len(repr(picked)) < 100
    found = design(scenario, Airpass(max_iterations=0))
    assert repr(found).startswith("Design(airpass: ")
    assert "MSE" in repr(found)
    assert len(repr(found)) < 100
