"""Responses on candidate places in a scenario, `channel.responses`, in place of eq. (64)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airpass.channel.response_files import load_responses
from airpass.channel.sampled import ON_PLACE_M, SampledResponse
from airpass.channel.sampled_uplink import LABEL
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Real
from airpass.scenario.candidates import KEY, Candidates, candidates_of, rows_on
from airpass.scenario.devices import COLUMNS, PRIORITY, Devices, even_samples
from airpass.scenario.radio import LIGHT_M_S, PHYSICAL, Radio
from airpass.scenario.receiver import Receiver

SAME_CARRIER = 1e-3  # largest relative difference of the carriers of responses and radio
POSITIONS = ("x_m", "y_m", "z_m")


@dataclass(frozen=True)
class Responses:
    """Responses of a scenario: an object, or a file that is read when it is first used."""

    file: str  # absolute path; "" if they were given as an object
    sha256: str  # of the responses, `SampledResponse.sha256`; "" if any will do
    given: SampledResponse | None = field(default=None, compare=False, repr=False)

    @property
    def loaded(self) -> bool:
        """Whether the responses are in memory."""
        return self.given is not None or "sampled" in vars(self)

    @cached_property
    def sampled(self) -> SampledResponse:
        """The responses. `InvalidInput` is raised if the file is not there, or holds others."""
        if self.given is not None:
            return self.given
        if not self.file:
            raise InvalidInput(
                f"{LABEL}.file is missing: the responses were not from a file; save them with "
                "SampledResponse.save, and give the file"
            )
        found = load_responses(self.file)
        if self.sha256 not in ("", found.sha256):
            raise InvalidInput(
                f"{LABEL}: {self.file} holds other responses, with SHA-256 {found.sha256[:12]}..., than "
                f"{self.sha256[:12]}..., for which the scenario was made"
            )
        return found

    def to_dict(self) -> dict[str, str]:
        """File and SHA-256; `resolved` reads it."""
        return ({"file": self.file} if self.file else {}) | {"sha256": self.sha256}


def resolved(given: Any, wait: bool = False) -> Responses | None:
    """The responses of a value of `channel.responses`.

    Parameters
    ----------
    given
        A file, a `SampledResponse`, a table with `file` and `sha256`, or None.
    wait
        Whether the file of a table with `sha256` is read when it is first used instead of now.

    Returns
    -------
    Responses | None
        The responses.
    """
    if given is None or isinstance(given, Responses):
        return given
    if isinstance(given, SampledResponse):
        return Responses("", given.sha256, given)
    table = {"file": given} if isinstance(given, str | Path) else given
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{LABEL} = {given!r}: must be a file .npz or .mat, or an airpass.SampledResponse")
    checks.known_keys(LABEL, table, ("file", "sha256"))
    file, digest = (table.get(key, "") for key in ("file", "sha256"))
    if not isinstance(file, str | Path) or not isinstance(digest, str):
        raise InvalidInput(f"{LABEL}: file and sha256 must be texts")
    found = Responses(str(Path(file).absolute()) if str(file) else "", digest)
    if wait and digest:
        return found
    return Responses(found.file, found.sampled.sha256, found.sampled)


def radio_table(table: Mapping[str, Any], sampled: SampledResponse) -> Mapping[str, Any]:
    """The table `radio` with the carrier of the responses, if it has none of its own."""
    if sampled.carrier_ghz is None or {"wavelength_m", "carrier_ghz"} & set(table):
        return table
    if set(PHYSICAL) & set(table):
        return {**table, "carrier_ghz": sampled.carrier_ghz}
    return {**table, "wavelength_m": LIGHT_M_S / (1e9 * sampled.carrier_ghz)}


def devices_of(sampled: SampledResponse, table: Mapping[str, Any]) -> Devices:
    """The devices of responses.

    Parameters
    ----------
    sampled
        The responses.
    table
        Sample counts and priorities, and positions if the responses have none.

    Returns
    -------
    Devices
        Devices of gain one.
    """
    for name in table:
        if name not in (*COLUMNS, PRIORITY):
            raise InvalidInput(
                f"devices.{name} cannot be combined with {LABEL}: the devices are those of the responses"
            )
    found: dict[str, Any] = {}
    count = sampled.response.shape[2]
    if sampled.device_xyz_m is not None:
        found = dict(zip(POSITIONS, sampled.device_xyz_m.T, strict=True))
    for name in ("x_m", "y_m"):
        if name not in found and name not in table:
            raise InvalidInput(
                f"devices.{name} is missing: the responses have no device_xyz_m, so that x_m and y_m of "
                f"{count} devices must be given"
            )
    return Devices(**{"gain": np.ones(count), "samples": even_samples(count), **found, **table})


def check_devices(devices: Devices, sampled: SampledResponse | None) -> None:
    """Refuse devices that are not those of the responses.

    Parameters
    ----------
    devices
        The devices.
    sampled
        The responses; None if they are not in memory.
    """
    if devices.drawn_from is not None:
        raise InvalidInput(
            f"devices: were drawn, but with {LABEL} they are those of the responses; leave them out"
        )
    if (devices.gain != 1.0).any():
        raise InvalidInput(f"devices.gain: must be 1 with {LABEL}, which include the gains")
    if sampled is None:
        return
    if devices.count != sampled.response.shape[2]:
        raise InvalidInput(
            f"devices: there are {devices.count}, but {LABEL} has {sampled.response.shape[2]}; leave them "
            "out, or give as many"
        )
    if sampled.device_xyz_m is not None:
        given = np.column_stack([getattr(devices, name) for name in POSITIONS])
        for k, i in np.argwhere(np.abs(given - sampled.device_xyz_m) > ON_PLACE_M)[:1]:
            raise InvalidInput(
                f"devices.{POSITIONS[i]}[{k}] = {given[k, i]:g}: must be {sampled.device_xyz_m[k, i]:g}, as "
                f"in {LABEL}; leave the positions out"
            )


def at_feeds(
    sampled: SampledResponse, receiver: Receiver, radio: Radio, loss_db_per_m: float
) -> SampledResponse:
    """The responses at the feeds of a receiver.

    Parameters
    ----------
    sampled
        The responses.
    receiver, radio
        Waveguides and feeds; carrier and refractive index.
    loss_db_per_m
        Loss along the waveguides.

    Returns
    -------
    SampledResponse
        Responses that include the waveguides. `InvalidInput` is raised if receiver or radio do not fit.
    """
    if receiver.waveguides != len(sampled.response):
        raise InvalidInput(
            f"receiver.waveguides = {receiver.waveguides}: must be {len(sampled.response)}, as in {LABEL}"
        )
    if sampled.carrier_ghz is not None:
        carrier = 1e-9 * LIGHT_M_S / radio.wavelength_m
        if abs(carrier / sampled.carrier_ghz - 1.0) > SAME_CARRIER:
            raise InvalidInput(
                f"{LABEL}: are for {sampled.carrier_ghz:g} GHz, but the radio is at {carrier:.4g} GHz; set "
                f"radio.wavelength_m = {1e-9 * LIGHT_M_S / sampled.carrier_ghz:.6g} or radio.carrier_ghz"
            )
    if not sampled.waveguide_included:
        try:
            return sampled.with_waveguides(receiver, radio.refractive_index, loss_db_per_m)
        except InvalidInput as error:
            raise InvalidInput(f"{LABEL}: {error}") from None
    if loss_db_per_m > 0.0:
        raise InvalidInput(
            f"channel.loss_db_per_m = {loss_db_per_m:g}: must be 0, as {LABEL} include the waveguides"
        )
    return sampled


def candidates_at(sampled: SampledResponse, receiver: Receiver, candidates_m: Any) -> Candidates:
    """The places of the responses, or those of `candidates_m`, which must be among them.

    Parameters
    ----------
    sampled
        The responses.
    receiver
        The receiver.
    candidates_m
        A checked value of `channel.candidates_m`.

    Returns
    -------
    Candidates
        The places, with the positions of the responses.
    """
    rows: list[Real] = list(sampled.places_m)
    if candidates_m is None:
        return candidates_of(receiver, tuple(rows), LABEL)
    for m, wanted in enumerate(rows_on(receiver, candidates_m)):
        number = np.abs(rows[m] - wanted[:, None]).argmin(axis=1)
        for i in np.flatnonzero(np.abs(rows[m][number] - wanted) > ON_PLACE_M)[:1]:
            raise InvalidInput(
                f"{KEY}: {wanted[i]:g} m is not a place of {LABEL} on waveguide {m}; the nearest is at "
                f"{rows[m][number[i]]:g} m"
            )
        rows[m] = rows[m][np.unique(number)]
    return candidates_of(receiver, tuple(rows), KEY)
