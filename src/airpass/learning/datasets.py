"""Image data sets by name, and users' own from `.npz` files.

A set is four arrays of bytes and labels; `mnist-mini` comes with the package, the others are
fetched once (see download.py) and checked against recorded sums every time they are read.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpass.core.errors import InvalidInput

Bytes = NDArray[np.uint8]
PARTS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class Recipe:
    """What is known of a named set: its shape, its statistics, its sums and whom to cite."""

    name: str
    summary: str
    sums: dict[str, str]  # SHA-256 of every part's bytes
    mean: tuple[float, ...]  # of pixels over 255, a channel each
    deviation: tuple[float, ...]
    citation: str


_MNIST_CITATION = "Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST database of handwritten digits"

RECIPES = {
    "mnist-mini": Recipe(
        name="mnist-mini",
        summary="5,000 training and 1,000 test images of MNIST, class-balanced, in the package",
        sums={
            "x_train": "fe57609667d7a8b640987a51018781e61c7b264afff6868ef379b0c87cb9335c",
            "y_train": "0c3aeda58dd36b213d655eb72b9ac9181c90bd3e333a19809cb32b1508f64d77",
            "x_test": "6973118ee26132cec5e8bca46303f598e8d7f3fd72a7056c43f828e761c432f0",
            "y_test": "dd09f7c420b0ae3b12e27577950099656961d334160a05f57159510b1011915e",
        },
        mean=(0.1307,),
        deviation=(0.3081,),
        citation=_MNIST_CITATION,
    ),
    "mnist": Recipe(
        name="mnist",
        summary="60,000 training and 10,000 test images of digits, 28 x 28, grey",
        sums={
            "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        },
        mean=(0.1307,),
        deviation=(0.3081,),
        citation=_MNIST_CITATION,
    ),
    "cifar10": Recipe(
        name="cifar10",
        summary="50,000 training and 10,000 test images of ten kinds of things, 32 x 32, colour",
        sums={
            "x_train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            "y_train": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
            "x_test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            "y_test": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        },
        mean=(0.4914, 0.4822, 0.4465),
        deviation=(0.2470, 0.2435, 0.2616),
        citation="A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
    ),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (count, height, width, channels) and labels, both as bytes, with pixel statistics."""

    name: str
    x_train: Bytes
    y_train: Bytes
    x_test: Bytes
    y_test: Bytes
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(max(self.y_train.max(), self.y_test.max())) + 1

    @property
    def channels(self) -> int:
        """Colour channels of an image."""
        return int(self.x_train.shape[3])


class Corrupt(InvalidInput):
    """A stored set whose bytes are not the recorded ones."""


def sha256(array: Bytes) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def verified(recipe: Recipe, parts: dict[str, Bytes], where: str) -> dict[str, Bytes]:
    """The parts, if every one has its recorded sum."""
    for name in PARTS:
        if name not in parts or sha256(parts[name]) != recipe.sums[name]:
            raise Corrupt(f"{where}: {name} is not the recorded {recipe.name} (SHA-256 differs)")
    return parts


def read_parts(source: Path | BytesIO) -> dict[str, Bytes]:
    """The arrays of an `.npz` file."""
    with np.load(source, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def embedded(recipe: Recipe) -> dict[str, Bytes]:
    """The set that comes with the package."""
    content = files("airpass.learning").joinpath("mnist_mini.npz").read_bytes()
    return verified(recipe, read_parts(BytesIO(content)), "the package's mnist_mini.npz")


def from_recipe(recipe: Recipe, parts: dict[str, Bytes]) -> Dataset:
    """A data set of the named kind, grey images with a channel axis of one."""
    images = {name: _with_channels(parts[name]) for name in ("x_train", "x_test")}
    return Dataset(
        recipe.name,
        images["x_train"],
        parts["y_train"],
        images["x_test"],
        parts["y_test"],
        recipe.mean,
        recipe.deviation,
    )


def from_file(path: Path) -> Dataset:
    """A user's `.npz` with x_train, y_train, x_test, y_test; images as bytes, or floats in [0, 1]."""
    try:
        parts: dict[str, Any] = dict(read_parts(path))
    except Exception:  # whatever a file that is no .npz makes NumPy raise
        raise InvalidInput(f"{path}: not an .npz file of plain arrays") from None
    for name in PARTS:
        if name not in parts:
            raise InvalidInput(f"{path}: {name} is missing; must hold {', '.join(PARTS)}")
    for kind in ("train", "test"):
        images, labels = parts[f"x_{kind}"], parts[f"y_{kind}"]
        if images.ndim not in (3, 4) or len(images) == 0:
            raise InvalidInput(
                f"{path}: x_{kind} has shape {images.shape}: must be (count, height, width[, channels])"
            )
        if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
            raise InvalidInput(f"{path}: y_{kind} must be {len(images)} whole numbers, one for each image")
        if labels.min() < 0 or labels.max() > 255:
            raise InvalidInput(f"{path}: y_{kind} must be class numbers from 0 to 255")
        if images.dtype.kind == "f":
            if not (np.isfinite(images).all() and images.min() >= 0 and images.max() <= 1):
                raise InvalidInput(f"{path}: x_{kind} must be bytes, or floats from 0 to 1")
            images = np.rint(images * 255)
        elif images.dtype != np.uint8:
            raise InvalidInput(
                f"{path}: x_{kind} has dtype {images.dtype}: must be uint8, or floats from 0 to 1"
            )
        parts[f"x_{kind}"] = _with_channels(images.astype(np.uint8))
        parts[f"y_{kind}"] = labels.astype(np.uint8)
    if parts["x_train"].shape[1:] != parts["x_test"].shape[1:]:
        raise InvalidInput(f"{path}: training and test images differ in shape")
    pixels = parts["x_train"].reshape(-1, parts["x_train"].shape[3]) / 255.0
    deviation = tuple(float(value) or 1.0 for value in pixels.std(axis=0))
    mean = tuple(float(value) for value in pixels.mean(axis=0))
    train, test = (parts["x_train"], parts["y_train"]), (parts["x_test"], parts["y_test"])
    return Dataset(str(path), *train, *test, mean, deviation)


def _with_channels(images: Bytes) -> Bytes:
    return images[..., None] if images.ndim == 3 else images
