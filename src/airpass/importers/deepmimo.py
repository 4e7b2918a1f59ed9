"""Responses from data sets of DeepMIMO, version 4 (`pip install 'airpass[deepmimo]'`).

A data set holds the paths between transmitters, usually base stations, and receivers, usually a grid of
users, with single isotropic antennas. Either can be the candidate places; the others are the devices, as
channels are reciprocal. Arrays of a base station are not used: DeepMIMO derives their channels from a single
point by phase shifts, which does not hold over metres of waveguide.
"""

import contextlib
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from airpass.channel.sampled import SampledResponse
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Complex, Real
from airpass.importers.points import responses_between, sum_paths

INSTALL = "DeepMIMO is not installed: pip install 'airpass[deepmimo]'"
PHASES = ("auto", "at-carrier", "without-delay")
ALL_PATHS = 10_000  # DeepMIMO loads ten paths per link by default
ALIGNED = 0.9  # length of the mean phasor of line-of-sight paths with equal phases; random ones have less
FEWEST_LINKS = 8  # with a line of sight, to tell equal phases from random ones


def from_folder(folder: str | Path, **options: Any) -> SampledResponse:
    """Read a folder of a DeepMIMO scenario and take responses from it.

    Parameters
    ----------
    folder
        Folder with `params.json`. DeepMIMO requires a name in lower case. Nothing is downloaded.
    **options
        As for `from_dataset`.

    Returns
    -------
    SampledResponse
        Responses at the antennas, without the propagation along the waveguides.
    """
    path = Path(folder).resolve()
    if not (path / "params.json").is_file():
        raise InvalidInput(f"{path}: no scenario of DeepMIMO, as it has no params.json")
    if path.name != path.name.lower():
        raise InvalidInput(f"{path}: DeepMIMO requires a folder name in lower case: rename it")
    silent = contextlib.redirect_stdout(io.StringIO())
    with silent:
        try:
            package: Any = importlib.import_module("deepmimo")
        except ModuleNotFoundError:
            raise InvalidInput(INSTALL) from None
        before = package.config.get("scenarios_folder")
        package.config.set("scenarios_folder", str(path.parent))
        try:
            dataset = package.load(path.name, max_paths=ALL_PATHS)
        finally:
            package.config.set("scenarios_folder", before)
    options.setdefault("description", f"DeepMIMO: {path.name}")
    return from_dataset(dataset, **options)


def from_dataset(
    dataset: Any,
    *,
    places: str = "receivers",
    origin_m: Any = (0.0, 0.0, 0.0),
    place_indices: Any = None,
    device_indices: Any = None,
    phase: str = "auto",
    description: str = "DeepMIMO",
) -> SampledResponse:
    """Take responses from a data set of DeepMIMO.

    Parameters
    ----------
    dataset
        What `deepmimo.load` returns, for one scene. Give `load` a large `max_paths`, as it drops paths.
    places
        `receivers` if points of the user grid are the candidate places and the transmitters the devices;
        `transmitters` if it is the other way round.
    origin_m
        [x, y, z] in the data set of the origin of the receiver's coordinates.
    place_indices
        Numbers of the points that are candidate places; default all. Points with equal y and z are a
        waveguide; the waveguides are in order of y, then z.
    device_indices
        Numbers of the points that are devices, in their order; default all.
    phase
        Whether the phase of a path is that of the received signal (`at-carrier`) or lacks that of the delay,
        -2 pi f tau (`without-delay`). Data sets differ in this; `auto` decides by the line-of-sight paths.
    description
        Text to keep with the responses.

    Returns
    -------
    SampledResponse
        Responses at the antennas, without the propagation along the waveguides.
    """
    checks.one_of("places", places, ("receivers", "transmitters"))
    pairs = _members(dataset) or [dataset]
    if any(_members(pair) for pair in pairs):
        raise InvalidInput("the data set has several scenes: give one of them")
    carrier_hz = float(pairs[0].rt_params["frequency"])
    turned = None if _phase(phase, pairs, carrier_hz) == "at-carrier" else carrier_hz
    gains, transmitters, receivers = _links(pairs, turned)  # (transmitters, receivers)
    ends = (transmitters, receivers)
    if places == "receivers":
        gains, ends = gains.T, (receivers, transmitters)
    return responses_between(gains, *ends, origin_m, place_indices, device_indices, carrier_hz, description)


def _members(dataset: Any) -> list[Any]:
    """Data sets of which one consists, one per transmitter and grid of receivers."""
    return list(vars(dataset).get("datasets", ()))


def _phase(given: str, pairs: list[Any], carrier_hz: float) -> str:
    """Whether phases include that of the delay. Without it, line-of-sight paths have equal phases."""
    if checks.one_of("phase", given, PHASES) != "auto":
        return given
    angles, turns = [], []
    for pair in pairs:
        direct = np.asarray(pair.inter) == 0  # no interaction; NaN if there is no path
        angles.append(np.deg2rad(np.asarray(pair.phase, dtype=np.float64)[direct]))
        turns.append(np.asarray(pair.delay, dtype=np.float64)[direct] * carrier_hz)
    angle, turn = np.concatenate(angles), np.concatenate(turns)
    if angle.size >= FEWEST_LINKS:
        stored = abs(np.exp(1j * angle).mean())
        undone = abs(np.exp(1j * (angle + 2.0 * np.pi * (turn - np.rint(turn)))).mean())
        if max(stored, undone) > ALIGNED > min(stored, undone):
            return "without-delay" if stored > undone else "at-carrier"
    raise InvalidInput(
        f"the data set's {angle.size} line-of-sight paths do not show whether phases include that of the "
        f"delay: give phase = {PHASES[1]!r} or {PHASES[2]!r}"
    )


def _links(pairs: list[Any], carrier_hz: float | None) -> tuple[Complex, Real, Real]:
    """Responses (transmitters, receivers) and both positions. There is a pair per transmitter and grid."""
    gains: dict[tuple[float, ...], list[Complex]] = {}
    grids: dict[tuple[float, ...], list[Real]] = {}
    for pair in pairs:
        power = np.asarray(pair.power, dtype=np.float64)
        angle = np.deg2rad(np.asarray(pair.phase, dtype=np.float64))
        amplitude = np.nan_to_num(
            10.0 ** (power / 20.0) * np.exp(1j * angle)
        )  # NaN marks that there is no path
        delay = np.nan_to_num(np.asarray(pair.delay, dtype=np.float64))
        transmitter = tuple(np.ravel(np.asarray(pair.tx_pos, dtype=np.float64))[:3].tolist())
        gains.setdefault(transmitter, []).append(sum_paths(amplitude, delay, carrier_hz))
        grids.setdefault(transmitter, []).append(np.asarray(pair.rx_pos, dtype=np.float64))
    grid = [np.concatenate(parts) for parts in grids.values()]
    if any(not np.array_equal(grid[0], other) for other in grid[1:]):
        raise InvalidInput("transmitters have different receivers: load the same rx_sets for all of them")
    return np.stack([np.concatenate(parts) for parts in gains.values()]), np.array(list(gains)), grid[0]
