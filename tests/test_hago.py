"""HAGO: gradients by Taylor slope, ascent, feasibility and edges."""

import math

import numpy as np
import pytest

from airpass import InvalidInput, Receiver, Scenario
from airpass.core.types import Complex, Mask, Real
from airpass.geometry import hago, slack
from airpass.geometry.hago import Hago
from taylor import remainder_slope


class Case:
    """A scenario with a random beam, everyone a target, and f_tau written plainly."""

    def __init__(self, seed: int = 0, snr_db: float = 10.0) -> None:
        rng = np.random.default_rng(seed)
        self.scenario = Scenario.paper(devices=6, waveguides=3, antennas=4, snr_db=snr_db, seed=seed)
        beam = rng.standard_normal(3) + 1j * rng.standard_normal(3)
        self.beam: Complex = beam / np.linalg.norm(beam)
        self.devices: Mask = np.ones(6, dtype=bool)
        self.layout: Real = self.scenario.uniform_layout() + rng.uniform(-0.5, 0.5, (3, 4))

    def levels(self, layout: Real) -> Real:
        """h_k/phi_k^2 of eqs. (55), (56)."""
        values: Real = (
            np.abs(np.conj(self.beam) @ self.scenario.uplink.channels(layout)) / self.scenario.weights
        ) ** 2
        return values

    def smooth(self, layout: Real, temperature: float) -> float:
        """f_tau of eq. (56)."""
        return float(-temperature * np.logaddexp.reduce(-self.levels(layout) / temperature))

    def layout_gradient(self, layout: Real, temperature: float) -> Real:
        """The kernel's df/dl, with the weights of eq. (62) written plainly."""
        uplink = self.scenario.uplink
        field, workspace = uplink.field(4), hago.new_workspace(3, 4, 6)
        hago.gains(layout, self.beam, field, workspace)
        expected = np.conj(self.beam) @ uplink.channels(layout)
        np.testing.assert_allclose(
            workspace.gain_re + 1j * workspace.gain_im, expected, rtol=1e-10, atol=1e-12
        )
        share = np.exp(-(self.levels(layout) - self.levels(layout).min()) / temperature)
        pull = share / share.sum() / self.scenario.weights**2
        gradient = np.empty(layout.shape)
        hago.layout_gradient(layout, self.beam, field, workspace, pull, gradient)
        return gradient


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
class TestGradients:
    def test_in_the_positions(self, seed: int, temperature: float) -> None:
        case = Case(seed)
        direction = np.random.default_rng(9).standard_normal(case.layout.shape)
        rate = float(np.sum(case.layout_gradient(case.layout, temperature) * direction))

        def along(t: float) -> float:
            return case.smooth(case.layout + t * direction, temperature)

        assert 1.9 < remainder_slope(along, rate, 1e-5) < 2.1

    def test_in_the_raw_numbers(self, seed: int, temperature: float) -> None:
        case = Case(seed)
        receiver = case.scenario.receiver
        raw = slack.invert(case.layout, receiver.free_length, receiver.min_gap_m)
        direction = np.random.default_rng(8).standard_normal(raw.shape)
        gradient = np.empty_like(raw)
        slack.raw_gradient(
            raw, receiver.free_length, case.layout_gradient(case.layout, temperature), gradient
        )

        def along(t: float) -> float:
            layout = slack.positions(raw + t * direction, receiver.free_length, receiver.min_gap_m)
            return case.smooth(layout, temperature)

        assert 1.9 < remainder_slope(along, float(np.sum(gradient * direction)), 1e-5) < 2.1


def move(case: Case, **options: object) -> tuple[Real, tuple[float, float]]:
    method = Hago(**options)  # type: ignore[arg-type]
    result = method.move(case.scenario, case.layout, case.beam, case.devices, np.random.default_rng(0))
    return result.layout, result.objective


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("unit", hago.UNITS)
def test_raises_the_weakest_gain_and_stays_feasible(seed: int, unit: str) -> None:
    case = Case(seed)
    layout, (before, after) = move(case, unit=unit)
    case.scenario.checked_layout(layout)
    assert before == pytest.approx(case.levels(case.layout).min(), rel=1e-9)
    assert after == pytest.approx(case.levels(layout).min(), rel=1e-9)
    assert after > before


def test_ends_at_a_stationary_point_of_the_cold_objective() -> None:
    case = Case(1)
    # One temperature, so that the end point belongs to the objective that is checked; gains as
    # printed (unit "gain"), so that it is the paper's f_tau itself.
    temperature = 1.0
    layout, _ = move(
        case,
        unit="gain",
        temperature=temperature,
        temperature_min=temperature,
        max_iterations=20_000,
        tolerance=1e-14,
    )
    before = np.linalg.norm(case.layout_gradient(case.layout, temperature))
    assert np.linalg.norm(case.layout_gradient(layout, temperature)) < 1e-3 * before


def test_more_iterations_never_end_lower_at_a_fixed_temperature() -> None:
    case = Case(2)
    options = {"unit": "gain", "temperature": 0.5, "temperature_min": 0.5}
    values = [case.smooth(move(case, max_iterations=n, **options)[0], 0.5) for n in (1, 2, 5, 10, 50)]
    assert values == sorted(values)


def test_one_device_one_antenna_ends_below_it() -> None:
    # N = M = K = 1: |g| = gamma/D is largest right above the device, and the phase is free.
    scenario = Scenario.from_dict(
        {
            "receiver": {"waveguides": 1, "antennas": 1},
            "devices": {"x_m": [21.0], "y_m": [2.0], "gain": [1.0], "samples": [1]},
        }
    )
    result = Hago(max_iterations=2000, tolerance=1e-12).move(
        scenario,
        scenario.uniform_layout(),
        np.array([1.0 + 0j]),
        np.array([True]),
        np.random.default_rng(0),
    )
    assert result.layout[0, 0] == pytest.approx(21.0, abs=1e-3)
    assert result.objective[1] == pytest.approx(1 / (2.0**2 + 4.0**2), rel=1e-6)


def test_unit_matters_only_through_the_temperature() -> None:
    """With the temperature scaled by Gamma, and the step by 1/Gamma, both units take the same path."""
    case = Case(3, snr_db=0.0)
    gamma = case.scenario.budget
    by_score, _ = move(case, temperature=0.1, temperature_min=0.01, max_iterations=5, initial_step=0.04)
    by_gain, _ = move(
        case,
        unit="gain",
        temperature=0.1 / gamma,
        temperature_min=0.01 / gamma,
        max_iterations=5,
        initial_step=0.04 * gamma,
    )
    np.testing.assert_allclose(by_score, by_gain, atol=1e-6)


def test_no_room_means_no_move() -> None:
    scenario = Scenario(receiver=Receiver(waveguides=2, antennas=3, length_m=1.9))
    layout = scenario.uniform_layout()
    beam, everyone = np.array([1.0 + 0j, 0.0]), np.ones(10, dtype=bool)
    result = Hago().move(scenario, layout, beam, everyone, np.random.default_rng(0))
    np.testing.assert_allclose(result.layout, layout)
    assert math.isclose(*result.objective)


def test_the_temperature_is_lowered_step_by_step() -> None:
    # eq. (58): five steps of a slow and of a fast schedule are taken at different temperatures.
    case = Case(5)
    slow, fast = (move(case, decay=decay, max_iterations=5)[0] for decay in (0.99, 0.01))
    assert np.abs(slow - fast).max() > 1e-6


def test_work_is_counted() -> None:
    """Cost guard without a clock: channel evaluations per iteration stay near one."""
    case = Case(4)
    result = Hago().move(case.scenario, case.layout, case.beam, case.devices, np.random.default_rng(0))
    assert 1 <= result.work["iterations"] <= 1000
    assert result.work["evaluations"] <= 2.5 * result.work["iterations"] + 15


@pytest.mark.parametrize("memory", [0, 8])
def test_ends_by_its_tolerance_or_says_that_it_did_not(memory: int) -> None:
    for seed in range(5):
        case = Case(seed)
        given = (case.scenario, case.layout, case.beam, case.devices, np.random.default_rng(0))
        assert Hago(memory=memory).move(*given).status == "done"
        assert Hago(memory=memory, max_iterations=3).move(*given).status == "iteration limit"


def test_quasi_newton_steps_reach_the_same_point_in_fewer_steps() -> None:
    # One temperature and a start near the maximum, so that both ascents end at the same one.
    case = Case(1)
    options = {"temperature": 1.0, "temperature_min": 1.0, "unit": "gain", "tolerance": 1e-13}
    case.layout = move(case, max_iterations=30, **options)[0]
    rng = np.random.default_rng(0)
    found = [
        Hago(memory=memory, **options).move(case.scenario, case.layout, case.beam, case.devices, rng)  # type: ignore[arg-type]
        for memory in (0, 8)
    ]
    first, second = (case.smooth(result.layout, 1.0) for result in found)
    assert second == pytest.approx(first, rel=1e-6)
    assert found[1].work["iterations"] < found[0].work["iterations"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decay": 1.0}, ["decay", "< 1"]),
        ({"temperature": 0.001}, ["temperature", ">= 0.01"]),
        ({"unit": "watt"}, ["unit", "score, gain"]),
        ({"max_iterations": 0}, ["max_iterations", ">= 1"]),
    ],
)
def test_bad_options(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Hago(**options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)
