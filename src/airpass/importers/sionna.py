"""Responses traced by Sionna RT (`pip install 'airpass[sionna]'`).

Devices are transmitters, as in the uplink, and candidate places are receivers; the other way round gives the
same responses by reciprocity. Antennas are single, isotropic and vertically polarised unless the scene has
arrays.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from airpass.channel.sampled import SampledResponse
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Real
from airpass.importers.llvm import llvm_hint
from airpass.importers.points import checked_origin, responses_between, sum_paths
from airpass.scenario import Receiver

INSTALL = "Sionna RT is not installed: pip install 'airpass[sionna]'"
TRIAL_SECONDS = 300  # longest time for a trial run of a fraction of a second of work
# Dr.Jit may end the process when it compiles a kernel for an LLVM that does not suit it.
_TRIAL = """
import sionna.rt as rt
scene = rt.load_scene(rt.scene.box)
scene.tx_array = scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
scene.add(rt.Transmitter("t", position=[0.0, 0.0, 1.0]))
scene.add(rt.Receiver("r", position=[1.0, 1.0, 2.0]))
rt.PathSolver()(scene, max_depth=2, samples_per_src=1000).cir(out_type="numpy")
"""


@cache
def require_sionna() -> None:
    """Check that Sionna RT is installed and runs.

    It is tried in a child process, because it aborts the process it runs in if LLVM is not suitable.
    `InvalidInput` is raised in one line that says what to install.
    """
    if find_spec("sionna") is None:  # that of sionna.rt would import the package
        raise InvalidInput(INSTALL)
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _TRIAL], capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"Sionna RT did not finish a trial run in {TRIAL_SECONDS} s") from None
    if done.returncode:
        raise InvalidInput(f"Sionna RT does not run here: {llvm_hint(done.returncode, done.stderr)}")


def trace(
    scene: Any,
    receiver: Receiver,
    places_m: Any,
    device_xyz_m: Any,
    *,
    origin_m: Any = (0.0, 0.0, 0.0),
    description: str = "",
    **solver: Any,
) -> SampledResponse:
    """Trace the responses of devices on candidate places in a scene of Sionna RT.

    Parameters
    ----------
    scene
        `sionna.rt.Scene` with its carrier frequency. Its own transmitters and receivers are left out while it
        is traced. Its arrays must have one antenna; without arrays, isotropic antennas with vertical
        polarisation are used.
    receiver
        The waveguides: their y, heights and lengths.
    places_m
        Positions along the waveguides in metres, increasing; shape (M, P), or (P,) for all waveguides.
    device_xyz_m
        [x, y, z] of the devices in metres in the receiver's coordinates, shape (K, 3).
    origin_m
        [x, y, z] in the scene of the origin of the receiver's coordinates.
    description
        Text to keep with the responses. Default: the options of the solver.
    **solver
        Options of `sionna.rt.PathSolver`, for example `max_depth=3`, `refraction=False`, `seed=1`.

    Returns
    -------
    SampledResponse
        Responses at the antennas, without the propagation along the waveguides.
    """
    places = np.asarray(places_m, dtype=np.float64)
    if places.ndim == 1:
        places = np.tile(places, (receiver.waveguides, 1))
    if places.ndim != 2 or len(places) != receiver.waveguides or not places.size:
        raise InvalidInput(
            f"places_m has shape {places.shape}: must be ({receiver.waveguides}, P) or (P,), as the receiver "
            f"has {receiver.waveguides} waveguides"
        )
    devices = np.asarray(device_xyz_m, dtype=np.float64)
    if devices.ndim != 2 or devices.shape[1:] != (3,) or not devices.size:
        raise InvalidInput(f"device_xyz_m has shape {devices.shape}: must be (K, 3), [x, y, z] per device")
    origin = checked_origin(origin_m)
    lines = np.stack([receiver.waveguide_y, receiver.heights], axis=1)
    points = np.concatenate(
        [places[:, :, None], np.broadcast_to(lines[:, None], (*places.shape, 2))], axis=2
    ).reshape(-1, 3)
    require_sionna()
    from sionna import rt

    with _only(scene, rt, devices + origin, points + origin):
        paths = rt.PathSolver()(scene, synthetic_array=False, **solver)
        gains = _gains(paths, scene)  # (places, devices)
    options = ", ".join(f"{name}={value}" for name, value in solver.items()) or "default options"
    return SampledResponse(
        response=gains.reshape(*places.shape, len(devices)),
        places_m=places,
        waveguide_included=False,
        device_xyz_m=devices,
        carrier_ghz=_carrier_hz(scene) / 1e9,
        description=description or f"Sionna RT: {options}",
    )


def from_paths(
    paths: Any,
    scene: Any,
    *,
    places: str = "receivers",
    origin_m: Any = (0.0, 0.0, 0.0),
    place_indices: Any = None,
    device_indices: Any = None,
    description: str = "Sionna RT",
) -> SampledResponse:
    """Take responses from paths that Sionna RT has traced.

    Parameters
    ----------
    paths
        `sionna.rt.Paths`, traced with arrays of one antenna.
    scene
        The scene that was traced, for its carrier frequency.
    places
        `receivers` if the receivers are the candidate places and the transmitters the devices, `transmitters`
        if it is the other way round.
    origin_m
        [x, y, z] in the scene of the origin of the receiver's coordinates.
    place_indices
        Numbers of the points that are candidate places; default all. Points with equal y and z are a
        waveguide; the waveguides are in order of y, then z.
    device_indices
        Numbers of the points that are devices, in their order; default all.
    description
        Text to keep with the responses.

    Returns
    -------
    SampledResponse
        Responses at the antennas, without the propagation along the waveguides.
    """
    checks.one_of("places", places, ("receivers", "transmitters"))
    gains = _gains(paths, scene)
    ends = (_points(paths.targets), _points(paths.sources))
    if places == "transmitters":
        gains, ends = gains.T, (ends[1], ends[0])
    return responses_between(
        gains, *ends, origin_m, place_indices, device_indices, _carrier_hz(scene), description
    )


def _carrier_hz(scene: Any) -> float:
    values = np.ravel(np.asarray(scene.frequency, dtype=np.float64))
    if values.size != 1:
        raise InvalidInput(f"the scene has {values.size} carrier frequencies: must be one")
    return float(values[0])


def _points(positions: Any) -> Real:
    """Positions as an array (points, 3); Sionna RT has the axes the other way round."""
    return np.asarray(positions.numpy(), dtype=np.float64).T


def _gains(paths: Any, scene: Any) -> Any:
    """Responses of single antennas, shape (receivers, transmitters)."""
    amplitude = paths.a[0].numpy() + 1j * paths.a[1].numpy()
    delay = paths.tau.numpy()
    if amplitude.shape[1] != 1 or amplitude.shape[3] != 1:
        raise InvalidInput(
            f"the paths are between arrays of {amplitude.shape[1]} and {amplitude.shape[3]} antennas: trace "
            "them with one antenna and one polarisation each"
        )
    return sum_paths(
        amplitude[:, 0, :, 0], delay if delay.ndim == 3 else delay[:, 0, :, 0], _carrier_hz(scene)
    )


@contextmanager
def _only(scene: Any, rt: Any, transmitters: Real, receivers: Real) -> Iterator[None]:
    """The scene with these radio devices and no others; it is put back afterwards."""
    kept = [*scene.transmitters.values(), *scene.receivers.values()]
    arrays = scene.tx_array, scene.rx_array
    scene.remove([device.name for device in kept])
    for name in ("tx_array", "rx_array"):
        if getattr(scene, name) is None:
            single = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
            setattr(scene, name, single)
    added = [
        *(
            rt.Transmitter(f"airpass-device-{k}", position=list(map(float, p)))
            for k, p in enumerate(transmitters)
        ),
        *(rt.Receiver(f"airpass-place-{n}", position=list(map(float, p))) for n, p in enumerate(receivers)),
    ]
    try:
        scene.add(added)
        yield
    finally:
        scene.remove([device.name for device in added])
        scene.add(kept)
        for name, array in zip(("tx_array", "rx_array"), arrays, strict=True):
            if array is not None:
                setattr(scene, name, array)
