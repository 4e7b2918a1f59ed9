"""Keeping a training run on disk: one `.npz` of plain arrays, nothing pickled."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.learning.aggregation import Float32


@dataclass(frozen=True, eq=False)
class Saved:
    """All that a run needs to go on; everything random is keyed on seed and round."""

    config: Mapping[str, Any]
    round: int
    seconds: float
    history: Sequence[Mapping[str, Any]]
    state: Float32


def save(path: Path, saved: Saved) -> None:
    """Write the run in one step."""
    note = {
        "config": saved.config,
        "round": saved.round,
        "seconds": saved.seconds,
        "history": saved.history,
    }
    text = np.frombuffer(json.dumps(note).encode(), np.uint8)
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, state=saved.state, note=text)
    write_atomically(path, buffer.getvalue())


def restore(path: Path, config: Mapping[str, Any], size: int) -> Saved:
    """The run in the file, if it has the same configuration and a state of `size` entries."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            state, note = archive["state"], json.loads(archive["note"].tobytes())
    except Exception:  # damaged in whatever way
        raise InvalidInput(f"{path}: damaged; delete it to start over") from None
    now = json.loads(json.dumps(config))
    before = note["config"] | {"rounds": now["rounds"]}  # a run may be made longer
    different = [key for key in now if before.get(key) != now[key]]
    if different or state.size != size:
        raise InvalidInput(
            f"{path}: belongs to a run with another {', '.join(different) or 'model'}; "
            "use another --out, or leave out --resume"
        )
    return Saved(note["config"], note["round"], note["seconds"], note["history"], state)
