"""Waveguides that are cut into segments."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import (
    Channel,
    Design,
    InvalidInput,
    Receiver,
    Scenario,
    certify_layouts,
    design,
    load,
    select,
    tolerance,
    track,
)
from airpass.channel.pattern import Pattern
from airpass.channel.sampled import LIGHT_M_S, SampledResponse
from airpass.channel.segments import places_on
from airpass.core.types import Complex, Real
from airpass.designs.joint.space import scores_at, space_of
from airpass.designs.margins import exact_margins, margins
from airpass.designs.plus import AirpassPlus
from airpass.geometry.base import weakest_gain
from airpass.geometry.elementwise import Elementwise
from airpass.geometry.hago import Hago
from airpass.scenario import StraightLines
from taylor import remainder_slope

FEEDS = ("left", "right", "centre")


def cut(
    segments: int,
    mode: str = "summed",
    *,
    devices: int = 6,
    waveguides: int = 3,
    antennas: int = 4,
    snr_db: float = 5.0,
    seed: int = 1,
    loss_db_per_m: float = 0.3,
    feed: Any = "left",
    length_m: Any = 40.0,
    **channel: Any,
) -> Scenario:
    scenario = Scenario.paper(devices, waveguides, antennas, snr_db, seed)
    options: dict[str, Any] = {"segments": segments, "segment_mode": mode} if segments > 1 else {}
    return replace(
        scenario,
        receiver=replace(scenario.receiver, feed=feed, length_m=length_m),
        channel=Channel(loss_db_per_m=loss_db_per_m, **options, **channel),
    )


def by_hand(scenario: Scenario, layout: Real) -> Complex:
    """Responses of all antennas, shape (M, N, K), antenna by antenna."""
    receiver, radio, devices = scenario.receiver, scenario.radio, scenario.devices
    count, loss = scenario.channel.segments, scenario.channel.loss_db_per_m
    words = [receiver.feed] * receiver.waveguides if isinstance(receiver.feed, str) else receiver.feed
    result = np.empty((*layout.shape, devices.count), np.complex128)
    for m, n in np.ndindex(*layout.shape):
        place, whole = layout[m, n], receiver.lengths[m]
        borders = [whole * q / count for q in range(count + 1)]
        inside = [q for q in range(count) if borders[q] <= place <= borders[q + 1]]
        begin, end = borders[inside[-1]], borders[inside[-1] + 1]
        feed = {"left": begin, "right": end, "centre": (begin + end) / 2}[words[m]]
        guide = abs(place - feed)
        for k in range(devices.count):
            distance = np.hypot(
                np.hypot(place - devices.x_m[k], receiver.waveguide_y[m] - devices.y_m[k]),
                receiver.heights[m] - devices.z_m[k],
            )
            phase = 2 * np.pi / radio.wavelength_m * (distance + radio.refractive_index * guide)
            amplitude = radio.path_gain * devices.gain[k] / (np.sqrt(layout.shape[1]) * distance)
            result[m, n, k] = amplitude * 10 ** (-loss * guide / 20) * np.exp(-1j * phase)
    return result


def check_selected(found: Design) -> None:
    """All antennas of a waveguide on one segment, and channels of the layout."""
    scenario = found.scenario
    assert found.layout is not None
    scenario.checked_layout(found.layout)
    length = scenario.receiver.lengths / scenario.channel.segments
    for row, part in zip(found.layout, length, strict=True):
        middle = np.floor(row.mean() / part)
        assert middle * part - 1e-6 <= row[0] <= row[-1] <= (middle + 1) * part + 1e-6
    np.testing.assert_allclose(found.channels, by_hand(scenario, found.layout).sum(axis=1), rtol=1e-8)


class TestChannel:
    @pytest.mark.parametrize("mode", ["summed", "selected"])
    @pytest.mark.parametrize("feed", [*FEEDS, ("left", "right", "centre")])
    @pytest.mark.parametrize("segments", [1, 3, 7])
    def test_responses_by_hand(self, segments: int, feed: Any, mode: str) -> None:
        scenario = cut(segments, mode, feed=feed, length_m=(40.0, 33.0, 37.0), antennas=3)
        for seed in range(4):
            layout = scenario.random_layout(np.random.default_rng(seed))
            expected = by_hand(scenario, layout)
            np.testing.assert_allclose(scenario.uplink.terms(layout), expected, rtol=1e-9)
            np.testing.assert_allclose(scenario.channels(layout), expected.sum(axis=1), rtol=1e-8)

    def test_places_on_borders_belong_to_the_right_segment(self) -> None:
        # Borders at multiples of 40/3 m are not exact in binary.
        scenario = cut(3, devices=2, waveguides=1, antennas=4, loss_db_per_m=1.0)
        layout = np.array([[0.0, 40.0 / 3, 2 * (40.0 / 3), 40.0]])
        decay = np.abs(scenario.uplink.terms(layout) / cut(1, devices=2, waveguides=1).uplink.terms(layout))
        without = cut(1, devices=2, waveguides=1, loss_db_per_m=0.3)
        assert without.channel.segments == 1
        guide = 10 ** (-1.0 * np.array([0.0, 0.0, 0.0, 40.0 / 3]) / 20)
        whole = 10 ** (-0.3 * layout[0] / 20)
        np.testing.assert_allclose(decay[0, :, 0], guide / whole, rtol=1e-7)

    @given(st.integers(0, 2**32))
    def test_without_loss_only_phases_change(self, seed: int) -> None:
        whole, parts = cut(1, loss_db_per_m=0.0), cut(5, loss_db_per_m=0.0)
        layout = whole.random_layout(np.random.default_rng(seed))
        a, b = whole.uplink.terms(layout), parts.uplink.terms(layout)
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-12)
        # The difference of the phase is that of the distances to the feeds, the same for all devices.
        turn = np.exp(2j * np.pi / 0.125 * 1.45 * 8.0 * np.floor(layout / 8.0))
        np.testing.assert_allclose(b, a * turn[:, :, None], rtol=1e-8)

    @given(st.integers(0, 2**32), st.sampled_from([2, 5, 8]))
    def test_loss_is_smaller_than_on_a_whole_waveguide(self, seed: int, segments: int) -> None:
        whole, parts = cut(1), cut(segments)
        layout = whole.random_layout(np.random.default_rng(seed))
        assert (np.abs(parts.uplink.terms(layout)) >= np.abs(whole.uplink.terms(layout)) * (1 - 1e-9)).all()

    def test_many_segments_are_antennas_without_waveguides(self) -> None:
        scenario = cut(200_000, devices=3, waveguides=1, antennas=3)
        layout = scenario.random_layout(np.random.default_rng(0))
        dx = layout[0][:, None] - scenario.devices.x_m
        distance = np.sqrt(dx**2 + scenario.devices.y_m**2 + 16.0)
        bare = scenario.devices.gain * np.exp(-2j * np.pi * distance / 0.125) / (np.sqrt(3) * distance)
        np.testing.assert_allclose(scenario.uplink.terms(layout)[0], bare, rtol=2e-2)

    def test_one_segment_is_the_papers_waveguide_bit_for_bit(self) -> None:
        paper = Scenario.paper(8, 3, 3, 0.0, 4)
        one = replace(paper, channel=Channel(segments=1))
        assert one.segments is None
        layout = paper.random_layout(np.random.default_rng(0))
        assert (one.random_layout(np.random.default_rng(0)) == layout).all()
        assert (one.uplink.channels(layout) == paper.uplink.channels(layout)).all()
        a, b = design(paper, options={"effort": "fast"}), design(one, options={"effort": "fast"})
        np.testing.assert_array_equal(a.layout, b.layout)
        assert (a.beam == b.beam).all()

    def test_one_antenna_per_segment(self) -> None:
        # The combiner's 1/sqrt(Q) is 1/sqrt(N): channels of single antennas on short waveguides, summed.
        scenario = cut(4, waveguides=1, antennas=4)
        layout = np.array([[1.0, 13.5, 20.0, 39.0]])
        total = np.zeros(scenario.devices.count, np.complex128)
        for q, place in enumerate(layout[0]):
            alone = replace(
                scenario,
                receiver=replace(scenario.receiver, antennas=1, length_m=10.0),
                devices=replace(scenario.devices, x_m=scenario.devices.x_m - 10.0 * q, drawn_from=None),
                channel=Channel(loss_db_per_m=0.3),
            )
            total += alone.channels(np.array([[place - 10.0 * q]]))[0]
        np.testing.assert_allclose(scenario.channels(layout)[0], total / np.sqrt(4), rtol=1e-9)

    @pytest.mark.parametrize("feed", FEEDS)
    @pytest.mark.parametrize("models", [(), (Pattern(exponent=2.0),)])
    def test_derivative(self, feed: str, models: Any) -> None:
        scenario = cut(4, feed=feed, models=models)
        layout = scenario.random_layout(np.random.default_rng(3))
        slopes = scenario.uplink.derivative(layout)
        for m, n, k in ((0, 0, 0), (1, 2, 3), (2, 3, 5)):

            def moved(t: float, m: int = m, n: int = n, k: int = k) -> complex:
                other = layout.copy()
                other[m, n] += t
                return complex(scenario.uplink.channels(other)[m, k])

            assert remainder_slope(moved, slopes[m, n, k], largest=1e-3) > 1.9

    def test_derivative_on_a_border_is_that_to_the_right(self) -> None:
        scenario = cut(4, waveguides=1, antennas=2)
        layout = np.array([[10.0, 25.0]])
        slope = scenario.uplink.derivative(layout)[0, 0, 0]

        def moved(t: float) -> complex:
            return complex(scenario.uplink.channels(layout + np.array([[t, 0.0]]))[0, 0])

        assert remainder_slope(moved, slope, largest=1e-3) > 1.9
        assert abs(moved(-1e-6) - moved(0.0)) > 0.01 * abs(moved(0.0))

    @pytest.mark.parametrize("mode", ["summed", "selected"])
    @pytest.mark.parametrize("models", [(), (Pattern(exponent=1.0),)])
    def test_searches_see_the_same_channel(self, mode: str, models: Any) -> None:
        scenario = cut(3, mode, models=models, feed=("left", "right", "centre"))
        space = space_of(scenario, np.sqrt(scenario.budget) / scenario.weights, 0.02, 2.0**30)
        rng = np.random.default_rng(1)
        layout = scenario.random_layout(rng)
        beam = rng.normal(size=3) + 1j * rng.normal(size=3)
        beam /= np.linalg.norm(beam)
        effective = np.sqrt(scenario.budget) * scenario.channels(layout) / scenario.weights
        expected = np.abs(beam.conj() @ effective) ** 2
        np.testing.assert_allclose(scores_at(space, layout, beam), expected, rtol=1e-3 if models else 1e-9)
        grid = np.arange(space.points) * 0.02
        table = space.table[:, :, 0] + 1j * space.table[:, :, 1]
        # Without the 1/sqrt(N) of the antennas and the weights: both are in `row_scale`.
        terms = scenario.uplink.terms(np.tile(grid, (3, 1)), scenario.receiver.antennas)
        wanted = np.sqrt(scenario.budget) * terms / scenario.weights
        found = table.transpose(0, 2, 1) * space.row_scale[:, None] * space.reference
        np.testing.assert_allclose(found, wanted, atol=2e-3 * np.abs(wanted).max())

    def test_sampled_responses(self) -> None:
        scenario = cut(4, waveguides=2, antennas=3, feed=("right", "centre"))
        scenario = scenario.with_radio(wavelength_m=LIGHT_M_S / 2.4e9)
        layout = scenario.random_layout(np.random.default_rng(0))
        devices = np.column_stack([scenario.devices.x_m, scenario.devices.y_m, scenario.devices.z_m])
        dx = layout[:, :, None] - devices[:, 0]
        across = scenario.receiver.waveguide_y[:, None, None] - devices[:, 1]
        distance = np.sqrt(dx**2 + across**2 + 16.0)
        air: Any = scenario.devices.gain / distance * np.exp(-2j * np.pi * distance * 2.4e9 / LIGHT_M_S)
        sampled = SampledResponse(air, layout, False, devices, 2.4)
        found = sampled.with_waveguides(scenario.receiver, 1.45, 0.3, segments=4)
        np.testing.assert_allclose(found.channels(layout), scenario.channels(layout), rtol=1e-7)


class TestLayouts:
    @given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 5), st.integers(1, 6))
    def test_layouts_are_feasible(self, seed: int, segments: int, waveguides: int, antennas: int) -> None:
        scenario = cut(segments, "selected", waveguides=waveguides, antennas=antennas)
        rng = np.random.default_rng(seed)
        for layout in (scenario.uniform_layout(), scenario.random_layout(rng), scenario.random_layout(rng)):
            scenario.checked_layout(layout)
            numbers = np.minimum(layout // (40.0 / segments), segments - 1)
            assert (np.ptp(numbers, axis=1) == 0).all()

    def test_waveguides_take_turns(self) -> None:
        def taken(segments: int, waveguides: int) -> list[int]:
            layout = cut(segments, "selected", waveguides=waveguides, antennas=1).uniform_layout()
            return [int(x) for x in layout[:, 0] // (40.0 / segments)]

        assert taken(3, 7) == [0, 1, 2, 0, 1, 2, 0]
        assert taken(4, 2) == [1, 3]
        assert taken(4, 1) == [2]

    def test_layouts_on_several_segments_are_refused(self) -> None:
        rows = [[1.0, 2.0], [9.0, 11.0]]
        summed = cut(4, waveguides=2, antennas=2)
        summed.checked_layout(rows)
        selected = cut(4, "selected", waveguides=2, antennas=2)
        selected.checked_layout([[1.0, 2.0], [8.0, 9.0]])
        selected.checked_layout([[30.0, 40.0], [0.0, 9.99]])
        with pytest.raises(
            InvalidInput, match=r"layout\[1\] is on segments 0 to 1: .* one segment"
        ) as caught:
            selected.checked_layout(rows)
        assert "\n" not in str(caught.value)

    def test_errors_do_not_move_antennas_to_another_segment(self) -> None:
        scenario = cut(4, waveguides=1, antennas=3)
        assert scenario.segments is not None
        nominal = np.array([[0.0, 10.0, 39.999]])
        moved = places_on(scenario.segments, nominal, nominal + np.array([[-0.01, -0.01, 0.01]]))
        np.testing.assert_allclose(moved, [[-0.01, 10.0, 40.009]], atol=1e-12)


class TestScenario:
    @pytest.mark.parametrize("mode", ["summed", "selected"])
    def test_files(self, tmp_path: Path, mode: str) -> None:
        scenario = cut(4, mode)
        scenario.save(tmp_path / "room.toml")
        assert Scenario.load(tmp_path / "room.toml").channel == scenario.channel
        found = design(scenario, options={"effort": "fast"})
        found.save(tmp_path / "design.json")
        read = load(tmp_path / "design.json")
        assert read.scenario.channel == scenario.channel
        assert (read.layout == found.layout).all()
        assert "segments" not in cut(1).to_dict()["channel"]

    @pytest.mark.parametrize(
        ("channel", "words"),
        [
            ({"segments": 0}, ["channel.segments", "0"]),
            ({"segments": 2.5}, ["channel.segments", "2.5"]),
            ({"segments": 2, "segment_mode": "both"}, ["channel.segment_mode", "summed", "selected"]),
            ({"segment_mode": "selected"}, ["channel.segment_mode", "no effect without channel.segments"]),
            ({"segments": 12, "segment_mode": "selected"}, ["channel.segments = 12", "3.8 m", "3.33333 m"]),
            ({"segments": 2, "power_split": "proportional"}, ["channel.power_split", "segments = 2"]),
            (
                {"segments": 4, "segment_mode": "selected", "candidates_m": 3.0},
                ["candidates_m: segment 0", "4 antennas", "antennas = 5"],
            ),
        ],
    )
    def test_refused_in_one_line(self, channel: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict({"channel": channel})
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)

    def test_what_moves_antennas_along_whole_waveguides(self) -> None:
        scenario = cut(2, "selected")
        with pytest.raises(InvalidInput, match=r"segment_mode = 'selected': airpass-lasting moves"):
            design(scenario, "airpass-lasting")
        with pytest.raises(InvalidInput, match=r"segment_mode = 'selected': tracking with antenna_speed"):
            track(scenario, StraightLines(), seconds=0.1, antenna_speed_m_s=1.0)


class TestMethods:
    @pytest.mark.parametrize("mode", ["summed", "selected"])
    @pytest.mark.parametrize("method", [Hago(), Elementwise()])
    def test_geometry(self, method: Any, mode: str) -> None:
        scenario = cut(4, mode, feed=("left", "right", "centre"))
        rng = np.random.default_rng(2)
        layout = scenario.random_layout(rng)
        beam = np.full(3, 3**-0.5 + 0j)
        everyone = np.ones(6, dtype=bool)
        found = method.move(scenario, layout, beam, everyone, rng)
        scenario.checked_layout(found.layout)
        after = weakest_gain(scenario, found.layout, beam, everyone)
        assert after > weakest_gain(scenario, layout, beam, everyone)
        if mode == "selected":
            assert (found.layout[:, 0] // 10.0 == layout[:, 0] // 10.0).all()

    @pytest.mark.parametrize("mode", ["summed", "selected"])
    @pytest.mark.parametrize("method", ["airpass", "airpass-plus", "distributed-m", "mimo-m"])
    def test_designs(self, method: str, mode: str) -> None:
        found = design(cut(3, mode, snr_db=8.0), method)
        if found.layout is not None and mode == "selected":
            check_selected(found)
        if method == "mimo-m":
            whole = design(cut(1, snr_db=8.0), method)
            assert (found.scores == whole.scores).all()

    def test_selected_with_other_parts_of_the_channel(self) -> None:
        parts: list[dict[str, Any]] = [
            {"candidates_m": 0.5},
            {"power_split": "proportional", "power_split_delta": 0.6},
            {"blockage_per_m": 0.05},
        ]
        for part in parts:
            scenario = cut(3, "selected", snr_db=8.0, **part)
            found = design(scenario, options={"effort": "fast"})
            assert found.layout is not None
            scenario.checked_layout(found.layout)
            assert found.selected_count > 0

    def test_shares_are_counted_from_the_feed_of_the_selected_segment(self) -> None:
        left, right = (
            cut(
                4,
                "selected",
                waveguides=1,
                antennas=2,
                feed=feed,
                power_split="proportional",
                power_split_delta=0.6,
            )
            for feed in ("left", "right")
        )
        layout = np.array([[12.0, 17.0]])
        for scenario, order in ((left, [0, 1]), (right, [1, 0])):
            equal = by_hand(scenario, layout) * np.sqrt(2)
            shares = 0.6 * np.sqrt(1 - 0.36) ** np.array(order)
            np.testing.assert_allclose(
                scenario.uplink.terms(layout), equal * shares[None, :, None], rtol=1e-9
            )

    def test_the_same_seed_gives_the_same_design(self) -> None:
        scenario = cut(4, "selected", devices=12, snr_db=0.0)
        first, second = (design(scenario, options={"effort": "fast"}, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.layout, second.layout)
        assert (first.beam == second.beam).all()

    @pytest.mark.parametrize("mode", ["summed", "selected"])
    def test_segments_help_or_cost_as_they_must(self, mode: str) -> None:
        # With much loss, short ways to the feeds serve more devices.
        whole = design(cut(1, devices=20, snr_db=4.0, loss_db_per_m=1.0), options={"effort": "fast"})
        parts = design(cut(4, mode, devices=20, snr_db=4.0, loss_db_per_m=1.0), options={"effort": "fast"})
        assert parts.selected_count > whole.selected_count

    def test_a_start_is_never_made_worse(self) -> None:
        scenario = cut(4, "selected", devices=12, snr_db=0.0)
        start = design(scenario, selection="hrmc+", geometry="elementwise")
        found = design(scenario, AirpassPlus(effort="fast"), start_layout=start.layout, start_beam=start.beam)
        assert found.selected_count >= start.selected_count


class TestSelectedSegments:
    def layouts(self, scenario: Scenario) -> Any:
        """All layouts on the given places."""
        assert scenario.candidates is not None
        size = scenario.receiver.lengths / scenario.channel.segments
        rows = []
        for m, places in enumerate(scenario.candidates.places):
            number = np.minimum(np.floor(places / size[m] + 1e-9), scenario.channel.segments - 1)
            parts = (places[number == q] for q in range(scenario.channel.segments))
            rows.append(
                [
                    chosen
                    for part in parts
                    for chosen in itertools.combinations(part, scenario.receiver.antennas)
                    if np.diff(chosen).min(initial=np.inf) >= scenario.receiver.min_gap_m - 1e-9
                ]
            )
        return (np.array(layout) for layout in itertools.product(*rows))

    def test_against_all_segments_and_places(self) -> None:
        missed = 0
        for seed in range(1, 5):
            scenario = cut(
                3, "selected", devices=5, waveguides=2, antennas=2, snr_db=20.0, seed=seed, candidates_m=4.0
            )
            tried = [
                select(scenario.channels(layout), scenario.weights, scenario.budget, "hrmc+").selected_count
                for layout in self.layouts(scenario)
            ]
            found = design(scenario)
            check_selected(found)
            assert len(tried) > 50
            assert max(tried) > min(tried)
            missed += found.selected_count < max(tried)
        assert missed <= 1

    def test_against_all_segments(self) -> None:
        # With one antenna per waveguide, the best place on a fine grid of every segment is known.
        found, best = [], []
        for seed in range(3):
            scenario = cut(4, "selected", devices=8, waveguides=1, antennas=1, snr_db=30.0, seed=seed)
            places = np.arange(0.0, 40.0, 0.125 / 40)[None, :]
            gains = scenario.budget * np.abs(scenario.uplink.terms(places, 1)[0] / scenario.weights) ** 2
            best.append(int((gains >= 1.0).sum(axis=1).max()))
            found.append(design(scenario).selected_count)
        assert found == best


class TestBounds:
    @settings(max_examples=15)
    @given(st.integers(0, 10**6), st.sampled_from(["summed", "selected"]), st.sampled_from([2, 5]))
    def test_no_draw_exceeds_the_bound(self, seed: int, mode: str, segments: int) -> None:
        scenario = cut(segments, mode, waveguides=2, antennas=2, length_m=8.0, seed=seed, loss_db_per_m=2.0)
        limit = certify_layouts(scenario)
        rng = np.random.default_rng(seed)
        for _ in range(5):
            channels = scenario.channels(scenario.random_layout(rng))
            picked = select(channels, scenario.weights, scenario.budget, "hrmc+")
            assert picked.selected_count <= limit.at_most
            assert (np.linalg.norm(picked.effective, axis=0) ** 2 <= limit.best_scores).all()

    def test_bounds_do_not_count_on_the_loss_of_whole_waveguides(self) -> None:
        # All antennas at feeds of segments have no loss: the bound must allow for that.
        scenario = cut(40, waveguides=1, antennas=3, devices=1, loss_db_per_m=3.0)
        nearest = np.round(scenario.devices.x_m[0])
        layout = nearest + np.array([[-1.0, 0.0, 1.0]])
        power = np.abs(scenario.uplink.terms(layout)).sum() ** 2 * scenario.budget / scenario.weights[0] ** 2
        assert power <= certify_layouts(scenario).best_scores[0] <= 1.2 * power


class TestMargins:
    def test_with_many_places_they_are_those_of_the_segments(self) -> None:
        # Required scores depend on loss only through the power of the sum.
        whole, parts = cut(1, loss_db_per_m=1.0), cut(8, loss_db_per_m=1.0)
        free = cut(1, loss_db_per_m=0.0)
        low, middle, high = (margins(one, 2.0, 0.95) for one in (whole, parts, free))
        assert (low < middle).all()
        assert (middle < high).all()

    def test_exact_margins_follow_the_derivative(self) -> None:
        # With a centre feed, antennas left and right of the feed of their segment differ in slope.
        scenario = cut(4, waveguides=1, antennas=1, devices=1, feed="centre", loss_db_per_m=0.0)
        beam = np.ones(1, np.complex128)
        for place in (11.0, 19.0):
            layout = np.array([[place]])
            side = 1.0 if place > 15.0 else -1.0
            dx = place - scenario.devices.x_m[0]
            distance = np.sqrt(dx**2 + scenario.devices.y_m[0] ** 2 + 16.0)
            angle = 2e-3 * 2 * np.pi / 0.125 * (dx / distance + 1.45 * side)
            kept = np.exp(-(angle**2))
            size = np.sqrt(scenario.budget) * np.abs(scenario.channels(layout)[0, 0]) / scenario.weights[0]
            deviation = size * np.sqrt(0.5 * (1 - kept) * (1 - kept))
            expected = max(((1 + 1.6448536269514722 * deviation) / np.sqrt(kept)) ** 2, 1.0)
            found = exact_margins(scenario, layout, beam, 2.0, 0.95)
            assert found[0] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("mode", ["summed", "selected"])
    def test_robust_designs(self, mode: str) -> None:
        scenario = cut(4, mode, devices=8, snr_db=10.0)
        found = design(scenario, options={"effort": "fast", "tolerance_mm": 1.0})
        kept = tolerance(found, position_mm=1.0, draws=50).outcomes["rescaled"]
        assert found.selected_count > 0
        assert kept.counts.mean() >= 0.9 * found.selected_count


def test_the_receiver_can_have_waveguides_of_several_lengths() -> None:
    receiver = Receiver(waveguides=2, antennas=3, length_m=(40.0, 6.0))
    with pytest.raises(InvalidInput, match=r"segments have 1.5 m"):
        Scenario(receiver=receiver, channel=Channel(segments=4, segment_mode="selected"))
