"""A subset of MNIST that is part of the package."""

from dataclasses import dataclass
from pathlib import Path

from airpass.core.registry import Report
from airpass.learning.data.base import Corrupt, Dataset, DataSource, read_arrays
from airpass.learning.data.mnist import Mnist

FILE = Path(__file__).with_suffix(".npz")


@dataclass(frozen=True)
class MnistMini(DataSource):
    """5,000 training and 1,000 test images of MNIST, class-balanced, in the package."""

    name = "mnist-mini"
    citation = Mnist.citation
    sums = {  # noqa: RUF012
        "x_train": "fe57609667d7a8b640987a51018781e61c7b264afff6868ef379b0c87cb9335c",
        "y_train": "0c3aeda58dd36b213d655eb72b9ac9181c90bd3e333a19809cb32b1508f64d77",
        "x_test": "6973118ee26132cec5e8bca46303f598e8d7f3fd72a7056c43f828e761c432f0",
        "y_test": "dd09f7c420b0ae3b12e27577950099656961d334160a05f57159510b1011915e",
    }
    mean = Mnist.mean
    deviation = Mnist.deviation
    model = Mnist.model

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read the package's file."""
        where = f"the package's {FILE.name}"
        try:
            arrays = read_arrays(FILE)
        except Exception:  # NumPy and zipfile raise many kinds
            raise Corrupt(f"{where}: not a readable .npz file; install the package again") from None
        return self.verified(arrays, where)
