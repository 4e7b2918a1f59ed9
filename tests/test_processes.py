"""Threads and worker processes."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from airpass.core.threads import one_blas_thread

FOLLOWER = """
import time
from airpass.core.workers import follow_parent
follow_parent({parent})
time.sleep(60.0)
"""


def test_a_process_whose_parent_is_gone_already_ends() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    program = FOLLOWER.format(parent=ended.pid)
    assert subprocess.run([sys.executable, "-c", program], timeout=30, check=False).returncode == 1


LIMITED = """
import numpy as np
from airpass import select
select(np.eye(3) + 1j, budget=1.0, method="hrmc")
from airpass.core.threads import one_blas_thread
from threadpoolctl import threadpool_info
with one_blas_thread():
    import scipy.linalg
    found = {library["filepath"]: library["num_threads"] for library in threadpool_info()}
assert set(found.values()) <= {1}, found
"""


def test_every_library_of_linear_algebra_is_kept_to_one_thread() -> None:
    # NumPy's, and SciPy's, which the first selection may not have loaded yet.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", LIMITED], env=environment, timeout=120, check=True)


def test_the_last_to_leave_puts_the_threads_back() -> None:
    def counts() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with one_blas_thread():
        pass  # all libraries are loaded
    first, second = ExitStack(), ExitStack()
    with threadpool_limits(2, "blas"):
        before = counts()
        if before == {1} or not before:
            pytest.skip("no library whose threads could be seen")
        first.enter_context(one_blas_thread())
        second.enter_context(one_blas_thread())
        first.close()
        assert counts() == {1}
        second.close()
        assert counts() == before


HELD = """
import os
import signal
from airpass.core.workers import follow_parent, interrupts_held, loky_executor

processes = loky_executor(1, follow_parent, (os.getpid(),))
with interrupts_held():
    future = processes.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ())
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert signal.SIGINT in future.result()
processes.shutdown()
"""


def test_processes_of_an_executor_start_with_interrupts_blocked() -> None:
    # The helper processes of loky unblock signals when they start, so they must have started before.
    subprocess.run([sys.executable, "-c", HELD], timeout=120, check=True)


GROWING = """
import os, sys, time
from airpass.core.workers import follow_parent, loky_executor

def work(megabytes):
    sys.kept = (getattr(sys, "kept", None), b"1" * (megabytes << 20))
    time.sleep(1.1)  # between two looks at the memory
    return os.getpid()

processes = loky_executor(1, follow_parent, (os.getpid(),))
futures = [processes.submit(work, megabytes) for megabytes in (1, 400, 1, 1)]
assert len({future.result() for future in futures}) == 2
processes.shutdown()
"""


@pytest.mark.slow
def test_a_process_that_grows_is_replaced_without_a_warning() -> None:
    pytest.importorskip("psutil")
    ended = subprocess.run(
        [sys.executable, "-c", GROWING], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stderr == ""
