"""Data sets: built-in ones, one file each, and those of users. `load` reads one."""

from pathlib import Path
from typing import Any, TypeAlias

from airpass.core.errors import InvalidInput
from airpass.core.registry import Registry, Report, discard
from airpass.learning.data.arrays import ArrayData, TorchData
from airpass.learning.data.base import Dataset, DataSource
from airpass.learning.data.npz import NpzFile

SOURCES = Registry(DataSource, __name__)
# Name, file, `file.py:Name`, object, class; four arrays; or two data sets of PyTorch.
Data: TypeAlias = str | DataSource | type[DataSource] | tuple[Any, ...]


def data_source(dataset: Data) -> DataSource:
    """Resolve a user's argument to a data set.

    Parameters
    ----------
    dataset
        Registered name, `FILE.npz`, `file.py:Name`, `package.module:Name`, an object or a class;
        (x_train, y_train, x_test, y_test); or (train, test), two `torch.utils.data.Dataset` objects.

    Returns
    -------
    DataSource
        Source that `load` reads.
    """
    if isinstance(dataset, tuple):
        if len(dataset) not in (2, 4):
            raise InvalidInput(
                f"dataset: has {len(dataset)} parts; must be (x_train, y_train, x_test, y_test) "
                "or (train, test)"
            )
        return ArrayData(*dataset) if len(dataset) == 4 else TorchData(*dataset)
    if isinstance(dataset, str) and dataset.endswith(".npz"):
        return NpzFile(dataset)
    if not isinstance(dataset, str | DataSource | type):
        raise InvalidInput(
            f"dataset: is {type(dataset).__name__}; must be a name, FILE.npz, ArrayData, "
            "(x_train, y_train, x_test, y_test), or (train, test), two torch data sets"
        )
    return SOURCES.resolve(dataset, label="dataset")


def load(dataset: Data, directory: Path | None = None, report: Report = discard) -> Dataset:
    """Read a data set. It is downloaded if it is absent.

    Parameters
    ----------
    dataset
        As for `data_source`.
    directory
        Folder of downloaded sets; see `download.data_directory`.
    report
        Callback for progress messages.

    Returns
    -------
    Dataset
        Samples and targets.
    """
    return data_source(dataset).load(directory, report)
