"""Checkpoints of training runs: one `.npz` of plain arrays, nothing pickled.

The arrays are the state of the model, the moments of the server's optimiser, a note in JSON, and the SHA-256
of these three. The note holds the version of the format, the configuration, and the rounds so far.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.types import Single
from airpass.core.version import __version__
from airpass.learning.history import Record
from airpass.learning.optimisers import Server

FORMAT_VERSION = 2  # airpass 0.1 wrote 1, without a number and without a checksum
NAMES = ("state", "moments", "note")
# Of a round: loss, predicted and measured error, signal power, largest power.
Measured = tuple[float, float, float, float, float]


class OtherRun(InvalidInput):
    """A checkpoint of a run with another configuration."""


@dataclass(frozen=True, eq=False)
class RunState:
    """A run between two rounds. Random numbers need no state: they are keyed on seed and round.

    A new object replaces the old one at the end of a round, in one assignment, so that an interrupt leaves
    the one or the other.

    Parameters
    ----------
    state
        State of the global model.
    server
        The server's optimiser.
    round
        Number of rounds that are done.
    seconds
        Duration of the run.
    history
        The evaluated rounds.
    since
        The rounds after the last one in `history`.
    """

    state: Single
    server: Server
    round: int = 0
    seconds: float = 0.0
    history: tuple[Record, ...] = ()
    since: tuple[Measured, ...] = ()


def save(path: Path, config: Mapping[str, Any], run: RunState) -> None:
    """Write a run atomically.

    Parameters
    ----------
    path
        The checkpoint.
    config
        Configuration of the run.
    run
        The run so far.
    """
    note = {
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "config": config,
        "round": run.round,
        "seconds": run.seconds,
        "history": [asdict(record) for record in run.history],
        "since": run.since,
    }
    arrays: dict[str, Any] = {
        "state": run.state,
        "moments": run.server.moments,
        "note": np.frombuffer(json.dumps(note).encode(), np.uint8),
    }
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, sha256=_checksum(arrays), **arrays)
    write_atomically(path, buffer.getvalue())


def restore(path: Path, config: Mapping[str, Any], start: RunState) -> RunState:
    """Read a run.

    Parameters
    ----------
    path
        The checkpoint.
    config
        Configuration that the run must have; only the number of rounds may differ.
    start
        The run before its first round. State and moments must have the same shapes.

    Returns
    -------
    RunState
        The run.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in NAMES}
            checksum = archive["sha256"] if "sha256" in archive.files else None
        note = json.loads(arrays["note"].tobytes())
        version = note.get("format_version", 1)
        config_before = note["config"]
    except Exception:  # NumPy, zipfile and json raise many kinds
        raise _damaged(path) from None
    if version != FORMAT_VERSION:
        raise InvalidInput(
            f"{path}: has checkpoint format {version!r:.20}, and airpass {__version__} reads format "
            f"{FORMAT_VERSION}: continue with airpass {note.get('version', '0.1')!s:.20}, or delete the file "
            "to start over"
        )
    if checksum is None or checksum.shape != (32,) or checksum.tobytes() != _checksum(arrays).tobytes():
        raise _damaged(path)
    now = json.loads(json.dumps(config))
    try:
        before = config_before | {"rounds": now["rounds"]}  # a run may be made longer
        run = _run_of(note, arrays, start)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _damaged(path) from None
    different = [key for key in now | before if before.get(key) != now.get(key)]
    other_shape = (run.state.shape, run.server.moments.shape) != (
        start.state.shape,
        start.server.moments.shape,
    )
    if different or other_shape:
        raise OtherRun(f"{path}: belongs to a run with another {', '.join(different) or 'model'}")
    return run


def _run_of(note: Mapping[str, Any], arrays: Mapping[str, Any], start: RunState) -> RunState:
    """The run that a note and arrays describe. Missing keys and wrong types raise errors."""
    for name, kind in (("state", np.float32), ("moments", np.float64)):
        if arrays[name].dtype != kind or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} must be finite numbers of {kind}")
    history = tuple(Record(**row) for row in note["history"])
    for record in history:
        for item in fields(Record):
            value = getattr(record, item.name)
            if not isinstance(value, int if item.type in (int, "int") else int | float):
                raise TypeError(f"{item.name} must be a number")
    since = tuple((float(a), float(b), float(c), float(d), float(e)) for a, b, c, d, e in note["since"])
    rounds = checks.whole("round", note["round"], 0)
    if [record.round for record in history] != sorted({record.round for record in history}) or (
        (history[-1].round if history else 0) + len(since) != rounds
    ):
        raise ValueError("rounds are missing")
    return RunState(
        state=arrays["state"],
        server=replace(start.server, moments=arrays["moments"]),
        round=rounds,
        seconds=checks.at_least("seconds", note["seconds"], 0.0),
        history=history,
        since=since,
    )


def _checksum(arrays: Mapping[str, Any]) -> Any:
    """SHA-256 of the arrays: their kinds, shapes and bytes."""
    found = hashlib.sha256()
    for name in NAMES:
        array = arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(found.digest(), np.uint8)


def _damaged(path: Path) -> InvalidInput:
    return InvalidInput(f"{path}: damaged; delete it to start over")
