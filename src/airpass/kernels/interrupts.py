"""Kernels that Ctrl-C can end.

Python handles signals in the main thread, between two instructions of its own: while a kernel runs there,
Ctrl-C waits for its end. A kernel that may take long therefore runs in another thread, while the main thread
waits. The last argument of such a kernel is a flag; once it is set, the kernel returns within a fraction of a
second, and its result is discarded. Kernels that take little time are called directly, because starting a
thread takes as long as a small selection.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np

from airpass.core.types import Flag

R = TypeVar("R")

LONG = 5e8  # operations, about half a second, from which a kernel runs in another thread
TICK_S = 0.1  # between looks at signals, on systems where these do not end a wait

_never: Flag = np.zeros(1, np.uint8)
_current = threading.local()


class Stopped(Exception):
    """The time limit has passed, or the computation was cancelled."""


def current_flag() -> Flag:
    """The flag that ends kernels of this thread; one that is never set outside of `watching`."""
    flag: Flag = getattr(_current, "flag", _never)
    return flag


@contextmanager
def watching(stop: Flag) -> Iterator[None]:
    """Context in which `stop` ends the kernels that this thread runs.

    Parameters
    ----------
    stop
        A flag that another thread sets.
    """
    before = current_flag()
    _current.flag = stop
    try:
        yield
    finally:
        _current.flag = before


def run(kernel: Callable[..., R], *arguments: Any, work: float) -> R:
    """Call a kernel such that Ctrl-C ends it.

    Parameters
    ----------
    kernel
        Called with the arguments and a flag.
    arguments
        All but the last argument.
    work
        Number of operations, at most; about one nanosecond each.

    Returns
    -------
    R
        The result. `Stopped` is raised if the flag of `watching` was set.
    """
    return run_each(kernel, [arguments], work=work)[0]


def run_each(
    kernel: Callable[..., R], calls: Sequence[Sequence[Any]], *, work: float, threads: int = 1
) -> list[R]:
    """Call a kernel several times such that Ctrl-C ends it.

    Parameters
    ----------
    kernel
        Called with the arguments and a flag.
    calls
        All but the last argument of each call.
    work
        Number of operations of a call, at most; about one nanosecond each.
    threads
        Number of threads over which the calls are distributed.

    Returns
    -------
    list
        The results in the order of the calls. `Stopped` is raised if the flag of `watching` was set.
    """
    stop = current_flag()
    main = stop is _never and threading.current_thread() is threading.main_thread()
    if threads == 1 and not (main and work > LONG):
        return [_checked(kernel, arguments, stop) for arguments in calls]
    if main:
        stop = np.zeros(1, np.uint8)
    # Here and not in the thread, where Ctrl-C would wait for the compiler.
    kernel.compile(tuple(numba.typeof(one) for one in (*calls[0], stop)))  # type: ignore[attr-defined]
    return _in_threads(kernel, calls, stop, min(threads, len(calls)))


def was_interrupted(error: SystemError) -> BaseException:
    """The interrupt behind an error of Numba, or else the error itself.

    If a signal arrives while a kernel runs in the main thread, Python handles it when Numba converts the
    results. Numba overlooks the exception, and Python reports that a result was returned with an exception
    set.

    Parameters
    ----------
    error
        The error that a kernel raised.

    Returns
    -------
    BaseException
        The exception to raise.
    """
    found: BaseException = error
    while isinstance(found, SystemError) and (behind := found.__cause__ or found.__context__) is not None:
        found = behind
    return found


def _checked(kernel: Callable[..., R], arguments: Sequence[Any], stop: Flag) -> R:
    try:
        result = kernel(*arguments, stop)
    except SystemError as error:
        raise was_interrupted(error) from None
    if stop[0] != 0:
        raise Stopped
    return result


def _in_threads(kernel: Callable[..., R], calls: Sequence[Sequence[Any]], stop: Flag, count: int) -> list[R]:
    futures: list[Future[R]] = [Future() for _ in calls]
    left = iter(list(zip(calls, futures, strict=True)))  # threads take the next one
    threads = [
        threading.Thread(target=_work, args=(kernel, left, stop), name="airpass", daemon=True)
        for _ in range(count)
    ]
    try:
        for thread in threads:
            thread.start()
        while wait(futures, TICK_S, FIRST_EXCEPTION).not_done and not _failed(futures):
            pass
        for one in futures:
            if _failed([one]):
                one.result()
        return [one.result() for one in futures]
    except BaseException:  # Ctrl-C, or an error in a thread
        stop[0] = 1
        raise
    finally:
        for thread in threads:
            thread.join()


def _failed(futures: Iterable[Future[Any]]) -> bool:
    return any(one.done() and one.exception() is not None for one in futures)


def _work(kernel: Callable[..., R], left: Iterator[tuple[Sequence[Any], Future[R]]], stop: Flag) -> None:
    for arguments, future in left:
        try:
            if stop[0] != 0:
                raise Stopped
            future.set_result(_checked(kernel, arguments, stop))
        except BaseException as error:  # passed on to the caller
            future.set_exception(error)
