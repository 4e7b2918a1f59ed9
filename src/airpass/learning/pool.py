"""Trains devices in parallel, in processes of one thread each.

The networks are small, so two processes with one thread each are faster than one process with two. Devices
are assigned dynamically, so that a slow process does not delay a round. The global model and the updates are
in shared memory; only numbers of rounds, devices and rows are sent. Results do not depend on the assignment
of devices to workers. If a worker is killed, the round is repeated once with new workers.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from airpass.core.errors import InvalidInput
from airpass.core.types import Real, Single
from airpass.core.workers import follow_parent, interrupts_held, loky_executor
from airpass.learning.client import Trainer
from airpass.learning.models import described, one_line
from airpass.learning.shared import shared

Make = Callable[[], Trainer]
T = TypeVar("T")


class WorkersLost(RuntimeError):
    """Worker processes were killed, and so were those that replaced them."""


# In a worker process: trainer, global model, and a row per update; or what is wrong.
_worker_state: tuple[Trainer, Single, Single] | InvalidInput | None = None


def _start_worker(make: Make, model: Single, updates: Single, parent: int) -> None:
    global _worker_state  # noqa: PLW0603
    follow_parent(parent)
    torch.set_num_threads(1)
    sys.stdout = sys.stderr  # standard output is for results; a model may print
    try:
        _worker_state = make(), np.asarray(model), np.asarray(updates)
    except InvalidInput as error:  # raised here it would look as if the worker had been killed
        _worker_state = error


def _state() -> tuple[Trainer, Single, Single]:
    """The state of this worker process."""
    assert _worker_state is not None
    if isinstance(_worker_state, InvalidInput):
        raise _worker_state
    return _worker_state


def _update(round_number: int, tasks: Sequence[tuple[int, int]]) -> list[float]:
    """Train devices, given as (row, device). The updates go into the rows; the losses are returned."""
    trainer, model, updates = _state()
    losses = []
    for row, device in tasks:
        updates[row], loss = trainer.update(model, round_number, device)
        losses.append(loss)
    return losses


def _evaluate(chunks: Sequence[int]) -> list[tuple[float, float]]:
    trainer, model, _ = _state()
    return [trainer.evaluate(model, chunk) for chunk in chunks]


def groups(tasks: Sequence[T], workers: int) -> list[Sequence[T]]:
    """Split tasks into groups that are sent at once: large ones first, then smaller ones."""
    found, first = [], 0
    while first < len(tasks):
        size = -(-(len(tasks) - first) // (2 * workers))
        found.append(tasks[first : first + size])
        first += size
    return found


def check_picklable(label: str, value: Any) -> None:
    """Refuse what cannot be sent to worker processes. Classes and functions of a script can."""
    if value is None or isinstance(value, str):
        return
    from loky.backend import reduction

    try:
        reduction.dumps(value)
    except Exception as error:  # pickling can raise any error
        raise InvalidInput(
            f"{label} = {described(value)}: cannot be sent to worker processes ({one_line(error)}); "
            "give a class or a function, or workers=1"
        ) from None


class Pool:
    """Worker processes, each with a trainer. With one worker, the calling process itself.

    Parameters
    ----------
    make
        Makes a trainer; called once in each worker.
    workers
        Number of processes.
    devices
        Largest number of updates per round.
    entries
        Number of entries of an update.
    """

    def __init__(self, make: Make, workers: int, devices: int, entries: int) -> None:
        self._workers = workers
        self._threads = torch.get_num_threads()
        self._executor: Any = None
        self._trainer: Trainer | None = None
        if workers == 1:
            torch.set_num_threads(1)
            try:
                self._trainer = make()
            except BaseException:
                self.close()
                raise
            return
        self._model = shared(np.zeros(entries, np.float32))
        self._updates = shared(np.zeros((devices, entries), np.float32))
        self._arguments = (make, self._model, self._updates, os.getpid())
        self._start()

    def _start(self) -> None:
        self._executor = loky_executor(self._workers, _start_worker, self._arguments)

    def updates(self, state: Single, round_number: int, devices: Sequence[int]) -> tuple[Single, Real]:
        """Train devices.

        Parameters
        ----------
        state
            State of the global model.
        round_number
            Number of the round.
        devices
            The devices.

        Returns
        -------
        tuple of Single and Real
            Updates, shape (len(devices), entries), and training losses. The next call overwrites the updates.
        """
        if self._trainer is not None:
            results = [self._trainer.update(state, round_number, k) for k in devices]
            found = np.array([update for update, _ in results], np.float32)
            return found.reshape(len(devices), state.size), np.array([loss for _, loss in results])
        self._model[:] = state
        losses = self._spread(partial(_update, round_number), list(enumerate(devices)))
        return np.asarray(self._updates[: len(devices)]), np.array(losses)

    def evaluate(self, state: Single, chunks: int) -> list[tuple[float, float]]:
        """Correct answers, NaN without classes, and summed loss, per chunk of the evaluation set."""
        if self._trainer is not None:
            return [self._trainer.evaluate(state, chunk) for chunk in range(chunks)]
        self._model[:] = state
        return self._spread(_evaluate, range(chunks))

    def _spread(self, work: Callable[[Any], list[Any]], tasks: Sequence[Any]) -> list[Any]:
        try:
            return self._attempt(work, tasks)
        except BrokenExecutor:  # a worker was killed; its tasks give the same results in another
            self._end()
            self._start()
        try:
            return self._attempt(work, tasks)
        except BrokenExecutor:
            raise WorkersLost(
                "a worker process was killed twice, maybe for lack of memory; try fewer workers"
            ) from None

    def _attempt(self, work: Callable[[Any], list[Any]], tasks: Sequence[Any]) -> list[Any]:
        with interrupts_held():  # the first task starts the processes
            futures = [self._executor.submit(work, group) for group in groups(tasks, self._workers)]
        return [result for future in futures for result in future.result()]

    def _end(self) -> None:
        self._executor.shutdown(wait=True, kill_workers=True)

    def close(self) -> None:
        """End the processes."""
        torch.set_num_threads(self._threads)
        if self._executor is not None:
            self._end()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
