"""Image data sets: built-in ones, one file each, and user-defined classes. `load` reads one."""

from pathlib import Path

from airpass.core.registry import Registry, Report, discard
from airpass.learning.data.base import Dataset, DataSource
from airpass.learning.data.npz import NpzFile

SOURCES = Registry(DataSource, __name__)


def data_source(dataset: str | DataSource | type[DataSource]) -> DataSource:
    """Resolve a user's argument to a data set.

    Parameters
    ----------
    dataset
        Registered name, `FILE.npz`, `file.py:Name`, `package.module:Name`, an object or a class.

    Returns
    -------
    DataSource
        Source that `load` reads.
    """
    if isinstance(dataset, str) and dataset.endswith(".npz"):
        return NpzFile(dataset)
    return SOURCES.resolve(dataset, label="dataset")


def load(
    dataset: str | DataSource | type[DataSource], directory: Path | None = None, report: Report = discard
) -> Dataset:
    """Read a data set. It is downloaded if it is absent.

    Parameters
    ----------
    dataset
        Registered name, `FILE.npz`, `file.py:Name`, `package.module:Name`, an object or a class.
    directory
        Folder of downloaded sets; see `download.data_directory`.
    report
        Callback for progress messages.

    Returns
    -------
    Dataset
        Images, labels and pixel statistics.
    """
    return data_source(dataset).load(directory, report)
