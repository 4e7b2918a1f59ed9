"""The policy of virtual queues."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import (
    InvalidInput,
    Moving,
    Queues,
    RandomWaypoint,
    Scenario,
    aircomp,
    design,
    load,
    select,
    train,
)
from airpass.core.types import Complex, Mask
from airpass.designs.distributed import DistributedMn
from airpass.designs.plus import AirpassPlus
from airpass.designs.queues import Debts
from airpass.learning import aggregation
from airpass.learning.compare import compare, compare_channels
from airpass.learning.options import TrainOptions
from airpass.learning.training import prepare
from command_line import assert_refused

FAST = AirpassPlus(effort="fast", threads=1)
SMALL = Scenario.paper(devices=8, waveguides=4, antennas=4, snr_db=3.0, seed=2)
OPTIONS = TrainOptions(rounds=4, evaluate_every=1, test_images=50, probe_images=20)
ENDLESS = 1e9
WALK = Moving(RandomWaypoint(1.0, seed=4), round_s=0.5)


def channels_of(seed: int, draws: int, chains: int = 2, devices: int = 5) -> Complex:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, draws, chains, devices))
    drawn: Complex = parts[0] + 1j * parts[1]
    return drawn


def families(seed: int, devices: int, count: int) -> Mask:
    """Sets of devices that can take part together, all devices in one at least."""
    rng = np.random.default_rng(seed)
    sets = rng.random((count, devices)) < 0.4
    sets[rng.integers(count, size=devices), np.arange(devices)] = True
    return sets


class TestDebts:
    @given(st.integers(0, 10_000), st.floats(0.05, 1.0))
    def test_what_was_sent_and_what_is_owed_add_up(self, seed: int, share: float) -> None:
        rng = np.random.default_rng(seed)
        debts = Debts(share, np.ones(6), ENDLESS)
        sent = np.zeros(6)
        for _ in range(40):
            senders = rng.random(6) < 0.4
            before = debts.debts
            made_up = debts.pay(senders)
            np.testing.assert_allclose(debts.debts, np.maximum(before + share - senders, 0.0), atol=1e-12)
            assert (made_up[senders] >= 1.0 - 1e-9).all()
            assert (made_up[senders] <= 1.0 / share + 1e-9).all()
            assert not made_up[~senders].any()
            sent += made_up
        np.testing.assert_allclose(sent, 40.0 - debts.debts / share, atol=1e-9)

    @given(st.integers(0, 10_000))
    def test_the_most_valuable_set_leaves_the_smallest_squares(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sets, weights = families(seed, 5, 6), rng.uniform(0.1, 2.0, 5)
        debts = Debts(0.3, weights, ENDLESS)
        debts.debts = rng.uniform(0.0, 2.0, 5)
        values = debts.values(np.ones(5, dtype=bool))
        squares = []
        for senders in sets:
            after = Debts(0.3, weights, ENDLESS)
            after.debts = debts.debts.copy()
            after.pay(senders)
            squares.append(weights @ after.debts**2)
        best = int(np.argmax(sets @ values))
        assert squares[best] == pytest.approx(min(squares), rel=1e-12)

    @given(st.integers(0, 10_000))
    def test_queues_are_bounded_if_the_shares_are_feasible(self, seed: int) -> None:
        """Sets used in turn give each device p_k > a. With d = min(p_k) - a, |q|^2 falls if |q| > K/(2 d)."""
        sets = families(seed, 6, 4)
        lowest = float(sets.mean(axis=0).min())
        share = 0.8 * lowest
        bound = 6.0 / (2.0 * (lowest - share)) + np.sqrt(6.0)
        debts = Debts(share, np.ones(6), ENDLESS)
        everybody = np.ones(6, dtype=bool)
        for _ in range(400):
            debts.pay(sets[np.argmax(sets @ debts.values(everybody))])
            assert np.linalg.norm(debts.debts) <= bound

    def test_debts_are_cut_off(self) -> None:
        debts = Debts(0.5, np.ones(2), 3.0)
        for _ in range(20):
            debts.pay(np.array([True, False]))
        assert debts.debts.tolist() == [0.0, 3.0]

    def test_devices_out_of_reach_have_no_priority(self) -> None:
        debts = Debts(0.5, np.array([1.0, 2.0, 1.0]), 3.0)
        assert debts.values(np.array([True, True, False])).tolist() == [0.125, 0.25, 0.0]
        assert debts.values(np.zeros(3, dtype=bool)).tolist() == [1.0, 2.0, 1.0]


class TestDraws:
    @pytest.mark.parametrize("method", ["hrmc", "hrmc+"])
    def test_with_everybody_served_it_is_the_plain_selection(self, method: str) -> None:
        channels, weights = channels_of(1, 1)[0], np.array([0.1, 0.3, 0.2, 0.25, 0.15])
        plain = select(channels, weights, 10.0, method, mse_threshold=0.03)
        assert plain.selected_count == 5
        for link in Queues().draws(channels, 6, weights, 10.0, method, mse_threshold=0.03):
            np.testing.assert_array_equal(link.beam, plain.beam)
            np.testing.assert_array_equal(link.weights, plain.weights)
            assert link.selected.all()
            assert link.divisor == plain.divisor

    @settings(max_examples=15)
    @given(st.integers(0, 10_000), st.sampled_from([1, 7]))
    def test_every_link_keeps_error_and_power(self, seed: int, draws: int) -> None:
        links = Queues(share=0.25).draws(
            channels_of(seed, draws), 30, None, 0.05, "hrmc+", mse_threshold=0.03, power=2.0
        )
        for link in links:
            plain = aircomp.Link(link.channels, np.full(5, 0.2), link.beam, link.budget)
            np.testing.assert_array_equal(link.selected, plain.selected)
            if link.selected_count:
                assert (link.scores[link.selected] >= 1.0 - 1e-9).all()
                assert link.mse <= 0.03 * (1.0 + 1e-9)
                assert (np.abs(link.transmit) ** 2 <= 2.0 * (1.0 + 1e-9)).all()

    @pytest.mark.parametrize(("seed", "draws", "budget"), [(19, 1, 0.05), (4, 11, 0.03)])
    def test_the_long_run_average_of_constant_updates_is_that_of_fedavg(
        self, seed: int, draws: int, budget: float
    ) -> None:
        weights = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
        updates = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
        rounds, stack = 400, channels_of(seed, draws)
        # A threshold so small that noise does not matter; the budget decides who is selected.
        links = Queues(0.2).draws(stack, rounds, weights, budget, "hrmc+", mse_threshold=1e-16)
        mean, counts = np.zeros(40), np.zeros(5)
        for link in links:
            counts += link.selected
            if link.selected.any():
                sent = aggregation.over_the_air(
                    updates[link.selected],
                    [40],
                    link,
                    aggregation.LinkOptions(),
                    np.random.default_rng(1),
                    np.random.default_rng(2),
                )
                mean += sent.update / rounds
        assert counts.min() > 0
        assert counts.min() < 0.8 * rounds  # not everybody is served in every round
        np.testing.assert_allclose(mean, aggregation.weighted_mean(updates, weights), atol=0.03)
        plain = np.mean([select(one, weights, budget, "hrmc+").selected for one in stack], axis=0)
        assert plain.min() < counts.min() / rounds  # without the policy somebody takes part less often

    def test_a_device_that_cannot_be_served_does_not_matter(self) -> None:
        channels = channels_of(4, 1)[0]
        channels[:, 4] *= 1e-6
        links = list(Queues().draws(channels, 30, None, 0.05, "hrmc+", mse_threshold=0.03))
        assert not any(link.selected[4] for link in links)
        assert np.any([link.selected for link in links], axis=0)[:4].all()
        # Four of five equal weights.
        most = max(link.weights[link.selected].max() for link in links)
        assert most == pytest.approx(0.2)
        sent = np.sum([np.where(link.selected, link.weights, 0.0) / link.divisor for link in links[10:]])
        assert sent / 20.0 == pytest.approx(1.0, abs=0.1)

    def test_methods_that_cannot_use_priorities(self) -> None:
        with pytest.raises(InvalidInput, match="random cannot use priorities"):
            Queues().draws(channels_of(1, 1), 3, None, 1.0, "random")
        with pytest.raises(InvalidInput, match="share"):
            Queues(share=1.5)
        with pytest.raises(InvalidInput, match="share"):
            Queues(share=0.0)
        with pytest.raises(InvalidInput, match="largest_debt"):
            Queues(largest_debt=0.5)


class TestRoom:
    def test_devices_at_rest_are_all_served(self) -> None:
        once = design(SMALL, FAST)
        links = Queues().links(SMALL, 30, FAST)
        np.testing.assert_array_equal(links[0].beam, once.beam)
        chosen = np.array([link.selected for link in links])
        assert once.selected_count < 8
        assert chosen.any(axis=0).all()
        assert chosen[10:].mean(axis=0).min() >= 0.2
        for link in links:
            assert (link.scores[link.selected] >= 1.0 - 1e-9).all()

    def test_if_all_fit_the_design_is_kept(self) -> None:
        strong = SMALL.with_radio(snr_db=20.0)
        once = design(strong, FAST)
        assert once.selected.all()
        for link in Queues().links(strong, 4, FAST):
            np.testing.assert_array_equal(link.beam, once.beam)
            np.testing.assert_array_equal(link.weights, once.weights)
            assert link.divisor == once.divisor

    def test_beams_on_a_layout_that_stays_and_arrays(self) -> None:
        for method, move in ((FAST, "beams"), (DistributedMn(), "antennas"), ("mimo-mn-plus", "beams")):
            strong = SMALL.with_radio(snr_db=6.0)
            links = list(Queues().links(strong, 12, method, move=move))
            for one, other in pairwise(links):
                np.testing.assert_array_equal(one.channels, other.channels)
            once = design(strong, method).selected
            ever = np.any([link.selected for link in links], axis=0)
            assert (ever >= once).all()

    @pytest.mark.parametrize("method", [FAST, DistributedMn()])
    def test_devices_that_move(self, method: Any) -> None:
        scenario = SMALL.with_radio(snr_db=6.0)
        plain = np.array([link.selected for link in WALK.links(scenario, 25, method)])
        links = Queues().links(scenario, 25, method, moving=WALK)
        chosen = np.array([link.selected for link in links])
        assert chosen.any(axis=0).sum() >= plain.any(axis=0).sum()
        assert np.sort(chosen.sum(axis=0))[:3].sum() >= np.sort(plain.sum(axis=0))[:3].sum()
        for link, other in zip(links, WALK.links(scenario, 25, DistributedMn()), strict=True):
            assert (link.scores[link.selected] >= 1.0 - 1e-9).all()
            if isinstance(method, DistributedMn):
                np.testing.assert_array_equal(link.channels, other.channels)

    def test_layouts_less_and_more_often_than_rounds(self) -> None:
        for every in (0.2, 1.0):
            moving = replace(WALK, layout_every_s=every)
            links = Queues().links(SMALL, 4, FAST, moving=moving)
            beams = [link.beam for link in links]
            assert len(beams) == 4
            np.testing.assert_array_equal(links[1].beam, beams[1])  # computed again from the start

    def test_methods_that_cannot_use_priorities(self) -> None:
        with pytest.raises(InvalidInput, match="airpass-sdr-dc cannot use priorities"):
            Queues().links(SMALL, 3, "airpass-sdr-dc")
        with pytest.raises(InvalidInput, match="move"):
            Queues().links(SMALL, 3, FAST, move="walls")


class TestTraining:
    def test_resumed_lengthened_and_with_two_workers(self, tmp_path: Path) -> None:
        scenario, data = prepare(SMALL, options=OPTIONS)
        for moving in (None, WALK):
            common: Any = {"scenario": scenario, "checkpoint": tmp_path / f"{moving is None}.npz"}

            def links(rounds: int, share: float = 0.2, moving: Any = moving) -> Any:
                return Queues(share).links(scenario, rounds, FAST, moving=moving)

            whole = train(links(4), data, options=OPTIONS, workers=2, scenario=scenario)
            short = replace(OPTIONS, rounds=2)
            train(links(2), data, options=short, workers=1, **common)
            rest = train(links(4), data, options=OPTIONS, workers=1, resume=True, **common)
            rest.save(tmp_path / "run.json")
            stored = load(tmp_path / "run.json")[0].link
            assert stored.selected.tolist() == links(4)[3].selected.tolist()
            np.testing.assert_array_equal(stored.weights, scenario.weights)
            np.testing.assert_array_equal(whole.state, rest.state)
            assert rest.config["policy"]["share"] == 0.2
            with pytest.raises(InvalidInput, match="policy"):
                train(links(4, 0.3), data, options=OPTIONS, workers=1, resume=True, **common)

    def test_compare(self) -> None:
        scenario, data = prepare(SMALL, options=OPTIONS)
        runs = compare(scenario, ["fedavg", FAST], data, OPTIONS, workers=1, policy=Queues())
        rest = compare(scenario, ["fedavg"], data, OPTIONS, workers=1)
        np.testing.assert_array_equal(runs[0].state, rest[0].state)
        assert runs[1].config["policy"] == {
            "name": "queues",
            "share": 0.2,
            "largest_debt": 4.0,
            "move": "antennas",
        }
        with pytest.raises(InvalidInput, match="turns"):
            compare(scenario, [FAST], data, OPTIONS, policy=Queues(), turns=2)
        with pytest.raises(InvalidInput, match="ready"):
            compare(scenario, [design(scenario, FAST)], data, OPTIONS, policy=Queues())

    def test_over_given_channels(self) -> None:
        runs = compare_channels(
            channels_of(5, 3, 3, 6),
            ["fedavg", "hrmc"],
            options=OPTIONS,
            snr_db=0.0,
            mse_threshold=0.03,
            blocks="per-round",
            policy=Queues(),
            workers=1,
        )
        assert runs[1].config["draws"] == 3
        assert runs[1].finished


class TestCommand:
    def test_all_three_kinds_of_channels(self, run: Any, tmp_path: Path) -> None:
        common: list[Any] = ["train", "--policy", "queues", "--rounds", 2, "--evaluate-every", 1]
        common += ["--workers", 1, "--target-share", 0.25]
        np.save(tmp_path / "g.npy", channels_of(5, 3, 3, 6))
        room = ["--devices", 6, "--waveguides", 3, "--antennas", 3, "--scheme", "airpass-plus,mimo-m-plus"]
        kinds: dict[str, list[Any]] = {
            "channels": ["--channels", tmp_path / "g.npy", "--channel-blocks", "per-round", "--snr-db", 0],
            "rest": room,
            "beams": [*room, "--move", "beams"],
            "motion": [*room, "--round-seconds", 0.1],
        }
        for kind, flags in kinds.items():
            path = tmp_path / f"{kind}.json"
            assert run(*common, *flags, "--json", path, "--out", tmp_path / kind).code == 0
            config = json.loads(path.read_text())["runs"][-1]["config"]
            assert config["policy"]["share"] == 0.25
            assert ("motion" in config) == (kind == "motion")

    def test_refusals(self, run: Any) -> None:
        assert_refused(run("train", "--target-share", 0.5), "--target-share requires --policy")
        policy = ("train", "--policy", "queues")
        assert_refused(run(*policy, "--target-share", 2), "--target-share = 2", "<= 1")
        for flags in (("--turns", 2), ("--redraw-every", 2), ("--design", "a.json")):
            assert_refused(run(*policy, *flags), flags[0], "--policy")
        assert_refused(run("train", "--move", "beams"), "--move requires --turns or --policy")
        motion = ("--round-seconds", 1, "--move", "beams")
        assert_refused(run(*policy, *motion), "--move", "--round-seconds")
