"""Priorities: the sum of v_k over the selected devices in place of their number."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import Design, InvalidInput, Scenario, Selection, certify, design, load, select
from airpass import designs as design_methods
from airpass import selection as selection_methods
from airpass.core.types import Complex, Real
from airpass.designs.plus import AirpassPlus
from airpass.optim.ranking import rank, value_rank
from airpass.selection.certificate import upper_bound
from airpass.selection.hrmc_plus import regrow

USED = ("exhaustive", "hrmc", "hrmc+")
FAST = AirpassPlus(effort="fast", threads=1)


def columns_of(seed: int, size: int, count: int, scale: float = 0.7) -> Complex:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, size, count))
    drawn: Complex = scale * parts[0] + 1j * scale * parts[1]
    return drawn


def value_of(picked: Selection, priorities: Real) -> float:
    return float(priorities[picked.scores >= 1.0].sum())


def picked(effective: Complex, method: Any, **more: Any) -> Selection:
    return select(effective, np.ones(effective.shape[1]), 1.0, method, **more)


def assert_same(one: Design | Selection, other: Design | Selection) -> None:
    assert one.beam.tobytes() == other.beam.tobytes()
    assert one.scores.tobytes() == other.scores.tobytes()
    if isinstance(one, Design) and isinstance(other, Design) and one.layout is not None:
        assert other.layout is not None
        assert one.layout.tobytes() == other.layout.tobytes()
        assert one.work == other.work
        assert [step.weakest_score for step in one.trace] == [step.weakest_score for step in other.trace]


class TestRanks:
    @given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=20))
    def test_ones_give_the_plain_rank(self, drawn: list[float]) -> None:
        scores = np.array(drawn)
        assert value_rank(scores, np.ones(scores.size)) == rank(scores)

    def test_by_hand(self) -> None:
        scores = np.array([1.5, 0.9, 1.0, 7.0])
        assert value_rank(scores, np.array([2.0, 1.0, 0.5, 0.0])) == (2.5, 1.0)
        assert value_rank(scores, np.array([0.0, 1.0, 0.0, 0.0])) == (0.0, 0.9)


class TestSelection:
    @pytest.mark.parametrize("name", sorted(selection_methods.METHODS.methods()))
    def test_ones_change_nothing_for_any_method(self, name: str) -> None:
        effective = columns_of(3, 3, 8)
        plain = picked(effective, name, seed=5)
        for ones in (1.0, np.ones(8), [2.0] * 8):
            assert_same(picked(effective, name, seed=5, priorities=ones), plain)

    @pytest.mark.parametrize("name", sorted(selection_methods.METHODS.methods()))
    def test_methods_use_priorities_or_refuse_them(self, name: str) -> None:
        effective = columns_of(4, 3, 8)
        priorities = np.array([5.0, 0.1, 1.0, 1.0, 0.0, 2.0, 0.3, 1.0])
        if name not in USED:
            with pytest.raises(InvalidInput, match=f"{name}.*cannot use"):
                picked(effective, name, priorities=priorities)
            return
        found = picked(effective, name, priorities=priorities)
        assert found.value == value_of(found, priorities)
        assert found.value >= value_of(picked(effective, name), priorities)
        assert np.linalg.norm(found.beam) == pytest.approx(1.0)

    @pytest.mark.parametrize("name", USED)
    @settings(max_examples=15)
    @given(seed=st.integers(0, 2**32))
    def test_doubling_changes_only_the_value(self, name: str, seed: int) -> None:
        effective = columns_of(seed, 3, 7)
        priorities = np.random.default_rng(seed).random(7)
        one, two = (picked(effective, name, priorities=factor * priorities) for factor in (1.0, 2.0))
        assert_same(one, two)
        assert two.value == 2.0 * one.value

    def test_a_device_of_high_priority_replaces_several(self) -> None:
        # Three nearly parallel columns, and one that is orthogonal to them: a beam selects either.
        effective = np.zeros((2, 4), np.complex128)
        effective[0, :3] = [1.05, 1.1, 1.2]
        effective[1, 3] = 1.05
        assert picked(effective, "hrmc+").selected.tolist() == [True, True, True, False]
        for name in USED:
            found = picked(effective, name, priorities=[1.0, 1.0, 1.0, 3.5])
            assert found.selected.tolist() == [False, False, False, True]
            assert found.value == 3.5
            kept = picked(effective, name, priorities=[1.0, 1.0, 1.0, 2.5])
            assert kept.selected.tolist() == [True, True, True, False]

    def test_exhaustive_equals_the_best_of_all_subsets(self) -> None:
        for seed in range(12):
            effective = columns_of(seed, 3, 6)
            priorities = np.random.default_rng(seed).exponential(size=6)
            found = picked(effective, "exhaustive", priorities=priorities)
            best = 0.0
            for code in range(1, 2**6):
                chosen = np.array([code >> k & 1 for k in range(6)], dtype=bool)
                value = float(priorities[chosen].sum())
                if value > best:
                    subset = picked(effective[:, chosen], "exhaustive", seed=1)
                    best = value if subset.selected.all() else best
            assert found.value == pytest.approx(best)

    def test_hrmc_plus_reaches_the_optimum_in_nine_of_ten_draws(self) -> None:
        reached = total = 0
        for seed in range(120):
            count = 6 + seed % 4
            effective = columns_of(1000 + seed, 3 + seed % 2, count, 0.6)
            rng = np.random.default_rng(seed)
            priorities = rng.exponential(size=count) if seed % 2 else rng.choice([1.0, 0.05], count)
            best = picked(effective, "exhaustive", priorities=priorities).value
            found = picked(effective, "hrmc+", priorities=priorities).value
            assert found <= best * (1.0 + 1e-12)
            reached += found >= best * (1.0 - 1e-12)
            total += 1
        assert reached >= 0.9 * total

    @settings(max_examples=20)
    @given(st.integers(0, 2**32))
    def test_growing_again_never_loses_value(self, seed: int) -> None:
        effective = columns_of(seed, 4, 9)
        rng = np.random.default_rng(seed)
        priorities = rng.random(9)
        beam = rng.standard_normal(4) + 1j * rng.standard_normal(4)
        beam /= np.linalg.norm(beam)

        def value(one: Complex) -> float:
            return float(priorities[np.abs(one.conj() @ effective) ** 2 >= 1.0].sum())

        assert value(regrow(effective, beam, priorities)) >= value(beam)

    @pytest.mark.parametrize(
        ("priorities", "words"),
        [
            ([1.0, 2.0], "shape"),
            ([1.0, -1.0, 1.0], r"priorities\[1\] = -1"),
            ([0.0, 0.0, 0.0], "all are zero"),
            ([1.0, np.nan, 1.0], r"priorities\[1\]"),
            (["a", "b", "c"], "real numbers"),
        ],
    )
    def test_wrong_priorities(self, priorities: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            picked(columns_of(1, 2, 3), "hrmc", priorities=priorities)

    def test_stored(self, tmp_path: Path) -> None:
        effective = columns_of(3, 3, 6)
        found = picked(effective, "hrmc+", priorities=np.arange(6.0))
        found.save(tmp_path / "s.json")
        again = load(tmp_path / "s.json")
        assert_same(again, found)
        assert again.value == found.value
        picked(effective, "hrmc+").save(tmp_path / "plain.json")
        assert "priorities" not in json.loads((tmp_path / "plain.json").read_text())


class TestCertificates:
    @settings(max_examples=25)
    @given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 7), st.floats(0.3, 1.5))
    def test_no_subset_beats_the_bound(self, seed: int, size: int, count: int, scale: float) -> None:
        effective = columns_of(seed, size, count, scale)
        priorities = np.random.default_rng(seed).exponential(size=count)
        certificate = upper_bound(effective, priorities)
        best = picked(effective, "exhaustive", priorities=priorities)
        assert best.value <= certificate.at_most <= priorities.sum() * (1.0 + 1e-6)
        # The proof itself, checked by hand.
        able = np.linalg.norm(effective, axis=0) ** 2 >= 1
        u = certificate.multipliers
        assert ((u >= 0) & (u <= priorities)).all()
        proof = (priorities - u)[able].sum()
        if able.any():
            proof += np.linalg.eigvalsh((effective * u) @ effective.conj().T)[-1]
        assert certificate.at_most <= proof * (1.0 + 1e-6) + 1e-9

    def test_ones_give_the_plain_bound(self) -> None:
        effective = columns_of(2, 3, 8)
        plain, ones = upper_bound(effective), upper_bound(effective, np.ones(8))
        assert (plain.at_most, plain.bound) == (ones.at_most, ones.bound)
        assert plain.multipliers.tobytes() == ones.multipliers.tobytes()
        assert isinstance(plain.at_most, int)

    def test_scales_with_the_priorities(self) -> None:
        effective, priorities = columns_of(2, 3, 8), np.arange(1.0, 9.0)
        one, two = (certify(effective, np.ones(8), budget=1.0, priorities=f * priorities) for f in (1, 2))
        assert two.bound == pytest.approx(2.0 * one.bound, rel=1e-6)


class TestScenario:
    def test_absent_means_one_and_is_not_written(self) -> None:
        scenario = Scenario.paper(4)
        assert scenario.priorities.tolist() == [1.0] * 4
        assert "priority" not in scenario.to_dict()["devices"]
        assert scenario.with_priorities(1.0).to_dict() == scenario.to_dict()

    def test_lists_and_numbers(self, tmp_path: Path) -> None:
        scenario = Scenario.paper(3).with_priorities([1.0, 0.0, 2.5])
        scenario.save(tmp_path / "s.toml")
        assert Scenario.load(tmp_path / "s.toml").priorities.tolist() == [1.0, 0.0, 2.5]
        drawn = Scenario.from_dict({"devices": {"count": 3, "seed": 4, "priority": 2}})
        assert drawn.priorities.tolist() == [2.0] * 3
        assert drawn.seed == 4

    @pytest.mark.parametrize("priority", [[1.0, 2.0], [1.0, -1.0, 0.0], [0.0] * 3, "high", [1.0, None, 1.0]])
    def test_wrong_values(self, priority: Any) -> None:
        with pytest.raises(InvalidInput, match=r"devices\.priority"):
            Scenario.from_dict({"devices": {"count": 3, "priority": priority}})


class TestDesigns:
    @pytest.mark.parametrize(
        "name", sorted(set(design_methods.METHODS.methods()) - {"airpass-sdr-dc", "airpass-plus"})
    )
    def test_equal_priorities_change_nothing(self, name: str) -> None:
        scenario = Scenario.paper(6, 3, 3, 3.0, seed=2)
        assert_same(design(scenario.with_priorities(4.0), name), design(scenario, name))

    @pytest.mark.parametrize(("devices", "side", "snr_db"), [(10, 5, 0.0), (30, 6, -8.0)])
    def test_the_joint_search_is_the_same_bit_for_bit(self, devices: int, side: int, snr_db: float) -> None:
        scenario = Scenario.paper(devices, side, side, snr_db, seed=3)
        plain = design(scenario, FAST)
        for equal in (1.0, 2.0):
            again = design(scenario.with_priorities(equal), FAST)
            assert_same(again, plain)
            assert again.value == equal * plain.value
        moved = design(scenario, FAST, start_layout=plain.layout, start_beam=plain.beam)
        again = design(scenario.with_priorities(1.0), FAST, start_layout=plain.layout, start_beam=plain.beam)
        assert_same(again, moved)

    def test_doubling_changes_only_the_value(self) -> None:
        scenario = Scenario.paper(10, 5, 5, -3.0, seed=4)
        priorities = np.random.default_rng(0).random(10)
        one, two = (design(scenario.with_priorities(f * priorities), FAST) for f in (1.0, 2.0))
        assert_same(one, two)
        assert two.value == 2.0 * one.value

    @pytest.mark.parametrize(("method", "snr_db"), [(FAST, -3.0), ("airpass", 5.0), ("mimo-mn-plus", -3.0)])
    def test_value_counts(self, method: Any, snr_db: float) -> None:
        gains = 0.0
        for seed in range(4):
            scenario = Scenario.paper(10, 5, 5, snr_db, seed)
            plain = design(scenario, method)
            left_out = ~plain.selected
            if not left_out.any():
                continue
            priorities = np.where(left_out, 1.0, 0.05)
            found = design(scenario.with_priorities(priorities), method)
            gains += found.value - float(priorities[plain.selected].sum())
        assert gains > 0.0

    def test_devices_without_priority_are_not_wanted(self) -> None:
        scenario = Scenario.paper(8, 4, 4, 0.0, seed=1)
        priorities = np.array([0.0] * 7 + [1.0])
        found = design(scenario.with_priorities(priorities), FAST)
        assert found.selected[7]
        # All antennas serve one device: its score is far above what a design for all gives it.
        assert found.scores[7] > 2.0 * design(scenario, FAST).scores[7]

    def test_methods_that_cannot_use_them(self) -> None:
        scenario = Scenario.paper(4).with_priorities([1.0, 2.0, 1.0, 1.0])
        for name in ("airpass-mp", "airpass-sdr-dc"):
            with pytest.raises(InvalidInput, match="cannot use them"):
                design(scenario, name)

        def own(scenario: Scenario, seed: int) -> Any:
            return scenario.uniform_layout(), np.ones(scenario.receiver.waveguides)

        with pytest.raises(InvalidInput, match="own cannot use priorities"):
            design(scenario, own)

    def test_stored(self, tmp_path: Path) -> None:
        scenario = Scenario.paper(6, 3, 3, 0.0).with_priorities([1.0, 2.0, 0.0, 1.0, 1.0, 0.5])
        found = design(scenario, FAST)
        found.save(tmp_path / "d.json")
        again = load(tmp_path / "d.json")
        assert_same(again, found)
        assert again.value == found.value
