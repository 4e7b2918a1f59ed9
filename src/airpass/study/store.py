"""Storage of rows: one Parquet file per trial, and merged files of all trials.

Each row has the key of its trial. Rows alone decide whether a trial is finished: it is if its rows are in
rows.parquet or in its own file. Its time in timings.parquet does not count.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa

from airpass.core.checksums import Damaged, decode_table, encode_table
from airpass.core.errors import InvalidInput
from airpass.core.files import remove_leftovers, write_atomically
from airpass.core.registry import Report
from airpass.study.trial import SECONDS, Row, Trial

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), float | None: pa.float64()}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in get_type_hints(Row).items()])
OPTIONAL = "x"  # the only column that may hold null
VERSION = "version"  # the only column that may be missing; the last
MERGED = {
    "timings.parquet": True,
    "rows.parquet": False,
}  # whether a file holds times; in the order in which they are written
ORDER = ("figure", "x", "x_label", "scheme", "trial", "round", "metric")

OnDamage = Callable[[Path, str], None]  # called with a damaged file and what is wrong with it


def refuse(path: Path, why: str) -> None:
    """Raise InvalidInput for a damaged file. What only reads a study does so."""
    raise InvalidInput(f"{path}: {why}; run the study again, which computes it anew")


def set_aside(report: Report) -> OnDamage:
    """Rename damaged files, so that they are computed again.

    Parameters
    ----------
    report
        Callback for a message per file.

    Returns
    -------
    OnDamage
        For `Store`, in a folder that is locked.
    """

    def move(path: Path, why: str) -> None:
        target, number = path.with_name(f"{path.name}.damaged"), 2
        while target.exists():
            target, number = path.with_name(f"{path.name}.damaged-{number}"), number + 1
        path.rename(target)
        merged = "what is not in trials/" if path.name in MERGED else "its trial"
        report(f"{path}: {why}; kept as {target.name}, {merged} is computed again")

    return move


def skip(path: Path, why: str) -> None:
    """Do nothing: for folders of other studies, whose own commands mend them."""


class Store:
    """The rows in one folder.

    Parameters
    ----------
    folder
        The folder of a study.
    on_damage
        What to do with damaged files; their rows count as missing if it returns.
    """

    def __init__(self, folder: Path, on_damage: OnDamage = refuse) -> None:
        self.folder = folder
        self.on_damage = on_damage
        self._times: dict[str, list[Row]] = {}
        self._values: dict[str, list[Row]] = {}  # all other rows
        for name in MERGED:
            for row in self._decoded(folder / name):
                by_key = self._times if row.metric == SECONDS else self._values
                by_key.setdefault(row.key, []).append(row)

    def path(self, trial: Trial) -> Path:
        """The file of a trial."""
        return self.folder / "trials" / f"{trial.key}.parquet"

    def has(self, trial: Trial) -> bool:
        """Whether rows of a trial are stored."""
        return trial.key in self._values or bool(self._own(trial))

    def write(self, trial: Trial, rows: Sequence[Row]) -> None:
        """Write the file of a trial."""
        about = {"trial": json.dumps(asdict(trial), sort_keys=True)}
        write_atomically(self.path(trial), encode(rows, about))

    def read(self, trials: Iterable[Trial]) -> list[Row]:
        """The stored rows of `trials`, sorted. Trials that are not stored are left out."""
        return sorted((row for trial in trials for row in self._rows(trial)), key=_place)

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
        others = [
            row
            for by_key in (self._times, self._values)
            for key, found in by_key.items()
            if key not in asked
            for row in found
        ]
        everything = sorted([*rows, *others], key=_place)
        # Rows come last: if this is cut short, no trial counts as merged whose time is not.
        for name, timed in MERGED.items():
            part = [row for row in everything if (row.metric == SECONDS) == timed]
            write_atomically(self.folder / name, encode(part))
        return rows

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left of trials."""
        remove_leftovers(self.folder / "trials")

    def _rows(self, trial: Trial) -> list[Row]:
        """All rows of a trial; none if it is not finished."""
        times, values = (by_key.get(trial.key, []) for by_key in (self._times, self._values))
        if times and values:
            return values + times
        return self._own(trial) or values  # the trial's own file also has its time

    def _own(self, trial: Trial) -> list[Row]:
        """The rows in a trial's own file."""
        path = self.path(trial)
        rows = self._decoded(path)
        if any(row.key != trial.key for row in rows):
            self.on_damage(path, "holds rows of another trial")
            return []
        return rows if any(row.metric != SECONDS for row in rows) else []

    def _decoded(self, path: Path) -> list[Row]:
        """The rows in a file; none if it is absent or damaged."""
        return decode(path, self.on_damage) if path.exists() else []


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(
        (value is not None, value) if name == "x" else value
        for name, value in ((name, getattr(row, name)) for name in ORDER)
    )


def encode(rows: Sequence[Row], about: dict[str, str] | None = None) -> bytes:
    """Rows as Parquet, with metadata `about`."""
    return encode_table(pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA), about)


def decode(path: Path, on_damage: OnDamage = refuse) -> list[Row]:
    """Rows from a Parquet file; none if it is damaged and `on_damage` returns."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})") from None
    try:
        table = decode_table(content)
        known = [name for name in SCHEMA.names if name != VERSION or name in table.column_names]
        columns = [_column(table, name) for name in known]
    except Damaged as error:
        on_damage(path, str(error))
        return []
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    return [Row(*values) for values in zip(*columns, strict=True)]


def _column(table: Any, name: str) -> list[Any]:
    """The values of a column, if they are of its type."""
    if table.column_names.count(name) != 1:
        raise Damaged(f"not a file of rows: has {table.column_names.count(name)} columns {name}")
    column, wanted = table.column(name), SCHEMA.field(name).type
    found = column.type
    tests = {
        pa.string(): pa.types.is_string(found) or pa.types.is_large_string(found),
        pa.int64(): pa.types.is_integer(found),
        pa.float64(): pa.types.is_floating(found) or (name == OPTIONAL and pa.types.is_null(found)),
    }
    if not tests[wanted]:
        raise Damaged(f"not a file of rows: column {name} holds {found}, not {wanted}")
    if column.null_count and name != OPTIONAL:
        raise Damaged(f"not a file of rows: column {name} holds null")
    values: list[Any] = column.to_pylist()
    return values
