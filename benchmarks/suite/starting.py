"""Start-up time of commands, after their first use on a machine."""

import subprocess
import sys
import time
from pathlib import Path

from suite.measure import Section, Table, duration

REPEATS = 7


def _median(arguments: list[str]) -> tuple[float, float]:
    """Median and maximum seconds of a command, after a warm-up run."""
    seconds = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True)  # noqa: S603
        seconds.append(time.perf_counter() - began)
    ordered = sorted(seconds[1:])
    return ordered[len(ordered) // 2], ordered[-1]


def run() -> Section:
    """Measure all commands."""
    airpass = str(Path(sys.executable).with_name("airpass"))
    small = [airpass, "design"]  # K = 10, M = N = 5, 10 dB
    large = [*small, "--devices", "50", "--waveguides", "10", "--antennas", "10", "--snr-db", "0"]
    python = [sys.executable, "-c"]
    commands = {
        "`airpass --help`": [airpass, "--help"],
        "`airpass design --method airpass`, K = 10, M = N = 5": [*small, "--method", "airpass"],
        "`airpass design --method airpass`, K = 50, M = N = 10": [*large, "--method", "airpass"],
        "`airpass design`, K = 10, M = N = 5": small,
        "for comparison: `import numpy, scipy.linalg`": [*python, "import numpy, scipy.linalg"],
        "for comparison: `import torch`": [*python, "import torch"],
    }
    rows = []
    for name, command in commands.items():
        median, greatest = _median(command)
        rows.append((name, duration(median), duration(greatest)))
    return Section(
        "Start-up time",
        "Wall time of the complete command, with its kernels compiled by an earlier run.",
        tables=[Table("Later runs", ("command", "median", "maximum"), rows)],
    )
