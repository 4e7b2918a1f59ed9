"""A seeded attack on scenarios, command lines, sweeps, Python calls and files.

    PYTHONPATH=tests python -m attack.campaign --seed 1 --cases 20000 --jobs 2 --out runs/attack

Every case is made from the seed and its number, so that `--only NUMBER` repeats one. Cases run in child
processes: a crash ends a child, is counted, and the rest goes on. A case fails if it raises anything but
`InvalidInput`, warns, gives a result that disagrees with the formulas of `independent.py`, reads damaged
data without noticing, prints a traceback, or takes longer than a minute.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from airpass.core.errors import InvalidInput
from attack.calls import attack_call
from attack.commands import attack_command, attack_sweep
from attack.files import attack_file, prepare
from attack.scenarios import attack_scenario

Attack = Callable[[np.random.Generator, Path], str]
# Kind of a case, and its share in percent.
KINDS: dict[str, tuple[Attack, int]] = {
    "scenario": (attack_scenario, 34),
    "command": (attack_command, 20),
    "call": (attack_call, 22),
    "file": (attack_file, 20),
    "sweep": (attack_sweep, 4),
}
BATCH = 250  # cases of a child process
LONGEST_S = 60.0  # of a case


def kind_of(seed: int, number: int) -> str:
    """The kind of a case."""
    shares = np.cumsum([share for _, share in KINDS.values()])
    drawn = np.random.default_rng([seed, number, 0]).integers(100)
    return tuple(KINDS)[int(np.searchsorted(shares, drawn, side="right"))]


def run_case(seed: int, number: int, folder: Path) -> dict[str, Any]:
    """Run a case in a folder with the files of `prepare`, which is the current folder."""
    kind = kind_of(seed, number)
    rng = np.random.default_rng([seed, number, 1])
    message = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = KINDS[kind][0](rng, folder)
    except InvalidInput as error:
        outcome, message = "refused", str(error)
        if "\n" in message or len(message) > 1000:
            outcome, message = "FAILED", f"a message of {len(message)} characters: {message[:200]!r}"
    except TypeError as error:
        # Of Python itself, for a path that is none or for an argument that does not exist.
        known = "os.PathLike" in str(error) or "unexpected keyword" in str(error)
        outcome, message = ("refused" if known else "FAILED"), f"TypeError: {error}"
    except BaseException as error:  # whatever it is, it should not have happened
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        outcome, message = "FAILED", f"{type(error).__name__} at {where}: {str(error)[:300]}"
    return {"number": number, "kind": kind, "outcome": outcome, "message": message[:500]}


def run_batch(seed: int, numbers: range) -> Iterator[dict[str, Any]]:
    """Run cases in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = Path.cwd()
        os.chdir(folder)
        try:
            prepare(folder)
            for number in numbers:
                yield run_case(seed, number, folder)
        finally:
            os.chdir(before)


def _child(seed: int, first: int, last: int, path: Path) -> None:
    """Append a line per case, and one with its number before it begins."""
    with path.open("a") as file:
        for result in run_batch(seed, range(first, last)):
            file.write(json.dumps(result) + "\n")
            file.flush()


def _lines(path: Path) -> list[dict[str, Any]]:
    """The results so far, without a line that is just being written."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


class _Batch:
    """A child process that works through a range of cases, and is started again behind a crash."""

    def __init__(self, seed: int, first: int, last: int, folder: Path) -> None:
        self.seed, self.first, self.last = seed, first, last
        self.path = folder / f"{first:08d}.jsonl"
        self.process: subprocess.Popen[bytes] | None = None
        self.seen, self.since = -1, 0.0

    def step(self) -> bool:
        """Look after the child; whether the batch is finished."""
        done = _lines(self.path)
        reached = self.first + len(done)
        if reached >= self.last:
            if self.process is not None:
                self.process.wait()
            return True
        if self.process is None:
            command = [
                sys.executable,
                "-m",
                "attack.campaign",
                "--child",
                str(reached),
                str(self.last),
                str(self.path),
            ]
            self.process = subprocess.Popen(
                [*command, "--seed", str(self.seed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self.seen, self.since = -1, time.monotonic()
        if reached != self.seen:
            self.seen, self.since = reached, time.monotonic()
        code = self.process.poll()
        late = time.monotonic() - self.since > (
            LONGEST_S if done else 5 * LONGEST_S
        )  # it may have to compile
        if code is not None or late:
            self.process.kill()
            self.process.wait()
            self.process = None
            message = "hangs" if late else f"the process ended with code {code}"
            case = {"number": reached, "kind": kind_of(self.seed, reached), "outcome": "FAILED"}
            with self.path.open("a") as file:
                file.write(json.dumps(case | {"message": message}) + "\n")
        return False


def run_all(seed: int, cases: int, jobs: int, folder: Path) -> list[dict[str, Any]]:
    """Run a campaign; batches that are stored in `folder` are not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [_Batch(seed, first, min(first + BATCH, cases), folder) for first in range(0, cases, BATCH)]
    batches = tuple(waiting)
    running: list[_Batch] = []
    while waiting or running:
        running = [batch for batch in running if not batch.step()]
        while waiting and len(running) < jobs:
            running.append(waiting.pop(0))
        time.sleep(0.2)
    return [line for batch in batches for line in _lines(batch.path)]


def table(results: list[dict[str, Any]]) -> str:
    """Counts by kind and outcome, as Markdown."""
    counts = Counter((one["kind"], one["outcome"]) for one in results)
    columns = ("designed", "done", "read", "refused", "left out", "FAILED")
    rows = [f"| {kind} | " + " | ".join(str(counts[kind, name]) for name in columns) + " |" for kind in KINDS]
    return "\n".join([f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|", *rows])


def main() -> None:
    """Run the campaign, print its counts and its failures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/attack"))
    parser.add_argument("--only", type=int, help="run this case alone, and show its traceback")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.seed, int(given.child[0]), int(given.child[1]), Path(given.child[2]))
        return
    if given.only is not None:
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            prepare(Path(name))
            attack = KINDS[kind_of(given.seed, given.only)][0]
            warnings.simplefilter("error")
            print(attack(np.random.default_rng([given.seed, given.only, 1]), Path(name)))  # noqa: T201
        return
    results = run_all(given.seed, given.cases, given.jobs, given.out)
    failures = [one for one in results if one["outcome"] == "FAILED"]
    (given.out / "counts.json").write_text(
        json.dumps({"seed": given.seed, "cases": len(results), "failures": failures}, indent=1)
    )
    print(table(results))  # noqa: T201
    for message, count in Counter(one["message"][:160] for one in failures).most_common(40):
        example = next(one for one in failures if one["message"][:160] == message)
        print(f"{count} x {example['kind']} {example['number']}: {message}")  # noqa: T201
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
