"""Devices trained side by side, each in a process of one thread.

Two processes with one thread each are faster than one with two: the networks are small. Who
computes which update does not show in the result.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from airpass.learning.aggregation import Float32
from airpass.learning.client import Trainer
from airpass.learning.partition import Indices

Make = Callable[[], tuple[Trainer, list[Indices]]]

_here: tuple[Trainer, list[Indices]] | None = None  # a worker's own trainer and partition


def _prepare(make: Make) -> None:
    global _here  # noqa: PLW0603
    torch.set_num_threads(1)
    _here = make()


def _prepare_process(make: Make) -> None:
    # Ctrl-C goes to all processes of a terminal; the main one decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _prepare(make)


def _end_with(parent: int) -> None:
    """End this worker when the main process is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _updates(state: Float32, round_number: int, devices: Sequence[int]) -> list[tuple[Float32, float]]:
    assert _here is not None
    trainer, samples = _here
    return [trainer.update(state, samples[k], round_number, k) for k in devices]


def _measures(state: Float32, chunks: Sequence[int]) -> list[tuple[int, float]]:
    assert _here is not None
    return [_here[0].measure(state, chunk) for chunk in chunks]


class Pool:
    """`workers` processes that all hold the data; with one worker, this process."""

    def __init__(self, make: Make, workers: int) -> None:
        self._workers = workers
        self._executor: Any = None
        self._threads = torch.get_num_threads()
        if workers == 1:
            _prepare(make)
        else:
            import loky

            self._executor = loky.ProcessPoolExecutor(workers, initializer=_prepare_process, initargs=(make,))

    def updates(
        self, state: Float32, round_number: int, devices: Sequence[int]
    ) -> list[tuple[Float32, float]]:
        """Update and training loss of every device, in their order."""
        return self._spread(_updates, devices, state, round_number)

    def measures(self, state: Float32, chunks: int) -> list[tuple[int, float]]:
        """Correct answers and summed loss of every chunk."""
        return self._spread(_measures, range(chunks), state)

    def _spread(self, work: Callable[..., list[Any]], items: Sequence[int], *arguments: Any) -> list[Any]:
        if self._executor is None:
            return work(*arguments, items)
        groups = [group.tolist() for group in np.array_split(np.array(items), self._workers) if group.size]
        futures = [self._executor.submit(work, *arguments, group) for group in groups]
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
