"""Devices trained side by side, each in a process of one thread.

Two processes with one thread each are faster than one with two: the networks are small. Processes
take devices as they get done with others, so that a slow one does not keep a round waiting. The global model
and the updates are in memory that all processes share, and only numbers of rounds, devices and rows are
sent. Who computes which update does not show in the result.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import torch

from airpass.learning.aggregation import Float32
from airpass.learning.client import Trainer
from airpass.learning.partition import Indices
from airpass.optim.types import Real
from airpass.processes import follow_parent

Own = tuple[Trainer, list[Indices]]  # a worker's own trainer and partition
Make = Callable[[], Own]
T = TypeVar("T")

_here: Own | None = None  # in a worker process


def _prepare_process(make: Make, parent: int) -> None:
    global _here  # noqa: PLW0603
    follow_parent(parent)
    torch.set_num_threads(1)
    _here = make()


@lru_cache(1)
def _board(path: Path, entries: int) -> Float32:
    """Shared memory, as rows of `entries` numbers: the model, then the updates."""
    return np.asarray(np.memmap(path, np.float32, "r+")).reshape(-1, entries)


def _updates(path: Path, entries: int, round_number: int, tasks: Sequence[tuple[int, int]]) -> list[float]:
    """Train (row, device) by (row, device); the change of the model goes into the row."""
    assert _here is not None
    board = _board(path, entries)
    trainer, samples = _here
    losses = []
    for row, device in tasks:
        board[row], loss = trainer.update(board[0], samples[device], round_number, device)
        losses.append(loss)
    return losses


def _measures(path: Path, entries: int, chunks: Sequence[int]) -> list[tuple[int, float]]:
    assert _here is not None
    state = _board(path, entries)[0]
    return [_here[0].measure(state, chunk) for chunk in chunks]


def groups(tasks: Sequence[T], workers: int) -> list[Sequence[T]]:
    """What is handed out at a time: large parts first, then ever smaller ones, as each costs a message."""
    found, first = [], 0
    while first < len(tasks):
        size = -(-(len(tasks) - first) // (2 * workers))
        found.append(tasks[first : first + size])
        first += size
    return found


class Pool:
    """`workers` processes that all hold the data; with one worker, this process."""

    def __init__(self, make: Make, workers: int) -> None:
        self._workers = workers
        self._executor: Any = None
        self._folder: Any = None
        self._path = Path()
        self._rows = 0
        self._threads = torch.get_num_threads()
        self._own: Own | None = None
        if workers == 1:
            torch.set_num_threads(1)
            self._own = make()
        else:
            import loky

            self._folder = TemporaryDirectory(prefix="airpass-", ignore_cleanup_errors=True)
            self._executor = loky.ProcessPoolExecutor(
                workers, initializer=_prepare_process, initargs=(make, os.getpid())
            )

    def updates(self, state: Float32, round_number: int, devices: Sequence[int]) -> tuple[Float32, Real]:
        """Update and training loss of every device, in their order. The updates last until the next call."""
        if self._own is not None:
            trainer, samples = self._own
            results = [trainer.update(state, samples[k], round_number, k) for k in devices]
            return np.stack([update for update, _ in results]), np.array([loss for _, loss in results])
        board = self._share(state, len(devices))
        losses = self._spread(
            partial(_updates, self._path, state.size, round_number), list(enumerate(devices, 1))
        )
        return board[1 : len(devices) + 1], np.array(losses)

    def measures(self, state: Float32, chunks: int) -> list[tuple[int, float]]:
        """Correct answers and summed loss of every chunk."""
        if self._own is not None:
            return [self._own[0].measure(state, chunk) for chunk in range(chunks)]
        self._share(state, 0)
        return self._spread(partial(_measures, self._path, state.size), range(chunks))

    def _share(self, state: Float32, updates: int) -> Float32:
        """Shared memory with the model in it, and room for so many updates."""
        if updates >= self._rows:
            self._rows = updates + 1
            self._path = Path(self._folder.name) / f"{self._rows}"
            # Written out, so that a full disk is an error now and not a crash later.
            self._path.write_bytes(bytes(self._rows * state.nbytes))
        board = _board(self._path, state.size)
        board[0] = state
        return board

    def _spread(self, work: Callable[[Any], list[Any]], tasks: Sequence[Any]) -> list[Any]:
        futures = [self._executor.submit(work, group) for group in groups(tasks, self._workers)]
        return [result for future in futures for result in future.result()]

    def close(self) -> None:
        """End the processes."""
        torch.set_num_threads(self._threads)
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            _board.cache_clear()
            self._folder.cleanup()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
