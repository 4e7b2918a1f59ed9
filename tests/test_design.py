"""Algorithm 3 and every named design, checked by arithmetic that shares no code with them."""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import Design, InvalidInput, Scenario, design, designs
from airpass.designs.api import design_method
from airpass.designs.base import Step
from airpass.documents import design_document, encode
from independent import check_design


def document(result: Design) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(encode(design_document(result)))
    return loaded


SIZES = {
    "paper-small": (10, 5, 5, 10.0),
    "paper-large": (50, 10, 10, 0.0),
    "one-device": (1, 3, 2, 10.0),
    "one-waveguide": (6, 1, 4, 10.0),
    "one-antenna": (6, 4, 1, 15.0),
}
SLOW = {("paper-large", "airpass-sdr-dc")}


@pytest.mark.parametrize(
    ("method", "sizes"),
    [
        pytest.param(
            method, sizes, id=f"{name}-{method}", marks=[pytest.mark.slow] * ((name, method) in SLOW)
        )
        for name, sizes in SIZES.items()
        for method in sorted(designs.METHODS.methods())
    ],
)
def test_results_stand_up_to_independent_arithmetic(method: str, sizes: tuple[int, int, int, float]) -> None:
    count, waveguides, antennas, snr_db = sizes
    check_design(document(design(Scenario.paper(count, waveguides, antennas, snr_db, 3), method)))


@pytest.mark.parametrize("method", sorted(designs.METHODS.methods()))
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"radio": {"snr_db": -60.0}}, 0),
        ({"radio": {"snr_db": 60.0}}, 8),
        ({"receiver": {"antennas": 3, "waveguides": 2, "length_m": 1.9}}, None),
        ({"receiver": {"waveguides": 3, "length_m": [10.0, 20.0, 30.0]}}, None),
        ({"weights": {"normalisation": "count"}}, 0),
    ],
    ids=["nobody", "everybody", "no-room", "unequal-lengths", "weights-as-printed"],
)
def test_edges(method: str, change: dict[str, Any], expected: int | None) -> None:
    result = design(Scenario.from_dict({"devices": {"count": 8, "seed": 2}, **change}), method)
    check_design(document(result))
    if expected is not None:
        assert result.selected_count == expected


def test_unequal_weights_over_a_thousand() -> None:
    samples = np.geomspace(1, 1000, 12).round()
    base = Scenario.paper(12, 5, 5, 10.0, 4).to_dict()
    base["devices"]["samples"] = samples.tolist()
    check_design(document(design(Scenario.from_dict(base))))


@settings(max_examples=15)
@given(
    st.integers(1, 12), st.integers(1, 4), st.integers(1, 4), st.floats(-20.0, 30.0), st.integers(0, 10_000)
)
def test_any_small_scenario(count: int, waveguides: int, antennas: int, snr_db: float, seed: int) -> None:
    check_design(document(design(Scenario.paper(count, waveguides, antennas, snr_db, seed))))


class TestAlternation:
    def test_returns_the_best_visited(self) -> None:
        for seed in range(5):
            result = design(Scenario.paper(seed=seed), "airpass")
            best = max(result.trace, key=lambda step: (step.selected_count, step.weakest_score))
            assert result.selected_count == best.selected_count
            assert result.weakest_score == pytest.approx(best.weakest_score, rel=1e-9)

    def test_first_round_is_selection_at_the_uniform_layout(self) -> None:
        scenario = Scenario.paper(seed=3)
        fixed = design(scenario, selection="hrmc", geometry="fixed")
        moved = design(scenario, "airpass")
        assert fixed.layout is not None
        np.testing.assert_allclose(fixed.layout, scenario.uniform_layout())
        assert moved.trace[0].selected_count == fixed.selected_count
        assert len(fixed.trace) == 1
        assert fixed.status == "converged"

    def test_moving_antennas_selects_more(self) -> None:
        gains = [
            design(Scenario.paper(seed=seed), "airpass").selected_count
            - design(Scenario.paper(seed=seed), selection="hrmc", geometry="fixed").selected_count
            for seed in range(10)
        ]
        assert min(gains) >= 0
        assert np.mean(gains) >= 1

    def test_limits_are_kept(self) -> None:
        assert len(design(Scenario.paper(), "airpass", options={"max_iterations": 0}).trace) == 1
        result = design(Scenario.paper(), "airpass", options={"max_iterations": 3})
        assert len(result.trace) <= 4
        assert result.status == "iteration limit"

    def test_patience(self) -> None:
        rounds = []
        for patience in (1, 3, 10):
            results = [
                design(Scenario.paper(seed=s), "airpass", options={"patience": patience}) for s in range(6)
            ]
            rounds.append(sum(len(result.trace) for result in results))
        assert rounds[0] < rounds[1] < rounds[2]

    def test_remarks_of_the_blocks_reach_the_status(self) -> None:
        result = design(
            Scenario.paper(seed=2),
            "airpass-sdr-dc",
            options={"selection": {"time_limit_s": 1e-9}, "max_iterations": 1},
        )
        assert "selection: time limit" in result.status

    def test_designs_can_be_sent_between_processes(self) -> None:
        result = design(Scenario.paper(seed=2), "airpass", options={"max_iterations": 1})
        again = pickle.loads(pickle.dumps(result))  # noqa: S301
        assert again.method == result.method
        np.testing.assert_array_equal(again.beam, result.beam)

    def test_steps_are_reported_as_they_happen(self) -> None:
        seen: list[Step] = []
        result = design(Scenario.paper(), "airpass", on_step=seen.append)
        assert tuple(seen) == result.trace
        assert [step.iteration for step in seen] == list(range(len(seen)))

    def test_same_seed_same_design(self) -> None:
        first, again = (
            design(Scenario.paper(seed=5), "airpass", options={"selection": {"starts": 3}}, seed=9)
            for _ in range(2)
        )
        np.testing.assert_array_equal(first.layout, again.layout)
        np.testing.assert_array_equal(first.beam, again.beam)

    def test_work_is_counted(self) -> None:
        # Rounds times the cost of a round, eq. (79): the counts of the blocks add up.
        result = design(Scenario.paper(seed=6), "airpass", options={"max_iterations": 4, "patience": 10})
        rounds = len(result.trace)
        assert rounds == 5
        assert rounds - 1 <= result.work["geometry_iterations"] <= 10_000 * (rounds - 1)
        assert rounds <= result.work["selection_stages"] <= 40 * rounds

    def test_options_reach_the_blocks(self) -> None:
        result = design(
            Scenario.paper(),
            "airpass",
            options={"selection": {"starts": "4"}, "geometry": {"max_iterations": 7}, "max_iterations": 1},
        )
        method = document(result)["method"]
        assert method["name"] == "airpass"
        assert (method["selection"], method["geometry"]) == ("hrmc", "hago")
        assert method["options"]["selection"]["starts"] == 4
        assert method["options"]["geometry"]["max_iterations"] == 7

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"method": "best"}, ["method", "'best'", "airpass"]),
            ({"selection": "best"}, ["selection", "'best'", "hrmc"]),
            ({"geometry": "best"}, ["geometry", "'best'", "hago"]),
            ({"method": "airpass", "geometry": "hago"}, ["cannot be combined"]),
            ({"method": "airpass", "options": {"selection": 3}}, ["selection", "is a nested method"]),
            ({"method": "airpass", "options": {"selection": {"x": 3}}}, ["selection.x", "unknown"]),
            ({"method": "airpass", "options": {"patience": 0}}, ["patience", ">= 1"]),
            ({"seed": -1}, ["seed", ">= 0"]),
        ],
    )
    def test_bad_arguments(self, arguments: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            design(Scenario.paper(), **arguments)
        for word in words:
            assert word in str(caught.value)

    def test_pairs_have_names(self) -> None:
        assert design_method().name == "airpass-plus"
        assert design_method(None, "hrmc", "fixed").name == "hrmc+fixed"


def test_receive_gain_at_a_device_is_its_received_power() -> None:
    scenario = Scenario.paper(seed=1)
    result = design(scenario)
    gain = result.receive_gain(scenario.devices.x_m, scenario.devices.y_m) * scenario.devices.gain**2
    np.testing.assert_allclose(scenario.budget * gain / scenario.weights**2, result.scores, rtol=1e-9)
