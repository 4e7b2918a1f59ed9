"""Running trials: on local processes, or on a Dask cluster.

A trial that fails is reported at the end and does not stop the others. A worker that dies costs the
trial it was at, which is tried again elsewhere.
"""

import importlib
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol

from airpass.core.errors import InvalidInput
from airpass.core.workers import follow_parent
from airpass.study.store import Store
from airpass.study.trial import Row, Trial, check, relabel, run

ATTEMPTS = 3  # of a trial whose worker dies
# A cluster's worker may have several threads, but what is random in PyTorch has one state a process.
_one_at_a_time = threading.Lock()
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Result = tuple[Trial, list[Row] | str]  # rows, or what went wrong


class Backend(Protocol):
    """Where trials run."""

    about: str  # for the report

    def __call__(self, trials: Sequence[Trial], /) -> Iterator[Result]:
        """Results as they come."""


@dataclass(frozen=True)
class Outcome:
    """How a study went."""

    done: int  # trials computed now
    kept: int  # trials that were there
    failures: tuple[tuple[Trial, str], ...]
    seconds: float


def run_trials(
    trials: Sequence[Trial],
    store: Store,
    backend: Callable[[Sequence[Trial]], Iterator[Result]],
    on_done: Callable[[Trial], None] | None = None,
    elsewhere: Callable[[Trial], list[Row] | None] | None = None,
) -> Outcome:
    """Compute what is missing, and keep each trial as soon as it is done.

    Trials that do the same work are computed once; `elsewhere` may have the rows of such a one.
    """
    began = time.perf_counter()
    for trial in trials:
        check(trial)
    kept = 0
    same: dict[str, list[Trial]] = {}  # missing trials by the work they do
    for trial in trials:
        known = store.has(trial)
        if not known and elsewhere is not None and (rows := elsewhere(trial)):
            store.write(trial, relabel(rows, trial))
            known = True
        if known:
            kept += 1
            if on_done is not None:
                on_done(trial)
        else:
            same.setdefault(trial.work, []).append(trial)
    failures: list[tuple[Trial, str]] = []
    for first, result in backend([group[0] for group in same.values()]) if same else ():
        for trial in same[first.work]:
            if isinstance(result, str):
                failures.append((trial, result))
            else:
                store.write(trial, relabel(result, trial))
            if on_done is not None:
                on_done(trial)
    failures.sort(key=lambda failure: failure[0].name)
    return Outcome(
        done=len(trials) - kept - len(failures),
        kept=kept,
        failures=tuple(failures),
        seconds=time.perf_counter() - began,
    )


def attempt(trial: Trial) -> list[Row] | str:
    """Rows, or the error in a line: what a worker sends back."""
    try:
        with _one_at_a_time:
            return run(trial)
    except Exception as error:
        text = str(error).strip().splitlines()
        return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _start(parent: int, slot: int, gpus: tuple[str, ...]) -> None:
    """Make a fresh worker ready: before any library that counts threads or devices is loaded."""
    follow_parent(parent)
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[slot % len(gpus)]


class LocalProcesses:
    """So many processes of one compute thread each, and a GPU each if there are any."""

    def __init__(self, workers: int, gpus: tuple[str, ...] = ()) -> None:
        self.workers = workers
        self.gpus = gpus
        self.about = f"{workers} local {'process' if workers == 1 else 'processes'}"

    def __call__(self, trials: Sequence[Trial]) -> Iterator[Result]:
        """Results as they come."""
        waiting = deque((trial, 1) for trial in trials)
        # An executor of one process each, so that a death breaks one trial and no other.
        slots = [self._slot(number) for number in range(min(self.workers, len(trials)))]
        free = list(range(len(slots)))
        running: dict[Future[Any], tuple[int, Trial, int]] = {}
        try:
            while waiting or running:
                while waiting and free:
                    slot = free.pop()
                    trial, tries = waiting.popleft()
                    try:
                        future = slots[slot].submit(attempt, trial)
                    except BrokenProcessPool:  # died while it had nothing to do
                        slots[slot] = self._slot(slot)
                        future = slots[slot].submit(attempt, trial)
                    running[future] = (slot, trial, tries)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    slot, trial, tries = running.pop(future)
                    try:
                        yield trial, future.result()
                    except BrokenProcessPool:
                        slots[slot].shutdown(wait=False)
                        slots[slot] = self._slot(slot)
                        if tries < ATTEMPTS:
                            waiting.append((trial, tries + 1))
                        else:
                            yield trial, f"its worker died {tries} times (out of memory?)"
                    free.append(slot)
        finally:
            for executor in slots:
                for process in list((executor._processes or {}).values()):
                    process.terminate()
                executor.shutdown(wait=False, cancel_futures=True)

    def _slot(self, number: int) -> ProcessPoolExecutor:
        # Threads are counted when libraries are loaded, so the limit has to be in the environment
        # of a fresh process.
        for name in ONE_THREAD:
            os.environ[name] = "1"
        fresh = multiprocessing.get_context("spawn")
        about = (os.getpid(), number, self.gpus)
        return ProcessPoolExecutor(1, mp_context=fresh, initializer=_start, initargs=about)


class DaskCluster:
    """The workers of a Dask scheduler at an address such as tcp://host:8786."""

    about = "a Dask cluster"

    def __init__(self, address: str) -> None:
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise InvalidInput("--dask needs the package distributed: pip install 'airpass[dask]'") from None
        try:
            self.client = self._distributed.Client(address, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(f"dask = {address!r}: no scheduler answers there ({error})") from None

    def __call__(self, trials: Sequence[Trial]) -> Iterator[Result]:
        """Results as they come; Dask itself moves the trials of a worker that is lost."""
        futures = {
            self.client.submit(attempt, trial, key=f"airpass-{trial.key}", pure=False): trial
            for trial in trials
        }
        for future in self._distributed.as_completed(futures):
            trial = futures[future]
            if future.status == "finished":
                yield trial, future.result()
            else:
                yield trial, f"lost by the cluster: {future.exception()}"
            future.release()
