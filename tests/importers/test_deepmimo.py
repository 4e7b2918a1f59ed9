"""Responses from a DeepMIMO data set that was converted from paths of Sionna RT, against those paths."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import InvalidInput, Receiver, SampledResponse
from airpass.importers import deepmimo, sionna

# DeepMIMO 4.0.5 with NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")

RECEIVER = Receiver(waveguides=2, antennas=2, length_m=6.0, spacing_m=2.0, height_m=4.0)
PLACES_M = np.array([0.5, 1.0, 2.5, 5.5])
DEVICES_M = np.array([[4.0, 3.0, 1.2], [1.0, 0.5, 1.0], [5.0, -1.0, 0.8]])
ORIGIN_M = (-3.0, -1.0, 0.0)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SampledResponse]:
    """Folder of a scenario of DeepMIMO, and the same responses by Sionna RT."""
    sionna.require_sionna()
    import deepmimo as package
    from deepmimo.exporters.sionna_exporter import sionna_exporter
    from sionna import rt

    folder = tmp_path_factory.mktemp("deepmimo")
    scene = rt.load_scene(rt.scene.box)
    scene.frequency = 3.5e9
    scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    for k, device in enumerate(DEVICES_M):
        scene.add(rt.Transmitter(f"device-{k}", position=(device + ORIGIN_M).tolist()))
    for n, (x, m) in enumerate((x, m) for x in PLACES_M for m in range(2)):
        place = np.array([x, RECEIVER.waveguide_y[m], RECEIVER.heights[m]])
        scene.add(rt.Receiver(f"place-{n}", position=(place + ORIGIN_M).tolist()))
    options: dict[str, Any] = {"max_depth": 2, "samples_per_src": 10_000, "refraction": False}
    paths = rt.PathSolver()(scene, **options)
    sionna_exporter(scene, paths, options, str(folder / "traced"))
    package.config.set("scenarios_folder", str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deepmimo.consts.SCENARIOS_FOLDER", str(folder))
        patch.chdir(folder)
        package.convert(str(folder / "traced"), scenario_name="room", overwrite=True, vis_scene=False)
    return folder / "room", sionna.from_paths(paths, scene, origin_m=ORIGIN_M)


def assert_close(found: SampledResponse, traced: SampledResponse, order: list[int]) -> None:
    np.testing.assert_allclose(found.places_m, traced.places_m, atol=1e-6)
    error = np.linalg.norm(found.response - traced.response[:, :, order]) / np.linalg.norm(traced.response)
    assert error < 1e-3


def test_a_folder_gives_what_the_ray_tracer_gave(room: tuple[Path, SampledResponse]) -> None:
    folder, traced = room
    found = deepmimo.from_folder(folder, origin_m=ORIGIN_M)
    assert found.device_xyz_m is not None
    order = [int(np.argmin(np.abs(DEVICES_M - device).sum(axis=1))) for device in found.device_xyz_m]
    assert sorted(order) == [0, 1, 2]  # DeepMIMO sorts transmitters by their positions
    assert_close(found, traced, order)
    assert found.carrier_ghz == pytest.approx(3.5)
    assert found.description == "DeepMIMO: room"


def test_loaded_data_with_few_paths_differs(room: tuple[Path, SampledResponse]) -> None:
    import deepmimo as package

    folder, traced = room
    package.config.set("scenarios_folder", str(folder.parent))
    dataset = package.load("room", max_paths=3)
    found = deepmimo.from_dataset(dataset, origin_m=ORIGIN_M)
    with pytest.raises(AssertionError):
        assert_close(found, traced, [1, 0, 2])


def test_one_transmitter(room: tuple[Path, SampledResponse]) -> None:
    import deepmimo as package

    folder, _ = room
    package.config.set("scenarios_folder", str(folder.parent))
    alone = deepmimo.from_dataset(package.load("room", tx_sets={0: [0]}, max_paths=100), origin_m=ORIGIN_M)
    whole = deepmimo.from_folder(folder, origin_m=ORIGIN_M, device_indices=[0])
    np.testing.assert_array_equal(alone.response, whole.response)


def test_phases_can_be_given(room: tuple[Path, SampledResponse]) -> None:
    folder, traced = room
    assert_close(
        deepmimo.from_folder(folder, origin_m=ORIGIN_M, phase="without-delay", device_indices=[0]),
        traced,
        [1],
    )
    with pytest.raises(InvalidInput, match="phase"):
        deepmimo.from_folder(folder, phase="other")
