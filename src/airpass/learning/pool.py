"""Devices trained side by side, each in a process of one thread.

Two processes with one thread each are faster than one with two: the networks are small. Processes
take devices as they get done with others, so that a slow one does not keep a round waiting. The global model
and the updates go through files that are rewritten every round, and so stay in memory; only numbers of
rounds, devices and rows are sent. Who computes which update does not show in the result.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import torch

from airpass.core.types import Real
from airpass.core.workers import follow_parent
from airpass.learning.aggregation import Float32
from airpass.learning.client import Trainer
from airpass.learning.partition import Indices

Own = tuple[Trainer, list[Indices]]  # a worker's own trainer and partition
Make = Callable[[], Own]
T = TypeVar("T")

MODEL = "model"
UPDATES = "updates"

_here: Own | None = None  # in a worker process


def _prepare_process(make: Make, parent: int, shared: Path) -> None:
    global _here  # noqa: PLW0603
    follow_parent(parent, shared)
    torch.set_num_threads(1)
    _here = make()


def _updates(folder: Path, round_number: int, tasks: Sequence[tuple[int, int]]) -> list[float]:
    """Train (row, device) by (row, device); the change of the model goes into the row."""
    assert _here is not None
    trainer, samples = _here
    state = np.fromfile(folder / MODEL, np.float32)
    losses = []
    with (folder / UPDATES).open("r+b") as file:
        for row, device in tasks:
            change, loss = trainer.update(state, samples[device], round_number, device)
            file.seek(row * change.nbytes)
            file.write(change.data)
            losses.append(loss)
    return losses


def _measures(folder: Path, chunks: Sequence[int]) -> list[tuple[int, float]]:
    assert _here is not None
    state = np.fromfile(folder / MODEL, np.float32)
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
        self._threads = torch.get_num_threads()
        self._own: Own | None = None
        if workers == 1:
            torch.set_num_threads(1)
            self._own = make()
        else:
            import loky

            self._folder = TemporaryDirectory(prefix="airpass-", ignore_cleanup_errors=True)
            for name in (MODEL, UPDATES):
                (Path(self._folder.name) / name).touch()
            self._executor = loky.ProcessPoolExecutor(
                workers,
                initializer=_prepare_process,
                initargs=(make, os.getpid(), Path(self._folder.name)),
            )

    def updates(self, state: Float32, round_number: int, devices: Sequence[int]) -> tuple[Float32, Real]:
        """Update and training loss of every device, in their order."""
        if self._own is not None:
            trainer, samples = self._own
            results = [trainer.update(state, samples[k], round_number, k) for k in devices]
            found = np.array([update for update, _ in results], np.float32)
            return found.reshape(len(devices), state.size), np.array([loss for _, loss in results])
        folder = self._share(state)
        losses = self._spread(partial(_updates, folder, round_number), list(enumerate(devices)))
        found = np.fromfile(folder / UPDATES, np.float32, len(devices) * state.size)
        return found.reshape(len(devices), state.size), np.array(losses)

    def measures(self, state: Float32, chunks: int) -> list[tuple[int, float]]:
        """Correct answers and summed loss of every chunk."""
        if self._own is not None:
            return [self._own[0].measure(state, chunk) for chunk in range(chunks)]
        return self._spread(partial(_measures, self._share(state)), range(chunks))

    def _share(self, state: Float32) -> Path:
        """The folder that processes share, with the model in it."""
        folder = Path(self._folder.name)
        # Over what is there: a file that is cut to nothing and written anew would go to the disk at once.
        with (folder / MODEL).open("r+b") as file:
            file.write(state.data)
        return folder

    def _spread(self, work: Callable[[Any], list[Any]], tasks: Sequence[Any]) -> list[Any]:
        futures = [self._executor.submit(work, group) for group in groups(tasks, self._workers)]
        return [result for future in futures for result in future.result()]

    def close(self) -> None:
        """End the processes."""
        torch.set_num_threads(self._threads)
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._folder.cleanup()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
