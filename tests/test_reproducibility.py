"""The same seed gives the same bits: kernels just compiled or from the cache, any number of threads."""

import os
import subprocess
import sys
from pathlib import Path

from airpass.kernels import jit
from airpass.selection import hrmc

PROGRAM = """
import hashlib, airpass
scenario = airpass.Scenario.paper(12, 4, 4, 5.0, 3)
paper = airpass.design(scenario, "airpass", options={"max_iterations": 4})
ours = airpass.design(scenario, "airpass-plus", options={"effort": "fast"})
bits = b"".join(part.tobytes() for one in (paper, ours) for part in (one.layout, one.beam))
print(hashlib.sha256(bits).hexdigest())
"""


def test_compiling_and_loading_give_the_same_bits(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(digests) == 1
    assert list(tmp_path.rglob("*.nbc")), "nothing was cached"


ARRAY = """
import hashlib, airpass
found = airpass.design(airpass.Scenario.paper(50, 10, 10, -10.0, 3), "mimo-mn-plus")
print(hashlib.sha256(found.beam.tobytes()).hexdigest())
"""


def test_threads_of_linear_algebra_do_not_show() -> None:
    """An eigenvector of 100 entries starts this search; with more threads its last bits differ."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", ARRAY],
            env=os.environ | {"OPENBLAS_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in (1, 2)
    }
    assert len(digests) == 1


def test_the_cache_is_keyed_on_every_kernel_source() -> None:
    kernel = hrmc.reweights
    assert kernel._cache._cache_file._source_stamp == jit.sources_digest()  # type: ignore[attr-defined]
    assert len(jit.sources_digest()) == 64
