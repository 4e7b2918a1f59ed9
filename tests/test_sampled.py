"""Responses on candidate places: values, files, scale, the propagation along waveguides, and importers."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from airpass import InvalidInput, Receiver, SampledResponse, load_responses, select
from airpass.channel.pass_uplink import PassUplink
from airpass.core.types import Real
from airpass.importers import deepmimo, llvm, sionna
from airpass.importers.points import rows_of
from test_channels import save_matlab_73

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "traced.npz"
SAMPLE_RECEIVER = Receiver(
    waveguides=4, antennas=4, length_m=9.0, spacing_m=2.0, height_m=4.0, min_gap_m=0.05
)
LIGHT_M_S = 299_792_458.0


def sampled(
    waveguides: int = 2, places: int = 5, devices: int = 3, seed: int = 0, **more: Any
) -> SampledResponse:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, waveguides, places, devices))
    given = {
        "response": parts[0] + 1j * parts[1],
        "places_m": np.cumsum(rng.uniform(0.1, 0.3, (waveguides, places)), axis=1),
        "waveguide_included": True,
        "device_xyz_m": rng.uniform(0.0, 5.0, (devices, 3)),
        "carrier_ghz": 3.5,
        "description": "random",
    }
    return SampledResponse(**(given | more))


def assert_same(one: SampledResponse, other: SampledResponse, single: bool = False) -> None:
    np.testing.assert_allclose(one.response, other.response, rtol=2e-7 if single else 0.0)
    np.testing.assert_array_equal(one.places_m, other.places_m)
    if other.device_xyz_m is None:
        assert one.device_xyz_m is None
    else:
        assert one.device_xyz_m is not None
        np.testing.assert_array_equal(one.device_xyz_m, other.device_xyz_m)
    for name in ("waveguide_included", "carrier_ghz", "description", "normalisation_db"):
        assert getattr(one, name) == getattr(other, name)


def free_space(receiver: Receiver, places: Real, devices: Real, carrier_ghz: float) -> Any:
    """xi exp(-j 2 pi D/lambda)/D with xi = lambda/(4 pi), by loops."""
    wavelength = LIGHT_M_S / (carrier_ghz * 1e9)
    values = np.empty((*places.shape, len(devices)), dtype=np.complex128)
    for m, row in enumerate(places):
        for p, x in enumerate(row):
            for k, device in enumerate(devices):
                antenna = np.array([x, receiver.waveguide_y[m], receiver.heights[m]])
                distance = np.linalg.norm(antenna - device)
                values[m, p, k] = (
                    wavelength / (4 * np.pi * distance) * np.exp(-2j * np.pi * distance / wavelength)
                )
    return values


class TestChannels:
    @settings(max_examples=25)
    @given(
        waveguides=st.integers(1, 3),
        places=st.integers(1, 6),
        devices=st.integers(1, 4),
        seed=st.integers(0, 1000),
        data=st.data(),
    )
    def test_channels_are_the_sum_over_the_chosen_places(
        self, waveguides: int, places: int, devices: int, seed: int, data: st.DataObject
    ) -> None:
        response = sampled(waveguides, places, devices, seed)
        antennas = data.draw(st.integers(1, places))
        rng = np.random.default_rng(seed)
        chosen = np.array([rng.permutation(places)[:antennas] for _ in range(waveguides)])
        layout = np.take_along_axis(response.places_m, chosen, axis=1)
        np.testing.assert_array_equal(response.indices(layout), chosen)
        expected = np.zeros((waveguides, devices), dtype=np.complex128)
        for m in range(waveguides):
            for n in chosen[m]:
                expected[m] += response.response[m, n] / np.sqrt(antennas)
        for channels in (
            response.channels(layout),
            response.channels_at(chosen),
            response.terms(layout).sum(axis=1),
        ):
            np.testing.assert_allclose(channels, expected, rtol=1e-12, atol=1e-14)
        ratio = response.terms(layout, antennas=4 * antennas) / response.terms(layout)
        np.testing.assert_allclose(ratio, 0.5, rtol=1e-12)

    @pytest.mark.parametrize(
        ("layout", "words"),
        [
            ([[0.35], [0.2]], ["layout[0, 0] = 0.35", "nearest", "0.4 m"]),
            ([[0.2, 0.2], [0.2, 0.4]], ["layout[0]", "same place"]),
            ([[0.2]], ["shape (1, 1)", "(2, N)"]),
            ([[0.2] * 4] * 2, ["shape (2, 4)", "from 1 to 3"]),
            ([[np.nan], [0.2]], ["layout[0, 0] = nan", "finite"]),
        ],
    )
    def test_layouts_off_the_places_are_refused(self, layout: Any, words: list[str]) -> None:
        response = sampled(2, 3, 2, places_m=[0.2, 0.4, 0.6])
        with pytest.raises(InvalidInput) as caught:
            response.channels(np.array(layout))
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert "\n" not in str(caught.value)

    def test_values_cannot_be_changed(self) -> None:
        response = sampled()
        with pytest.raises(ValueError, match="read-only"):
            response.response[0, 0, 0] = 0.0

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (
                {"response": np.ones((2, 5))},
                ["response has shape (2, 5)", "waveguides M, places P, devices K"],
            ),
            ({"response": np.full((2, 5, 3), np.nan)}, ["response[0, 0, 0]", "finite"]),
            ({"response": np.ones((2, 5, 3)) * [1.0, 0.0, 1.0]}, ["response[:, :, 1]", "all zeros"]),
            ({"response": "abc"}, ["response", "numbers"]),
            ({"places_m": np.ones((2, 4))}, ["places_m has shape (2, 4)", "(2, 5)"]),
            ({"places_m": [0.0, 1.0, 3.0, 2.0, 4.0]}, ["places_m[0, 3] = 2", "sort"]),
            ({"places_m": [0.0, 1.0, 1.0, 2.0, 4.0]}, ["places_m[0, 2] = 1", "above"]),
            ({"places_m": [0.0, 1.0, np.inf, 2.0, 4.0]}, ["places_m[2] = inf", "finite"]),
            ({"places_m": [0.0, 1j, 2.0, 3.0, 4.0]}, ["places_m", "real numbers"]),
            ({"waveguide_included": "yes"}, ["waveguide_included = 'yes'", "true or false"]),
            ({"device_xyz_m": np.ones((3, 2))}, ["device_xyz_m has shape (3, 2)", "(3, 3)"]),
            ({"device_xyz_m": np.full((3, 3), np.nan)}, ["device_xyz_m[0, 0]", "finite"]),
            ({"carrier_ghz": 0.0}, ["carrier_ghz = 0.0", "> 0"]),
            ({"description": 7}, ["description = 7", "text"]),
            ({"normalisation_db": 1e4}, ["normalisation_db"]),
        ],
    )
    def test_bad_input_is_refused_in_one_line(self, change: dict[str, Any], words: list[str]) -> None:
        with pytest.raises(InvalidInput) as caught:
            sampled(**change)
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert "\n" not in str(caught.value)


class TestWaveguides:
    @pytest.mark.parametrize("feed", ["left", "right", "centre", ("left", "right")])
    @pytest.mark.parametrize("loss", [0.0, 0.08])
    def test_free_space_with_waveguides_is_equation_64(self, feed: Any, loss: float) -> None:
        receiver = Receiver(
            waveguides=2, antennas=3, length_m=(6.0, 5.0), spacing_m=1.5, height_m=3.0, feed=feed
        )
        places = np.array([[0.0, 1.3, 2.9, 6.0], [0.2, 2.5, 2.6, 4.9]])
        devices = np.random.default_rng(3).uniform([0.0, 0.0, 0.0], [6.0, 3.0, 1.5], (5, 3))
        wavelength = LIGHT_M_S / 28e9
        open_air = SampledResponse(free_space(receiver, places, devices, 28.0), places, False, devices, 28.0)
        response = open_air.with_waveguides(receiver, 1.4, loss)
        model = PassUplink(
            device_x=devices[:, 0],
            device_y=devices[:, 1],
            device_z=devices[:, 2],
            gain=np.ones(5),
            waveguide_y=receiver.waveguide_y,
            height=receiver.heights,
            wavelength=wavelength,
            refractive_index=1.4,
            path_gain=wavelength / (4 * np.pi),
            feed=receiver.feed_x,
            side=receiver.feed_side,
        )
        guide = np.abs(places[:, 1:] - receiver.feed_x[:, None])[:, :, None]
        expected = model.terms(places[:, 1:]) * 10 ** (-loss * guide / 20)
        np.testing.assert_allclose(response.terms(places[:, 1:]), expected, rtol=1e-8)
        np.testing.assert_allclose(response.channels(places[:, 1:]), expected.sum(axis=1), rtol=1e-7)
        assert response.waveguide_included
        assert not open_air.waveguide_included

    def test_channels_need_the_waveguides(self) -> None:
        response = sampled(waveguide_included=False)
        with pytest.raises(InvalidInput, match="with_waveguides") as caught:
            response.channels(response.places_m[:, :2])
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("change", "receiver", "word"),
        [
            ({"waveguide_included": True}, Receiver(waveguides=2), "already"),
            ({"carrier_ghz": None}, Receiver(waveguides=2), "carrier_ghz"),
            ({}, Receiver(waveguides=3), "3 waveguides"),
            ({}, Receiver(waveguides=2, antennas=1, length_m=0.3), "length_m"),
        ],
    )
    def test_what_does_not_fit_is_refused(
        self, change: dict[str, Any], receiver: Receiver, word: str
    ) -> None:
        response = sampled(**({"waveguide_included": False} | change))
        with pytest.raises(InvalidInput, match=word):
            response.with_waveguides(receiver, 1.45)


class TestScale:
    def test_nothing_is_normalised(self) -> None:
        response = sampled()
        layout = response.places_m[:, :1]
        np.testing.assert_allclose(
            replace(response, response=10.0 * response.response).channels(layout),
            10.0 * response.channels(layout),
        )

    def test_median_snr(self) -> None:
        values = np.array([1e-3, 1e-4, 1e-5])[None, :, None] * np.exp(1j * np.ones((2, 3, 4)))
        response = SampledResponse(values, np.arange(3.0), True)
        assert response.median_snr_db(110.0) == pytest.approx(30.0)
        nothing = np.array([[[1.0], [0.0], [0.0]]])
        assert SampledResponse(nothing, np.arange(3.0), True).median_snr_db(110.0) == -np.inf

    def test_unit_mean_power_records_what_it_did(self) -> None:
        response = sampled(response=1e-4 * sampled().response)
        unit = response.with_unit_mean_power()
        assert np.mean(np.abs(unit.response) ** 2) == pytest.approx(1.0)
        assert unit.mean_path_gain_db == pytest.approx(0.0, abs=1e-9)
        assert unit.normalisation_db == pytest.approx(-response.mean_path_gain_db)
        np.testing.assert_allclose(unit.response / 10 ** (unit.normalisation_db / 20), response.response)
        snr_db = 100.0
        shifted = unit.median_snr_db(snr_db - unit.normalisation_db)
        assert shifted == pytest.approx(response.median_snr_db(snr_db))

    def test_repr_is_one_line(self) -> None:
        text = repr(sampled())
        assert "2 waveguides, 5 places, 3 devices, 3.5 GHz" in text
        assert "\n" not in text


class TestFiles:
    @pytest.mark.parametrize("suffix", [".npz", ".mat"])
    @pytest.mark.parametrize("single", [False, True])
    @pytest.mark.parametrize("bare", [False, True])
    def test_what_is_saved_is_loaded(self, tmp_path: Path, suffix: str, single: bool, bare: bool) -> None:
        more = (
            {"device_xyz_m": None, "carrier_ghz": None, "description": ""}
            if bare
            else {"normalisation_db": 3.0}
        )
        for devices in (1, 3):
            response = sampled(devices=devices, waveguide_included=bare, **more)
            path = tmp_path / f"responses{suffix}"
            response.save(path, single)
            assert_same(load_responses(path), response, single)

    def test_matlab_73(self, tmp_path: Path) -> None:
        response = sampled(waveguide_included=False, description="")
        arrays = {
            "response": response.response,
            "places_m": response.places_m,
            "device_xyz_m": response.device_xyz_m,
            "carrier_ghz": [[3.5]],
            "waveguide_included": [[0.0]],
        }
        save_matlab_73(tmp_path / "new.mat", arrays)
        assert_same(load_responses(tmp_path / "new.mat"), response)

    def test_text_in_matlab_73(self, tmp_path: Path) -> None:
        h5py = pytest.importorskip("h5py")
        response = sampled()
        path = tmp_path / "new.mat"
        save_matlab_73(
            path,
            {"response": response.response, "places_m": response.places_m, "waveguide_included": [[1.0]]},
        )
        with h5py.File(path, "r+") as file:
            text = file.create_dataset("description", data=np.array([[ord(c)] for c in "hall 3"], np.uint16))
            text.attrs["MATLAB_class"] = np.bytes_("char")
        assert load_responses(path).description == "hall 3"

    def test_one_list_of_places_for_all_waveguides(self, tmp_path: Path) -> None:
        places = np.arange(5.0)
        scipy.io.savemat(
            tmp_path / "old.mat",
            {
                "response": sampled().response,
                "places_m": places,
                "waveguide_included": True,
                "carrier_ghz": 28,
            },
        )
        np.testing.assert_array_equal(load_responses(tmp_path / "old.mat").places_m, [places, places])

    def test_one_device_in_matlab(self, tmp_path: Path) -> None:
        # MATLAB drops the last axis of M x P x 1.
        response = sampled(devices=1)
        for places in (response.places_m, np.arange(5.0)):
            content = {"response": response.response[:, :, 0], "places_m": places, "waveguide_included": 1}
            scipy.io.savemat(tmp_path / "one.mat", content)
            np.testing.assert_array_equal(load_responses(tmp_path / "one.mat").response, response.response)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"response": None}, ["no variable 'response'"]),
            ({"waveguide_included": None}, ["no variable 'waveguide_included'", "0 for ray tracers"]),
            ({"waveguide_included": 2}, ["waveguide_included = 2", "0 or 1"]),
            ({"format_version": 2}, ["format_version = 2", "newer"]),
            ({"carrier_ghz": [1.0, 2.0]}, ["carrier_ghz", "one number"]),
            ({"places_m": [1.0, 0.0]}, ["places_m[0, 1]"]),
            ({"response": np.array([{}], dtype=object)}, ["Python objects"]),
        ],
    )
    def test_bad_files_are_refused_in_one_line(
        self, tmp_path: Path, change: dict[str, Any], words: list[str]
    ) -> None:
        path = tmp_path / "bad.npz"
        good = {"response": np.ones((1, 2, 1)), "places_m": [0.0, 1.0], "waveguide_included": 1}
        kept = {name: value for name, value in (good | change).items() if value is not None}
        np.savez(path, allow_pickle=True, **kept)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput) as caught:
            load_responses(path)
        assert all(word in str(caught.value) for word in ["bad.npz", *words]), str(caught.value)
        assert "\n" not in str(caught.value)

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="no such file"):
            load_responses(tmp_path / "none.npz")
        for name in ("text.csv", "text.npz", "text.mat"):
            (tmp_path / name).write_text("1,2")
            with pytest.raises(InvalidInput, match=r"text\."):
                load_responses(tmp_path / name)
        with pytest.raises(InvalidInput, match=r"\.npz or \.mat"):
            sampled().save(tmp_path / "responses.csv")


class TestSample:
    def test_the_traced_room(self) -> None:
        room = load_responses(SAMPLE)
        assert room.response.shape == (4, 181, 12)
        assert room.carrier_ghz == pytest.approx(3.5)
        assert not room.waveguide_included
        assert "Sionna RT" in room.description
        assert SAMPLE.stat().st_size < 300_000

    def test_reflections_add_to_free_space(self) -> None:
        # The line of sight is that of free space, and reflections are not correlated with it over the places.
        room = load_responses(SAMPLE)
        assert room.device_xyz_m is not None
        direct = free_space(SAMPLE_RECEIVER, room.places_m, room.device_xyz_m, 3.5)
        power, direct_power = (np.abs(values) ** 2 for values in (room.response, direct))
        assert 1.0 < power.mean() / direct_power.mean() < 2.0
        share = np.vdot(direct, room.response) / direct_power.sum()
        assert abs(share - 1.0) < 0.1

    def test_it_can_be_selected_over(self) -> None:
        room = load_responses(SAMPLE).with_waveguides(SAMPLE_RECEIVER, 1.45)
        layout = room.places_m[:, [30, 70, 110, 150]]
        picked = select(room.channels(layout), None, snr_db=60.0, mse_threshold=0.03)
        assert 1 <= picked.selected_count <= 12


class TestPage:
    def test_the_first_example_prints_what_its_comments_say(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(ROOT)
        text = (ROOT / "docs" / "howto" / "ray-tracing.md").read_text()
        code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
        exec(compile(code, "ray-tracing.md", "exec"), {})  # noqa: S102
        printed = capsys.readouterr().out
        comments = re.findall(r"print\(.*#\s*(-?[\d.]+)( of \d+ devices)?", code)
        assert len(comments) == 3
        for number, devices in comments:
            assert f"{number}{devices}" in printed


class Tensor:
    """An array that has to be asked for with `numpy`, as in Sionna RT."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def numpy(self) -> Any:
        return self.values


def recorded_paths(receivers: Real, transmitters: Real, synthetic: bool) -> tuple[Any, Any]:
    """Line of sight and a mirror image in the floor, in the arrays of Sionna RT, and the scene."""
    mirrored = transmitters * [1.0, 1.0, -1.0]
    lengths = np.stack(
        [np.linalg.norm(receivers[:, None] - ends, axis=2) for ends in (transmitters, mirrored)], axis=-1
    )
    wavelength = LIGHT_M_S / 3.5e9
    a = wavelength / (4 * np.pi * lengths) * np.array([1.0, -0.5 + 0.1j])
    tau = lengths / LIGHT_M_S
    a, tau = (
        np.append(a, 0 * a[..., :1], axis=-1),
        np.append(tau, 0 * tau[..., :1] - 1.0, axis=-1),
    )  # no third path
    full = a[:, None, :, None]
    paths = SimpleNamespace(
        a=(Tensor(full.real), Tensor(full.imag)),
        tau=Tensor(tau if synthetic else tau[:, None, :, None]),
        sources=Tensor(transmitters.T),
        targets=Tensor(receivers.T),
    )
    turned = wavelength / (4 * np.pi * lengths) * np.exp(-2j * np.pi * lengths / wavelength)
    expected = turned[..., 0] + (-0.5 + 0.1j) * turned[..., 1]
    return paths, (SimpleNamespace(frequency=np.array([3.5e9])), expected)


GRID = np.array([[x, y, 3.0] for x in (0.0, 0.5, 1.0) for y in (2.0, -1.0)])  # two waveguides, not in order
DEVICES = np.array([[0.3, 0.0, 1.0], [2.0, 1.0, 0.5], [1.0, -2.0, 1.5], [4.0, 4.0, 1.0]])


class TestPoints:
    def test_rows_along_x_are_waveguides(self) -> None:
        rows = rows_of(GRID, (-1.0, -1.0, 0.0))
        np.testing.assert_array_equal(rows.indices, [[1, 3, 5], [0, 2, 4]])
        np.testing.assert_allclose(rows.places_m, [[1.0, 1.5, 2.0]] * 2)
        np.testing.assert_allclose(rows.waveguide_y_m, [0.0, 3.0])
        np.testing.assert_allclose(rows.height_m, [3.0, 3.0])

    def test_single_precision_does_not_split_rows(self) -> None:
        noisy = GRID + np.random.default_rng(0).uniform(-4e-4, 4e-4, GRID.shape)
        np.testing.assert_array_equal(rows_of(noisy).indices, rows_of(GRID).indices)

    @pytest.mark.parametrize(
        ("indices", "words"),
        [
            ([0, 1, 3], "same number"),
            ([0, 0], "differ"),
            ([0, 6], "from 0 to 5"),
            ([0.5], "whole"),
            ([], "whole"),
        ],
    )
    def test_bad_choices(self, indices: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            rows_of(GRID, indices=indices)
        with pytest.raises(InvalidInput, match="origin_m"):
            rows_of(GRID, (0.0, 1.0))


class TestSionna:
    @pytest.mark.parametrize("synthetic", [True, False])
    @pytest.mark.parametrize("places", ["receivers", "transmitters"])
    def test_recorded_paths(self, synthetic: bool, places: str) -> None:
        ends = (GRID, DEVICES) if places == "receivers" else (DEVICES, GRID)
        paths, (scene, expected) = recorded_paths(*ends, synthetic)
        found = sionna.from_paths(
            paths, scene, places=places, origin_m=(-1.0, 0.0, 0.0), device_indices=[2, 0]
        )
        table = expected if places == "receivers" else expected.T
        np.testing.assert_allclose(found.response, table[[[1, 3, 5], [0, 2, 4]]][:, :, [2, 0]], rtol=1e-9)
        assert found.device_xyz_m is not None
        np.testing.assert_allclose(found.device_xyz_m, DEVICES[[2, 0]] + [1.0, 0.0, 0.0])
        assert found.carrier_ghz == 3.5
        assert not found.waveguide_included

    def test_arrays_are_refused(self) -> None:
        paths, (scene, _) = recorded_paths(GRID, DEVICES, True)
        paths.a = tuple(Tensor(np.repeat(part.numpy(), 2, axis=1)) for part in paths.a)
        with pytest.raises(InvalidInput, match="arrays of 2 and 1 antennas"):
            sionna.from_paths(paths, scene)

    def test_shapes_are_checked_before_anything_is_imported(self) -> None:
        receiver = Receiver(waveguides=2)
        for places, devices, word in (
            (np.ones((3, 4)), DEVICES, "places_m"),
            ([0.0, 1.0], DEVICES[:, :2], "device_xyz_m"),
        ):
            with pytest.raises(InvalidInput, match=word):
                sionna.trace(None, receiver, places, devices)

    def test_a_missing_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sionna", None)
        sionna.require_sionna.cache_clear()
        with pytest.raises(InvalidInput, match=r"pip install 'airpass\[sionna\]'"):
            sionna.require_sionna()

    def test_an_aborted_trial_run_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "sionna").mkdir()
        (tmp_path / "sionna" / "rt.py").write_text("import os\nos.abort()\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        library = tmp_path / "libLLVM-15.so"
        library.write_bytes(b"")
        monkeypatch.setenv("DRJIT_LIBLLVM_PATH", str(library))
        for name in [name for name in sys.modules if name.partition(".")[0] == "sionna"]:
            monkeypatch.delitem(sys.modules, name)
        sionna.require_sionna.cache_clear()
        with pytest.raises(InvalidInput) as caught:
            sionna.require_sionna()
        for word in ("aborts", str(library), "libllvm19", "DRJIT_LIBLLVM_PATH"):
            assert word in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "sionna.rt" not in sys.modules

    def test_hints(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("DRJIT_LIBLLVM_PATH", str(tmp_path / "none.so"))
        assert "none.so is not a file" in llvm.llvm_hint(1, "ImportError: the LLVM backend is inactive")
        assert llvm.llvm_hint(1, "Traceback\nImportError: no box\n") == "ImportError: no box"
        monkeypatch.delenv("DRJIT_LIBLLVM_PATH")
        monkeypatch.setattr(llvm, "_FOLDERS", ())
        monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
        assert "no LLVM library was found" in llvm.llvm_hint(-6, "")


def recorded_dataset(delayed: bool, blocked: bool = False) -> list[SimpleNamespace]:
    """Transmitters at the devices and a grid of receivers, in the arrays of DeepMIMO."""
    paths, _ = recorded_paths(GRID, DEVICES, True)
    a = (paths.a[0].numpy() + 1j * paths.a[1].numpy())[:, 0, :, 0]
    tau = paths.tau.numpy()
    if delayed:
        a = a * np.exp(-2j * np.pi * 3.5e9 * tau)
    pairs = []
    for k, device in enumerate(DEVICES):
        with np.errstate(divide="ignore"):
            power = np.where(a[:, k] == 0, np.nan, 20 * np.log10(np.abs(a[:, k])))
        interactions = np.where(np.isnan(power), np.nan, [0.0, 1.0, 0.0])
        pairs.append(
            SimpleNamespace(
                power=power,
                phase=np.where(np.isnan(power), np.nan, np.angle(a[:, k], deg=True)),
                delay=np.where(np.isnan(power), np.nan, tau[:, k]),
                inter=np.where(blocked, 1.0, interactions),
                tx_pos=device[None],
                rx_pos=GRID,
                rt_params={"frequency": 3.5e9, "raytracer_name": "Sionna Ray Tracing"},
            )
        )
    return pairs


class TestDeepmimo:
    @pytest.mark.parametrize("delayed", [True, False])
    def test_recorded_data(self, delayed: bool) -> None:
        _, (_, expected) = recorded_paths(GRID, DEVICES, True)
        dataset = SimpleNamespace(datasets=recorded_dataset(delayed))
        found = deepmimo.from_dataset(dataset, origin_m=(0.0, -1.0, 0.0), device_indices=[3, 1])
        np.testing.assert_allclose(found.response, expected[[[1, 3, 5], [0, 2, 4]]][:, :, [3, 1]], rtol=1e-9)
        np.testing.assert_allclose(found.places_m, [[0.0, 0.5, 1.0]] * 2)
        assert found.device_xyz_m is not None
        np.testing.assert_allclose(found.device_xyz_m, DEVICES[[3, 1]] + [0.0, 1.0, 0.0])
        assert found.carrier_ghz == 3.5
        given = deepmimo.from_dataset(dataset, phase="at-carrier" if delayed else "without-delay")
        np.testing.assert_array_equal(given.response[:, :, [3, 1]], found.response)
        other = deepmimo.from_dataset(dataset, phase="without-delay" if delayed else "at-carrier")
        assert np.abs(other.response - given.response).max() > 0.1 * np.abs(given.response).max()

    def test_transmitters_as_places(self) -> None:
        _, (_, expected) = recorded_paths(GRID, DEVICES, True)
        dataset = SimpleNamespace(datasets=recorded_dataset(True))
        found = deepmimo.from_dataset(dataset, places="transmitters", place_indices=[2])
        np.testing.assert_allclose(found.response[0, 0], expected[:, 2], rtol=1e-9)

    def test_several_grids_are_one(self) -> None:
        pairs = []
        for pair in recorded_dataset(False):
            for part in (slice(0, 2), slice(2, 6)):
                cut = {
                    name: getattr(pair, name)[part] for name in ("power", "phase", "delay", "inter", "rx_pos")
                }
                pairs.append(SimpleNamespace(**(vars(pair) | cut)))
        whole = deepmimo.from_dataset(SimpleNamespace(datasets=recorded_dataset(False)))
        assert_same(deepmimo.from_dataset(SimpleNamespace(datasets=pairs)), whole)
        with pytest.raises(InvalidInput, match="rx_sets"):
            deepmimo.from_dataset(SimpleNamespace(datasets=pairs[1:]))

    def test_undecided_phases_and_scenes_are_refused(self) -> None:
        blocked = SimpleNamespace(datasets=recorded_dataset(True, blocked=True))
        with pytest.raises(InvalidInput, match="give phase = 'at-carrier' or 'without-delay'"):
            deepmimo.from_dataset(blocked)
        with pytest.raises(InvalidInput, match="several scenes"):
            deepmimo.from_dataset(SimpleNamespace(datasets=[blocked, blocked]))

    def test_folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InvalidInput, match=r"no params\.json"):
            deepmimo.from_folder(tmp_path)
        for name, word in (("Room", "lower case"), ("room", r"pip install 'airpass\[deepmimo\]'")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "params.json").write_text("{}")
            monkeypatch.setitem(sys.modules, "deepmimo", None)
            with pytest.raises(InvalidInput, match=word):
                deepmimo.from_folder(tmp_path / name)
