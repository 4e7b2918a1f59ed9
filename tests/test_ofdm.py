"""Subcarriers: channels, scores of both rules, powers and errors, beams, and the search over layouts."""

import cmath
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

import airpass
from airpass import Channel, InvalidInput, Scenario, WidebandDesign, WidebandLink, design, load
from airpass.aircomp import Link
from airpass.core.types import Complex, Real
from airpass.designs.plus import AirpassPlus
from airpass.designs.wideband import Space
from airpass.designs.wideband_sweep import scan
from airpass.learning.aggregation import Aggregate, LinkOptions
from airpass.learning.subcarriers import over_subcarriers
from airpass.optim import subcarriers
from airpass.optim.conjugate_gradient import Limits
from airpass.optim.objectives import Hill
from airpass.optim.objectives import evaluate as evaluate_hill
from airpass.optim.subcarriers import Goal
from airpass.selection.wideband import Problem, wideband_beams
from airpass.wideband import RULES, combined_scores, subcarrier_scores
from command_line import assert_refused
from taylor import remainder_slope

LIGHT_M_S = 299_792_458.0
FAST: dict[str, Any] = {"effort": "fast"}


def room(channel: dict[str, Any] | None = None, snr_db: float = 4.0, **sizes: int) -> Scenario:
    """A small scenario of the paper's with subcarriers."""
    given = {"devices": 8, "waveguides": 3, "antennas": 3, "seed": 5} | sizes
    base = Scenario.paper(snr_db=snr_db, **given)
    return replace(base, channel=Channel(**{"subcarriers": 4, "bandwidth_mhz": 10.0} | (channel or {})))


def random_link(rng: np.random.Generator, rule: str, count: int = 3) -> WidebandLink:
    """Random channels and beams, scaled such that some devices are selected."""
    shape = (count, 4, 6)
    channels = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    beams = rng.standard_normal(shape[:2]) + 1j * rng.standard_normal(shape[:2])
    beams /= np.linalg.norm(beams, axis=1, keepdims=True)
    weights = rng.uniform(0.5, 1.5, shape[2])
    return WidebandLink(channels, weights, beams, 3.0, 2.0, 0.1, rule=rule)


class TestChannels:
    def test_frequencies(self) -> None:
        scenario = room({"subcarriers": 5, "bandwidth_mhz": 20.0})
        carrier = LIGHT_M_S / 0.125
        expected = [carrier + (s - 2) * 4e6 for s in range(5)]
        np.testing.assert_allclose(scenario.frequencies_hz, expected, rtol=1e-14)
        assert scenario.subcarriers[2].radio.wavelength_m == 0.125

    def test_each_subcarrier_is_eq_64_at_its_frequency(self) -> None:
        scenario = room()
        layout = scenario.random_layout(np.random.default_rng(0))
        carrier = LIGHT_M_S / scenario.radio.wavelength_m
        devices, receiver = scenario.devices, scenario.receiver
        for s, one in enumerate(scenario.subcarriers):
            kappa = 2 * math.pi * (carrier + (s - 1.5) * 2.5e6) / LIGHT_M_S
            got = one.uplink.channels(layout)
            for m, k in itertools.product(range(3), range(8)):
                total = 0j
                for place in layout[m]:
                    dy = float(devices.y_m[k]) - m * 2.0
                    distance = math.hypot(float(devices.x_m[k]) - place, dy, receiver.heights[m])
                    total += cmath.exp(-1j * kappa * (distance + 1.45 * place)) / distance
                expected = float(devices.gain[k]) * total / math.sqrt(3)
                assert abs(got[m, k] - expected) < 1e-9

    def test_arrays(self) -> None:
        scenario = room()
        found = design(scenario, "mimo-mn-plus", options={"axis": "xz"})
        assert found.array is not None
        places = np.column_stack([scenario.devices.x_m, scenario.devices.y_m, scenario.devices.z_m])
        distance = np.linalg.norm(found.array[:, None] - places, axis=2)
        for s, channels in enumerate(found.channels):
            kappa = 2 * np.pi * (LIGHT_M_S / 0.125 + (s - 1.5) * 2.5e6) / LIGHT_M_S
            expected = scenario.devices.gain * np.exp(-1j * kappa * distance) / distance
            np.testing.assert_allclose(channels, expected, rtol=1e-9)
        # The spacing is half a wavelength of the centre.
        assert np.linalg.norm(found.array[1] - found.array[0]) == pytest.approx(0.0625)

    def test_a_link_budget_has_the_bandwidth(self) -> None:
        tables = {"preset": "indoor-28ghz", "devices": {"count": 4}, "channel": {"subcarriers": 4}}
        scenario = Scenario.from_dict(tables)
        budget = scenario.radio.link_budget
        assert budget is not None
        assert budget.bandwidth_mhz is not None
        spacing = np.diff(scenario.frequencies_hz)
        np.testing.assert_allclose(spacing, 1e6 * budget.bandwidth_mhz / 4, rtol=1e-6)
        for one in scenario.subcarriers:
            assert one.radio.path_gain == scenario.radio.path_gain
            assert one.budget == scenario.budget
        assert Scenario.from_dict(scenario.to_dict()).to_dict() == scenario.to_dict()

    def test_one_subcarrier_is_the_scenario_itself(self) -> None:
        scenario = Scenario.paper()
        assert scenario.subcarriers == (scenario,)
        assert scenario.centre is scenario

    @pytest.mark.parametrize(
        ("channel", "words"),
        [
            ({"bandwidth_mhz": None}, ["channel.bandwidth_mhz is missing", "channel.subcarriers = 4"]),
            ({"subcarriers": 1}, ["channel.bandwidth_mhz = 10.0", "channel.subcarriers > 1"]),
            ({"subcarriers": 0}, ["channel.subcarriers", "0", ">= 1"]),
            ({"subcarrier_rule": "best"}, ["channel.subcarrier_rule", "'best'", "worst, mean"]),
            ({"bandwidth_mhz": -1.0}, ["channel.bandwidth_mhz", "-1", ">= 0"]),
            ({"bandwidth_mhz": 2399.0}, ["bandwidth_mhz = 2399", "2398"]),
        ],
    )
    def test_mistakes(self, channel: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            room(channel)
        assert "\n" not in str(caught.value)
        assert all(word in str(caught.value) for word in words)

    def test_the_bandwidth_is_given_once(self) -> None:
        tables = {"preset": "indoor-28ghz", "channel": {"subcarriers": 4, "bandwidth_mhz": 5.0}}
        with pytest.raises(InvalidInput, match=r"cannot be combined with radio\.bandwidth_mhz"):
            Scenario.from_dict(tables)


class TestOtherKeys:
    LAYOUT = np.array([[1.0, 9.0, 30.0], [2.0, 12.0, 22.0], [0.0, 5.0, 38.0]])

    def responses(self, channel: dict[str, Any]) -> tuple[Complex, Complex]:
        """Channels over those without the keys, and the latter; shape (S, M, K)."""
        plain, changed = room(), room(channel)
        first, second = (
            np.stack([one.uplink.terms(self.LAYOUT) for one in scenario.subcarriers])
            for scenario in (plain, changed)
        )
        return second / first, first

    def test_loss_and_split_are_the_same_on_all_subcarriers(self) -> None:
        delta = 0.5
        ratio, _ = self.responses(
            {"loss_db_per_m": 0.1, "power_split": "proportional", "power_split_delta": delta}
        )
        split = np.sqrt(3) * delta * (1 - delta**2) ** (np.arange(3) / 2)
        expected = split * 10 ** (-0.1 * self.LAYOUT / 20)
        np.testing.assert_allclose(ratio, np.broadcast_to(expected[:, :, None], ratio.shape), rtol=1e-9)

    def test_the_same_links_are_blocked_on_all_subcarriers(self) -> None:
        ratio, _ = self.responses({"blockage_per_m": 0.1, "blockage_residual": 0.5})
        assert set(np.round(np.abs(ratio), 9).ravel()) == {0.5, 1.0}
        for other in ratio[1:]:
            np.testing.assert_allclose(other, ratio[0], rtol=1e-9)

    def test_the_same_waves_are_scattered_on_all_subcarriers(self) -> None:
        # f exp(-j kappa_s D) - sqrt(K/(K+1)) exp(-j kappa_s D) = sum of waves exp(j (phi + kappa_s u l)): at
        # l = 0 it does not depend on the frequency.
        ratio, _ = self.responses({"rician_k_db": 0.0, "rician_waves": 3})
        scenario = room()
        at_zero = []
        for s, frequency in enumerate(scenario.frequencies_hz):
            distance = np.hypot(np.hypot(scenario.devices.x_m, scenario.devices.y_m - 4.0), 4.0)
            turned = np.exp(-2j * np.pi * frequency / LIGHT_M_S * distance)
            at_zero.append((ratio[s, 2, 0] - math.sqrt(0.5)) * turned)
        for other in at_zero[1:]:
            np.testing.assert_allclose(other, at_zero[0], atol=1e-9)
        assert np.abs(ratio[1, 2, 2] - ratio[0, 2, 2]).max() > 1e-3

    @pytest.mark.parametrize(
        "channel",
        [
            {"loss_db_per_m": 0.1, "power_split": "proportional"},
            {"candidates_m": 0.5},
            {"blockage_per_m": 0.05, "rician_k_db": 10.0},
        ],
    )
    def test_the_search_combines_with_them(self, channel: dict[str, Any]) -> None:
        scenario = room(channel, snr_db=8.0)
        found = design(scenario, options=FAST)
        assert found.layout is not None
        scenario.checked_layout(found.layout)
        expected = np.stack([one.uplink.channels(found.layout) for one in scenario.subcarriers])
        assert np.array_equal(found.channels, expected)
        fixed = design(scenario, "distributed-m")
        assert found.selected_count > fixed.selected_count


class TestLink:
    @given(arrays(np.float64, (4, 3), elements=st.floats(1e-6, 1e6)))
    def test_worst_mean_best(self, scores: Real) -> None:
        worst, mean = (combined_scores(scores, rule) for rule in RULES)
        assert (worst <= mean * (1 + 1e-12)).all()
        assert (mean <= scores.max(axis=0) * (1 + 1e-12)).all()
        np.testing.assert_allclose(mean, 4 / (1 / scores).sum(axis=0), rtol=1e-12)

    def test_a_device_that_a_subcarrier_does_not_receive(self) -> None:
        scores = np.array([[0.0, 2.0], [5.0, 2.0]])
        for rule in RULES:
            np.testing.assert_array_equal(combined_scores(scores, rule), [0.0, 2.0])

    @pytest.mark.parametrize("rule", RULES)
    def test_one_subcarrier_is_the_papers_link(self, rule: str) -> None:
        wide = random_link(np.random.default_rng(1), rule, 1)
        narrow = Link(wide.channels[0], wide.weights, wide.beam[0], wide.budget, wide.power, 0.1)
        assert np.array_equal(wide.scores, narrow.scores)
        assert narrow.selected.any()
        np.testing.assert_allclose(wide.denoising_factor, [narrow.denoising_factor], rtol=1e-12)
        np.testing.assert_allclose(wide.transmit[0], narrow.transmit, rtol=1e-12)
        assert wide.mse == pytest.approx(narrow.mse, rel=1e-12)
        assert wide.sdr_db == pytest.approx(narrow.sdr_db)
        assert wide.median_snr_db == pytest.approx(narrow.median_snr_db)

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("seed", range(5))
    def test_powers_and_errors(self, rule: str, seed: int) -> None:
        link = random_link(np.random.default_rng(seed), rule)
        chosen, power = link.selected, np.abs(link.transmit) ** 2
        assert chosen.any()
        assert (power[:, ~chosen] == 0).all()
        if rule == "worst":  # a mask: on each subcarrier one device sends with all it may
            np.testing.assert_allclose(power.max(axis=1), link.power / 3, rtol=1e-12)
        else:  # one device sends with all its power
            assert power.sum(axis=0).max() == pytest.approx(link.power, rel=1e-12)
            assert np.ptp(link.denoising_factor) == 0
        # eq. (17) with the noise of a subcarrier
        noise = link.power * 0.1 / link.budget / 3
        for s in range(3):
            gains = np.conj(link.beam[s]) @ link.channels[s] * link.transmit[s]
            gains /= math.sqrt(link.denoising_factor[s])
            misaligned = np.sum(np.abs(gains - link.weights)[chosen] ** 2)
            error = misaligned + noise / link.denoising_factor[s]
            assert link.subcarrier_mse[s] == pytest.approx(error, rel=1e-9)
        assert link.mse <= 0.1 * (1 + 1e-12)
        # The error is that of the weakest sender, so that one below the threshold would break the limit.
        assert link.mse == pytest.approx(0.1 / link.scores[chosen].min(), rel=1e-12)

    @pytest.mark.parametrize("rule", RULES)
    def test_monte_carlo_of_the_aggregation(self, rule: str) -> None:
        # The error is circular normal noise: |e|^2 is exponential, and its mean over T symbols has the
        # standard error MSE/sqrt(T). Five of them are exceeded once in two million.
        rng = np.random.default_rng(3)
        link = random_link(rng, rule)
        chosen, symbols = link.selected, 20_000
        noise = link.power * 0.1 / link.budget / 3
        for s in range(3):
            drawn = rng.standard_normal((4, max(4, chosen.sum()), symbols))
            sent = (drawn[0] + 1j * drawn[1])[: chosen.sum()] / math.sqrt(2)
            received = link.channels[s][:, chosen] @ (link.transmit[s, chosen, None] * sent)
            received += math.sqrt(noise / 2) * (drawn[2] + 1j * drawn[3])[:4]
            estimate = np.conj(link.beam[s]) @ received / math.sqrt(link.denoising_factor[s])
            error = np.mean(np.abs(estimate - link.weights[chosen] @ sent) ** 2)
            assert abs(error / link.subcarrier_mse[s] - 1) < 5 / math.sqrt(symbols)

    def test_the_limit_of_no_bandwidth(self) -> None:
        base = Scenario.paper(8, 3, 3, 4.0, 5)
        narrow = design(base, options=FAST)
        assert narrow.layout is not None
        differences = []
        for bandwidth in (0.0, 1e-3, 1e-2):
            scenario = room({"bandwidth_mhz": bandwidth})
            channels = np.stack([one.uplink.channels(narrow.layout) for one in scenario.subcarriers])
            link = WidebandLink(channels, base.weights, np.tile(narrow.beam, (4, 1)), base.budget)
            differences.append(float(np.abs(link.scores - narrow.scores).max()))
        assert differences[0] == 0.0
        assert 0.0 < differences[1] < 1e-3 * narrow.scores.max()
        assert differences[2] == pytest.approx(10 * differences[1], rel=0.1)


class TestBeams:
    @pytest.mark.parametrize("mean", [False, True])
    @pytest.mark.parametrize("floor", [0.0, 1.0])
    def test_slopes_of_the_objective(self, mean: bool, floor: float) -> None:
        rng = np.random.default_rng(0)
        scores, direction = rng.uniform(0.5, 2.0, (3, 4)), rng.uniform(-0.1, 0.1, (3, 4))
        goal = Goal(rng.uniform(0.5, 1.0, 4), 2, floor, mean)
        slopes, terms = np.empty((3, 4)), np.empty(4)
        value = subcarriers.evaluate(goal, scores, slopes, terms)
        power = (np.mean(1 / scores, axis=0)) ** 4 if mean else np.mean(scores**-4.0, axis=0)
        assert value == pytest.approx(np.sum(goal.counted * power / (1 + floor * power)), rel=1e-12)
        rate = float(np.sum(slopes * direction))

        def along(t: float) -> float:
            return subcarriers.evaluate(goal, scores + t * direction, np.empty((3, 4)), np.empty(4))

        assert remainder_slope(along, rate, 1e-1) > 1.9

    def test_one_subcarrier_is_hill(self) -> None:
        rng = np.random.default_rng(1)
        scores, counted = rng.uniform(0.5, 2.0, 5), rng.uniform(0.5, 1.0, 5)
        expected = np.empty(5)
        value = evaluate_hill(Hill(counted, 3, 1.0), 0, scores, expected, np.empty(5))
        for mean in (False, True):
            slopes = np.empty((1, 5))
            got = subcarriers.evaluate(Goal(counted, 3, 1.0, mean), scores[None], slopes, np.empty(5))
            assert got == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(slopes[0], expected, rtol=1e-12)

    def test_the_value_never_rises(self) -> None:
        rng = np.random.default_rng(2)
        link = random_link(rng, "worst")
        parts = np.ascontiguousarray(link.effective.real), np.ascontiguousarray(link.effective.imag)
        goal = Goal(np.ones(6), 2, 0.0, False)
        before = subcarriers.evaluate(goal, link.subcarrier_scores, np.empty((3, 6)), np.empty(6))
        found = subcarriers.minimise(*parts, goal, link.beam, Limits(1.0, 100, 1e-9))
        np.testing.assert_allclose(np.linalg.norm(found.beams, axis=1), 1.0, rtol=1e-12)
        scores = subcarrier_scores(found.beams, link.effective)
        after = subcarriers.evaluate(goal, scores, np.empty((3, 6)), np.empty(6))
        assert found.value == pytest.approx(after, rel=1e-9)
        assert after < before

    @pytest.mark.parametrize("seed", range(6))
    def test_worst_against_all_sets_on_a_grid(self, seed: int) -> None:
        # For two chains the sphere without the phase has two angles. A set fits if each subcarrier alone
        # has a beam for it: the largest weakest score is found on a fine grid.
        effective = self.channels(seed, 2)
        turn, angle = np.meshgrid(np.linspace(0, 2 * np.pi, 361), np.linspace(0, np.pi / 2, 181))
        grid = np.stack([np.cos(angle).ravel(), (np.sin(angle) * np.exp(1j * turn)).ravel()])
        all_scores = np.abs(np.einsum("mb,smk->sbk", np.conj(grid), effective)) ** 2
        most = 0
        for size in range(1, 6):
            for chosen in itertools.combinations(range(5), size):
                best = all_scores[:, :, list(chosen)].min(axis=2).max(axis=1)
                most = size if best.min() >= 1.0 else most
        beams = wideband_beams(effective, "worst", np.ones(5), np.random.default_rng(0))
        scores = combined_scores(subcarrier_scores(beams, effective), "worst")
        assert (scores >= 1.0).sum() >= most

    @pytest.mark.parametrize("seed", range(4))
    def test_mean_against_all_sets_by_scipy(self, seed: int) -> None:
        # max t with h_k >= t over a set, by SLSQP from random beams.
        effective = self.channels(seed, 2, devices=4)
        rng = np.random.default_rng(seed)

        def harmonic(x: Real, chosen: list[int]) -> Real:
            beams = (x[:4] + 1j * x[4:8]).reshape(2, 2)
            received = np.abs(np.einsum("sm,smk->sk", np.conj(beams), effective[:, :, chosen])) ** 2
            received /= np.sum(np.abs(beams) ** 2, axis=1)[:, None]
            result: Real = 2.0 / np.sum(1.0 / received, axis=0)
            return result

        most = 0
        for size in range(1, 5):
            for chosen in map(list, itertools.combinations(range(4), size)):
                for _ in range(6):
                    start = np.append(rng.standard_normal(8), 0.0)
                    found = minimize(
                        lambda x: -x[8],
                        start,
                        method="SLSQP",
                        constraints={
                            "type": "ineq",
                            "fun": lambda x, chosen=chosen: harmonic(x, chosen) - x[8],
                        },
                    )
                    if np.isfinite(found.x).all() and harmonic(found.x, chosen).min() >= 1.0:
                        most = size
                        break
        beams = wideband_beams(effective, "mean", np.ones(4), np.random.default_rng(0))
        scores = combined_scores(subcarrier_scores(beams, effective), "mean")
        assert (scores >= 1.0).sum() >= most

    @staticmethod
    def channels(seed: int, count: int, devices: int = 5) -> Complex:
        rng = np.random.default_rng(100 + seed)
        shape = (count, 2, devices)
        drawn: Complex = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return 1.3 * drawn

    def test_priorities(self) -> None:
        effective = self.channels(0, 2)
        priorities = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
        beams = wideband_beams(effective, "worst", priorities, np.random.default_rng(0))
        lengths = np.linalg.norm(effective[:, :, 2], axis=1) ** 2
        scores = Problem(effective, "worst", priorities).scores(beams)
        assert scores[2] == pytest.approx(lengths.min(), rel=1e-2)


class TestSearch:
    @pytest.mark.parametrize("rule", RULES)
    def test_scan(self, rule: str) -> None:
        rng = np.random.default_rng(0)
        table = rng.standard_normal((5, 3, 2, 700)).astype(np.float32)
        devices = np.array([0, 3])
        rest = rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2))
        beam = rng.standard_normal(3) + 1j * rng.standard_normal(3)
        goal = Goal(np.array([0.5, 1.0]), 1, 1.0, rule == "mean")
        got = np.empty(700, np.float32)
        scan(table, devices, rest, beam, 1.0, goal, got)
        response = table[devices, :, 0] + 1j * table[devices, :, 1]  # (wanted, S, P)
        received = rest.T[:, :, None] + np.conj(response) * beam[:, None]
        scores = np.abs(received) ** 2
        power = np.mean(1 / scores, axis=1) ** 2 if rule == "mean" else np.mean(scores**-2.0, axis=1)
        expected = goal.counted @ (power / (1 + power))
        np.testing.assert_allclose(got, expected, rtol=1e-4)

    def test_table_and_state_are_the_channels(self) -> None:
        scenario = room({"power_split": "proportional", "loss_db_per_m": 0.1})
        space = Space(scenario, 0.02, 2.0**30, False)
        layout = space.places[:, [10, 300, 900]]
        state = space.state(space.at(layout, np.ones((4, 3), np.complex128) / math.sqrt(3)))
        effective = space.problem(layout).effective
        np.testing.assert_allclose(state.re + 1j * state.im, effective, rtol=1e-9)
        table = space.table[:, :, :, :, [10, 300, 900]].astype(np.float64)
        responses = (table[:, :, :, 0] + 1j * table[:, :, :, 1]).transpose(0, 3, 2, 1)  # (M, N, S, K)
        np.testing.assert_allclose(
            space.shares.T[:, :, None, None] * responses, state.terms, rtol=1e-4, atol=1e-6
        )

    @pytest.mark.parametrize("rule", RULES)
    def test_it_beats_the_layout_of_the_centre(self, rule: str) -> None:
        totals = [0, 0]
        for seed in (5, 6):
            scenario = room({"subcarrier_rule": rule}, snr_db=8.0, seed=seed)
            method = AirpassPlus(effort="fast")
            wide = design(scenario, method)
            layout = design(scenario.centre, method).layout
            centre = design(scenario, selection="hrmc+", geometry="fixed", start_layout=layout)
            assert wide.selected_count >= centre.selected_count
            totals[0] += wide.selected_count
            totals[1] += centre.selected_count
        assert totals[0] > totals[1]

    def test_no_bandwidth_selects_what_one_carrier_does(self) -> None:
        wide = design(room({"bandwidth_mhz": 0.0}), options=FAST)
        narrow = design(Scenario.paper(8, 3, 3, 4.0, 5), options=FAST)
        assert wide.selected_count >= narrow.selected_count

    def test_the_rule_mean_selects_no_fewer(self) -> None:
        found = design(room(snr_db=8.0), options=FAST)
        assert isinstance(found, WidebandDesign)
        mean = replace(found, rule="mean")
        assert (mean.scores >= found.scores * (1 - 1e-12)).all()

    def test_repeats_with_the_same_seed(self) -> None:
        one, two = (design(room(), options=FAST, seed=3) for _ in range(2))
        assert np.array_equal(one.scores, two.scores)
        assert np.array_equal(one.beam, two.beam)

    def test_a_time_limit(self) -> None:
        found = design(room(), options={"time_limit_s": 0.01, "effort": "thorough"})
        assert found.status == "time limit"
        assert found.selected_count == found.trace[-1].selected_count

    def test_a_given_layout(self) -> None:
        scenario = room()
        layout = scenario.random_layout(np.random.default_rng(1))
        found = design(scenario, options=FAST, start_layout=layout)
        assert "given layout" in [step.phase for step in found.trace]

    @pytest.mark.parametrize("method", ["airpass", "distributed-m", "distributed-mn", "mimo-m"])
    def test_other_methods_keep_the_antennas_of_the_centre(self, method: str) -> None:
        scenario = room()
        found, centre = design(scenario, method), design(scenario.centre, method)
        assert found.trace[-1].phase == "subcarriers"
        for one, other in ((found.layout, centre.layout), (found.array, centre.array)):
            if one is None or other is None:
                assert one is other
            else:
                assert np.array_equal(one, other)
        assert found.beam.shape == (4, len(centre.channels))


class TestResults:
    @pytest.mark.parametrize("rule", RULES)
    def test_a_bare_link(self, rule: str, tmp_path: Path) -> None:
        link = random_link(np.random.default_rng(0), rule)
        link.save(tmp_path / "link.json")
        again = load(tmp_path / "link.json")
        assert isinstance(again, WidebandLink)
        assert again.rule == rule
        assert np.array_equal(again.scores, link.scores)

    @pytest.mark.parametrize(("method", "rule"), [("airpass-plus", "mean"), ("mimo-mn-plus", "worst")])
    def test_round_trip(self, method: str, rule: str, tmp_path: Path) -> None:
        options = FAST if method == "airpass-plus" else None
        found = design(room({"subcarrier_rule": rule}, snr_db=8.0), method, options=options)
        assert isinstance(found, WidebandDesign)
        found.save(tmp_path / "design.json")
        again = load(tmp_path / "design.json")
        assert isinstance(again, WidebandDesign)
        assert again.rule == rule
        for name in ("scores", "subcarrier_scores", "transmit", "denoising_factor", "beam", "channels"):
            assert np.array_equal(getattr(found, name), getattr(again, name))
        assert again.mse == found.mse
        document = json.loads((tmp_path / "design.json").read_text())
        assert np.shape(document["subcarrier_scores"]) == (4, 8)
        assert len(document["frequencies_ghz"]) == 4
        again.plot(tmp_path / "design.png")

    def test_the_receive_gain_is_the_mean_over_the_subcarriers(self) -> None:
        found = design(room(), "distributed-m")
        assert found.layout is not None
        x = np.array([1.0, 20.0])
        gains = []
        for one, beam in zip(found.scenario.subcarriers, found.beam, strict=True):
            channels = one.uplink.with_devices(x, x, 0.0, np.ones(2)).channels(found.layout)
            gains.append(np.abs(np.conj(beam) @ channels) ** 2)
        np.testing.assert_allclose(found.receive_gain(x, x), np.mean(gains, axis=0), rtol=1e-12)

    def test_a_changed_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "design.json"
        design(room(snr_db=8.0), "mimo-mn-plus").save(path)
        document = json.loads(path.read_text())
        document["scenario"]["channel"]["bandwidth_mhz"] = 300.0
        del document["sha256"]
        path.write_text(json.dumps(document))
        with pytest.raises(InvalidInput, match="the scores do not follow"):
            load(path)

    def test_the_command_line(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "design.json"
        keys = ("--set", "channel.subcarriers=4", "--set", "channel.bandwidth_mhz=10")
        done = run("design", *keys, "--method", "mimo-mn-plus", "--json", str(path))
        assert "4 subcarriers in 10 MHz; the worst error" in done.out
        assert "4 subcarriers in 10 MHz" in run("show", str(path)).out
        assert_refused(run("design", *keys, "--start", path), "must be a stored design with a layout")

    @pytest.mark.parametrize(
        "flags", [("--certify",), ("--life",), ("--tolerance-mm", "1"), ("--all-devices",), ("--turns", "2")]
    )
    def test_flags_for_one_carrier_are_refused(self, run: Any, flags: tuple[str, ...]) -> None:
        keys = ("--set", "channel.subcarriers=4", "--set", "channel.bandwidth_mhz=10")
        assert_refused(run("design", *keys, *flags), "channel.subcarriers = 4")


class TestTraining:
    SIZES = (1500, 501)

    def aggregate(self, link: WidebandLink, **options: Any) -> tuple[Aggregate, Any]:
        rng = np.random.default_rng(7)
        scale = rng.uniform(0.5, 2.0, (link.selected_count, 1))  # updates of devices differ in size
        updates = (scale * rng.standard_normal((link.selected_count, sum(self.SIZES)))).astype(np.float32)
        noise, errors = np.random.default_rng(1), np.random.default_rng(2)
        return over_subcarriers(
            updates, list(self.SIZES), link, LinkOptions(**options), noise, errors
        ), updates

    @pytest.mark.parametrize("rule", RULES)
    def test_error_and_power(self, rule: str) -> None:
        link = random_link(np.random.default_rng(3), rule)
        sent, updates = self.aggregate(link)
        weights = link.weights[link.selected]
        ideal = weights @ updates / weights.sum()
        # About a thousand symbols with exponential errors: five standard errors are 16 %.
        assert abs(sent.measured_mse / sent.predicted_mse - 1) < 0.16
        # Symbols of unit power: powers scatter by some per cent about those of eq. (19).
        assert sent.power.max() < 1.1
        # The update has the error of the symbols, in units of nu_t.
        assert np.mean((sent.update - ideal) ** 2) == pytest.approx(
            sent.measured_mse * np.mean(updates**2) / weights.sum() ** 2, rel=0.5
        )

    @pytest.mark.parametrize("rule", RULES)
    def test_without_noise_the_mean_is_exact(self, rule: str) -> None:
        link = replace(random_link(np.random.default_rng(3), rule), mse_threshold=1e-20)
        sent, updates = self.aggregate(link)
        weights = link.weights[link.selected]
        np.testing.assert_allclose(sent.update, weights @ updates / weights.sum(), atol=1e-6)

    def test_equal_updates_have_the_error_of_the_link(self) -> None:
        for rule in RULES:
            link = random_link(np.random.default_rng(3), rule)
            rng = np.random.default_rng(0)
            same = rng.standard_normal((1, 3000)).astype(np.float32)
            updates = np.repeat(same, link.selected_count, axis=0)
            sent = over_subcarriers(updates, [3000], link, LinkOptions(), rng, rng)
            assert sent.predicted_mse == pytest.approx(float(link.subcarrier_mse.mean()), rel=1e-6)

    @pytest.mark.parametrize("rule", RULES)
    def test_estimation_errors_keep_the_power(self, rule: str) -> None:
        link = random_link(np.random.default_rng(3), rule)
        exact, wrong = self.aggregate(link)[0], self.aggregate(link, channel_error=0.3)[0]
        assert wrong.predicted_mse > exact.predicted_mse
        assert wrong.power.max() < 1.1

    def test_a_run(self, tmp_path: Path) -> None:
        runs = airpass.compare(
            room(snr_db=8.0),
            ["mimo-mn-plus"],
            "mnist-mini",
            airpass.TrainOptions(rounds=2),
            workers=1,
            progress=False,
        )
        last = runs[0].history[-1]
        assert last.measured_mse == pytest.approx(last.predicted_mse, rel=0.1)
        runs.save(tmp_path / "runs.json")
        again = load(tmp_path / "runs.json")[0]
        assert isinstance(again.link, WidebandDesign)


def _moving(scenario: Scenario) -> Any:
    motion = airpass.RandomWaypoint(1.0, seed=0)
    return airpass.Moving(motion, 0.1).links(scenario, 2, "mimo-mn")


REFUSED: dict[str, Callable[[Scenario], Any]] = {
    "schedule": lambda one: airpass.schedule(one, method="mimo-mn", move="beams"),
    "track": lambda one: airpass.track(one, airpass.RandomWaypoint(1.0, seed=0), seconds=0.1),
    "for_all": airpass.design_for_all,
    "certify_layouts": airpass.certify_layouts,
    "moving": _moving,
    "queues": lambda one: airpass.Queues().links(one, 2, "mimo-mn-plus"),
    "lasting": lambda one: design(one, "airpass-lasting"),
    "robust": lambda one: design(one, options={"tolerance_mm": 1.0}),
    "displacement": lambda one: design(one, options={"displacement_mm": 1.0}),
    "start_beam": lambda one: design(one, start_layout=one.uniform_layout(), start_beam=np.ones(3)),
    "uplink": lambda one: one.channels(one.uniform_layout()),
    "array": lambda one: one.colocated(4),
    "life": lambda one: airpass.life(design(one, "mimo-m")),
    "tolerance": lambda one: airpass.tolerance(design(one, "mimo-m"), position_mm=1.0),
    "fresh": lambda one: airpass.fresh_draws(design(one, "distributed-m")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_requires_one_carrier_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        REFUSED[name](room())
    assert "subcarriers" in str(caught.value)
    assert "\n" not in str(caught.value)
