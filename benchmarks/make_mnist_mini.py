"""Generate mnist-mini, the data set included in the package: a class-balanced subset of MNIST.

Run: python benchmarks/make_mnist_mini.py [DATA_DIR]. Takes the first 500 training and 100 test
images per class, in their original order, so that the file is reproducible.
"""

import sys
from io import BytesIO
from pathlib import Path

import numpy as np

from airpass.core.files import write_atomically
from airpass.learning.data import load
from airpass.learning.data.base import PARTS, sha256
from airpass.learning.data.mnist_mini import FILE


def main() -> None:
    """Write the file and print its checksums."""
    full = load("mnist", Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    parts = {}
    for kind, per_class in (("train", 500), ("test", 100)):
        images, labels = getattr(full, f"x_{kind}")[..., 0], getattr(full, f"y_{kind}")
        chosen = np.sort(np.concatenate([np.flatnonzero(labels == c)[:per_class] for c in range(10)]))
        parts[f"x_{kind}"], parts[f"y_{kind}"] = images[chosen], labels[chosen]
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **parts)
    write_atomically(FILE, buffer.getvalue())
    print(f"{len(buffer.getvalue()) / 1e6:.2f} MB")
    for name in PARTS:
        print(name, sha256(parts[name]))


if __name__ == "__main__":
    main()
