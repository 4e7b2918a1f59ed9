"""Scenarios: the paper's values, files, and a clear word on everything that is wrong."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import DeviceDraw, InvalidInput, Radio, Receiver, Scenario, aircomp, design
from airpass.core.randomness import Purpose, stream


def test_the_papers_values() -> None:
    scenario = Scenario.paper()
    assert scenario.to_dict()["receiver"] == {
        "waveguides": 5,
        "antennas": 5,
        "length_m": 40.0,
        "spacing_m": 2.0,
        "height_m": 4.0,
        "min_gap_m": 0.95,
        "feed": "left",
    }
    assert "channel" not in scenario.to_dict()
    assert scenario.to_dict()["devices"]["z_m"] == [0.0] * 10
    assert scenario.to_dict()["radio"] == {
        "snr_db": 10.0,
        "mse_threshold": 0.03,
        "wavelength_m": 0.125,
        "refractive_index": 1.45,
        "path_gain": 1.0,
        "power": 1.0,
    }
    assert scenario.budget == pytest.approx(0.3)  # 1*0.03/0.1
    np.testing.assert_allclose(scenario.weights, 0.1)


def test_devices_follow_the_papers_distributions() -> None:
    # Uniform on [low, high]: the mean of n draws lies within 4 standard errors of the middle,
    # the standard error being (high - low)/sqrt(12 n).
    n = 40_000
    devices = DeviceDraw(count=n, seed=3).draw()
    for values, low, high in ((devices.x_m, 4, 40), (devices.y_m, 2, 10), (devices.gain, 0.8, 1.2)):
        assert low <= values.min()
        assert values.max() <= high
        assert abs(values.mean() - (low + high) / 2) < 4 * (high - low) / math.sqrt(12 * n)


def test_same_seed_same_devices_other_seed_others() -> None:
    first, again, other = (Scenario.paper(seed=seed).devices for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.x_m, again.x_m)
    assert (first.x_m != other.x_m).all()


def test_streams_are_apart_by_purpose_and_index() -> None:
    draws = [
        stream(1, Purpose.DEVICES).random(),
        stream(1, Purpose.SELECTION).random(),
        stream(1, Purpose.SELECTION, 1).random(),
        stream(2, Purpose.SELECTION, 1).random(),
    ]
    assert len(set(draws)) == 4


def test_file_round_trip(tmp_path: Path) -> None:
    scenario = Scenario.from_dict(
        {
            "receiver": {"waveguides": 2, "antennas": 3, "length_m": [10.0, 12.5]},
            "radio": {"snr_db": -3.5},
            "devices": {"count": 4, "seed": 9},
            "weights": {"normalisation": "count"},
        }
    )
    path = tmp_path / "scenario.toml"
    scenario.save(path)
    assert Scenario.load(path).to_dict() == scenario.to_dict()
    assert [file.name for file in tmp_path.iterdir()] == ["scenario.toml"]


def test_weights_by_share_and_by_count() -> None:
    devices = {"x_m": [1.0, 2.0], "y_m": [1.0, 2.0], "gain": [1.0, 1.0], "samples": [100, 300]}
    share = Scenario.from_dict({"devices": devices})
    count = Scenario.from_dict({"devices": devices, "weights": {"normalisation": "count"}})
    np.testing.assert_allclose(share.weights, [0.25, 0.75])
    np.testing.assert_allclose(count.weights, [100.0, 300.0])


def test_weights_by_energy_make_the_threshold_a_distortion_to_signal_ratio() -> None:
    # sum phi_k^2 = 1 whatever the counts, so that an error of eps is 10 log10(1/eps) dB below the signal.
    scenario = Scenario.from_dict(
        {
            "devices": {"count": 12, "seed": 3},
            "weights": {"normalisation": "energy"},
            "radio": {"snr_db": 40.0},
        }
    ).with_samples(np.geomspace(10, 1000, 12))
    assert np.sum(scenario.weights**2) == pytest.approx(1.0)
    np.testing.assert_allclose(scenario.weights / scenario.weights[0], np.geomspace(1, 100, 12))
    found = design(scenario, "airpass")
    assert found.selected_count == 12
    assert found.sdr_db >= 10 * math.log10(1 / 0.03)


@pytest.mark.parametrize("count", [5, 50])
def test_weights_by_share_make_the_threshold_depend_on_the_number_of_devices(count: int) -> None:
    # Equal shares have the power sum phi_k^2 = 1/K: 0.03 is 10 log10(1/(0.03 K)) dB below the signal,
    # 8.2 dB at K = 5 and -1.8 dB at K = 50, where an output of zero would meet it.
    scenario = Scenario.paper(count, 5, 5, 10.0, 1)
    assert np.sum(scenario.weights**2) == pytest.approx(1 / count)
    at_threshold = aircomp.sdr_db(1 / count, 0.03)
    assert at_threshold == pytest.approx({5: 8.239, 50: -1.761}[count], abs=1e-3)


def test_uniform_layout_is_feasible_and_even() -> None:
    scenario = Scenario.paper(waveguides=2, antennas=4)
    layout = scenario.checked_layout(scenario.uniform_layout())
    gaps = np.diff(layout, axis=1)
    np.testing.assert_allclose(gaps, gaps[0, 0])
    np.testing.assert_allclose(layout[:, 0], 40.0 - layout[:, -1])


def test_room_of_exactly_zero_is_allowed() -> None:
    receiver = Receiver(waveguides=1, antennas=4, length_m=0.3, min_gap_m=0.1)  # 3*0.1 > 0.3 in floats
    assert receiver.free_length.tolist() == [0.0]
    scenario = Scenario(receiver=receiver)
    scenario.checked_layout(scenario.uniform_layout())


given_devices = {"x_m": [1.0, 2.0], "y_m": [1.0, 2.0], "gain": [1.0, 1.0], "samples": [1, 1]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"receiver": {"waveguides": 0}}, ["receiver.waveguides", "0", ">= 1"]),
        ({"receiver": {"waveguides": 2.5}}, ["receiver.waveguides", "2.5", "whole"]),
        ({"receiver": {"antennas": True}}, ["receiver.antennas", "True", "whole"]),
        ({"receiver": {"length_m": 3.0}}, ["receiver.length_m", "3", "3.8", "T_m"]),
        ({"receiver": {"length_m": [40.0, 40.0]}}, ["receiver.length_m", "2 entries", "5"]),
        ({"receiver": {"length_m": "long"}}, ["receiver.length_m", "'long'", "number"]),
        ({"receiver": {"height_m": 0.0}}, ["receiver.height_m", "0.0", "> 0"]),
        ({"receiver": {"spacing_m": -1}}, ["receiver.spacing_m", "-1", "> 0"]),
        ({"receiver": {"min_gap_m": -0.1}}, ["receiver.min_gap_m", "-0.1", ">= 0"]),
        ({"receiver": {"colour": 1}}, ["receiver.colour", "unknown", "waveguides"]),
        ({"radio": {"snr_db": math.inf}}, ["radio.snr_db", "inf", "finite"]),
        ({"radio": {"mse_threshold": 0}}, ["radio.mse_threshold", "0", "> 0"]),
        ({"radio": {"wavelength_m": "x"}}, ["radio.wavelength_m", "'x'", "number"]),
        ({"radio": {"refractive_index": 0.5}}, ["radio.refractive_index", "0.5", ">= 1"]),
        ({"radio": {"wavelength_m": 1e-300}}, ["radio.wavelength_m", ">= 1e-06"]),
        ({"devices": {"x_range_m": [-1e308, 1e308]}}, ["devices.x_range_m", "1e+100"]),
        ({"radio": {"power": math.nan}}, ["radio.power", "nan", "finite"]),
        ({"devices": {"count": 0}}, ["devices.count", "0", ">= 1"]),
        ({"devices": {"seed": -1}}, ["devices.seed", "-1", ">= 0"]),
        ({"devices": {"x_range_m": [4.0]}}, ["devices.x_range_m", "two numbers"]),
        ({"devices": {"x_range_m": [5.0, 4.0]}}, ["devices.x_range_m", "low"]),
        ({"devices": {"gain_range": [0.0, 1.0]}}, ["devices.gain_range", "> 0"]),
        ({"devices": given_devices | {"y_m": [1.0]}}, ["devices.y_m", "1 entries", "2"]),
        ({"devices": given_devices | {"x_m": [1.0, math.nan]}}, ["devices.x_m[1]", "nan", "finite"]),
        ({"devices": given_devices | {"gain": [1.0, 0.0]}}, ["devices.gain[1]", "0", "> 0"]),
        ({"devices": given_devices | {"samples": [0, 5]}}, ["devices.samples[0]", "0", "> 0"]),
        ({"devices": given_devices | {"x_m": ["a", "b"]}}, ["devices.x_m", "numbers"]),
        ({"devices": given_devices | {"count": 2}}, ["devices.count", "either drawn", "given"]),
        ({"devices": {"x_m": [1.0]}}, ["devices.y_m", "missing"]),
        ({"devices": {"x_m": [], "y_m": [], "gain": [], "samples": []}}, ["devices.x_m", "at least one"]),
        ({"weights": {"normalisation": "sum"}}, ["weights.normalisation", "'sum'", "share, energy, count"]),
        ({"antenna": {}}, ["antenna", "unknown", "receiver"]),
        ({"radio": 3}, ["radio", "3", "table"]),
    ],
)
def test_every_rule_names_field_value_and_what_is_allowed(data: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scenario.from_dict(data)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda layout: layout[:, :-1], "shape"),
        (lambda layout: layout - 100.0, "within 0"),
        (lambda layout: layout + 100.0, "40"),
        (lambda layout: layout[:, ::-1] * 1.0, "rising order"),
        (lambda layout: layout * np.nan, "finite"),
        (lambda layout: np.linspace(10.0, 12.0, layout.size).reshape(layout.shape), "0.95"),
    ],
)
def test_layouts_are_checked(change: Callable[[Any], Any], word: str) -> None:
    scenario = Scenario.paper()
    with pytest.raises(InvalidInput, match=word):
        scenario.channels(change(scenario.uniform_layout()))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        Scenario.load(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[radio\nsnr_db = 3")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        Scenario.load(bad)


def test_values_cannot_be_changed_in_place() -> None:
    scenario = Scenario.paper()
    with pytest.raises(ValueError, match="read-only"):
        scenario.devices.x_m[0] = 1.0
    with pytest.raises(AttributeError):
        scenario.radio.snr_db = 3.0  # type: ignore[misc]


def test_numpy_numbers_are_as_good_as_plain_ones(tmp_path: Path) -> None:
    scenario = Scenario(
        receiver=Receiver(waveguides=np.int64(2), antennas=np.int32(3), length_m=np.array([9.0, 8.0])),  # type: ignore[arg-type]
        radio=Radio(snr_db=np.float32(3.0)),  # type: ignore[arg-type]
        devices=DeviceDraw(count=np.int64(4), seed=np.int64(1), x_range_m=np.array([1.0, 2.0])).draw(),  # type: ignore[arg-type]
    )
    assert type(scenario.budget) is float
    scenario.save(tmp_path / "s.toml")
    assert Scenario.load(tmp_path / "s.toml").to_dict() == scenario.to_dict()


def test_sweeps_keep_the_rest() -> None:
    scenario = Scenario.paper(seed=2)
    quiet = scenario.with_radio(snr_db=-7.0)
    assert quiet.radio == Radio(snr_db=-7.0)
    assert quiet.devices is scenario.devices
