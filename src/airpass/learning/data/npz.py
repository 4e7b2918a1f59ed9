"""User-defined images in an `.npz` file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from airpass.core.registry import Report
from airpass.learning.data.base import PARTS, Dataset, DataSource, read_arrays, with_channels


@dataclass(frozen=True)
class NpzFile(DataSource):
    """Arrays x_train, y_train, x_test, y_test in a file: images as bytes, or as floats in [0, 1]."""

    path: str

    @property
    def name(self) -> str:  # type: ignore[override]  # named by its file; not registered
        """The path."""
        return self.path

    def load(self, directory: Path | None, report: Report) -> Dataset:
        """Read and check the file."""
        path = Path(self.path)
        try:
            found = read_arrays(path)
        except Exception:  # NumPy and zipfile raise many kinds
            raise InvalidInput(f"{path}: not an .npz file of plain arrays") from None
        for part in PARTS:
            if part not in found:
                raise InvalidInput(f"{path}: {part} is missing; must hold {', '.join(PARTS)}")
        arrays: dict[str, Any] = {part: found[part] for part in PARTS}
        for kind in ("train", "test"):
            images, labels = arrays[f"x_{kind}"], arrays[f"y_{kind}"]
            if images.ndim not in (3, 4) or len(images) == 0:
                raise InvalidInput(
                    f"{path}: x_{kind} has shape {images.shape}: must be (count, height, width[, channels])"
                )
            if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
                raise InvalidInput(f"{path}: y_{kind} must be {len(images)} whole numbers, one per image")
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
            arrays[f"x_{kind}"] = with_channels(images.astype(np.uint8))
            arrays[f"y_{kind}"] = labels.astype(np.uint8)
        if arrays["x_train"].shape[1:] != arrays["x_test"].shape[1:]:
            raise InvalidInput(f"{path}: training and test images differ in shape")
        pixels = arrays["x_train"].reshape(-1, arrays["x_train"].shape[3]) / 255.0
        mean = tuple(float(value) for value in pixels.mean(axis=0))
        deviation = tuple(float(value) or 1.0 for value in pixels.std(axis=0))
        return Dataset(self.path, **arrays, mean=mean, deviation=deviation)
