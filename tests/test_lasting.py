"""Layouts for many draws of the devices, and margins against displacements of the devices."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import Devices, InvalidInput, Scenario, aircomp, design, fresh_draws, tolerance
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import discard
from airpass.core.types import Complex, Real
from airpass.designs.fresh import ARRAYS, EACH, EVEN, RANDOM, THIS
from airpass.designs.lasting import FRESH, SEARCH, AirpassLasting, _Draws, drawn, selected_counts
from airpass.designs.margins import (
    directions,
    displacement_losses,
    exact_margins,
    margins,
    normal_points,
)
from airpass.selection.hrmc_plus import HrmcPlus, regrow
from command_line import assert_refused

SMALL = Scenario.paper(devices=12, waveguides=3, antennas=4, snr_db=3.0, seed=1)
GIVEN = replace(SMALL, devices=replace(SMALL.devices, drawn_from=None))


def random_beam(size: int, seed: int = 6) -> Complex:
    rng = np.random.default_rng(seed)
    beam = rng.standard_normal(size) + 1j * rng.standard_normal(size)
    unit: Complex = beam / np.linalg.norm(beam)
    return unit


def mean_count(scenario: Scenario, layout: Real, draws: int) -> float:
    return float(selected_counts(drawn(scenario, SEARCH, draws, 5), layout, HrmcPlus(), 5, discard).mean())


class TestDraws:
    def test_draws_differ_and_repeat(self) -> None:
        search, fresh = (drawn(SMALL, kind, 3, 7) for kind in (SEARCH, FRESH))
        everyone = [SMALL, *search, *fresh]
        assert len({tuple(one.devices.x_m) for one in everyone}) == 7
        again = drawn(SMALL, SEARCH, 2, 7)
        for one, two in zip(search, again, strict=False):
            np.testing.assert_array_equal(one.devices.y_m, two.devices.y_m)

    def test_those_of_training_are_others(self) -> None:
        """`train --redraw-every` draws with one index under the same seed."""
        source = SMALL.devices.drawn_from
        assert source is not None
        later = [source.draw(period).x_m[0] for period in range(4)]
        here = [one.devices.x_m[0] for kind in (SEARCH, FRESH) for one in drawn(SMALL, kind, 4, source.seed)]
        assert not set(later) & set(here)

    def test_weights_are_kept(self) -> None:
        uneven = SMALL.with_samples(np.arange(1, 13))
        for one in drawn(uneven, FRESH, 2, 0):
            np.testing.assert_array_equal(one.weights, uneven.weights)

    def test_given_devices_have_no_distribution(self) -> None:
        with pytest.raises(InvalidInput, match="give ranges"):
            design(GIVEN, "airpass-lasting")


class TestSearch:
    def test_channels_of_all_draws(self) -> None:
        """Before and after moves, the channels are those of the layout, one draw after the other."""
        scenarios = drawn(SMALL.with_samples(np.arange(1, 13)), SEARCH, 3, 2)
        search = _Draws(scenarios, SMALL.uniform_layout(), 0.0)
        for move in (search.move_together, search.move_waveguides, search.move_antennas):
            move()
            expected = np.concatenate(
                [
                    aircomp.effective_channels(one.channels(search.layout), one.weights, one.budget)
                    for one in scenarios
                ],
                axis=1,
            )
            np.testing.assert_allclose(search.channel_re + 1j * search.channel_im, expected, rtol=1e-9)

    def test_moves_raise_the_smooth_count(self) -> None:
        search = _Draws(drawn(SMALL, SEARCH, 8, 2), SMALL.uniform_layout(), 1.0)
        means = [search.values.mean()]
        for move in (search.move_together, search.move_waveguides, search.move_antennas):
            move()
            means.append(search.values.mean())
        assert (np.diff(means) >= 0.0).all()
        assert means[-1] > means[0]

    def test_a_cautious_search_moves_only_if_the_draws_agree(self) -> None:
        search = _Draws(drawn(SMALL, SEARCH, 8, 2), SMALL.uniform_layout(), 1e6)
        assert not search.move_together()
        assert not search.move_antennas()
        np.testing.assert_array_equal(search.layout, SMALL.uniform_layout())

    @pytest.mark.parametrize(
        ("size", "draws"), [((12, 3, 4), 1), ((12, 3, 4), 6), ((5, 2, 1), 3), ((1, 1, 3), 2)]
    )
    def test_feasible_repeatable_and_no_worse_than_its_start(
        self, size: tuple[int, int, int], draws: int
    ) -> None:
        scenario = Scenario.paper(*size, 0.0, 5)
        first, again = (design(scenario, AirpassLasting(draws=draws, antennas=True)) for _ in range(2))
        assert first.layout is not None
        np.testing.assert_array_equal(first.layout, again.layout)
        np.testing.assert_array_equal(first.beam, again.beam)
        scenario.checked_layout(first.layout)
        even = scenario.uniform_layout()
        assert mean_count(scenario, first.layout, draws) >= mean_count(scenario, even, draws)
        other = scenario.random_layout(np.random.default_rng(3))
        later = design(scenario, AirpassLasting(draws=draws, antennas=True), start_layout=other)
        assert later.layout is not None
        assert mean_count(scenario, later.layout, draws) >= mean_count(scenario, other, draws)

    def test_the_scenarios_own_devices_do_not_matter_for_the_layout(self) -> None:
        """Only the beam is for them."""
        method = AirpassLasting(draws=3, sweeps=1)
        elsewhere = drawn(SMALL, FRESH, 1, 9)[0]
        here, there = (design(one, method, seed=4) for one in (SMALL, elsewhere))
        assert here.layout is not None
        np.testing.assert_array_equal(here.layout, there.layout)
        picked = HrmcPlus().search(
            aircomp.effective_channels(elsewhere.channels(here.layout), elsewhere.weights, elsewhere.budget),
            stream(4, Purpose.SELECTION, 0),
            discard,
        )
        np.testing.assert_array_equal(there.beam, picked.beam)

    def test_one_draw_is_overfitted(self) -> None:
        """A layout for one draw gains more on that draw than on others."""
        scenario = Scenario.paper(30, 5, 5, -5.0, 3)
        found = design(scenario, AirpassLasting(draws=1, caution=0.0, antennas=True))
        measured = fresh_draws(found, draws=20, compare=False)
        assert measured.searched is not None
        gain = measured.searched.mean - mean_of_search(scenario, scenario.uniform_layout())
        kept = measured.fresh[THIS].above(measured.fresh[EVEN]).mean
        assert gain >= 3.0
        assert kept < gain - 1.0

    def test_no_sweeps_leave_even_spacing(self) -> None:
        found = design(SMALL, AirpassLasting(draws=2, sweeps=0))
        assert found.layout is not None
        np.testing.assert_array_equal(found.layout, SMALL.uniform_layout())

    @pytest.mark.parametrize(("options", "word"), [({"draws": 0}, "draws"), ({"caution": -1.0}, "caution")])
    def test_wrong_options(self, options: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            AirpassLasting(**options)


def mean_of_search(scenario: Scenario, layout: Real) -> float:
    """Devices on the one draw of a search with the scenario's seed."""
    own = drawn(scenario, SEARCH, 1, scenario.seed)
    return float(selected_counts(own, layout, HrmcPlus(), scenario.seed, discard)[0])


class TestFreshDraws:
    def test_counts_by_hand(self) -> None:
        found = design(SMALL, "airpass")
        assert found.layout is not None
        measured = fresh_draws(found, draws=3, seed=11)
        assert measured.searched is None
        assert list(measured.fresh) == [THIS, EVEN, RANDOM, *ARRAYS, EACH]
        for index, one in enumerate(drawn(SMALL, FRESH, 3, 11)):
            effective = aircomp.effective_channels(one.channels(found.layout), one.weights, one.budget)
            beam = HrmcPlus().search(effective, stream(11, Purpose.SELECTION, index), discard).beam
            expected = (np.abs(beam.conj() @ effective) ** 2 >= 1.0).sum()
            assert measured.fresh[THIS].counts[index] == expected
            array = design(one, "distributed-mn", seed=11)
            assert measured.fresh["distributed-mn"].counts[index] == array.selected_count
        even, each, here = (measured.fresh[name].mean for name in (EVEN, EACH, THIS))
        assert each > even
        assert measured.kept_gain == pytest.approx((here - even) / (each - even))

    def test_standard_error(self) -> None:
        found = design(SMALL, "distributed-m")
        measured = fresh_draws(found, draws=6, compare=False)
        counts = measured.fresh[RANDOM].counts
        assert measured.fresh[RANDOM].standard_error == pytest.approx(np.std(counts, ddof=1) / 6**0.5)
        assert measured.fresh[THIS].above(measured.fresh[EVEN]).mean == 0.0  # distributed-m is even spacing
        assert np.isnan(measured.kept_gain)

    def test_arrays_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="mimo-m"):
            fresh_draws(design(SMALL, "mimo-m"))


def displaced(scenario: Scenario, moves: Real) -> Scenario:
    devices: Devices = scenario.devices
    return replace(scenario, devices=replace(devices, x_m=devices.x_m + moves[0], y_m=devices.y_m + moves[1]))


class TestDisplacement:
    layout = SMALL.random_layout(np.random.default_rng(5))
    beam = random_beam(3)

    def terms(self) -> Complex:
        scale = np.sqrt(SMALL.budget) / SMALL.weights
        terms: Complex = scale * self.beam.conj()[:, None, None] * SMALL.uplink.terms(self.layout)
        return terms.reshape(12, 12)

    def sums(self, error_mm: float, draws: int) -> Complex:
        """u_k of displaced devices, from their real channels; shape (draws, K)."""
        rng = np.random.default_rng(8)
        scale = np.sqrt(SMALL.budget) / SMALL.weights
        found: Complex = np.array(
            [
                scale * (self.beam.conj() @ displaced(SMALL, moves).uplink.channels(self.layout))
                for moves in 1e-3 * error_mm * rng.standard_normal((draws, 2, 12))
            ]
        )
        return found

    def test_directions_are_the_slopes_of_the_distances(self) -> None:
        step, rng = 1e-4, np.random.default_rng(0)
        moves = step * rng.standard_normal((2, 12))
        before, after = (one.uplink.terms(self.layout) for one in (SMALL, displaced(SMALL, moves)))
        turned = np.angle(after / before)
        towards = directions(SMALL, self.layout)
        expected = -2.0 * np.pi / SMALL.radio.wavelength_m * np.einsum("imnk,ik->mnk", towards, moves)
        np.testing.assert_allclose(turned, expected, atol=1e-5)

    def test_moments_of_a_displaced_sum(self) -> None:
        """E[u'] and E|u'|^2 of jointly normal angles, against real channels, within four standard errors."""
        error_mm, draws = 5.0, 4000
        kappa_s = 1e-3 * error_mm * 2.0 * np.pi / SMALL.radio.wavelength_m
        towards = directions(SMALL, self.layout).reshape(2, 12, 12)
        terms, sums = self.terms(), self.sums(error_mm, draws)
        for k in range(12):
            e, a = towards[:, :, k], terms[:, k]
            mean = np.sum(a * np.exp(-(kappa_s**2) * np.sum(e**2, axis=0) / 2.0))
            apart = np.sum((e[:, :, None] - e[:, None, :]) ** 2, axis=0)
            square = (a[:, None] * a.conj() * np.exp(-(kappa_s**2) * apart / 2.0)).sum().real
            drawn_square = np.abs(sums[:, k]) ** 2
            assert abs(sums[:, k].mean() - mean) < 4.0 * np.sqrt(square / draws)
            assert abs(drawn_square.mean() - square) < 4.0 * drawn_square.std() / np.sqrt(draws)

    @pytest.mark.parametrize("error_mm", [1.0, 10.0])
    @pytest.mark.parametrize("confidence", [0.9, 0.95])
    def test_the_loss_is_the_quantile_of_drawn_displacements(
        self, error_mm: float, confidence: float
    ) -> None:
        """4000 draws: four standard errors, and half a point for the 1024 points of the margin."""
        losses = displacement_losses(SMALL, self.layout, self.beam, error_mm, confidence)
        kept = np.abs(self.terms().sum(axis=0)) - losses
        stays = (np.abs(self.sums(error_mm, 4000)) >= kept).mean(axis=0)
        bound = 4.0 * np.sqrt(confidence * (1.0 - confidence) / 4000.0) + 0.005
        np.testing.assert_allclose(stays, confidence, atol=bound)

    def test_a_score_meets_its_margin_if_the_kept_amplitude_meets_the_threshold(self) -> None:
        loud = SMALL.with_radio(snr_db=16.0)
        terms = np.abs(np.sqrt(loud.budget / SMALL.budget) * self.terms().sum(axis=0))
        kept = terms - displacement_losses(loud, self.layout, self.beam, 5.0, 0.95)
        required = exact_margins(loud, self.layout, self.beam, 0.0, 0.95, 5.0)
        close = np.abs(kept - 1.0) < 1e-9
        np.testing.assert_array_equal((terms**2 >= required)[~close], (kept >= 1.0)[~close])
        assert (terms**2 >= required).any()
        assert (terms**2 < required).any()

    def test_a_common_rotation_costs_nothing(self) -> None:
        """With one antenna all terms rotate together; independent errors of antennas would not."""
        single = Scenario.paper(6, 1, 1, 10.0, 2)
        layout, beam = single.uniform_layout(), np.ones(1, np.complex128)
        losses = displacement_losses(single, layout, beam, 10.0, 0.95)
        np.testing.assert_allclose(losses, 0.0, atol=1e-12)
        np.testing.assert_allclose(exact_margins(single, layout, beam, 0.0, 0.95, 10.0), 1.0)

    def test_points_are_standard_normal(self) -> None:
        points = normal_points(4096)
        np.testing.assert_allclose(points.mean(axis=1), 0.0, atol=1e-2)
        np.testing.assert_allclose(points @ points.T / 4096, np.eye(2), atol=2e-2)

    def test_averaged_margins(self) -> None:
        np.testing.assert_array_equal(margins(SMALL, 0.0, 0.95, 0.0), 1.0)
        small, large = margins(SMALL, 0.0, 0.95, 1.0), margins(SMALL, 0.0, 0.95, 5.0)
        assert (small > 1.0).all()
        assert (large > small).all()
        # Rotations against their mean are smaller than those of antennas that are misplaced as far.
        assert (large < margins(SMALL, 5.0, 0.95)).all()
        both = margins(SMALL, 5.0, 0.95, 5.0)
        assert (both > np.maximum(large, margins(SMALL, 5.0, 0.95))).all()

    def test_both_errors_add_their_losses(self) -> None:
        one, two, both = (
            np.sqrt(exact_margins(SMALL, self.layout, self.beam, position, 0.95, device)) - 1.0
            for position, device in ((1.0, 0.0), (0.0, 2.0), (1.0, 2.0))
        )
        clear = two > 0.0
        np.testing.assert_allclose(both[clear], (one + two)[clear], rtol=1e-9)


class TestDisplacedDevices:
    @pytest.mark.parametrize("method", ["airpass-plus", "mimo-m"])
    def test_one_draw_by_hand(self, method: str) -> None:
        found = design(SMALL, method)
        measured = tolerance(found, displacement_mm=4.0, draws=2, seed=3)
        assert (measured.position_mm, measured.displacement_mm) == (0.0, 4.0)
        moves = 4e-3 * stream(3, Purpose.DISPLACEMENT, 1).standard_normal((2, 12))
        there = displaced(SMALL, moves)
        if found.layout is not None:
            real = there.channels(found.layout)
        else:
            assert found.array is not None
            real = there.array_at(found.array).channels()
        effective = np.sqrt(SMALL.budget) / SMALL.weights * real
        for name, beam in (("rescaled", found.beam), ("re-solved", regrow(effective, found.beam))):
            expected = (np.abs(beam.conj() @ effective) ** 2 >= 1.0).sum()
            assert measured.outcomes[name].counts[1] == expected

    def test_without_displacement_nothing_changes(self) -> None:
        found = design(SMALL, options={"effort": "fast"})
        measured = tolerance(found, draws=2)
        assert set(measured.outcomes["rescaled"].counts) == {found.selected_count}

    def test_robust_designs_keep_more(self) -> None:
        kept: dict[float, list[float]] = {0.0: [], 3.0: []}
        for seed in (2000, 2001):
            scenario = Scenario.paper(50, 10, 10, -10.0, seed)
            for error_mm, means in kept.items():
                found = design(scenario, options={"effort": "fast", "displacement_mm": error_mm})
                means.append(tolerance(found, displacement_mm=3.0, draws=50).outcomes["rescaled"].mean)
        assert np.mean(kept[3.0]) > np.mean(kept[0.0]) + 1.0

    def test_wrong_displacement(self) -> None:
        with pytest.raises(InvalidInput, match="displacement_mm"):
            tolerance(design(SMALL, "mimo-m"), displacement_mm=-1.0)
        with pytest.raises(InvalidInput, match="displacement_mm"):
            design(SMALL, options={"displacement_mm": -1.0})


class TestCommand:
    room = ("--devices", 6, "--waveguides", 3, "--antennas", 2, "--snr-db", 3)

    def test_for_draws(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "design.json"
        printed = run("design", *self.room, "--for-draws", 3, "--json", path)
        assert printed.code == 0
        assert "airpass-lasting" in printed.out
        assert "32 fresh draws" in printed.out
        document = json.loads(path.read_text())
        assert document["method"]["options"]["draws"] == 3
        found = document["fresh_draws"]
        assert len(found["searched"]["counts"]) == 3
        assert {THIS, EVEN, RANDOM, EACH, *ARRAYS} == set(found["receivers"])
        assert run("show", path).out == printed.out

    def test_displacement(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "design.json"
        printed = run("design", *self.room, "--displacement-mm", 3, "--robust", "--draws", 4, "--json", path)
        assert printed.code == 0
        assert "Displacement of devices 3 mm" in printed.out
        document = json.loads(path.read_text())
        assert document["method"]["options"]["displacement_mm"] == 3.0
        assert document["method"]["options"]["tolerance_mm"] == 0.0
        assert document["tolerance"]["displacement_mm"] == 3.0
        assert run("show", path).out == printed.out

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--for-draws", "0"], ["--for-draws = 0", ">= 1"]),
            (["--for-draws", "2", "--method", "airpass"], ["--for-draws", "airpass-lasting"]),
            (["--for-draws", "2", "--effort", "fast"], ["--effort", "airpass-lasting"]),
            (["--displacement-mm", "-1"], ["--displacement-mm =", "-1"]),
            (["--displacement-mm", "0", "--robust"], ["--robust", "> 0"]),
            (["--displacement-mm", "1", "--robust", "--method", "airpass"], ["--robust", "airpass-plus"]),
        ],
    )
    def test_refusals(self, run: Any, arguments: list[str], words: list[str]) -> None:
        assert_refused(run("design", *arguments), *words)
