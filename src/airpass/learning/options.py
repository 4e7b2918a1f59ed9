"""Options of training, and their defaults from the data set."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import with_options
from airpass.learning import losses, models, optimisers
from airpass.learning.aggregation import LinkOptions
from airpass.learning.client import PRECISIONS, SINGLE
from airpass.learning.data import Data, data_source
from airpass.learning.data.base import Dataset
from airpass.learning.data.partition import PartitionOptions
from airpass.learning.optimisers import ServerOptions

DATASET = "mnist-mini"  # default data set
LARGEST_RATE = 1e37  # steps of Adam are up to ten times as large, and numbers in single precision


@dataclass(frozen=True)
class TrainOptions:
    """Options of training.

    P marks values of section VI-A of the paper. The other defaults are not in the paper.
    """

    rounds: int = 200  # communication rounds
    local_steps: int = 3  # mini-batch steps J per round; P
    epochs: int | None = None  # passes over a device's data per round, instead of local_steps
    batch: int | None = None  # mini-batch size; None: that of the data set
    learning_rate: float | None = None  # local learning rate; None: that of the data set, and 0.001 for adam
    optimiser: str = "sgd"  # of the devices; "adam" starts anew in every round
    momentum: float = 0.0  # of sgd; starts anew in every round
    precision: str = SINGLE  # of products in the network: "single" or "bfloat16"
    # Network: a name, file.py:Name, a class, a function, or an object (copied, with its weights).
    # None: that of the data set, else "mlp"; data sets of images without one have no default.
    model: str | nn.Module | Callable[[], nn.Module] | None = None
    # "cross-entropy", "mse", file.py:Name, or a function of outputs and targets (mean over samples).
    # None: cross-entropy for classes, mse for regression.
    loss: str | Callable[..., Any] | None = None
    evaluate_every: int = 10  # rounds between evaluations
    test_images: int | None = None  # number of test images, evenly spaced; None: all
    probe_images: int = 5000  # training images on which the global training loss is evaluated
    redraw_every: int | None = None  # rounds between new draws of the devices; None: never
    partition: PartitionOptions = field(default_factory=PartitionOptions)  # how samples are split
    link: LinkOptions = field(default_factory=LinkOptions)  # normalisation of updates, errors of devices
    server: ServerOptions = field(default_factory=ServerOptions)  # the server's step, or its kind as text

    def __post_init__(self) -> None:
        if isinstance(self.server, str):
            object.__setattr__(self, "server", ServerOptions(self.server))
        for name in ("rounds", "local_steps", "evaluate_every", "probe_images"):
            checks.whole(name, getattr(self, name), 1)
        for name in ("epochs", "batch", "test_images", "redraw_every"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        if (rate := self.learning_rate) is not None and checks.positive("learning_rate", rate) > LARGEST_RATE:
            raise InvalidInput(f"learning_rate = {rate:g}: must be <= {LARGEST_RATE:g}")
        checks.one_of("optimiser", self.optimiser, optimisers.LOCAL)
        checks.one_of("precision", self.precision, PRECISIONS)
        if checks.at_least("momentum", self.momentum, 0.0) >= 1.0:
            raise InvalidInput(f"momentum = {self.momentum:g}: must be < 1")
        if self.momentum and self.optimiser != "sgd":
            raise InvalidInput(f"momentum = {self.momentum:g}: is an option of sgd; adam has its own")
        if self.model is not None:
            models.check_model(self.model)
        if self.loss is not None:
            losses.check_loss(self.loss)

    def filled(self, dataset: Data, loaded: Dataset | None = None) -> "TrainOptions":
        """The options with the defaults of a data set in place of None.

        Parameters
        ----------
        dataset
            The data set.
        loaded
            Its data. Before they are known, None can remain for network, loss and partition.

        Returns
        -------
        TrainOptions
            The options.
        """
        source = data_source(dataset)
        rate = optimisers.ADAM_LEARNING_RATE if self.optimiser == "adam" else source.learning_rate
        options = replace(
            self,
            batch=self.batch or source.batch,
            learning_rate=self.learning_rate or rate,
            model=source.model if self.model is None else self.model,
            server=self.server.filled(),
        )
        if loaded is None:
            return options
        if options.model is None and loaded.images:
            raise InvalidInput(
                f"model is missing: for {source.name} give one of {', '.join(models.MODELS)}, "
                f"or {models.REFERENCE}"
            )
        return replace(
            options,
            model="mlp" if options.model is None else options.model,
            loss=losses.default_loss(loaded.task) if options.loss is None else options.loss,
            partition=options.partition.filled(loaded),
        )

    def to_dict(self) -> dict[str, Any]:
        """The options as numbers and text. A model or a loss that is an object is named by its class."""
        named = {
            name: value if value is None or isinstance(value, str) else models.described(value)
            for name, value in (("model", self.model), ("loss", self.loss))
        }
        return asdict(replace(self, model=None, loss=None)) | named


def training_options(table: Mapping[str, Any]) -> tuple[str, TrainOptions, Path | None]:
    """Read the `[train]` table of a study.

    Parameters
    ----------
    table
        `dataset`, `data_dir`, and fields of `TrainOptions`.

    Returns
    -------
    tuple of str, TrainOptions and Path or None
        Data set, options with those defaults that are known before the data, and data directory.
    """
    given = dict(table)
    dataset = str(given.pop("dataset", DATASET))
    data_dir = given.pop("data_dir", None)
    if data_dir is not None and not isinstance(data_dir, str | Path):
        raise InvalidInput(f"train.data_dir = {data_dir!r}: must be a folder")
    options: TrainOptions = with_options(TrainOptions(), given, "train.")
    return dataset, options.filled(dataset), None if data_dir is None else Path(data_dir)
