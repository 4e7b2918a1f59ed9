"""Responses traced by Sionna RT, against free space, and against paths of a scene that is set up by hand."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from airpass import InvalidInput, Receiver
from airpass.importers import sionna

RECEIVER = Receiver(waveguides=2, antennas=2, length_m=6.0, spacing_m=2.0, height_m=4.0)
PLACES_M = np.array([0.5, 1.0, 2.5, 5.5])
DEVICES_M = np.array([[1.0, 0.5, 1.0], [4.0, 3.0, 1.2], [5.0, -1.0, 0.8]])
ORIGIN_M = (-3.0, -1.0, 0.0)
LIGHT_M_S = 299_792_458.0


@pytest.fixture(scope="module")
def rt() -> Any:
    sionna.require_sionna()
    from sionna import rt

    return rt


@pytest.fixture
def scene(rt: Any) -> Any:
    scene = rt.load_scene(rt.scene.box)
    scene.frequency = 28e9
    return scene


def test_the_line_of_sight_is_free_space(scene: Any) -> None:
    found = sionna.trace(scene, RECEIVER, PLACES_M, DEVICES_M, origin_m=ORIGIN_M, max_depth=0)
    lines = np.column_stack([RECEIVER.waveguide_y, RECEIVER.heights])
    antennas = np.array([[[x, *line] for x in PLACES_M] for line in lines])
    distance = np.linalg.norm(antennas[:, :, None] - DEVICES_M, axis=3)
    wavelength = LIGHT_M_S / 28e9
    expected = wavelength / (4 * np.pi * distance) * np.exp(-2j * np.pi * distance / wavelength)
    # Sionna RT computes in single precision: phases of up to 900 turns.
    np.testing.assert_allclose(found.response, expected, rtol=5e-3)
    assert found.carrier_ghz == pytest.approx(28.0)
    assert found.description == "Sionna RT: max_depth=0"


def test_the_scene_is_put_back_and_its_own_radios_do_not_matter(scene: Any, rt: Any) -> None:
    options: dict[str, Any] = {"origin_m": ORIGIN_M, "max_depth": 1, "samples_per_src": 10_000}
    alone = sionna.trace(scene, RECEIVER, PLACES_M, DEVICES_M, **options)
    scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    scene.add(rt.Transmitter("mine", position=[0.0, 0.0, 1.0]))
    scene.add(rt.Receiver("other", position=[1.0, 0.0, 1.0]))
    again = sionna.trace(scene, RECEIVER, PLACES_M, DEVICES_M, **options)
    np.testing.assert_allclose(again.response, alone.response, rtol=1e-3, atol=1e-7)
    assert list(scene.transmitters) == ["mine"]
    assert list(scene.receivers) == ["other"]


def test_paths_give_what_trace_gives_in_both_directions(scene: Any, rt: Any) -> None:
    scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    traced = sionna.trace(
        scene, RECEIVER, PLACES_M, DEVICES_M, origin_m=ORIGIN_M, max_depth=2, samples_per_src=10_000
    )
    for places, kinds in (
        ("receivers", (rt.Receiver, rt.Transmitter)),
        ("transmitters", (rt.Transmitter, rt.Receiver)),
    ):
        for name in (*scene.transmitters, *scene.receivers):
            scene.remove(name)
        count = 0
        for x in PLACES_M[::-1]:
            for y, z in zip(RECEIVER.waveguide_y, RECEIVER.heights, strict=True):
                scene.add(kinds[0](f"place-{count}", position=(np.array([x, y, z]) + ORIGIN_M).tolist()))
                count += 1
        for k, device in enumerate(DEVICES_M):
            scene.add(kinds[1](f"device-{k}", position=(device + ORIGIN_M).tolist()))
        paths = rt.PathSolver()(scene, max_depth=2, samples_per_src=10_000)
        found = sionna.from_paths(paths, scene, places=places, origin_m=ORIGIN_M)
        np.testing.assert_allclose(found.places_m, np.tile(PLACES_M, (2, 1)), atol=1e-6)
        assert found.device_xyz_m is not None
        np.testing.assert_allclose(found.device_xyz_m, DEVICES_M, atol=1e-6)
        # By reciprocity both directions agree. Rounding of the delays turns the phases of single paths.
        error = np.linalg.norm(found.response - traced.response) / np.linalg.norm(traced.response)
        assert error < 1e-2


def test_an_unsuitable_llvm_is_reported_before_it_aborts() -> None:
    code = (
        "from airpass.importers import sionna\n"
        "try:\n    sionna.require_sionna()\nexcept ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"DRJIT_LIBLLVM_PATH": "/none/libLLVM.so"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DRJIT_LIBLLVM_PATH = /none/libLLVM.so is not a file" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_arrays_of_several_antennas_are_refused(scene: Any, rt: Any) -> None:
    scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=2, pattern="iso", polarization="V")
    with pytest.raises(InvalidInput, match="arrays of 2 and 2 antennas"):
        sionna.trace(scene, RECEIVER, PLACES_M, DEVICES_M, origin_m=ORIGIN_M, max_depth=0)
    assert not scene.transmitters
