"""User-defined data in an `.npz` file."""

from dataclasses import dataclass
from pathlib import Path

from airpass.core.errors import InvalidInput
from airpass.core.registry import Report
from airpass.learning.data.base import Dataset, DataSource, from_arrays, read_arrays


@dataclass(frozen=True)
class NpzFile(DataSource):
    """Arrays x_train, y_train, x_test, y_test in a file, and maybe device_train."""

    path: str

    @property
    def name(self) -> str:  # type: ignore[override]  # named by its file; not registered
        """The path."""
        return self.path

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read and check the file."""
        path = Path(self.path)
        if not path.is_file():
            raise InvalidInput(f"{path}: no such file")
        try:
            found = read_arrays(path)
        except Exception:  # NumPy and zipfile raise many kinds
            raise InvalidInput(f"{path}: not an .npz file of plain arrays") from None
        return from_arrays(found, self.name, str(path))
