"""Devices trained side by side, each in a process of one thread.

Two processes with one thread each are faster than one with two: the networks are small. Who
computes which update does not show in the result.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from airpass.learning.aggregation import Float32
from airpass.learning.client import Trainer
from airpass.learning.partition import Indices
from airpass.processes import follow_parent

Make = Callable[[], tuple[Trainer, list[Indices]]]

Own = tuple[Trainer, list[Indices]]  # a worker's own trainer and partition

_here: Own | None = None  # in a worker process


def _prepare_process(make: Make, parent: int) -> None:
    global _here  # noqa: PLW0603
    follow_parent(parent)
    torch.set_num_threads(1)
    _here = make()


def _updates(
    own: Own, state: Float32, round_number: int, devices: Sequence[int]
) -> list[tuple[Float32, float]]:
    trainer, samples = own
    return [trainer.update(state, samples[k], round_number, k) for k in devices]


def _measures(own: Own, state: Float32, chunks: Sequence[int]) -> list[tuple[int, float]]:
    return [own[0].measure(state, chunk) for chunk in chunks]


def _in_worker(work: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
    assert _here is not None
    return work(_here, *arguments)


class Pool:
    """`workers` processes that all hold the data; with one worker, this process."""

    def __init__(self, make: Make, workers: int) -> None:
        self._workers = workers
        self._executor: Any = None
        self._threads = torch.get_num_threads()
        self._own: Own | None = None
        if workers == 1:
            torch.set_num_threads(1)
            self._own = make()
        else:
            import loky

            self._executor = loky.ProcessPoolExecutor(
                workers, initializer=_prepare_process, initargs=(make, os.getpid())
            )

    def updates(
        self, state: Float32, round_number: int, devices: Sequence[int]
    ) -> list[tuple[Float32, float]]:
        """Update and training loss of every device, in their order."""
        return self._spread(_updates, devices, state, round_number)

    def measures(self, state: Float32, chunks: int) -> list[tuple[int, float]]:
        """Correct answers and summed loss of every chunk."""
        return self._spread(_measures, range(chunks), state)

    def _spread(self, work: Callable[..., list[Any]], items: Sequence[int], *arguments: Any) -> list[Any]:
        if self._own is not None:
            return work(self._own, *arguments, items)
        groups = [group.tolist() for group in np.array_split(np.array(items), self._workers) if group.size]
        futures = [self._executor.submit(_in_worker, work, *arguments, group) for group in groups]
        return [result for future in futures for result in future.result()]

    def close(self) -> None:
        """End the processes."""
        torch.set_num_threads(self._threads)
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
