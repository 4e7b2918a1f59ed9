"""Where rows are kept: one Parquet file a trial, written in one step, then all of them as one.

Rows carry the key of their trial, so that what is in the merged files is not computed again even
where the files of single trials are gone.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.study.trial import SECONDS, Row, Trial

SCHEMA = pa.schema(
    [
        ("figure", pa.string()),
        ("scheme", pa.string()),
        ("x", pa.float64()),
        ("x_label", pa.string()),
        ("trial", pa.int64()),
        ("round", pa.int64()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("seed", pa.int64()),
        ("key", pa.string()),
    ]
)
MERGED = {"timings.parquet": True, "rows.parquet": False}  # whether a file is for times
ORDER = ("figure", "x", "x_label", "scheme", "trial", "round", "metric")


class Store:
    """The rows under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._merged: dict[str, list[Row]] = {}
        for name in MERGED:
            if (folder / name).exists():
                for row in decode(folder / name):
                    self._merged.setdefault(row.key, []).append(row)

    def path(self, trial: Trial) -> Path:
        """The file of a trial."""
        return self.folder / "trials" / f"{trial.key}.parquet"

    def has(self, trial: Trial) -> bool:
        """Whether a trial is done. A file that cannot be read, as a power cut may leave it, is as none."""
        if trial.key in self._merged:
            return True
        try:
            return self.path(trial).exists() and parquet.read_metadata(self.path(trial)).num_rows > 0
        except (pa.ArrowInvalid, OSError):
            return False

    def write(self, trial: Trial, rows: Sequence[Row]) -> None:
        """Keep the rows of a trial."""
        about = {"trial": json.dumps(asdict(trial), sort_keys=True)}
        write_atomically(self.path(trial), encode(rows, about))

    def read(self, trials: Iterable[Trial]) -> list[Row]:
        """The rows of those trials that are done, in an order of their own."""
        rows: list[Row] = []
        for trial in trials:
            if self.path(trial).exists():
                rows += decode(self.path(trial)) if self.has(trial) else []
            else:
                rows += self._merged.get(trial.key, [])
        return sorted(rows, key=_place)

    def merge(self, trials: Sequence[Trial]) -> list[Row]:
        """The rows of `trials`; rows.parquet gets all that is reproducible, timings.parquet what is not.

        Rows of other trials stay there, as theirs may be the only copy.
        """
        rows = self.read(trials)
        asked = {trial.key for trial in trials}
        others = [row for key, found in self._merged.items() if key not in asked for row in found]
        everything = sorted([*rows, *others], key=_place)
        for name, timed in MERGED.items():
            part = [row for row in everything if (row.metric == SECONDS) == timed]
            write_atomically(self.folder / name, encode(part))
        return rows


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(
        (value is not None, value) if name == "x" else value
        for name, value in ((name, getattr(row, name)) for name in ORDER)
    )


def encode(rows: Sequence[Row], about: dict[str, str] | None = None) -> bytes:
    """Rows as Parquet."""
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA)
    if about:
        table = table.replace_schema_metadata(about)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def decode(path: Path) -> list[Row]:
    """Rows from Parquet."""
    try:
        table = parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{path}: not a file of rows ({error}); delete it to compute it again") from None
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise InvalidInput(f"{path}: has no column {missing[0]}")
    return [Row(**row) for row in table.select(SCHEMA.names).to_pylist()]
