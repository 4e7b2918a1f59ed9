"""Runs that are killed or starved, and what is left of them.

    PYTHONPATH=tests python -m attack.faults --seed 1 --runs 200 --jobs 2 --out runs/faults

Every run is a sweep or a training run in a folder of its own, in which something goes wrong once: a signal at
a random moment, a worker that is killed, a full disk, a damaged file, a damaged kernel cache, a file in the
place of the folder. The same command is then run again, without the fault. It fails if a command prints a
traceback, if the second run does not succeed, or if its rows differ from those of a run without faults.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator

SWEEP = """
name = "faults"
schemes = ["hrmc-fixed", "mimo-m"]
trials = 6
[axis]
field = "radio.snr_db"
values = [-5.0, 5.0]
[scenario.receiver]
waveguides = 2
antennas = 2
[scenario.devices]
count = 5
""".replace('"hrmc-fixed"', '{label = "fixed", selection = "hrmc", geometry = "fixed"}')
TRAIN = (
    *("train", "--devices", "4", "--waveguides", "2", "--antennas", "2", "--scheme", "fedavg,mimo-m"),
    *("--rounds", "12", "--evaluate-every", "3", "--snr-db", "25"),
)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST_S = 240.0


def command(*words: object, workers: int, out: Path) -> list[str]:
    """A command line of this Python."""
    return [sys.executable, "-m", "airpass", *map(str, words), "--workers", str(workers), "--out", str(out)]


def call(words: list[str], cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, timeout=LONGEST_S, check=False, **more
    )


def rows(kind: str, out: Path) -> Any:
    """The numbers of a finished run, without times."""
    if kind == "sweep":
        from airpass.study.store import decode

        return sorted(repr(row) for row in decode(out / "rows.parquet"))
    document = json.loads((out / "history.json").read_text())
    return [
        [{key: value for key, value in record.items() if key != "seconds"} for record in run["history"]]
        for run in document["runs"]
    ]


def words_of(kind: str, folder: Path, workers: int, resume: bool) -> list[str]:
    """The command of a run in `folder`."""
    if kind == "sweep":
        (folder / "faults.toml").write_text(SWEEP)
        return command("sweep", folder / "faults.toml", workers=workers, out=folder / "out")
    return command(*TRAIN, *(("--resume",) if resume else ()), workers=workers, out=folder / "out")


@cache
def unbroken(kind: str) -> tuple[Any, float]:
    """Numbers and duration of a run in which nothing goes wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        done = call(words_of(kind, folder, 2, False), folder)
        assert done.returncode == 0, done.stderr
        return rows(kind, folder / "out"), time.monotonic() - began


def _children(pid: int) -> list[int]:
    """Processes below a process, by /proc."""
    found, left = [], [pid]
    while left:
        for task in Path(f"/proc/{left.pop()}/task").glob("*/children"):
            below = [int(one) for one in task.read_text().split()]
            found += below
            left += below
    return found


def _command(pid: int) -> str:
    """Command line of a process; the tracker's if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return "resource_tracker"


def _after(
    rng: Random, kind: str, folder: Path, workers: int, act: Callable[[subprocess.Popen[str]], None]
) -> str:
    """Start a run, do something at a random moment, and wait for its end; its standard error."""
    process = subprocess.Popen(
        words_of(kind, folder, workers, False),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + rng.uniform(0.3, 1.0) * unbroken(kind)[1]
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if process.poll() is None:
        act(process)
    _, err = process.communicate(timeout=LONGEST_S)
    return err


def killed(rng: Random, kind: str, folder: Path) -> str:
    """A signal to the command, as from Ctrl-C, a batch system or the kernel."""
    number = SIGNALS[int(rng.integers(len(SIGNALS)))]
    return _after(rng, kind, folder, int(rng.integers(1, 3)), lambda process: process.send_signal(number))


def worker_killed(rng: Random, kind: str, folder: Path) -> str:
    """One of the worker processes is killed."""

    def act(process: subprocess.Popen[str]) -> None:
        # The resource tracker of loky is left alone: loky prints tracebacks if it is killed, and goes on.
        below = [pid for pid in _children(process.pid) if "resource_tracker" not in _command(pid)]
        if below:
            try:
                os.kill(below[int(rng.integers(len(below)))], signal.SIGKILL)
            except ProcessLookupError:
                return

    return _after(rng, kind, folder, 2, act)


def disk_full(rng: Random, kind: str, folder: Path) -> str:
    """The output folder is on a disk with little room."""
    out = folder / "out"
    out.mkdir()
    size = int(rng.integers(1, 9)) * 4096
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(out)], capture_output=True, check=False
    )
    if made.returncode != 0:
        return "left out: no permission to mount"
    try:
        err = call(words_of(kind, folder, 1, False), folder).stderr
        shutil.copytree(out, folder / "kept")
    finally:
        subprocess.run(["umount", str(out)], check=True)
    out.rmdir()
    (folder / "kept").rename(out)
    return err


def damaged_files(rng: Random, kind: str, folder: Path) -> str:
    """Files of a run that was interrupted are damaged."""
    _after(rng, kind, folder, 1, lambda process: process.kill())
    found = sorted(path for path in (folder / "out").rglob("*") if path.is_file() and path.stat().st_size)
    for path in found[: int(rng.integers(1, 4))] if rng.random() < 0.5 else found[-2:]:
        data = bytearray(path.read_bytes())
        if rng.random() < 0.3:
            data = data[: int(rng.integers(len(data)))]
        else:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(data))
    return ""


def damaged_cache(rng: Random, kind: str, folder: Path) -> str:
    """The cache of compiled kernels is damaged."""
    import airpass

    own = folder / "cache"
    source = Path(airpass.__file__).parent
    for path in [*source.rglob("__pycache__/*.nbi"), *source.rglob("__pycache__/*.nbc")]:
        target = own / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    # A copy of the package with its cache, so that other runs are not disturbed.
    package = folder / "package" / "airpass"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))
    for path in own.rglob("*.nb?"):
        data = path.read_bytes()
        if rng.random() < 0.5:
            data = b"" if rng.random() < 0.5 else data[: len(data) // 2]
        target = package / path.relative_to(own)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return call(
        words_of(kind, folder, 1, False), folder, env=os.environ | {"PYTHONPATH": str(package.parent)}
    ).stderr


def not_writable(rng: Random, kind: str, folder: Path) -> str:
    """A file is in the place of the output folder."""
    (folder / "out").write_text("")
    done = call(words_of(kind, folder, 1, False), folder)
    (folder / "out").unlink()
    assert done.returncode == 2, f"exit code {done.returncode}"
    return done.stderr


# Fault, and its share in percent. Compiling anew takes long, so that there are few damaged caches.
FAULTS: dict[str, tuple[Callable[[Random, str, Path], str], int]] = {
    "signal": (killed, 50),
    "worker killed": (worker_killed, 15),
    "disk full": (disk_full, 13),
    "damaged files": (damaged_files, 17),
    "damaged kernel cache": (damaged_cache, 1),
    "not writable": (not_writable, 4),
}


def fault_of(seed: int, number: int) -> tuple[str, str]:
    """The fault of a run, and what is run: a sweep, or training."""
    rng = np.random.default_rng([seed, number, 0])
    shares = np.cumsum([share for _, share in FAULTS.values()])
    name = tuple(FAULTS)[int(np.searchsorted(shares, rng.integers(100), side="right"))]
    return name, "sweep" if rng.random() < 0.6 else "train"


def run_fault(seed: int, number: int) -> dict[str, Any]:
    """One run with a fault, and the run after it."""
    name, kind = fault_of(seed, number)
    rng = np.random.default_rng([seed, number, 1])
    result = {"number": number, "fault": name, "kind": kind, "outcome": "recovered", "message": ""}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            err = FAULTS[name][0](rng, kind, folder)
            if err.startswith("left out"):
                return result | {"outcome": "left out", "message": err}
            assert "Traceback" not in err, f"traceback: {err[-400:]}"
            again = call(words_of(kind, folder, 1, True), folder)
            assert "Traceback" not in again.stderr, f"traceback of the second run: {again.stderr[-400:]}"
            if again.returncode == 2 and name == "damaged files":
                # A damaged file may be refused, if the message says what to do.
                assert "delete" in again.stderr, again.stderr[-400:]
                shutil.rmtree(folder / "out")
                again = call(words_of(kind, folder, 1, False), folder)
                result["outcome"] = "refused, recovered"
            assert again.returncode == 0, f"exit code {again.returncode}: {again.stderr[-400:]}"
            assert rows(kind, folder / "out") == unbroken(kind)[0], "other rows than those of an unbroken run"
        except Exception as error:  # whatever it is, it should not have happened
            return result | {"outcome": "FAILED", "message": f"{type(error).__name__}: {error}"}
    return result


def run_all(seed: int, runs: int, jobs: int, folder: Path) -> list[dict[str, Any]]:
    """Run a campaign; what is stored in `folder` is not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"faults-{seed}.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    left = sorted(set(range(runs)) - {one["number"] for one in done})
    for kind in ("sweep", "train"):
        unbroken(kind)  # before anything runs beside it
    with path.open("a") as file, ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(lambda number: run_fault(seed, number), left):
            done.append(result)
            file.write(json.dumps(result) + "\n")
            file.flush()
    return done


def main() -> None:
    """Run the campaign, print its counts and its failures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/faults"))
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    results = run_all(given.seed, given.runs, given.jobs, given.out)
    counts = Counter((one["fault"], one["kind"], one["outcome"]) for one in results)
    for (fault, kind, outcome), count in sorted(counts.items()):
        print(f"{fault:22} {kind:6} {outcome:20} {count}")  # noqa: T201
    failures = [one for one in results if one["outcome"] == "FAILED"]
    for one in failures:
        print(f"{one['number']}: {one['fault']}, {one['kind']}: {one['message']}")  # noqa: T201
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
