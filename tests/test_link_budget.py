"""Radios in GHz and dBm: known answers, both forms, refused halves, and presets through every command."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airpass import (
    DeviceDraw,
    InvalidInput,
    Link,
    LinkBudget,
    Radio,
    Receiver,
    Scenario,
    design,
    load,
    select,
)
from airpass.scenario import PRESETS
from airpass.study import sweep
from command_line import assert_refused

INDOOR = {"carrier_ghz": 28.0, "power_dbm": -10.0, "bandwidth_mhz": 400.0, "noise_figure_db": 7.0}
SMALL = ("--devices", 4, "--waveguides", 2, "--antennas", 2)

budgets = st.builds(
    LinkBudget,
    carrier_ghz=st.floats(0.5, 100.0),
    power_dbm=st.floats(-40.0, 40.0),
    noise_dbm=st.floats(-120.0, -60.0),
) | st.builds(
    LinkBudget,
    carrier_ghz=st.floats(0.5, 100.0),
    power_dbm=st.floats(-40.0, 40.0),
    bandwidth_mhz=st.floats(0.01, 1000.0),
    noise_figure_db=st.floats(0.0, 15.0),
)


def small(radio: Radio) -> Scenario:
    """Four devices and two waveguides."""
    return Scenario(Receiver(waveguides=2, antennas=2), radio, DeviceDraw(count=4, seed=3).draw())


class TestKnownAnswers:
    def test_28_ghz(self) -> None:
        # lambda = 299,792,458/28e9 m, xi = lambda/(4 pi)
        budget = LinkBudget(28.0, 10.0, noise_dbm=-90.0)
        assert budget.wavelength_m == pytest.approx(10.70687e-3, rel=1e-6)
        assert budget.path_gain == pytest.approx(8.52026e-4, rel=1e-5)
        assert (budget.noise_power_dbm, budget.snr_db) == (-90.0, 100.0)

    def test_thermal_noise(self) -> None:
        # k T = 1.380649e-23 * 290 W/Hz = -173.9752 dBm/Hz; 10 MHz add 70 dB, the figure adds 7 dB.
        assert LinkBudget(
            28.0, 0.0, bandwidth_mhz=1e-6, noise_figure_db=0.0
        ).noise_power_dbm == pytest.approx(-173.9752, abs=1e-4)
        budget = LinkBudget(28.0, 0.0, bandwidth_mhz=10.0, noise_figure_db=7.0)
        assert budget.noise_power_dbm == pytest.approx(-96.9752, abs=1e-4)
        assert budget.snr_db == pytest.approx(96.9752, abs=1e-4)

    def test_received_power_follows_friis(self) -> None:
        # One antenna right above a device 3 m below it: 20 log10(4 pi 3 m/lambda) = 70.93 dB of loss.
        scenario = Scenario.from_dict(
            {
                "receiver": {"waveguides": 1, "antennas": 1, "height_m": 3.0},
                "radio": {"carrier_ghz": 28.0, "power_dbm": 10.0, "noise_dbm": -90.0},
                "devices": {"x_m": [20.0], "y_m": 0.0, "gain": 1.0, "samples": 1},
            }
        )
        found = design(scenario, geometry="fixed", selection="hrmc", start_layout=[[20.0]])
        assert found.median_snr_db == pytest.approx(10.0 - 70.934 + 90.0, abs=1e-3)

    def test_the_median_device(self) -> None:
        channels = np.array([[1.0, 2.0j, 3.0], [0.5, 1.0, -2.0]])
        found = select(channels, snr_db=20.0, mse_threshold=0.03)
        gains = np.abs(np.conj(found.beam) @ channels) ** 2
        assert found.median_snr_db == pytest.approx(10 * math.log10(100 * np.median(gains)))
        silent = Link(np.array([[1.0, 0.0, 0.0j]]), np.ones(3), np.ones(1, complex), 1.0, mse_threshold=0.03)
        assert silent.median_snr_db == -math.inf
        assert math.isnan(select(channels, budget=1.0).median_snr_db)


class TestBothForms:
    @given(budgets)
    def test_tables_give_the_same_radio_again(self, budget: LinkBudget) -> None:
        radio = budget.radio(mse_threshold=0.02, refractive_index=1.4)
        table = radio.to_dict()
        assert not {"snr_db", "wavelength_m", "path_gain", "power"} & set(table)
        assert Radio.from_dict(table) == radio
        assert radio.link_budget == budget
        assert radio.changed(mse_threshold=0.03).changed(mse_threshold=0.02) == radio

    @given(budgets)
    def test_channels_and_scores_of_the_normalised_form(self, budget: LinkBudget) -> None:
        # With xi = 1 channels are larger by 1/xi; an SNR lower by 20 log10(1/xi) has the same scores.
        physical = small(budget.radio())
        shift_db = 20.0 * math.log10(budget.path_gain)
        plain = small(Radio(snr_db=budget.snr_db + shift_db, wavelength_m=budget.wavelength_m))
        layout = physical.uniform_layout()
        channels, other = physical.channels(layout), plain.channels(layout)
        np.testing.assert_allclose(channels, budget.path_gain * other, rtol=1e-12)
        for scenario in (physical, plain):
            assert scenario.radio.power == 1.0
        np.testing.assert_allclose(
            np.sqrt(physical.budget) * channels, np.sqrt(plain.budget) * other, rtol=1e-9
        )

    def test_same_design_as_with_the_normalised_values(self) -> None:
        physical = Scenario.preset("indoor-28ghz", 4, 2, 2, seed=5)
        values = replace(physical.radio, link_budget=None)
        assert values.link_budget is None
        one, two = (design(replace(physical, radio=radio), "airpass") for radio in (physical.radio, values))
        assert one.layout is not None
        np.testing.assert_array_equal(one.layout, two.layout)
        np.testing.assert_array_equal(one.scores, two.scores)

    def test_files_keep_what_was_given(self, tmp_path: Path) -> None:
        radio = INDOOR | {"mse_threshold": 0.02}
        scenario = Scenario.from_dict({"radio": radio, "devices": {"count": 3}})
        scenario.save(tmp_path / "room.toml")
        again = Scenario.load(tmp_path / "room.toml")
        assert again.to_dict()["radio"] == radio | {"refractive_index": 1.45}
        assert again.radio == scenario.radio

    def test_documents_have_both(self, tmp_path: Path) -> None:
        found = design(Scenario.preset("indoor-28ghz", 4, 2, 2), "mimo-mn")
        found.save(tmp_path / "design.json")
        document = json.loads((tmp_path / "design.json").read_text())
        assert document["scenario"]["radio"]["carrier_ghz"] == 28.0
        stored = document["link_budget"]
        assert (stored["carrier_ghz"], stored["power_dbm"]) == (28.0, -10.0)
        assert stored["noise_dbm"] == pytest.approx(-80.9546, abs=1e-4)
        assert stored["snr_db"] == pytest.approx(70.9546, abs=1e-4)
        assert stored["wavelength_m"] == found.scenario.radio.wavelength_m
        assert stored["median_received_snr_db"] == found.median_snr_db
        again = load(tmp_path / "design.json")
        assert again.scenario.radio == found.scenario.radio
        np.testing.assert_array_equal(again.scores, found.scores)

    def test_documents_of_normalised_scenarios(self, tmp_path: Path) -> None:
        design(Scenario.paper(4, 2, 2), "mimo-mn").save(tmp_path / "design.json")
        stored = json.loads((tmp_path / "design.json").read_text())["link_budget"]
        assert (stored["power_dbm"], stored["noise_dbm"], stored["snr_db"]) == (None, None, 10.0)
        assert stored["carrier_ghz"] == pytest.approx(0.299792458 / 0.125)

    def test_changes(self) -> None:
        indoor = Scenario.preset("indoor-28ghz", 4, 2, 2)
        assert indoor.with_radio(power_dbm=0.0).radio.snr_db == pytest.approx(indoor.radio.snr_db + 10.0)
        quiet = indoor.with_radio(noise_dbm=-90.0).radio
        assert quiet.link_budget == LinkBudget(28.0, -10.0, noise_dbm=-90.0)
        assert quiet.mse_threshold == 0.01
        assert quiet.changed(bandwidth_mhz=400.0, noise_figure_db=7.0) == indoor.radio
        plain = Scenario.paper().with_radio(carrier_ghz=28.0, power_dbm=0.0, noise_dbm=-90.0).radio
        assert plain == LinkBudget(28.0, 0.0, noise_dbm=-90.0).radio()


class TestRefused:
    @pytest.mark.parametrize(
        ("radio", "words"),
        [
            (
                INDOOR | {"snr_db": 3.0},
                ["radio.snr_db", "radio.carrier_ghz", "remove snr_db, or carrier_ghz"],
            ),
            (
                INDOOR | {"wavelength_m": 0.1, "path_gain": 1.0},
                ["remove wavelength_m, path_gain, or carrier"],
            ),
            (INDOOR | {"power": 1.0}, ["radio.power", "remove power, or"]),
            (
                {"power_dbm": 3.0, "snr_db": 1.0},
                ["radio.snr_db", "radio.power_dbm", "remove snr_db, or power_dbm"],
            ),
            ({"carrier_ghz": 28.0}, ["radio.power_dbm is missing", "carrier_ghz"]),
            ({"noise_dbm": -90.0}, ["radio.carrier_ghz is missing", "remove noise_dbm"]),
            ({"carrier_ghz": 28.0, "power_dbm": 0.0}, ["is missing", "noise_dbm, or bandwidth_mhz with"]),
            (
                {"carrier_ghz": 28.0, "power_dbm": 0.0, "bandwidth_mhz": 1.0},
                ["radio.noise_figure_db is missing"],
            ),
            (
                INDOOR | {"noise_dbm": -90.0},
                ["radio.noise_dbm", "remove noise_dbm, or bandwidth_mhz and noise_figure_db"],
            ),
            (INDOOR | {"carrier_ghz": 0.0}, ["radio.carrier_ghz", "> 0"]),
            (INDOOR | {"carrier_ghz": 1e6}, ["radio.carrier_ghz", "<= 299792"]),
            (INDOOR | {"bandwidth_mhz": -1.0}, ["radio.bandwidth_mhz", "> 0"]),
            (INDOOR | {"noise_figure_db": -1.0}, ["radio.noise_figure_db", ">= 0"]),
            (INDOOR | {"power_dbm": "loud"}, ["radio.power_dbm", "'loud'", "number"]),
            (INDOOR | {"power_dbm": 290.0}, ["radio.power_dbm = 290", "±300 dB"]),
            (INDOOR | {"carrier_mhz": 28.0}, ["radio.carrier_mhz", "unknown", "carrier_ghz"]),
        ],
    )
    def test_tables(self, radio: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict({"radio": radio})
        message = str(caught.value)
        assert "\n" not in message
        for word in words:
            assert word in message

    def test_objects(self) -> None:
        budget = LinkBudget(28.0, 0.0, noise_dbm=-90.0)
        with pytest.raises(InvalidInput, match=r"radio\.snr_db = 10: must be 90"):
            Radio(link_budget=budget)
        with pytest.raises(InvalidInput, match=r"radio\.snr_db cannot be combined with radio\.carrier_ghz"):
            budget.radio().changed(snr_db=10.0)
        with pytest.raises(InvalidInput, match=r"radio\.carrier_ghz is missing"):
            Radio().changed(power_dbm=10.0)

    def test_flags(self, run: Any) -> None:
        outcome = run("design", "--preset", "indoor-28ghz", "--snr-db", 5)
        assert_refused(outcome, "--snr-db", "radio.carrier_ghz", "remove --snr-db, or carrier_ghz")
        assert_refused(run("design", "--preset", "office"), "--preset = 'office'", "paper, indoor-28ghz")


class TestPresets:
    def test_paper(self) -> None:
        one, two = Scenario.preset("paper", 6, 3, 4, seed=2), Scenario.paper(6, 3, 4, seed=2)
        assert one.to_dict() == two.to_dict()

    def test_indoor(self) -> None:
        scenario = Scenario.preset("indoor-28ghz")
        receiver = scenario.receiver
        assert (scenario.devices.count, receiver.waveguides, receiver.antennas) == (50, 10, 10)
        assert scenario.radio == LinkBudget(**INDOOR).radio(mse_threshold=0.01, refractive_index=1.4)
        assert receiver.min_gap_m >= scenario.radio.wavelength_m / 2.0
        assert np.sum(scenario.weights**2) == pytest.approx(1.0)  # the threshold is an SDR of 20 dB

    @pytest.mark.parametrize("count", [1, 3, 8])
    def test_waveguides_share_the_width(self, count: int) -> None:
        y = Scenario.preset("indoor-28ghz", waveguides=count).receiver.waveguide_y
        edges = np.linspace(0.0, 10.0, count + 1)
        np.testing.assert_allclose(y, (edges[1:] + edges[:-1]) / 2.0)

    def test_given_values_replace_those_of_a_preset(self) -> None:
        lists = {"x_m": [1.0, 2.0], "y_m": 1.0, "gain": 1.0, "samples": 5}
        scenario = Scenario.from_dict(
            {
                "preset": "indoor-28ghz",
                "receiver": {"waveguides": 3, "spacing_m": 4.0},
                "radio": {"noise_dbm": -85.0},
                "devices": lists,
            }
        )
        np.testing.assert_array_equal(scenario.receiver.waveguide_y, [0.0, 4.0, 8.0])
        assert scenario.receiver.height_m == 3.0
        assert scenario.radio.link_budget == LinkBudget(28.0, -10.0, noise_dbm=-85.0)
        np.testing.assert_array_equal(scenario.devices.x_m, [1.0, 2.0])
        assert scenario.weighting.normalisation == "energy"

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            ({"preset": "office"}, ["preset = 'office'", "paper, indoor-28ghz"]),
            ({"preset": 3}, ["preset = 3"]),
            ({"preset": "indoor-28ghz", "radio": 3}, ["radio = 3", "table"]),
            ({"preset": "indoor-28ghz", "receiver": {"waveguides": 0}}, ["receiver.waveguides = 0", ">= 1"]),
        ],
    )
    def test_wrong_tables(self, data: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict(data)
        for word in words:
            assert word in str(caught.value)

    def test_arrays_and_layouts_differ_and_none_is_hopeless(self) -> None:
        scenario = Scenario.preset("indoor-28ghz", seed=1)
        array = design(scenario, "mimo-mn-plus", options={"axis": "z"}).selected_count
        moved = design(scenario, "airpass-plus", options={"effort": "fast"}).selected_count
        assert 0 < array < moved

    def test_listed(self, run: Any) -> None:
        outcome = run("presets")
        assert outcome.code == 0
        for word in (*PRESETS, "carrier_ghz = 28", "snr_db = 10", "count = 50"):
            assert word in outcome.out
        stored = json.loads(run("presets", "--json", "-").out)["presets"]
        assert set(stored) == set(PRESETS)
        assert (
            Scenario.from_dict(
                {name: table for name, table in stored["indoor-28ghz"].items() if name != "summary"}
            ).to_dict()
            == Scenario.preset("indoor-28ghz").to_dict()
        )

    @pytest.mark.parametrize("command", ["design", "train", "schedule", "track"])
    def test_help_names_every_preset(self, run: Any, command: str) -> None:
        text = " ".join(run(command, "--help").out.split())
        for name in PRESETS:
            assert name in text

    @pytest.mark.parametrize("name", PRESETS)
    def test_design(self, run: Any, tmp_path: Path, name: str) -> None:
        path = tmp_path / "design.json"
        outcome = run("design", "--preset", name, *SMALL, "--method", "mimo-mn", "--json", path)
        assert outcome.code == 0
        assert load(path).scenario.to_dict() == Scenario.preset(name, 4, 2, 2).to_dict()
        shown = run("show", path).out
        for out in (outcome.out, shown):
            assert ("28 GHz, -10 dBm, noise -80.95 dBm (SNR 70.95 dB)" in out) == (name == "indoor-28ghz")
            assert ("median device received with" in out) == (name == "indoor-28ghz")

    @pytest.mark.parametrize("name", PRESETS)
    def test_schedule_and_track(self, run: Any, tmp_path: Path, name: str) -> None:
        expected = Scenario.preset(name, 4, 2, 2).to_dict()
        method = ("--method", "distributed-mn")
        book, track = tmp_path / "book.json", tmp_path / "track.json"
        turns = ("--turns", 1, "--move", "beams", "--json", book)
        assert run("schedule", "--preset", name, *SMALL, *method, *turns).code == 0
        assert load(book).scenario.to_dict() == expected
        moved = run(
            *("track", "--preset", name, *SMALL, *method, "--seconds", 0.02),
            *("--json", track),
        )
        assert moved.code == 0, moved.err
        assert load(track).scenario.to_dict() == expected
        stored = json.loads(track.read_text())["link_budget"]
        assert stored["snr_db"] == load(track).scenario.radio.snr_db

    @pytest.mark.parametrize("name", PRESETS)
    def test_train(self, run: Any, tmp_path: Path, name: str) -> None:
        outcome = run(
            *("train", "--preset", name, *SMALL, "--scheme", "mimo-mn-plus", "--rounds", 1, "--batch", 4),
            *("--local-steps", 1, "--evaluate-every", 1, "--workers", 1, "--out", tmp_path),
        )
        assert outcome.code == 0, outcome.err
        stored = json.loads((tmp_path / "history.json").read_text())["runs"][0]["scenario"]["radio"]
        assert stored == Scenario.preset(name).to_dict()["radio"]

    def test_files_and_flags(self, run: Any, tmp_path: Path) -> None:
        room, path = tmp_path / "room.toml", tmp_path / "design.json"
        room.write_text('preset = "indoor-28ghz"\n[radio]\npower_dbm = -5\n[devices]\ncount = 6\n')
        more = ("--set", "radio.noise_dbm=-80", "--devices", 3, "--method", "mimo-m", "--seed", 8)
        assert run("design", "--scenario", room, *more, "--json", path).code == 0
        scenario = load(path).scenario
        assert scenario.radio.link_budget == LinkBudget(28.0, -5.0, noise_dbm=-80.0)
        assert (scenario.devices.count, scenario.seed) == (3, 8)

    def test_refused_next_to_channels_and_designs(self, run: Any, tmp_path: Path) -> None:
        np.save(tmp_path / "G.npy", np.ones((2, 3)))
        outcome = run("train", "--channels", tmp_path / "G.npy", "--preset", "indoor-28ghz")
        assert_refused(outcome, "--preset", "--channels")
        design(Scenario.paper(4, 2, 2), "mimo-m").save(tmp_path / "d.json")
        outcome = run("train", "--design", tmp_path / "d.json", "--preset", "paper")
        assert_refused(outcome, "--preset", "--design")

    def test_in_a_sweep(self) -> None:
        tables = {
            "schemes": ["mimo-m"],
            "axis": {"field": "radio.power_dbm", "values": [-10, 0]},
            "scenario": {"preset": "indoor-28ghz", "devices": {"count": 3}},
        }
        found = [Scenario.from_dict(one.scenario) for one in sweep.from_dict(tables).trials]
        assert [round(one.radio.snr_db, 2) for one in found] == [70.95, 80.95]
        assert {one.devices.count for one in found} == {3}
