"""The types of the page's scripts, checked by TypeScript from their comments."""

import subprocess
from pathlib import Path

import pytest

from browsing import MODULES, missing


@pytest.mark.slow
def test_the_types_of_the_scripts_are_right() -> None:
    compiler = MODULES / ".bin" / "tsc"
    if not compiler.exists():
        missing("TypeScript")
    done = subprocess.run(
        [compiler, "-p", Path(__file__).parent], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
