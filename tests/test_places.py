"""Antennas at given places only."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpass import Channel, Design, InvalidInput, Receiver, Scenario, design, select, track
from airpass.channel.pattern import Pattern
from airpass.core.types import Real
from airpass.geometry.base import weakest_gain
from airpass.geometry.elementwise import Elementwise
from airpass.scenario import StraightLines


def paper(
    devices: int,
    waveguides: int,
    antennas: int,
    snr_db: float,
    seed: int,
    candidates_m: Any,
    loss_db_per_m: float = 0.0,
    **receiver: Any,
) -> Scenario:
    scenario = Scenario.paper(devices, waveguides, antennas, snr_db, seed)
    channel = Channel(loss_db_per_m=loss_db_per_m, candidates_m=candidates_m)
    return replace(scenario, receiver=replace(scenario.receiver, **receiver), channel=channel)


def check_places(found: Design) -> None:
    """All antennas at places, each at most once, with the minimum gap."""
    receiver, candidates = found.scenario.receiver, found.scenario.candidates
    assert found.layout is not None
    assert candidates is not None
    for row, places in zip(found.layout, candidates.places, strict=True):
        assert set(row) <= set(places)
        assert np.unique(row).size == receiver.antennas
        assert (np.diff(row) >= receiver.min_gap_m - 1e-7).all()
    np.testing.assert_allclose(found.channels, found.scenario.channels(found.layout), rtol=1e-12)


class TestCandidates:
    def test_one_list_for_all_a_list_for_each_and_a_step(self) -> None:
        def places(candidates_m: Any, length_m: Any = 4.0) -> list[list[float]]:
            receiver = Receiver(waveguides=2, antennas=2, length_m=length_m)
            found = Scenario(receiver=receiver, channel=Channel(candidates_m=candidates_m)).candidates
            assert found is not None
            return [row.tolist() for row in found.places]

        assert places((3.0, 0.5, 2.0)) == [[0.5, 2.0, 3.0]] * 2
        assert places(((0.5, 2.0, 3.0), (1.0, 4.0))) == [[0.5, 2.0, 3.0], [1.0, 4.0]]
        assert places(1.0, (4.0, 3.5)) == [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]]
        assert places(1) == places(1.0)
        assert Scenario().candidates is None

    def test_a_gap_that_is_a_multiple_of_the_step(self) -> None:
        # 19 steps of 0.05 m are 0.95 m up to rounding.
        scenario = paper(4, 2, 5, 10.0, 0, candidates_m=0.05, length_m=3.8)
        layout = scenario.uniform_layout()
        np.testing.assert_allclose(layout[0], [0.0, 0.95, 1.9, 2.85, 3.8], atol=1e-9)

    def test_files(self, tmp_path: Any) -> None:
        for value in ([[1.0, 5.0, 9.0]] * 2, [1.0, 5.0], 0.5):
            tables = {"receiver": {"waveguides": 2, "antennas": 2}, "channel": {"candidates_m": value}}
            scenario = Scenario.from_dict(tables)
            assert scenario.to_dict()["channel"] == {"candidates_m": value}
            scenario.save(tmp_path / "room.toml")
            assert Scenario.load(tmp_path / "room.toml").to_dict() == scenario.to_dict()

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (0.0, ["channel.candidates_m", "0"]),
            (True, ["channel.candidates_m", "True", "step"]),
            ([], ["channel.candidates_m", "list"]),
            ("all", ["channel.candidates_m", "'all'", "list"]),
            ([1.0, "x"], ["channel.candidates_m[1]", "'x'", "number"]),
            ([1.0, [2.0]], ["channel.candidates_m", "numbers and lists"]),
            ([[1.0, 2.0]], ["channel.candidates_m", "1 entries", "= 2)"]),
            ([1.0, 41.0], ["channel.candidates_m", "41", "40"]),
            ([-1.0, 4.0], ["channel.candidates_m", "-1", "within 0"]),
            ([1.0, 1.5], ["channel.candidates_m", "1 antennas", "= 2"]),
            ([[], [1.0, 5.0]], ["channel.candidates_m", "0 antennas", "= 2"]),
            (40.5, ["channel.candidates_m", "1 antennas", "= 2"]),
        ],
    )
    def test_mistakes_end_in_one_line(self, value: Any, words: list[str]) -> None:
        tables = {"receiver": {"waveguides": 2, "antennas": 2}, "channel": {"candidates_m": value}}
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict(tables)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)

    @given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.0, 1.5))
    def test_the_nearest_places_are_the_best_of_all(self, seed: int, antennas: int, gap: float) -> None:
        rng = np.random.default_rng(seed)
        places = np.unique(np.concatenate([rng.uniform(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0]]))
        receiver = Receiver(waveguides=1, antennas=antennas, length_m=10.0, min_gap_m=gap)
        scenario = Scenario(receiver=receiver, channel=Channel(candidates_m=tuple(places)))
        assert scenario.candidates is not None
        wish = np.sort(rng.uniform(0.0, 10.0, (1, antennas)), axis=1)
        choices = [
            np.array(chosen)
            for chosen in itertools.combinations(places, antennas)
            if antennas == 1 or np.diff(chosen).min() >= gap - 1e-9
        ]
        best = min(np.abs(chosen - wish[0]).sum() for chosen in choices)
        found = scenario.candidates.nearest(wish)
        assert np.abs(found - wish).sum() == pytest.approx(best)
        scenario.checked_layout(found)

    def test_layouts_off_the_places_are_refused(self) -> None:
        scenario = paper(4, 1, 2, 10.0, 0, candidates_m=(1.0, 3.0, 5.0))
        scenario.checked_layout([[1.0, 5.0]])
        with pytest.raises(InvalidInput, match=r"layout\[0\]\[1\] = 4.5.* nearest is 5"):
            scenario.checked_layout([[1.0, 4.5]])
        free = paper(4, 1, 2, 10.0, 0, candidates_m=(1.0, 3.0), min_gap_m=0.0)
        with pytest.raises(InvalidInput, match="two antennas at one place"):
            free.checked_layout([[1.0, 1.0]])
        with pytest.raises(InvalidInput, match="nearest"):
            design(scenario, selection="hrmc", geometry="fixed", start_layout=[[1.0, 4.5]])

    @pytest.mark.parametrize("changes", [{"update": "follow"}, {"antenna_speed_m_s": 1.0}])
    def test_tracking_that_passes_between_places(self, changes: dict[str, Any]) -> None:
        scenario = paper(4, 2, 2, 10.0, 0, candidates_m=0.5)
        with pytest.raises(InvalidInput, match=r"channel.candidates_m: tracking with .* continuously"):
            track(scenario, StraightLines(), seconds=0.1, **changes)

    @pytest.mark.parametrize("method", ["airpass", "airpass-lasting"])
    def test_methods_that_need_antennas_anywhere(self, method: str) -> None:
        with pytest.raises(InvalidInput, match=r"channel.candidates_m: .* use airpass-plus, elementwise"):
            design(paper(4, 2, 2, 10.0, 0, candidates_m=0.5), method)


def layouts(scenario: Scenario) -> Any:
    """All feasible layouts."""
    receiver, candidates = scenario.receiver, scenario.candidates
    assert candidates is not None
    rows = [
        [
            chosen
            for chosen in itertools.combinations(places, receiver.antennas)
            if receiver.antennas == 1 or np.diff(chosen).min() >= receiver.min_gap_m - 1e-9
        ]
        for places in candidates.places
    ]
    return (np.array(layout) for layout in itertools.product(*rows))


class TestDesigns:
    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_one_waveguide_against_all_layouts(self, seed: int) -> None:
        # The beam is a number then: scores follow from the layout.
        scenario = paper(8, 1, 3, 12.0, seed, candidates_m=3.0)

        def rank(layout: Real) -> tuple[int, float]:
            scores = scenario.budget * np.abs(scenario.channels(layout)[0] / scenario.weights) ** 2
            inside = scores[scores >= 1.0]
            return inside.size, float(inside.min(initial=np.inf))

        best = max(rank(layout)[0] for layout in layouts(scenario))
        found = design(scenario)
        check_places(found)
        assert found.selected_count == best > 0

    @pytest.mark.parametrize("seed", [1, 2])
    def test_two_waveguides_against_all_layouts_and_beams(self, seed: int) -> None:
        scenario = paper(6, 2, 1, 15.0, seed, candidates_m=5.0)
        best = max(
            select(scenario.channels(layout), scenario.weights, scenario.budget, "exhaustive").selected_count
            for layout in layouts(scenario)
        )
        found = design(scenario)
        check_places(found)
        assert found.selected_count == best > 0

    def test_dense_places_are_as_good_as_any(self) -> None:
        counts = []
        for step in (None, 0.125 / 16):
            scenarios = [paper(20, 4, 4, 0.0, seed, candidates_m=step) for seed in (21, 22, 23)]
            found = [design(scenario, options={"effort": "fast"}) for scenario in scenarios]
            counts.append(np.mean([one.selected_count for one in found]))
        for one in found:
            check_places(one)
        assert abs(counts[1] - counts[0]) <= 1.0
        assert counts[0] > 5.0

    def test_crowded_waveguides_and_antennas_that_keep_their_order(self) -> None:
        scenario = paper(8, 2, 8, 14.0, 4, candidates_m=0.5, length_m=9.0)
        start = design(scenario, selection="hrmc+", geometry="fixed")
        for across in (True, False):
            found = design(scenario, options={"effort": "fast", "across": across})
            check_places(found)
            assert found.selected_count > start.selected_count

    def test_elementwise_moves_to_the_best_place(self) -> None:
        scenario = paper(5, 2, 2, 10.0, 5, candidates_m=1.0, length_m=12.0)
        layout, beam, everyone = scenario.uniform_layout(), np.full(2, 0.5**0.5 + 0j), np.ones(5, dtype=bool)
        found = Elementwise().move(scenario, layout, beam, everyone, np.random.default_rng(0))
        scenario.checked_layout(found.layout)
        assert found.objective[1] > found.objective[0]
        for m, n in np.ndindex(layout.shape):  # no single move helps
            for place in np.arange(13.0):
                moved = found.layout.copy()
                moved[m, n] = place
                if np.diff(moved[m]).min() >= 0.95:
                    gain = weakest_gain(scenario, moved, beam, everyone)
                    assert gain <= found.objective[1] * (1.0 + 1e-4)

    def test_a_start_layout_and_other_channel_models(self) -> None:
        scenario = paper(8, 2, 3, 5.0, 6, candidates_m=0.25, loss_db_per_m=0.1)
        first = design(scenario, options={"effort": "fast"})
        again = design(scenario, options={"effort": "fast"}, start_layout=first.layout)
        assert again.selected_count >= first.selected_count
        pattern = replace(scenario, channel=replace(scenario.channel, models=(Pattern(),)))
        found = design(pattern, options={"effort": "fast"})
        check_places(found)
        assert found.selected_count <= first.selected_count
