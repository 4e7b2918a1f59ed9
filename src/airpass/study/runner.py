"""Running trials on local processes or on a Dask cluster.

A trial that fails is reported at the end and does not stop the others. If a worker dies, the trial it
was running is run again.
"""

import importlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from airpass.core.errors import InvalidInput, users_line
from airpass.core.workers import follow_parent, interrupts_held, loky_executor
from airpass.study.store import Store
from airpass.study.trial import Row, Trial, check, relabel, run

ATTEMPTS = 3  # for a trial whose worker dies
# Set before the start of a process: libraries read these at import.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
FIRST_NOTICE_S = 10.0  # without workers before the first message about it
NOTICE_EVERY_S = 60.0  # between further ones
# A worker of a cluster may have several threads, but PyTorch has one random state per process.
_one_at_a_time = threading.Lock()

Result = tuple[Trial, list[Row] | str]  # rows, or an error message
Results = Generator[Result, None, None]


class Executor(Protocol):
    """Where trials run."""

    about: str  # for the report

    def __call__(self, trials: Sequence[Trial], /) -> Results:
        """Yield results as they arrive, in any order. Closing the generator stops the workers."""

    def close(self) -> None:
        """Leave the workers."""


@dataclass(frozen=True)
class Outcome:
    """Numbers of trials that were run, reused and failed."""

    run: int
    reused: int
    failures: tuple[tuple[Trial, str], ...]
    seconds: float


def run_trials(
    trials: Sequence[Trial],
    store: Store,
    executor: Callable[[Sequence[Trial]], Results],
    on_done: Callable[[Trial], None] = lambda _: None,
    elsewhere: Callable[[Trial], list[Row] | None] = lambda _: None,
) -> Outcome:
    """Run the trials that are not stored yet, and store each when it finishes.

    Parameters
    ----------
    trials
        Trials of the study. Those with the same computation are run once.
    store
        Where rows are read and written.
    executor
        Where trials run.
    on_done
        Called for each finished, reused or failed trial.
    elsewhere
        Returns rows of the same computation that are stored in another place, or None.

    Returns
    -------
    Outcome
        Numbers of trials, and failures sorted by name.
    """
    began = time.perf_counter()
    for trial in trials:
        check(trial)
    store.remove_leftovers()
    missing: dict[str, list[Trial]] = {}  # by computation
    failures: list[tuple[Trial, str]] = []
    for trial in trials:
        if not store.has(trial):
            rows = elsewhere(trial)
            if not rows:
                missing.setdefault(trial.computation, []).append(trial)
                continue
            store.write(trial, relabel(rows, trial))
        on_done(trial)
    if missing:
        with closing(executor([group[0] for group in missing.values()])) as results:
            for first, result in results:
                for trial in missing[first.computation]:
                    if isinstance(result, str):
                        failures.append((trial, result))
                    else:
                        store.write(trial, relabel(result, trial))
                    on_done(trial)
    asked = sum(map(len, missing.values()))
    return Outcome(
        run=asked - len(failures),
        reused=len(trials) - asked,
        failures=tuple(sorted(failures, key=lambda failure: failure[0].name)),
        seconds=time.perf_counter() - began,
    )


def attempt(trial: Trial) -> list[Row] | str:
    """Rows of a trial, or the first line of the error. Runs in a worker."""
    try:
        with _one_at_a_time:
            return run(trial)
    except Exception as error:
        text = str(error).strip().splitlines()
        place = users_line(error)
        where = "" if place is None else f" ({place})"
        return (f"{type(error).__name__}: {text[0]}" if text else type(error).__name__) + where


class LocalProcesses:
    """Local processes with one compute thread each.

    Parameters
    ----------
    workers
        Number of processes.
    gpus
        GPUs as in CUDA_VISIBLE_DEVICES. Each process sees one of them.
    """

    def __init__(self, workers: int, gpus: tuple[str, ...] = ()) -> None:
        self.workers = workers
        self.gpus = gpus
        self.about = f"{workers} local {'process' if workers == 1 else 'processes'}"

    def __call__(self, trials: Sequence[Trial]) -> Results:
        """Yield results as they arrive."""
        queue = deque((trial, ATTEMPTS) for trial in trials)
        # One pool per process: the death of a process breaks all trials of its pool.
        pools = [self._pool(slot) for slot in range(min(self.workers, len(trials)))]
        free = deque(range(len(pools)))
        running: dict[Future[list[Row] | str], tuple[int, Trial, int]] = {}
        try:
            while queue or running:
                while queue and free:
                    slot, (trial, attempts) = free.popleft(), queue.popleft()
                    running[_submit(pools[slot], trial)] = slot, trial, attempts - 1
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    slot, trial, attempts = running.pop(future)
                    if not isinstance(future.exception(), BrokenProcessPool):
                        yield trial, future.result()
                    else:
                        pools[slot].shutdown(kill_workers=True)
                        pools[slot] = self._pool(slot)
                        if attempts > 0:
                            queue.append((trial, attempts))
                        else:
                            yield trial, f"its worker died {ATTEMPTS} times (out of memory?)"
                    free.append(slot)
        finally:
            for pool in pools:
                pool.shutdown(kill_workers=True)

    def _pool(self, slot: int) -> Any:
        gpu = {"CUDA_VISIBLE_DEVICES": self.gpus[slot % len(self.gpus)]} if self.gpus else {}
        return loky_executor(1, follow_parent, (os.getpid(),), ONE_THREAD | gpu)

    def close(self) -> None:
        """Do nothing: the processes end with each call."""


def _submit(pool: Any, trial: Trial) -> Future[list[Row] | str]:
    """Submit a trial. If the process died while it was idle, the future fails as well."""
    try:
        with interrupts_held():  # the first trial starts the process
            submitted: Future[list[Row] | str] = pool.submit(attempt, trial)
    except BrokenProcessPool as error:
        submitted = Future()
        submitted.set_exception(error)
    return submitted


class DaskCluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    address
        Address of the scheduler, such as tcp://host:8786.
    """

    about = "a Dask cluster"

    def __init__(self, address: str) -> None:
        self.address = address
        self.notice: Callable[[str], None] = lambda _: None
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise InvalidInput("--dask needs the package distributed: pip install 'airpass[dask]'") from None
        try:
            self.client = self._distributed.Client(address, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(f"dask = {address!r}: no scheduler answers ({error})") from None

    def with_notice(self, notice: Callable[[str], None]) -> "DaskCluster":
        """The same cluster, which calls `notice` while it has no workers."""
        self.notice = notice
        return self

    def __call__(self, trials: Sequence[Trial]) -> Results:
        """Yield results as they arrive. Dask moves the trials of a lost worker to others."""
        futures = {
            self.client.submit(attempt, trial, key=f"airpass-{trial.key}", pure=False): trial
            for trial in trials
        }
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watcher.start()
        try:
            for future in self._distributed.as_completed(futures):
                trial = futures[future]
                if future.status == "finished":
                    yield trial, future.result()
                else:
                    yield trial, f"lost by the cluster: {future.exception()}"
                future.release()
        finally:
            ended.set()
            watcher.join()

    def close(self) -> None:
        """Leave the scheduler."""
        self.client.close()

    def _watch(self, ended: threading.Event) -> None:
        """Say so while there are no workers: after ten seconds, then every minute."""
        since, pause, state = time.monotonic(), FIRST_NOTICE_S, "none so far"
        over = False
        while not over:
            over = ended.wait(1.0)
            try:
                workers = len(self.client.scheduler_info()["workers"])
            except Exception:  # the scheduler is gone; `as_completed` reports it
                return
            if workers:
                if pause == NOTICE_EVERY_S:
                    self.notice(f"{workers} {'worker' if workers == 1 else 'workers'} at {self.address}")
                since, pause, state = time.monotonic(), FIRST_NOTICE_S, "none left"
            elif not over and time.monotonic() - since >= pause:
                self.notice(
                    f"waiting for workers at {self.address}: {state}; "
                    f"start one with: dask worker {self.address} --nthreads 1"
                )
                since, pause = time.monotonic(), NOTICE_EVERY_S
