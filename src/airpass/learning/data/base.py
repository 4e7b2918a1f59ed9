"""Data sets, which are four arrays with pixel statistics, and their sources."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, Report, discard
from airpass.learning.shared import shared

Bytes: TypeAlias = NDArray[np.uint8]
Arrays: TypeAlias = Mapping[str, Bytes]  # by part
PARTS = ("x_train", "y_train", "x_test", "y_test")


class Corrupt(InvalidInput):
    """A stored data set whose content is not the recorded one."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images and labels with pixel statistics.

    Parameters
    ----------
    name
        Name of the set.
    x_train, x_test
        Images, uint8, shape (count, height, width, channels).
    y_train, y_test
        Class numbers, uint8, shape (count,).
    mean, deviation
        Of pixels divided by 255, per channel.
    """

    name: str
    x_train: Bytes
    y_train: Bytes
    x_test: Bytes
    y_test: Bytes
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(max(self.y_train.max(), self.y_test.max())) + 1

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return int(self.x_train.shape[3])

    @cached_property
    def sums(self) -> dict[str, str]:
        """SHA-256 of each array."""
        return {part: sha256(getattr(self, part)) for part in PARTS}

    def in_shared_memory(self) -> "Dataset":
        """The same data set, for worker processes: they map the arrays instead of copying them."""
        arrays: dict[str, Any] = {part: shared(getattr(self, part)) for part in PARTS}
        return replace(self, **arrays)

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {self.y_train.size} training and {self.y_test.size} test images)"


@dataclass(frozen=True)
class DataSource(Method, ABC):
    """Base class of data sets. A subclass sets `name` and defines `load`."""

    citation: ClassVar[str] = ""
    sums: ClassVar[Mapping[str, str]] = {}  # SHA-256 of each array; empty if none is recorded
    mean: ClassVar[tuple[float, ...]] = ()  # of pixels divided by 255, per channel
    deviation: ClassVar[tuple[float, ...]] = ()
    model: ClassVar[str | None] = None  # default network; None: there is none
    batch: ClassVar[int] = 32  # default mini-batch size
    learning_rate: ClassVar[float] = 0.01  # default local learning rate

    @abstractmethod
    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read the set.

        Parameters
        ----------
        directory
            Folder of downloaded sets; None for the default.
        report
            Callback for progress messages.

        Returns
        -------
        Dataset
            Images, labels and pixel statistics.
        """

    def fetch(self, directory: Path | None, report: Report) -> Path:
        """Download the data set if absent, and return the path of its file."""
        raise InvalidInput(f"dataset = {self.name!r}: is not downloaded; nothing to fetch")

    def check(self, directory: Path | None) -> str:
        """State of the stored set: "ok", "absent", or "damaged: " with the reason."""
        try:
            self.load(directory, discard)
        except InvalidInput as error:
            return f"damaged: {error}"
        return "ok"

    def verified(self, arrays: Arrays, where: str) -> Dataset:
        """The data set with these arrays, after a comparison with the recorded sums.

        Parameters
        ----------
        arrays
            `x_train`, `y_train`, `x_test`, `y_test`; grey images may have no channel axis.
        where
            Origin of the arrays, for error messages.

        Returns
        -------
        Dataset
            Images, labels and pixel statistics.
        """
        missing = [part for part in PARTS if part not in arrays]
        if missing:
            raise Corrupt(f"{where}: {missing[0]} is missing")
        data = Dataset(
            self.name,
            with_channels(arrays["x_train"]),
            arrays["y_train"],
            with_channels(arrays["x_test"]),
            arrays["y_test"],
            self.mean,
            self.deviation,
        )
        for part, expected in self.sums.items():
            if data.sums[part] != expected:
                raise Corrupt(f"{where}: {part} is not the recorded {self.name} (SHA-256 differs)")
        return data


def sha256(array: Bytes) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def with_channels(images: Bytes) -> Bytes:
    """Images with a channel axis."""
    return images[..., None] if images.ndim == 3 else images


def read_arrays(source: Path | BytesIO) -> dict[str, Bytes]:
    """The arrays of an `.npz` file."""
    with np.load(source, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
