"""Data in memory: arrays, and PyTorch's data sets."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import Report
from airpass.learning.data.base import COLUMN, PARTS, Dataset, DataSource, from_arrays

SHOWN = 1000  # samples between messages


@dataclass(frozen=True, eq=False, repr=False)
class ArrayData(DataSource):
    """Arrays in memory as a data set.

    Parameters
    ----------
    x_train, x_test
        Samples, shape (count, ...). Images as bytes, uint8 of shape (count, height, width[, channels]), are
        standardised and passed to the network with channels first. Floats are passed as they are, in single
        precision; whole numbers of other kinds are converted to floats.
    y_train, y_test
        Whole numbers from 0, shape (count,), for classification; floats, shape (count,) or (count, outputs),
        for regression.
    name
        Name of the data set in results.
    device_train
        Device of each training sample, numbered from 0; None: the data are split by `TrainOptions.partition`.
    """

    x_train: Any
    y_train: Any
    x_test: Any
    y_test: Any
    name: str = field(default_factory=lambda: "arrays", kw_only=True)  # type: ignore[misc]  # not registered
    device_train: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _ = self.dataset  # errors show where the object is made

    @cached_property
    def dataset(self) -> Dataset:
        """The data set."""
        return from_arrays({part: getattr(self, part) for part in (*PARTS, COLUMN)}, self.name, self.name)

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Return the data set."""
        return self.dataset

    def __repr__(self) -> str:
        return f"ArrayData({self.name}: x_train {self.dataset.x_train.shape})"


@dataclass(frozen=True, eq=False)
class TorchData(DataSource):
    """Two `torch.utils.data.Dataset` objects as a data set.

    They are read once, into arrays, so a random transform has one outcome per sample.

    Parameters
    ----------
    train, test
        Data sets of pairs (sample, target): tensors, arrays, images of PIL or numbers.
    name
        Name of the data set in results.
    """

    train: Any
    test: Any
    name: str = field(default_factory=lambda: "torch", kw_only=True)  # type: ignore[misc]  # not registered

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read the samples, the first time."""
        if "dataset" not in self.__dict__:
            arrays: dict[str, Any] = {}
            for kind, pairs in (("train", self.train), ("test", self.test)):
                arrays[f"x_{kind}"], arrays[f"y_{kind}"] = _columns(pairs, f"{self.name} {kind}", report)
            self.__dict__["dataset"] = from_arrays(arrays, self.name, self.name)
        found: Dataset = self.__dict__["dataset"]
        return found


def _columns(pairs: Any, where: str, report: Report) -> tuple[Any, Any]:
    """Samples and targets of a data set of pairs."""
    sized = hasattr(pairs, "__len__") and hasattr(pairs, "__getitem__")
    if not (sized or isinstance(pairs, Iterable)):
        raise InvalidInput(f"{where}: is a {type(pairs).__name__}; must be a torch.utils.data.Dataset")
    x, y = [], []
    for number, pair in enumerate((pairs[i] for i in range(len(pairs))) if sized else pairs):
        if number % SHOWN == 0:
            report(f"reading {where}: {number} samples")
        try:
            sample, target = pair
            x.append(np.asarray(sample))
            y.append(np.asarray(target))
        except Exception:  # unpacking and conversion raise many kinds
            raise InvalidInput(f"{where}: sample {number} must be a pair (tensor, target)") from None
    for what, values in (("samples", x), ("targets", y)):
        shapes = sorted({value.shape for value in values})
        if len(shapes) != 1:
            raise InvalidInput(f"{where}: {what} must have one shape; they have {shapes[:2] or 'none'}")
    return np.stack(x), np.stack(y)
