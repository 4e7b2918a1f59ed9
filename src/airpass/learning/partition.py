"""Who holds which samples. |D_k|, what each device ends up with, sets its weight."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream

Indices = NDArray[np.int64]
KINDS = ("classes", "iid", "dirichlet")


@dataclass(frozen=True)
class PartitionOptions:
    """Sources: P is section VI-A of the paper."""

    kind: str = "classes"  # every device holds a few classes; P
    classes_per_device: int = 3  # P
    concentration: float = 0.5  # of "dirichlet": small is uneven, large is even; ours

    def __post_init__(self) -> None:
        checks.one_of("partition", self.kind, KINDS)
        checks.whole("classes_per_device", self.classes_per_device, 1)
        checks.positive("concentration", self.concentration)


def partition(labels: NDArray[Any], devices: int, options: PartitionOptions, seed: int) -> list[Indices]:
    """Sample indices of every device; each sample goes to one device at most."""
    rng = stream(seed, Purpose.PARTITION)
    split = {"classes": _by_classes, "iid": _iid, "dirichlet": _dirichlet}[options.kind]
    shares = split(labels, devices, options, rng)
    empty = [k for k, share in enumerate(shares) if share.size == 0]
    if empty:
        raise InvalidInput(
            f"devices = {devices}: device {empty[0]} gets none of {labels.size} samples; use fewer devices"
        )
    return [np.sort(share) for share in shares]


def _iid(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    return list(np.array_split(rng.permutation(labels.size), devices))


def _by_classes(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    """Every device draws its classes; a class's samples are split evenly among its holders."""
    classes = np.unique(labels)
    if options.classes_per_device > classes.size:
        raise InvalidInput(
            f"classes_per_device = {options.classes_per_device}: the data has {classes.size} classes"
        )
    drawn = [set(rng.choice(classes, options.classes_per_device, replace=False)) for _ in range(devices)]
    parts: list[list[Indices]] = [[] for _ in range(devices)]
    for name in classes:
        holders = [k for k in range(devices) if name in drawn[k]]
        if holders:
            samples = rng.permutation(np.flatnonzero(labels == name))
            for k, share in zip(holders, np.array_split(samples, len(holders)), strict=True):
                parts[k].append(share)
    return [np.concatenate(part) for part in parts]


def _dirichlet(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    """Every class is split by shares drawn from a symmetric Dirichlet distribution."""
    parts: list[list[Indices]] = [[] for _ in range(devices)]
    for name in np.unique(labels):
        samples = rng.permutation(np.flatnonzero(labels == name))
        shares = rng.dirichlet(np.full(devices, options.concentration))
        cuts = np.rint(np.cumsum(shares)[:-1] * samples.size).astype(np.int64)
        for k, share in enumerate(np.split(samples, cuts)):
            parts[k].append(share)
    return [np.concatenate(part) for part in parts]
