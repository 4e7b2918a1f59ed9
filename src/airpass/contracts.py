"""What every method must fulfil, as checks that run on small scenarios.

`airpass check-method` runs them on a user's method, and the tests run them on all registered ones.
"""

import io
import json
import random
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airpass import aircomp, designs, geometry, selection
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.references import is_reference, load_reference
from airpass.core.registry import Method, Registry, discard, options_dict, with_options
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Mask, Real
from airpass.designs.base import DesignMethod, DesignSearch, discard_step
from airpass.designs.base import checked_search as checked_design
from airpass.geometry.base import GeometryMethod, LayoutSearch, weakest_gain
from airpass.scenario import Scenario
from airpass.selection.base import BeamSearch, SelectionMethod
from airpass.selection.base import checked_search as checked_selection

KINDS: dict[str, Registry[Any]] = {
    "selection": selection.METHODS,
    "geometry": geometry.METHODS,
    "design": designs.METHODS,
}
SEEDS = (0, 1, 2)
ROUNDING = 1e-9  # relative


class Broken(Exception):
    """A method does not do what it must; the text says what it does instead."""


@dataclass(frozen=True)
class Outcome:
    """Result of a check."""

    check: str
    ok: bool
    detail: str  # what went wrong; for `time`, the time


@dataclass(frozen=True, eq=False)
class _Case:
    """A scenario, and what a method is called with."""

    scenario: Scenario
    layout: Real
    beam: Complex
    devices: Mask
    effective: Complex

    def arrays(self) -> list[Any]:
        """Everything that a method must leave as it is."""
        drawn = self.scenario.devices
        own = [self.layout, self.beam, self.devices, self.effective]
        return [*own, drawn.x_m, drawn.y_m, drawn.gain, self.scenario.weights]


def _case(seed: int, devices: int = 6, waveguides: int = 3, antennas: int = 3) -> _Case:
    """A small scenario, with a random beam, layout and set of devices."""
    rng = np.random.default_rng(seed)
    scenario = Scenario.paper(devices, waveguides, antennas, 10.0, seed)
    layout = scenario.random_layout(rng)
    beam = rng.standard_normal(waveguides) + 1j * rng.standard_normal(waveguides)
    chosen = rng.random(devices) < 0.7
    chosen[rng.integers(devices)] = True
    channels = scenario.channels(scenario.uniform_layout())
    effective = aircomp.effective_channels(channels, scenario.weights, scenario.budget)
    return _Case(scenario, layout, beam / np.linalg.norm(beam), chosen, effective)


Search = BeamSearch | LayoutSearch | DesignSearch


def _run(method: Method, case: _Case, seed: int = 0) -> Search:
    """Call a method as `select` and `design` do."""
    with one_blas_thread():
        if isinstance(method, SelectionMethod):
            return method.search(case.effective, stream(seed, Purpose.SELECTION), discard)
        if isinstance(method, GeometryMethod):
            rng = stream(seed, Purpose.GEOMETRY)
            return method.move(case.scenario, case.layout, case.beam, case.devices, rng)
        assert isinstance(method, DesignMethod)
        return method.run(case.scenario, seed, discard_step, discard, None)


def _verify(method: Method, case: _Case, found: Search) -> None:
    """Raise `Broken` or `InvalidInput` if a result is not what it must be."""
    if isinstance(method, SelectionMethod):
        checked_selection(method, found, len(case.effective))  # type: ignore[arg-type]
    elif isinstance(method, GeometryMethod):
        _verify_layout(case, found)
    else:
        assert isinstance(method, DesignMethod)
        made = checked_design(method, found, case.scenario)  # type: ignore[arg-type]
        if made.layout is not None:
            expected = case.scenario.channels(made.layout)
            if not np.allclose(made.channels, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max()):
                raise Broken("channels are not those of the layout: use scenario.channels(layout)")
        if not made.trace:
            raise Broken("trace is empty: it needs at least one Step")
    if not isinstance(found.status, str) or not found.status:
        raise Broken('status is empty: it must be "done" or say what is wrong')
    if not isinstance(found.work, Mapping) or not all(
        isinstance(count, int | np.integer) for count in found.work.values()
    ):
        raise Broken("work must be a mapping from names to whole numbers")


def _verify_layout(case: _Case, found: Search) -> None:
    if not isinstance(found, LayoutSearch):
        raise Broken(f"move returned {type(found).__name__}: must be a LayoutSearch")
    layout = case.scenario.checked_layout(found.layout)
    before, after = (
        weakest_gain(case.scenario, where, case.beam, case.devices) for where in (case.layout, layout)
    )
    if after < before * (1.0 - ROUNDING):
        raise Broken(f"the weakest gain falls from {before:.6g} to {after:.6g}: use no_worse")
    if not np.allclose(found.objective, (before, after), rtol=1e-6):
        raise Broken(f"objective is {found.objective}: the weakest gains are {(before, after)}")


def returns_a_result(method: Method, seed: int) -> None:
    """Shapes, finite values, unit norm; a feasible layout that is no worse."""
    case = _case(seed)
    _verify(method, case, _run(method, case, seed))


def leaves_its_input_alone(method: Method, seed: int) -> None:
    """Arrays that are passed to the method do not change."""
    case = _case(seed)
    before = [np.array(values) for values in case.arrays()]
    _run(method, case, seed)
    for old, new in zip(before, case.arrays(), strict=True):
        if not np.array_equal(old, new):
            raise Broken("an array that was passed to it has changed: work on a copy")


def repeats_with_the_same_seed(method: Method, seed: int) -> None:
    """Two runs with the same seed give the same bits."""
    first, again = (_run(method, _case(seed), seed) for _ in range(2))
    for name in ("beam", "layout", "array"):
        one, two = (np.asarray(getattr(found, name, None)) for found in (first, again))
        if not np.array_equal(one, two):
            raise Broken(f"the same seed gives another {name}: use only the given rng or seed")


def uses_only_the_given_generator(method: Method, seed: int) -> None:
    """The global generators of NumPy and of `random` are left as they are."""
    case = _case(seed)
    before = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    _run(method, case, seed)
    after = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    if _plain(before) != _plain(after):
        raise Broken("it draws from a global random generator: use only the given rng or seed")


def _plain(state: Any) -> Any:
    """A generator's state as something that can be compared."""
    if isinstance(state, Mapping):
        return {key: _plain(value) for key, value in state.items()}
    if isinstance(state, tuple):
        return tuple(_plain(value) for value in state)
    return state.tolist() if isinstance(state, np.ndarray) else state


def prints_nothing(method: Method, seed: int) -> None:
    """Nothing is written to standard output or standard error."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        _run(method, _case(seed), seed)
    if out.getvalue():
        raise Broken(f"it prints {out.getvalue()[:40]!r}: use report, or nothing")


def has_options_that_round_trip(method: Method, seed: int) -> None:
    """Options as a table of plain values give the method back."""
    table = options_dict(method)
    try:
        text = json.dumps(table)
    except (TypeError, ValueError):
        raise Broken("an option is not a number, a text, true, false, a list or a table") from None
    if with_options(method, json.loads(text)) != method:
        raise Broken("the options as a table do not give the method back: is it a frozen dataclass?")
    if replace(method) != method:
        raise Broken("a copy differs from the method: is it a frozen dataclass?")


SIZES = {
    "one-device": (1, 3, 3),  # K, M, N
    "one-chain": (6, 1, 3),
    "one-antenna": (6, 3, 1),
    "all-one": (1, 1, 1),
    "few-devices": (2, 4, 2),
}


def works_for_degenerate_sizes(method: Method, seed: int) -> None:
    """K = 1, M = 1, N = 1, all of them, and M > K."""
    for devices, waveguides, antennas in SIZES.values():
        case = _case(seed, devices, waveguides, antennas)
        try:
            _verify(method, case, _run(method, case, seed))
        except Exception as error:
            size = f"K={devices}, M={waveguides}, N={antennas}"
            raise Broken(f"{size}: {describe(error)}") from error


CHECKS: dict[str, Callable[[Method, int], None]] = {
    "result": returns_a_result,
    "input unchanged": leaves_its_input_alone,
    "same seed, same result": repeats_with_the_same_seed,
    "only the given random numbers": uses_only_the_given_generator,
    "prints nothing": prints_nothing,
    "options": has_options_that_round_trip,
    "degenerate sizes": works_for_degenerate_sizes,
}


def describe(error: BaseException) -> str:
    """An error in one line. Errors of the method's own code come with their place."""
    text = " ".join(str(error).split())
    if isinstance(error, Broken | InvalidInput):
        return text
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"


def resolve(method: Any, kind: str | None = None, options: Mapping[str, Any] | None = None) -> Method:
    """Find a method of any kind.

    Parameters
    ----------
    method
        Registered name, object, class, function, `file.py:Name` or `package.module:Name`.
    kind
        "selection", "geometry" or "design"; None: that of the class or name. Functions need it.
    options
        Changes of the method's options.

    Returns
    -------
    Method
        The method.
    """
    if kind is not None:
        found: Method = KINDS[checks.one_of("kind", kind, KINDS)].resolve(method, options)
        return found
    given = load_reference("method", method) if isinstance(method, str) and is_reference(method) else method
    for registry in KINDS.values():
        derived = isinstance(given, type) and issubclass(given, registry.base)
        if derived or isinstance(given, registry.base):
            return _resolved(registry, given, options)
        if isinstance(given, str) and given in registry.methods():
            return _resolved(registry, given, options)
    if callable(given) and not isinstance(given, type):
        raise InvalidInput(f"kind is missing: for a function give one of {', '.join(KINDS)}")
    if isinstance(given, str):
        known = [name for registry in KINDS.values() for name in registry.methods()]
        checks.one_of("method", given, [*known, "file.py:Name"])
    bases = ", ".join(registry.base.__name__ for registry in KINDS.values())
    raise InvalidInput(
        f"method = {str(method)[:80]!r}: must be derived from one of {bases}, or be a function"
    )


def _resolved(registry: Registry[Any], given: Any, options: Mapping[str, Any] | None) -> Method:
    found: Method = registry.resolve(given, options)
    return found


def kind_of(method: Method) -> str:
    """ "selection", "geometry" or "design"."""
    return next(kind for kind, registry in KINDS.items() if isinstance(method, registry.base))


def check_method(method: Method) -> Iterator[Outcome]:
    """Run all checks of a method.

    Parameters
    ----------
    method
        The method with its options.

    Yields
    ------
    Outcome
        One for each check, and a last one with the time of a run. A cause is given once: later checks that
        fail for it refer to the first.
    """
    causes: dict[str, str] = {}  # by cause, the first check that failed for it

    def failed(name: str, error: Exception) -> Outcome:
        known = causes.setdefault(_cause(error), name)
        return Outcome(name, False, describe(error) if known == name else f"as for {known}")

    for name, check in CHECKS.items():
        try:
            for seed in SEEDS:
                check(method, seed)
        except Exception as error:  # a method of a user can raise any error
            yield failed(name, error)
        else:
            yield Outcome(name, True, "")
    try:
        yield _time(method)
    except Exception as error:
        yield failed("time", error)


def _time(method: Method) -> Outcome:
    case = _case(SEEDS[0], devices=10, waveguides=5, antennas=5)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        _run(method, case)
        times.append(time.perf_counter() - start)
    return Outcome("time", True, f"{1e3 * min(times):.3g} ms for K=10, M=5, N=5")


def _cause(error: BaseException) -> str:
    """What is the same when an error is met again.

    For an error of the method's own code that is its kind and place, else the message without its numbers:
    shapes and values differ from case to case.
    """
    while isinstance(error, Broken) and error.__cause__ is not None:  # that of one of the sizes
        error = error.__cause__
    if isinstance(error, Broken | InvalidInput):
        return re.sub(r"\d[-+\d.e]*", "0", describe(error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}, {last.filename}, line {last.lineno}"
