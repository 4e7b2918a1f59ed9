"""How long Ctrl-C takes, for the largest problems of every method.

    python benchmarks/interrupts.py [CASE ...]

runs each case in a process of its own, sends SIGINT some seconds after the work began, and prints the time
until the process has ended. The work begins when kernels are compiled: each case first runs a small problem.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PRELUDE = """
import signal, threading
import numpy as np
import airpass
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
rng = np.random.default_rng(0)

def gaussian(m, k):
    return rng.standard_normal((m, k)) + 1j * rng.standard_normal((m, k))

def begin():
    print("begin", flush=True)

try:
    CODE
    print("ended", flush=True)
except KeyboardInterrupt:
    others = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    print("threads:", *others, flush=True)
"""
LARGE = "airpass.Scenario.paper({}, {}, {}, {}, 1)"


def select(method: str, chains: int, devices: int, options: str = "{}") -> str:
    """Code of a selection."""
    call = "airpass.select(c, budget={}, method='{}', options={})"
    small = call.format("0.1", method, "{}")
    large = call.format(f"2.0 / {devices}**2 / {chains}", method, options)
    return f"c = gaussian(4, 8); {small}; c = gaussian({chains}, {devices}); begin(); {large}"


def design(method: str, size: tuple[object, ...], options: str = "{}", before: str = "{}") -> str:
    """Code of a design."""
    small = f"airpass.design(airpass.Scenario.paper(8, 3, 2, 10.0, 1), {method}, options={before})"
    return f"{small}; begin(); airpass.design({LARGE.format(*size)}, {method}, options={options})"


SHORT = "import dataclasses; s = airpass.Scenario.paper(20, 5, 5, 10.0, 1); "
SHORT += "s = dataclasses.replace(s, radio=dataclasses.replace(s.radio, wavelength_m=1e-6)); "
CASES = {
    "hrmc, M = 64, K = 100,000": select("hrmc", 64, 100_000),
    "hrmc, 4 threads, 64 starts": select("hrmc", 64, 100_000, "{'starts': 64, 'threads': 4}"),
    "hrmc+, M = 16, K = 100,000": select("hrmc+", 16, 100_000),
    "mp, M = 16, K = 100,000": select("mp", 16, 100_000),
    "mp-backward, M = 64, K = 20,000": select("mp-backward", 64, 20_000),
    "exhaustive, K = 12, 100,000 starts": select("exhaustive", 64, 12, "{'starts': 100000}"),
    "sdr-dc, M = 10, K = 100": select("sdr-dc", 10, 100),
    "elementwise, wavelength 1e-6 m": design("None, geometry='elementwise'", (8, 3, 2, 10.0)).split("begin")[
        0
    ]
    + f"{SHORT} begin(); airpass.design(s, geometry='elementwise')",
    "elementwise, K = 10,000": design("None, geometry='elementwise'", (10_000, 10, 10, 60.0)),
    "airpass (HAGO), K = 50,000": design(
        "'airpass'", (50_000, 10, 10, 80.0), "{'selection': {'max_stages': 1, 'stage_iterations': 1}}"
    ),
    "airpass-plus, K = 50, 10^9 kicks": design("'airpass-plus'", (50, 10, 10, -10.0), "{'kicks': 10**9}"),
    "airpass-plus, K = 20,000, no table": design(
        "'airpass-plus'", (20_000, 10, 10, 40.0), "{'memory_mb': 0}"
    ),
    "airpass-plus, table of 4 GB": design("'airpass-plus'", (8000, 10, 10, 40.0), "{'memory_mb': 8000}"),
    "certify, M = 10, K = 500": "c = gaussian(10, 500); airpass.certify(c[:, :9], budget=99.0); begin(); "
    "airpass.certify(c, budget=4.0 * 500**2)",
    "certify_layouts, K = 100": f"airpass.certify_layouts({LARGE.format(5, 2, 2, 0.0)}); begin(); "
    f"airpass.certify_layouts({LARGE.format(100, 10, 10, 10.0)})",
    "certify_layouts, K = 3,000": f"airpass.certify_layouts({LARGE.format(5, 2, 2, 0.0)}); begin(); "
    f"airpass.certify_layouts({LARGE.format(3000, 10, 10, 40.0)})",
    "tolerance, 10^6 draws": f"d = airpass.design({LARGE.format(50, 10, 10, 0.0)}, 'airpass'); begin(); "
    "airpass.tolerance(d, position_mm=1.0, draws=10**6)",
    "life, 10^6 draws": f"d = airpass.design({LARGE.format(50, 10, 10, 0.0)}, 'airpass'); begin(); "
    "airpass.life(d, draws=10**6)",
    "lasting, 2,000 draws": design("'airpass-lasting'", (50, 10, 10, 0.0), "{'draws': 2000}", "{'draws': 4}"),
    "track": f"s = {LARGE.format(20, 5, 5, 5.0)}; m = airpass.RandomWaypoint(); "
    "airpass.track(s, m, seconds=0.01, method='airpass'); begin(); "
    "airpass.track(s, m, seconds=1000.0, method='airpass')",
    "schedule": f"airpass.schedule({LARGE.format(6, 3, 2, 5.0)}); begin(); "
    f"airpass.schedule({LARGE.format(1000, 10, 10, 0.0)})",
}


def measure(code: str, delay_s: float) -> str:
    """Seconds from SIGINT to the end, and what the process says."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", PRELUDE.replace("CODE", code)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ,
            cwd=Path(__file__).parent,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        if first != "begin\n":
            errors.seek(0)
            return f"failed: {errors.read()[-300:]}"
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        last = process.stdout.readline().strip()
        took = time.perf_counter() - sent
        process.kill()
        process.wait()
        errors.seek(0)
        return f"{took:.2f} s | {last or errors.read()[-300:]}"


def main() -> None:
    """Print a Markdown table."""
    wanted = sys.argv[1:]
    print("| case | time to end | |\n|---|---|---|", flush=True)
    for name, code in CASES.items():
        if not wanted or any(word in name for word in wanted):
            print(f"| {name} | {measure(code, 4.0)} |", flush=True)


if __name__ == "__main__":
    main()
