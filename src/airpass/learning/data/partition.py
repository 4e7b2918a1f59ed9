"""The samples of each device. Their number |D_k| sets the device's weight."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.learning.data.base import PARTS, Dataset, DataSource

Indices: TypeAlias = NDArray[np.int64]
Samples: TypeAlias = tuple[Indices, ...]  # per device
KINDS = ("classes", "iid", "dirichlet")


@dataclass(frozen=True)
class PartitionOptions:
    """How samples are split among devices. P: from section VI-A of the paper."""

    kind: str = "classes"  # "classes": a few classes per device, P; "iid"; "dirichlet"
    classes_per_device: int = 3  # P
    concentration: float = 0.5  # of "dirichlet": small is uneven, large is even; not in the paper

    def __post_init__(self) -> None:
        checks.one_of("partition", self.kind, KINDS)
        checks.whole("classes_per_device", self.classes_per_device, 1)
        checks.positive("concentration", self.concentration)


@dataclass(frozen=True, eq=False, repr=False)
class FederatedData:
    """A data set and the samples of each device.

    Parameters
    ----------
    source
        Source of the data set, with its default network, mini-batch size and learning rate.
    dataset
        Images and labels.
    samples
        Indices of training images, per device.
    """

    source: DataSource
    dataset: Dataset
    samples: Samples

    @property
    def counts(self) -> list[int]:
        """|D_k|, per device."""
        return [share.size for share in self.samples]

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the data and of their partition."""
        digest = hashlib.sha256("".join(self.dataset.sums[part] for part in PARTS).encode())
        for share in self.samples:
            digest.update(hashlib.sha256(share.data).digest())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"FederatedData({self.dataset.name}: {sum(self.counts)} samples, {len(self.samples)} devices)"


def partition(labels: NDArray[Any], devices: int, options: PartitionOptions, seed: int) -> Samples:
    """Split the training images among the devices.

    Parameters
    ----------
    labels
        Class numbers of the images.
    devices
        Number of devices K.
    options
        How to split.
    seed
        Seed of the split.

    Returns
    -------
    Samples
        Sample indices, per device. No sample is assigned to two devices.
    """
    rng = stream(seed, Purpose.PARTITION)
    split = {"classes": _by_classes, "iid": _iid, "dirichlet": _dirichlet}[options.kind]
    shares = split(labels, devices, options, rng)
    empty = [k for k, share in enumerate(shares) if share.size == 0]
    if empty:
        raise InvalidInput(
            f"devices = {devices}: device {empty[0]} gets none of {labels.size} samples; use fewer devices"
        )
    return tuple(np.sort(share) for share in shares)


def _iid(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    return list(np.array_split(rng.permutation(labels.size), devices))


def _by_classes(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    """Each device draws its classes. The samples of a class are split evenly among its holders."""
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
    """Each class is split by shares drawn from a symmetric Dirichlet distribution."""
    parts: list[list[Indices]] = [[] for _ in range(devices)]
    for name in np.unique(labels):
        samples = rng.permutation(np.flatnonzero(labels == name))
        shares = rng.dirichlet(np.full(devices, options.concentration))
        cuts = np.rint(np.cumsum(shares)[:-1] * samples.size).astype(np.int64)
        for k, share in enumerate(np.split(samples, cuts)):
            parts[k].append(share)
    return [np.concatenate(part) for part in parts]
