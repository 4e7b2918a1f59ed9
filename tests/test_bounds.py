"""Upper bounds over all beams and layouts: valid against exhaustive search, random layouts and designs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import airpass
import tiny
from airpass import (
    DeviceDraw,
    Devices,
    Radio,
    Receiver,
    Scenario,
    aircomp,
    certify,
    certify_layouts,
    design,
    select,
)
from airpass.core.registry import discard
from airpass.core.types import Real
from airpass.designs.bounds import _Amplitudes, _Grid, certify_design
from airpass.designs.plus import AirpassPlus
from exhaustive_layouts import most_devices, responses


def effective_of(scenario: Scenario, layout: Any) -> Any:
    return aircomp.effective_channels(scenario.channels(layout), scenario.weights, scenario.budget)


def at(x_m: Real) -> Devices:
    """Equal devices below the first waveguide."""
    return Devices(x_m=x_m, y_m=np.zeros(x_m.size), gain=np.ones(x_m.size), samples=np.ones(x_m.size))


@st.composite
def rooms(draw: Any, most_waveguides: int = 3, most_antennas: int = 4) -> Scenario:
    """Rooms with waveguides of several lengths, feeds and gaps."""
    waveguides = draw(st.integers(1, most_waveguides))
    antennas = draw(st.integers(1, most_antennas))
    gap = draw(st.sampled_from([0.0, 0.1, 0.5, 0.95]))
    shortest = max(0.5, (antennas - 1) * gap)
    return Scenario(
        receiver=Receiver(
            waveguides=waveguides,
            antennas=antennas,
            min_gap_m=gap,
            length_m=tuple(shortest + draw(st.floats(0.0, 10.0)) for _ in range(waveguides)),
            height_m=draw(st.sampled_from([0.3, 2.0, 4.0])),
            feed=draw(st.sampled_from(["left", "right", "centre"])),
        ),
        radio=Radio(
            snr_db=draw(st.floats(-10.0, 30.0)), wavelength_m=draw(st.sampled_from([0.05, 0.125, 1.0]))
        ),
        devices=DeviceDraw(
            count=draw(st.integers(1, 12)), seed=draw(st.integers(0, 10**6)), x_range_m=(-1.0, 11.0)
        ).draw(),
    )


class TestInequalities:
    @given(rooms(), st.integers(0, 10**6))
    def test_no_layout_exceeds_the_amplitude_bound(self, scenario: Scenario, seed: int) -> None:
        rng = np.random.default_rng(seed)
        amplitudes = _Amplitudes(scenario)
        count, waveguides = scenario.devices.count, scenario.receiver.waveguides
        y = rng.random(count) ** 3
        limit, attained = amplitudes.bound(y)
        assert y @ attained == pytest.approx(limit, rel=1e-6)
        for _ in range(5):
            effective = np.abs(effective_of(scenario, scenario.random_layout(rng)))
            beam = rng.random(waveguides)
            beam /= np.linalg.norm(beam)
            assert y @ (beam @ effective) <= limit

    @given(rooms(), st.integers(0, 10**6))
    @settings(max_examples=30)
    def test_no_layout_exceeds_the_correlation_bound(self, scenario: Scenario, seed: int) -> None:
        rng = np.random.default_rng(seed)
        devices = np.arange(scenario.devices.count)
        limit = _Grid(scenario, devices).bound(1, discard)
        for _ in range(5):
            effective = effective_of(scenario, scenario.random_layout(rng))
            assert np.linalg.norm(effective, 2) ** 2 <= limit

    @pytest.mark.parametrize("seed", range(5))
    def test_the_correlation_bound_is_close_for_two_antennas(self, seed: int) -> None:
        """The largest sum of all scores over all layouts of a grid."""
        scenario = tiny.Size(1, 2, 3, 0.0, 3.0).scenario(seed)
        places = responses(scenario, 0, 0.005)
        gap = round(scenario.receiver.min_gap_m / 0.005)
        sums = (np.abs(places[:, None] + places) ** 2).sum(axis=2)
        largest = np.triu(sums, gap).max()
        assert largest <= _Grid(scenario, np.arange(3)).bound(1, discard) <= 1.1 * largest

    def test_correlations_between_grid_points(self) -> None:
        scenario = Scenario.paper(6, 2, 2, 0.0, 8)
        grid = _Grid(scenario, np.arange(6))
        cells, points = grid.largest.shape[1], grid.steps + 1
        one, other = (grid.responses(m).reshape(cells, points, 6) for m in (0, 1))
        rng = np.random.default_rng(8)
        above = 0
        for _ in range(300):
            c, d = rng.integers(cells, size=2)
            p, q = (
                grid.edges[m, cell] + rng.random() * (grid.edges[m, cell + 1] - grid.edges[m, cell])
                for m, cell in ((0, c), (1, d))
            )
            layout = np.array([[p, grid.edges[0, -1]], [q, grid.edges[1, -1]]])
            terms = scenario.uplink.terms(layout)[:, 0] * np.sqrt(scenario.budget) / scenario.weights
            exact = abs(np.vdot(terms[0], terms[1]))
            corners = np.abs(one[c] @ other[d].conj().T).max()
            extra = grid.error[0, c] @ grid.largest[1, d] + grid.largest[0, c] @ grid.error[1, d]
            assert exact <= corners + extra + 1e-5 * grid.largest[0, c] @ grid.largest[1, d]
            above += bool(exact > corners * (1.0 + 1e-5))
        assert above > 0  # the corners alone are no bound

    def test_the_correlation_bound_is_attained_by_two_antennas(self) -> None:
        # One device: |R| is the product of the amplitudes, and the bound is that of one device.
        scenario = tiny.Size(1, 2, 1, 0.0).scenario(1)
        best = certify_layouts(scenario).best_scores[0]
        assert _Grid(scenario, np.arange(1)).bound(1, discard) == pytest.approx(best, rel=0.02)

    @given(rooms(most_antennas=1), st.integers(0, 10**6))
    def test_scores_of_single_devices(self, scenario: Scenario, seed: int) -> None:
        """One antenna per waveguide: the nearest place is the best."""
        found = certify_layouts(scenario)
        for k in range(scenario.devices.count):
            nearest = np.clip(scenario.devices.x_m[k], 0.0, scenario.receiver.lengths)[:, None]
            score = np.linalg.norm(effective_of(scenario, nearest)[:, k]) ** 2
            assert score <= found.best_scores[k] <= score * 1.2

    def test_far_groups_are_not_selected_together(self) -> None:
        devices = at(np.array([0.0, 1.0, 2.0, 99.0, 100.0]))
        receiver = Receiver(waveguides=1, antennas=2, length_m=100.0, min_gap_m=0.5)
        # At 5 m, two antennas in phase give a score of two; the other group is 97 m away.
        scenario = Scenario(receiver=receiver, devices=devices)
        snr = 10.0 * np.log10(2.0 * 25.0 / 25.0 / 2.0 / scenario.radio.mse_threshold)
        found = certify_layouts(scenario.with_radio(snr_db=snr))
        assert found.at_most == found.bounds["cases"] == 3
        assert not found.unservable.any()

    @pytest.mark.parametrize(("square", "count"), [(1.0 + 1e-6, 1), (1.0, 1), (0.99, 0)])
    def test_a_device_at_the_threshold(self, square: float, count: int) -> None:
        """One antenna above one device: z = Γ γ²/(φ a)²."""
        scenario = Scenario(
            receiver=Receiver(waveguides=1, antennas=1, length_m=10.0, height_m=4.0),
            devices=at(np.array([5.0])),
        )
        snr = 10.0 * np.log10(square * 16.0 / scenario.radio.mse_threshold)
        found = certify_layouts(scenario.with_radio(snr_db=snr))
        assert found.at_most == count
        assert found.unservable.sum() == 1 - count

    def test_devices_at_one_place_are_all_selected_or_none(self) -> None:
        devices = at(np.full(6, 3.0))
        scenario = Scenario(receiver=Receiver(waveguides=2, antennas=2, length_m=6.0), devices=devices)
        counts = {certify_layouts(scenario.with_radio(snr_db=snr)).at_most for snr in (-40, -8, 20)}
        assert counts <= {0, 6}
        assert len(counts) == 2

    def test_order_of_devices_does_not_matter(self) -> None:
        scenario = Scenario.paper(8, 3, 3, 0.0, 5)
        drawn = scenario.devices
        turned = Devices(drawn.x_m[::-1], drawn.y_m[::-1], drawn.gain[::-1], drawn.samples[::-1])
        other = certify_layouts(Scenario(scenario.receiver, scenario.radio, turned))
        one = certify_layouts(scenario)
        assert one.at_most == other.at_most
        np.testing.assert_allclose(one.best_scores, other.best_scores[::-1])

    @pytest.mark.slow
    def test_many_devices_at_low_power(self) -> None:
        """Correlations say more than amplitudes if there are many devices."""
        bounds = certify_layouts(Scenario.paper(50, 10, 10, -20.0, 3100)).bounds
        single, cases, correlations = (bounds[name] for name in ("single", "cases", "correlations"))
        assert single is not None
        assert cases is not None
        assert correlations is not None
        assert correlations < cases < single


class TestExhaustiveSearch:
    @given(st.integers(0, 10**6), st.floats(-5.0, 25.0))
    @settings(max_examples=20)
    def test_beams_for_two_waveguides_are_exact(self, seed: int, snr_db: float) -> None:
        scenario = tiny.Size(2, 1, 5, snr_db, 0.1).scenario(seed)
        step = 0.05
        grid = [responses(scenario, m, step) for m in (0, 1)]
        counts = [
            select(np.array([a, b]), np.ones(5), 1.0, "exhaustive").selected_count
            for a in grid[0]
            for b in grid[1]
        ]
        assert most_devices(scenario, step) == max(counts)

    def test_responses_are_those_of_the_channel(self) -> None:
        scenario = tiny.Size(1, 2, 4, 3.0, 2.0).scenario(1)
        places = responses(scenario, 0, 0.5)
        effective = effective_of(scenario, [[0.5, 1.5]])
        np.testing.assert_allclose(places[1] + places[3], effective[0], rtol=1e-9)
        both = np.abs(places[:, None] + places) ** 2 >= 1.0
        pairs = [both[i, j].sum() for i in range(5) for j in range(i + 2, 5)]
        assert most_devices(scenario, 0.5) == max(pairs)


SMALL = (
    tiny.Size(1, 1, 8, 5.0, 8.0),
    tiny.Size(1, 2, 8, 5.0, 6.0),
    tiny.Size(1, 3, 8, 5.0, 3.0),
    tiny.Size(2, 1, 6, 5.0, 3.0),
)


class TestValidity:
    @pytest.mark.parametrize("size", SMALL, ids=str)
    @pytest.mark.parametrize("seed", range(5))
    def test_not_below_exhaustive_search(self, size: tiny.Size, seed: int) -> None:
        scenario = size.scenario(seed)
        for snr_db in (0.0, 5.0, 10.0):
            changed = scenario.with_radio(snr_db=snr_db)
            assert most_devices(changed) <= certify_layouts(changed).at_most

    @given(
        shape=st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 1)]),
        seed=st.integers(0, 10**6),
        snr_db=st.floats(-5.0, 20.0),
        gap=st.sampled_from([0.0, 0.1, 0.4]),
        height=st.sampled_from([0.2, 1.0, 4.0]),
    )
    def test_not_below_exhaustive_search_in_random_rooms(
        self, shape: tuple[int, int], seed: int, snr_db: float, gap: float, height: float
    ) -> None:
        scenario = Scenario(
            receiver=Receiver(*shape, length_m=1.5, min_gap_m=gap, height_m=height, spacing_m=0.5),
            radio=Radio(snr_db=snr_db),
            devices=DeviceDraw(count=6, seed=seed, x_range_m=(-0.5, 2.0), y_range_m=(0.0, 2.0)).draw(),
        )
        assert most_devices(scenario, 0.0125) <= certify_layouts(scenario).at_most

    @pytest.mark.parametrize("seed", range(3))
    def test_not_below_exhaustive_search_on_three_waveguides(self, seed: int) -> None:
        scenario = tiny.Size(3, 1, 4, 7.0, 0.4).scenario(seed)
        assert most_devices(scenario, 0.05) <= certify_layouts(scenario).at_most

    @pytest.mark.parametrize("snr_db", [-8.0, -4.0, 0.0, 4.0])
    @pytest.mark.parametrize("seed", range(5))
    def test_not_below_designs(self, seed: int, snr_db: float) -> None:
        scenario = Scenario.paper(10, 4, 4, snr_db, 3200 + seed)
        found = design(scenario, AirpassPlus(effort="fast"))
        limit = certify_layouts(scenario)
        assert found.selected_count <= limit.at_most
        assert (found.scores <= limit.best_scores).all()
        assert not found.selected[limit.unservable].any()
        assert limit.at_most == min(bound for bound in limit.bounds.values() if bound is not None)

    @given(rooms(), st.integers(0, 10**6))
    def test_not_below_the_bound_for_a_layout_that_is_attained(self, scenario: Scenario, seed: int) -> None:
        rng = np.random.default_rng(seed)
        limit = certify_layouts(scenario)
        for _ in range(3):
            channels = scenario.channels(scenario.random_layout(rng))
            picked = select(channels, scenario.weights, scenario.budget, "hrmc+")
            assert picked.selected_count <= limit.at_most
            assert (np.linalg.norm(picked.effective, axis=0) ** 2 <= limit.best_scores).all()

    @pytest.mark.slow
    def test_airpass_plus_comes_close_to_exhaustive_search(self) -> None:
        row = tiny.compare(tiny.Size(1, 2, 20, 5.0, 20.0), ["thorough"], 6)
        found = row.found["thorough"]
        assert (found <= row.bound).all()
        assert (row.exhaustive <= row.bound).all()
        assert (found >= row.exhaustive).mean() >= 0.5
        assert found.mean() >= 0.95 * row.exhaustive.mean()


class TestInterfaces:
    def test_certify_design(self) -> None:
        scenario = Scenario.paper(6, 2, 2, 5.0, 1)
        found = design(scenario, AirpassPlus(effort="fast"))
        certificate, everywhere = certify_design(found)
        assert everywhere is not None
        own = certify(found.channels, scenario.weights, budget=scenario.budget)
        assert certificate.at_most == own.at_most
        assert everywhere.at_most == airpass.certify_layouts(scenario).at_most
        assert found.selected_count <= min(certificate.at_most, everywhere.at_most)

    def test_arrays_have_no_bound_over_layouts(self) -> None:
        certificate, everywhere = certify_design(design(Scenario.paper(6, 2, 2), "mimo-mn"))
        assert certificate.at_most <= 6
        assert everywhere is None

    def test_progress_is_reported(self) -> None:
        heard: list[str] = []
        certify_layouts(Scenario.paper(6, 2, 2), report=heard.append)
        assert heard
        assert all(line.startswith("bound over all layouts") for line in heard)

    def test_command(self, run: Any, tmp_path: Path) -> None:
        path = tmp_path / "d.json"
        arguments = ("--devices", 8, "--snr-db", -5, "--effort", "fast", "--certify")
        printed = run("design", *arguments, "--json", path)
        document = json.loads(path.read_text())
        everywhere = document["layout_certificate"]
        assert document["selected_count"] <= document["certificate"]["at_most"]
        assert document["selected_count"] <= everywhere["at_most"] <= 8
        assert f"at most {document['certificate']['at_most']} by any beam on this layout" in printed.out
        assert f"at most {everywhere['at_most']} by any beam and any layout" in " ".join(printed.out.split())
        hopeless = everywhere["unservable"]
        assert hopeless == [k for k, score in enumerate(everywhere["best_scores"]) if score < 1.0]
        assert f"{len(hopeless)} devices cannot be selected by any design" in " ".join(printed.out.split())
        assert run("show", path).out == printed.out
        assert airpass.load(path).selected_count == document["selected_count"]

    def test_command_with_an_array(self, run: Any) -> None:
        arguments = ("design", "--devices", 5, "--method", "mimo-m", "--certify")
        assert "by any beam on this array" in run(*arguments).out
        document = json.loads(run(*arguments, "--json", "-").out)
        assert "certificate" in document
        assert "layout_certificate" not in document
