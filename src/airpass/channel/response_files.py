"""Files of responses on candidate places: NumPy `.npz` and MATLAB `.mat`."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from airpass.channel.sampled import SampledResponse
from airpass.core.arrays import read_arrays
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically

FORMAT_VERSION = 1
REQUIRED = ("response", "places_m", "waveguide_included")
OPTIONAL = ("device_xyz_m", "carrier_ghz", "description", "normalisation_db", "format_version")


def load_responses(path: str | Path) -> SampledResponse:
    """Read responses on candidate places.

    Parameters
    ----------
    path
        `.npz` or `.mat`; version 7.3 of MATLAB's format needs h5py. docs/reference/formats.md lists the
        variables.

    Returns
    -------
    SampledResponse
        The responses.
    """
    path = Path(path)
    found = read_arrays(path, (*REQUIRED, *OPTIONAL))
    version = _scalar(path, found, "format_version", FORMAT_VERSION)
    if version > FORMAT_VERSION:
        raise InvalidInput(
            f"{path}: format_version = {version:g} is newer than {FORMAT_VERSION}; install a newer airpass"
        )
    for name in REQUIRED:
        if name not in found:
            hint = (
                "; 0 for ray tracers, 1 for measurements at the feeds" if name == "waveguide_included" else ""
            )
            raise InvalidInput(f"{path}: no variable {name!r}: needs {', '.join(REQUIRED)}{hint}")
    response, places = found["response"], found["places_m"]
    if response.ndim == 2 and places.shape[-1:] == response.shape[1:]:
        response = response[:, :, None]  # MATLAB drops the last axis if there is one device
    included = _scalar(path, found, "waveguide_included", 0.0)
    if included not in (0.0, 1.0):
        raise InvalidInput(f"{path}: waveguide_included = {included:g}: must be 0 or 1")
    carrier = _scalar(path, found, "carrier_ghz", None)
    text = np.ravel(found.get("description", ""))
    try:
        return SampledResponse(
            response=response,
            places_m=places,
            waveguide_included=bool(included),
            device_xyz_m=found.get("device_xyz_m"),
            carrier_ghz=carrier,
            description=str(text[0]) if text.size else "",
            normalisation_db=_scalar(path, found, "normalisation_db", 0.0),
        )
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def save_responses(path: str | Path, sampled: SampledResponse, single: bool = False) -> None:
    """Write responses on candidate places.

    Parameters
    ----------
    path
        `.npz`, or `.mat` for MATLAB.
    sampled
        The responses.
    single
        Whether to store them in single precision, in half the space.
    """
    path = Path(path)
    arrays: dict[str, Any] = {
        "response": sampled.response.astype(np.complex64 if single else np.complex128),
        "places_m": sampled.places_m,
        "waveguide_included": np.array(int(sampled.waveguide_included)),
        "description": np.array(sampled.description),
        "normalisation_db": np.array(sampled.normalisation_db),
        "format_version": np.array(FORMAT_VERSION),
    }
    if sampled.device_xyz_m is not None:
        arrays["device_xyz_m"] = sampled.device_xyz_m
    if sampled.carrier_ghz is not None:
        arrays["carrier_ghz"] = np.array(sampled.carrier_ghz)
    buffer = BytesIO()
    suffix = path.suffix.lower()
    if suffix == ".npz":
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
    elif suffix == ".mat":
        scipy.io.savemat(buffer, arrays, do_compression=True)
    else:
        raise InvalidInput(f"{path}: must end in .npz or .mat")
    write_atomically(path, buffer.getvalue())


def _scalar(path: Path, found: dict[str, Any], name: str, default: float | None) -> Any:
    """A single number, which MATLAB stores as a matrix."""
    if name not in found:
        return default
    values = np.ravel(found[name])
    if values.size != 1 or values.dtype.kind not in "biuf":
        raise InvalidInput(f"{path}: {name} must be one number")
    return float(values[0])
