"""Storage of rows: one Parquet file per trial, and merged files of all trials.

Each row has the key of its trial. A trial whose rows are in a merged file is not run again, even if its
own file is deleted.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
from pyarrow import parquet

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.study.trial import SECONDS, Row, Trial

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), float | None: pa.float64()}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in get_type_hints(Row).items()])
MERGED = {"timings.parquet": True, "rows.parquet": False}  # whether a file holds times
ORDER = ("figure", "x", "x_label", "scheme", "trial", "round", "metric")


class Store:
    """The rows in one folder."""

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
        """Whether rows of a trial are stored. A damaged file counts as missing."""
        if trial.key in self._merged:
            return True
        try:
            return self.path(trial).exists() and parquet.read_metadata(self.path(trial)).num_rows > 0
        except (pa.ArrowInvalid, OSError):
            return False

    def write(self, trial: Trial, rows: Sequence[Row]) -> None:
        """Write the file of a trial."""
        about = {"trial": json.dumps(asdict(trial), sort_keys=True)}
        write_atomically(self.path(trial), encode(rows, about))

    def read(self, trials: Iterable[Trial]) -> list[Row]:
        """The stored rows of `trials`, sorted. Trials that are not stored are left out."""
        rows: list[Row] = []
        for trial in trials:
            if self.path(trial).exists():
                rows += decode(self.path(trial)) if self.has(trial) else []
            else:
                rows += self._merged.get(trial.key, [])
        return sorted(rows, key=_place)

    def merge(self, trials: Sequence[Trial]) -> list[Row]:
        """Write the merged files: times to timings.parquet, all other rows to rows.parquet.

        Parameters
        ----------
        trials
            Trials of the study. Merged rows of other trials are kept.

        Returns
        -------
        list[Row]
            The stored rows of `trials`.
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
    """Rows as Parquet, with metadata `about`."""
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA)
    if about:
        table = table.replace_schema_metadata(about)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def decode(path: Path) -> list[Row]:
    """Rows from a Parquet file."""
    try:
        table = parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{path}: not a file of rows ({error}); delete it to compute it again") from None
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise InvalidInput(f"{path}: has no column {missing[0]}")
    return [Row(**row) for row in table.select(SCHEMA.names).to_pylist()]
