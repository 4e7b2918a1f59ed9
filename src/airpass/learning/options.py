"""Options of training, and their defaults from the data set."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import with_options
from airpass.learning import models
from airpass.learning.aggregation import LinkOptions
from airpass.learning.data import data_source
from airpass.learning.data.base import DataSource
from airpass.learning.data.partition import PartitionOptions

DATASET = "mnist-mini"  # default data set


@dataclass(frozen=True)
class TrainOptions:
    """Options of training. P: from section VI-A of the paper; the other defaults are not in the paper."""

    rounds: int = 200  # communication rounds
    local_steps: int = 3  # mini-batch steps J per round; P
    epochs: int | None = None  # passes over a device's data per round, instead of local_steps
    batch: int | None = None  # mini-batch size; None: that of the data set
    learning_rate: float | None = None  # local learning rate; None: that of the data set
    model: str | None = None  # network; None: that of the data set
    evaluate_every: int = 10  # rounds between evaluations
    test_images: int | None = None  # number of test images, evenly spaced; None: all
    probe_images: int = 5000  # training images on which the global training loss is evaluated
    redraw_every: int | None = None  # rounds between new draws of the devices; None: never
    partition: PartitionOptions = field(default_factory=PartitionOptions)
    link: LinkOptions = field(default_factory=LinkOptions)

    def __post_init__(self) -> None:
        for name in ("rounds", "local_steps", "evaluate_every", "probe_images"):
            checks.whole(name, getattr(self, name), 1)
        for name in ("epochs", "batch", "test_images", "redraw_every"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)

    def filled(self, dataset: str | DataSource) -> "TrainOptions":
        """The options with the defaults of a data set in place of None."""
        source = data_source(dataset)
        model = self.model or source.model
        if model is None:
            raise InvalidInput(
                f"model is missing: for {source.name} give one of {', '.join(models.MODELS)}, "
                f"or {models.REFERENCE}"
            )
        return replace(
            self,
            batch=self.batch or source.batch,
            learning_rate=self.learning_rate or source.learning_rate,
            model=model,
        )


def training_options(table: Mapping[str, Any]) -> tuple[str, TrainOptions, Path | None]:
    """Read the `[train]` table of a study.

    Parameters
    ----------
    table
        `dataset`, `data_dir`, and fields of `TrainOptions`.

    Returns
    -------
    tuple of str, TrainOptions and Path or None
        Data set, options with the defaults of the data set, and data directory.
    """
    given = dict(table)
    dataset = str(given.pop("dataset", DATASET))
    data_dir = given.pop("data_dir", None)
    if data_dir is not None and not isinstance(data_dir, str | Path):
        raise InvalidInput(f"train.data_dir = {data_dir!r}: must be a folder")
    options: TrainOptions = with_options(TrainOptions(), given, "train.")
    return dataset, options.filled(dataset), None if data_dir is None else Path(data_dir)
