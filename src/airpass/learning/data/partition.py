"""The samples of each device. Their number |D_k| sets the device's weight."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.learning.data.base import CLASSIFICATION, COLUMN, PARTS, Dataset, DataSource

Indices: TypeAlias = NDArray[np.int64]
Samples: TypeAlias = tuple[Indices, ...]  # per device
Split: TypeAlias = Sequence[Any]  # sample indices, per device, as users give them
KINDS = ("classes", "iid", "dirichlet", "column")
CLASSES_PER_DEVICE = 3  # P


@dataclass(frozen=True)
class PartitionOptions:
    """How samples are split among devices. P marks values of section VI-A of the paper."""

    # "classes": a few classes per device, P; "iid"; "dirichlet"; "column": by the data's own device_train.
    # None: "column" if the data have one, else "classes", and "iid" for regression.
    kind: str | None = None
    classes_per_device: int | None = None  # None: 3, P; all if the data has fewer
    concentration: float = 0.5  # of "dirichlet": small is uneven, large is even; not in the paper

    def __post_init__(self) -> None:
        if self.kind is not None:
            checks.one_of("partition", self.kind, KINDS)
        if self.classes_per_device is not None:
            checks.whole("classes_per_device", self.classes_per_device, 1)
        checks.positive("concentration", self.concentration)

    def filled(self, data: Dataset) -> "PartitionOptions":
        """The options with the defaults for a data set in place of None."""
        classes = np.unique(data.y_train).size if data.task == CLASSIFICATION else 0
        kind = self.kind or ("column" if data.device_train is not None else "classes" if classes else "iid")
        return replace(
            self,
            kind=kind,
            classes_per_device=self.classes_per_device or min(CLASSES_PER_DEVICE, classes or 1),
        )


@dataclass(frozen=True, eq=False, repr=False)
class FederatedData:
    """A data set and the samples of each device.

    Parameters
    ----------
    source
        Source of the data set, with its default network, mini-batch size and learning rate.
    dataset
        Samples and targets.
    samples
        Indices of training samples, per device.
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
        if not self.dataset.images:
            digest.update(str([getattr(self.dataset, part).shape for part in PARTS]).encode())
        elif not self.source.sums:  # the user's own, which may be standardised in another way
            digest.update(str((self.dataset.mean, self.dataset.deviation)).encode())
        for share in self.samples:
            digest.update(hashlib.sha256(share.data).digest())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"FederatedData({self.dataset.name}: {sum(self.counts)} samples, {len(self.samples)} devices)"


def partition(data: Dataset, devices: int, options: PartitionOptions, seed: int) -> Samples:
    """Split the training samples among the devices.

    Parameters
    ----------
    data
        The data set.
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
    options = options.filled(data)
    if options.kind == "column":
        return _by_column(data, devices)
    if options.kind != "iid" and data.task != CLASSIFICATION:
        raise InvalidInput(
            f"partition = {options.kind!r}: needs classes, and the targets are floats; "
            "use iid or column, or give a split"
        )
    rng = stream(seed, Purpose.PARTITION)
    split = {"classes": _by_classes, "iid": _iid, "dirichlet": _dirichlet}[str(options.kind)]
    shares = split(data.y_train, devices, options, rng)
    empty = [k for k, share in enumerate(shares) if share.size == 0]
    if empty:
        raise InvalidInput(
            f"devices = {devices}: device {empty[0]} gets none of {len(data.y_train)} samples; "
            "use fewer devices"
        )
    return tuple(np.sort(share) for share in shares)


def checked_split(split: Split, count: int, devices: int) -> Samples:
    """A split of the user's own.

    Parameters
    ----------
    split
        Indices of training samples, per device.
    count
        Number of training samples.
    devices
        Number of devices K.

    Returns
    -------
    Samples
        Sample indices, per device, sorted. Samples may be left out.
    """
    if not isinstance(split, Sequence | np.ndarray):
        raise InvalidInput(f"split = {split!r}: must be a list with the sample numbers of each device")
    if len(split) != devices:
        raise InvalidInput(f"split: has {len(split)} lists of samples; there are {devices} devices")
    shares = []
    owner = np.full(count, -1)
    for k, given in enumerate(split):
        share = np.asarray(given)
        if share.ndim != 1 or share.size == 0 or share.dtype.kind not in "iu":
            raise InvalidInput(f"split[{k}]: must be a list of sample numbers, at least one")
        if share.min() < 0 or share.max() >= count:
            raise InvalidInput(
                f"split[{k}]: has samples from {share.min()} to {share.max()}: must be from 0 to {count - 1}"
            )
        share = np.sort(share.astype(np.int64))
        if np.unique(share).size != share.size:
            raise InvalidInput(f"split[{k}]: has sample {share[:-1][np.diff(share) == 0][0]} twice")
        if (owner[share] >= 0).any():
            both = share[owner[share] >= 0][0]
            raise InvalidInput(f"split[{k}]: has sample {both}, which split[{owner[both]}] has too")
        owner[share] = k
        shares.append(share)
    return tuple(shares)


def _by_column(data: Dataset, devices: int) -> Samples:
    if data.device_train is None:
        raise InvalidInput(
            f"partition = 'column': {data.name} has no {COLUMN}, the device of each training sample"
        )
    numbers = np.unique(data.device_train)
    if not np.array_equal(numbers, np.arange(devices)):
        raise InvalidInput(
            f"devices = {devices}: {COLUMN} of {data.name} holds {numbers.size} device numbers, "
            f"from {numbers[0]} to {numbers[-1]}; must hold every number from 0 to {devices - 1}"
        )
    return tuple(np.flatnonzero(data.device_train == k) for k in range(devices))


def _iid(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    return list(np.array_split(rng.permutation(len(labels)), devices))


def _by_classes(
    labels: NDArray[Any], devices: int, options: PartitionOptions, rng: np.random.Generator
) -> list[Indices]:
    """Each device draws its classes. The samples of a class are split evenly among its holders."""
    classes = np.unique(labels)
    assert options.classes_per_device is not None
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
