"""The same seed gives the same bits: kernels just compiled or from the cache, any number of threads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import airpass
from airpass.geometry import slack
from airpass.kernels import jit, sums
from airpass.learning.layers import conv_single
from airpass.selection import hrmc

PROGRAM = """
import hashlib, airpass
scenario = airpass.Scenario.paper(12, 4, 4, 5.0, 3)
paper = airpass.design(scenario, "airpass", options={"max_iterations": 4})
ours = airpass.design(scenario, "airpass-plus", options={"effort": "fast"})
bits = b"".join(part.tobytes() for one in (paper, ours) for part in (one.layout, one.beam))
print(hashlib.sha256(bits).hexdigest())
"""


@pytest.mark.slow
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


PACKAGE = {
    "constants.py": "SIZE = 3\nOTHER = 5\n",
    "arrays.py": "import numpy as np\n\ndef plain():\n    return np.zeros(3)\n",
    "callee.py": """
from airpass.kernels.jit import inlined, kernel
from sample.constants import SIZE

@inlined
def half(x):
    return x / 2.0

@kernel
def scaled(x):
    return SIZE * half(x)
""",
    "caller.py": """
from airpass.kernels.jit import kernel
from airpass.kernels.math import fma
from sample import arrays, callee

@kernel
def first(x):
    return later(x)

@kernel
def later(x):
    return fma(callee.scaled(x), 1.0, 0.0)

@kernel
def alone(x):
    return x + 1.0
""",
}
CALLS = """
from sample import caller
print(caller.first(4.0), caller.alone(4.0))
print(*(sum(one.stats.cache_misses.values()) for one in (caller.first, caller.alone)))
"""


class Sample:
    """A small package with kernels, run in processes that share a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sample").mkdir()
        (folder / "sample" / "__init__.py").touch()
        for name, text in PACKAGE.items():
            (folder / "sample" / name).write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.folder / "sample" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def run(self) -> tuple[list[float], list[int]]:
        """Results of the kernels `first` and `alone`, and how often each was compiled."""
        paths = os.pathsep.join([str(self.folder), str(Path(airpass.__file__).parent.parent)])
        environment = os.environ | {"NUMBA_CACHE_DIR": str(self.folder / "cache"), "PYTHONPATH": paths}
        values, compiled = subprocess.run(
            [sys.executable, "-B", "-c", CALLS], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        return [float(value) for value in values.split()], [int(count) for count in compiled.split()]


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_what_it_uses_has_changed(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    assert sample.run() == ([6.0, 5.0], [1, 1])
    assert sample.run() == ([6.0, 5.0], [0, 0])
    sample.replace("arrays.py", "def plain", "# A comment.\ndef plain")
    sample.replace("constants.py", "OTHER = 5", "OTHER = 7")
    assert sample.run() == ([6.0, 5.0], [0, 0]), "neither is used by a kernel"
    sample.replace("constants.py", "SIZE = 3", "SIZE = 4")
    assert sample.run() == ([8.0, 5.0], [1, 0]), "a constant of a callee"
    sample.replace("callee.py", "x / 2.0", "x / 4.0")
    assert sample.run() == ([4.0, 5.0], [1, 0]), "a function that is inlined in a callee"
    assert sample.run() == ([4.0, 5.0], [0, 0])


def test_a_kernel_depends_on_the_files_of_all_that_it_uses() -> None:
    def names(kernel: Any) -> set[str]:
        return {path.stem for path in jit.sources(kernel.py_func)[0]}

    assert names(hrmc.reweights) == {"hrmc"}
    assert names(slack.layout_from_raw) == {"slack"}
    assert names(sums.lane_sum) == {"sums", "simd"}  # through an intrinsic
    assert names(hrmc._algorithm_1) == {
        *("hrmc", "conjugate_gradient", "objectives", "line_search", "sphere", "projections", "schedules"),
        *("ranking", "blocks", "math", "sums", "simd"),
    }
    assert names(conv_single.convolve_and_pool) == {"conv_single", "max_pool", "simd"}
