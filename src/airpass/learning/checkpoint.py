"""Checkpoints of training runs: one `.npz` of plain arrays, nothing pickled."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.types import Real, Single


class OtherRun(InvalidInput):
    """A checkpoint of a run with another configuration."""


@dataclass(frozen=True, eq=False)
class Saved:
    """The state of a run. Random numbers need no state: they are keyed on seed and round."""

    config: Mapping[str, Any]
    round: int
    seconds: float
    history: Sequence[Mapping[str, Any]]
    state: Single
    moments: Real  # of the server's optimiser


def save(path: Path, saved: Saved) -> None:
    """Write the run atomically."""
    note = {
        "config": saved.config,
        "round": saved.round,
        "seconds": saved.seconds,
        "history": saved.history,
    }
    text = np.frombuffer(json.dumps(note).encode(), np.uint8)
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, state=saved.state, moments=saved.moments, note=text)
    write_atomically(path, buffer.getvalue())


def restore(path: Path, config: Mapping[str, Any], size: int, moments: tuple[int, ...]) -> Saved:
    """Read a run.

    Parameters
    ----------
    path
        The checkpoint.
    config
        Configuration that the run must have; only the number of rounds may differ.
    size
        Number of entries that its state must have.
    moments
        Shape that the moments of the server's optimiser must have.

    Returns
    -------
    Saved
        The run.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            state, found = archive["state"], archive["moments"]
            note = json.loads(archive["note"].tobytes())
    except Exception:  # NumPy, zipfile and json raise many kinds
        raise InvalidInput(f"{path}: damaged; delete it to start over") from None
    now = json.loads(json.dumps(config))
    before = note["config"] | {"rounds": now["rounds"]}  # a run may be made longer
    different = [key for key in now if before.get(key) != now[key]]
    if different or state.size != size or found.shape != moments:
        raise OtherRun(f"{path}: belongs to a run with another {', '.join(different) or 'model'}")
    return Saved(note["config"], note["round"], note["seconds"], note["history"], state, found)
