"""Data sets, which are four arrays, and their sources."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, Report, discard
from airpass.learning.shared import shared

Bytes: TypeAlias = NDArray[np.uint8]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]  # by part
PARTS = ("x_train", "y_train", "x_test", "y_test")
COLUMN = "device_train"  # optional: the device of each training sample
CLASSIFICATION, REGRESSION = "classification", "regression"
MOST_CLASSES = 100_000  # a larger label is more likely a mistake


class Corrupt(InvalidInput):
    """A stored data set whose content is not the recorded one."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and targets, in the form in which networks are trained on them.

    `from_arrays` makes one of arrays of any kind.

    Parameters
    ----------
    name
        Name of the set.
    x_train, x_test
        Images: uint8, shape (count, height, width, channels). Other samples: float32, shape (count, ...).
    y_train, y_test
        Classification: class numbers, unsigned whole numbers, shape (count,). Regression: float32, shape
        (count,) or (count, outputs).
    mean, deviation
        Of pixels divided by 255, per channel; empty if the samples are not images.
    device_train
        Device of each training sample, if the data say so.
    """

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    device_train: NDArray[np.int64] | None = None

    @property
    def task(self) -> str:
        """Classification or regression."""
        return CLASSIFICATION if self.y_train.dtype.kind == "u" else REGRESSION

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(max(self.y_train.max(), self.y_test.max())) + 1

    @property
    def outputs(self) -> int:
        """Number of outputs of a network for the data, one per class or one per target."""
        if self.task == CLASSIFICATION:
            return self.classes
        return 1 if self.y_train.ndim == 1 else int(self.y_train.shape[1])

    @property
    def images(self) -> bool:
        """Whether the samples are images as bytes, which are standardised."""
        return self.x_train.dtype == np.uint8

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of a sample as a network sees it. Images have their channels first."""
        shape = self.x_train.shape[1:]
        return (shape[2], *shape[:2]) if self.images else shape

    @cached_property
    def sums(self) -> dict[str, str]:
        """SHA-256 of each array."""
        return {part: sha256(getattr(self, part)) for part in PARTS}

    def for_task(self, task: str) -> "Dataset":
        """The same data set with targets of another kind, so that a loss can ask for it.

        Parameters
        ----------
        task
            Classification or regression.

        Returns
        -------
        Dataset
            Whole numbers in place of floats, or the other way round.
        """
        if task == self.task:
            return self
        kind = np.float32 if task == REGRESSION else np.int64
        arrays: dict[str, Any] = {}
        for part in ("y_train", "y_test"):
            values = getattr(self, part)
            if task == CLASSIFICATION and (values != np.rint(values)).any():
                raise InvalidInput(f"{self.name}: {part} must be whole numbers for cross-entropy")
            arrays[part] = targets(part, values.astype(kind), len(values), self.name)
        return replace(self, **arrays)

    def in_shared_memory(self) -> "Dataset":
        """The same data set, for worker processes: they map the arrays instead of copying them."""
        arrays: dict[str, Any] = {part: shared(getattr(self, part)) for part in PARTS}
        return replace(self, **arrays)

    def __repr__(self) -> str:
        kind = "images" if self.images else "samples"
        return f"Dataset({self.name}: {len(self.y_train)} training and {len(self.y_test)} test {kind})"


@dataclass(frozen=True)
class DataSource(Method, ABC):
    """Base class of data sets. A subclass sets `name` and defines `load`."""

    citation: ClassVar[str] = ""
    sums: ClassVar[Mapping[str, str]] = {}  # SHA-256 of each array; empty if none is recorded
    mean: ClassVar[tuple[float, ...]] = ()  # of pixels divided by 255, per channel; empty: as measured
    deviation: ClassVar[tuple[float, ...]] = ()
    model: ClassVar[str | None] = None  # default network; None: mlp, and none for images
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
            Samples and targets.
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
            Those of `from_arrays`.
        where
            Origin of the arrays, for error messages.

        Returns
        -------
        Dataset
            Samples and targets.
        """
        try:
            data = from_arrays(arrays, self.name, where, self.mean, self.deviation)
        except InvalidInput as error:
            raise Corrupt(str(error)) from None
        for part, expected in self.sums.items():
            if data.sums[part] != expected:
                raise Corrupt(f"{where}: {part} is not the recorded {self.name} (SHA-256 differs)")
        return data


def from_arrays(
    arrays: Mapping[str, Any],
    name: str,
    where: str,
    mean: tuple[float, ...] = (),
    deviation: tuple[float, ...] = (),
) -> Dataset:
    """A data set of arrays of any kind.

    Parameters
    ----------
    arrays
        `x_train`, `y_train`, `x_test` and `y_test`. Samples as uint8, shape
        (count, height, width[, channels]), are images. All others become float32. Whole-number targets of
        shape (count,) are classes; floats of shape (count,) or (count, outputs) are the targets of a
        regression. `device_train` is optional: the device of each training sample.
    name
        Name of the data set.
    where
        Origin of the arrays, for error messages.
    mean, deviation
        Of pixels divided by 255, per channel; measured on the training images if they are empty.

    Returns
    -------
    Dataset
        Samples and targets.
    """
    for part in PARTS:
        if part not in arrays:
            raise InvalidInput(f"{where}: {part} is missing; must hold {', '.join(PARTS)}")
    found: dict[str, Any] = {}
    for kind in ("train", "test"):
        x = samples(f"x_{kind}", arrays[f"x_{kind}"], where)
        found |= {f"x_{kind}": x, f"y_{kind}": targets(f"y_{kind}", arrays[f"y_{kind}"], len(x), where)}
    for letter, what in (("x", "samples"), ("y", "targets")):
        one, two = found[f"{letter}_train"], found[f"{letter}_test"]
        if (one.dtype.kind, one.shape[1:]) != (two.dtype.kind, two.shape[1:]):
            said = [f"{array.dtype} of shape {array.shape}" for array in (one, two)]
            raise InvalidInput(f"{where}: training and test {what} differ: {said[0]} and {said[1]}")
    if arrays.get(COLUMN) is not None:
        column = np.asarray(arrays[COLUMN])
        if column.shape != (len(found["x_train"]),) or column.dtype.kind not in "iu" or column.min() < 0:
            raise InvalidInput(
                f"{where}: {COLUMN} must be {len(found['x_train'])} device numbers from 0, one per sample"
            )
        found[COLUMN] = column.astype(np.int64)
    if found["x_train"].dtype == np.uint8 and not mean:
        pixels = found["x_train"].reshape(-1, found["x_train"].shape[3]) / 255.0
        mean = tuple(float(value) for value in pixels.mean(axis=0))
        deviation = tuple(float(value) or 1.0 for value in pixels.std(axis=0))
    return Dataset(name, **found, mean=mean, deviation=deviation)


def samples(part: str, values: Any, where: str) -> NDArray[Any]:
    """Samples in the form of a `Dataset`: images as bytes with a channel axis, or float32."""
    x = np.asarray(values)
    if x.ndim < 2 or x.size == 0:
        raise InvalidInput(f"{where}: {part} has shape {x.shape}: must be (count, features) or (count, ...)")
    if x.dtype.kind not in "fiub":
        raise InvalidInput(f"{where}: {part} has dtype {x.dtype}: must be floats or whole numbers")
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        x = with_channels(x)
        if x.shape[1] <= 4 < x.shape[3]:
            raise InvalidInput(
                f"{where}: {part} has shape {x.shape}: images as bytes must have their channels last, "
                "(count, height, width, channels)"
            )
        return x
    return _single(part, x, where)


def targets(part: str, values: Any, count: int, where: str) -> NDArray[Any]:
    """Targets in the form of a `Dataset`: classes as unsigned whole numbers, or float32."""
    y = np.asarray(values)
    if y.dtype.kind in "iub":
        if y.shape != (count,):
            raise InvalidInput(f"{where}: {part} has shape {y.shape}: must be ({count},), a class per sample")
        if y.min() < 0 or y.max() >= MOST_CLASSES:
            raise InvalidInput(
                f"{where}: {part} has labels from {y.min()} to {y.max()}: must be class numbers "
                f"from 0 to {MOST_CLASSES - 1}"
            )
        return y.astype(np.min_scalar_type(int(y.max())))
    if y.dtype.kind != "f":
        raise InvalidInput(
            f"{where}: {part} has dtype {y.dtype}: must be whole numbers (classes) or floats (regression)"
        )
    if y.ndim not in (1, 2) or len(y) != count or y.size == 0:
        raise InvalidInput(
            f"{where}: {part} has shape {y.shape}: must be ({count},) or ({count}, outputs), a row per sample"
        )
    return _single(part, y, where)


def _single(part: str, values: NDArray[Any], where: str) -> NDArray[Any]:
    """Floats in single precision, in an array that PyTorch can use without a copy."""
    with np.errstate(over="ignore"):
        single: NDArray[Any] = np.require(values, np.float32, ["C", "W"])
    if not np.isfinite(single).all():
        raise InvalidInput(f"{where}: {part} has entries that are not finite numbers")
    return single


def sha256(array: NDArray[Any]) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def with_channels(images: NDArray[Any]) -> NDArray[Any]:
    """Images with a channel axis."""
    return images[..., None] if images.ndim == 3 else images


def read_arrays(source: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file."""
    # NumPy leaves a damaged file open if it has opened it itself.
    with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
