"""How rows were computed: versions, machine, time and failures, in provenance.json beside the rows."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from airpass import __version__
from airpass.core.checksums import check_document, with_checksum
from airpass.core.display import display_name
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.study.paper.plan import Progress
from airpass.study.runner import Outcome
from airpass.study.trial import Trial

LIBRARIES = ("numpy", "numba", "scipy", "scs", "torch", "pyarrow")
RECEIVER = ("waveguides", "antennas")
FORMAT_VERSION = 2  # files of airpass 0.1 have no number
# What is read back of the file.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "study": str,
    "scale": str,
    "command": str,
    "airpass": str,
    "workers": str,
    "processor": str,
    "cores": (int, type(None)),
    "memory_gib": (int, type(None)),
    "trials": int,
    "failed": dict,
    "seconds": (int, float),
}


def read_provenance(out: Path, complete: bool = False) -> dict[str, Any]:
    """Read provenance.json.

    Parameters
    ----------
    out
        Folder of the study.
    complete
        Whether everything must be there that reports need.

    Returns
    -------
    dict[str, Any]
        Content of the file; empty if there is none.
    """
    path = out / "provenance.json"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})") from None
    advice = "delete it; the rows beside it are kept"
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path}: damaged: not JSON; {advice}") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}: damaged: not a table; {advice}")
    version_ = found.get("format_version", 1)
    if isinstance(version_, int) and version_ > FORMAT_VERSION:
        raise InvalidInput(
            f"{path}: has format version {version_}; airpass {__version__} reads versions up to "
            f"{FORMAT_VERSION}: install a newer one, or give another --out"
        )
    try:
        check_document(found)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}, or {advice}") from None
    for name, kind in _KINDS.items():
        if name not in found:
            if complete:
                raise InvalidInput(f"{path}: damaged: {name} is missing; {advice}")
        elif not isinstance(found[name], kind) or isinstance(found[name], bool):
            raise InvalidInput(f"{path}: damaged: {name} = {found[name]!r:.60}; {advice}")
    return found


def check_folder(out: Path, name: str, scale: str = "") -> None:
    """Raise InvalidInput if a folder holds training runs, another study, or the same at another scale."""
    if (out / "history.json").exists():  # of `airpass train`
        raise InvalidInput(f"{out}: holds training runs, not {name}: give another --out")
    found = read_provenance(out)
    held, at = found.get("study", name), found.get("scale", scale)
    if (held, at) != (name, scale):
        raise InvalidInput(
            f"{out}: holds {held}{f' at scale {at}' if at else ''}, not {name}"
            f"{f' at scale {scale}' if scale else ''}: give another --out"
        )


def write_provenance(
    out: Path,
    name: str,
    scale: str,
    command: str,
    workers: str,
    outcome: Outcome,
    trials: int,
) -> Mapping[str, Any]:
    """Write provenance.json.

    Parameters
    ----------
    out
        Folder of the study.
    name, scale
        Name of the study; scale of a paper figure, or "".
    command
        Command line.
    workers
        Description of the executor.
    outcome
        Result of the run.
    trials
        Number of trials of the study.

    Returns
    -------
    Mapping[str, Any]
        Content of the file. Seconds add up over runs. If no trial was run, time and machine are those
        of earlier runs.
    """
    before = read_provenance(out)
    document = {
        "format_version": FORMAT_VERSION,
        "study": name,
        "scale": scale,
        "command": command,
        "airpass": __version__,
        "python": platform.python_version(),
        "libraries": {library: found for library in LIBRARIES if (found := _version(library))},
        "workers": workers,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "trials": trials,
        "failed": {trial.name: why for trial, why in outcome.failures},
        "seconds": round(before.get("seconds", 0.0) + outcome.seconds, 1),
    }
    if outcome.run == 0 and before:
        document |= before | {
            name: document[name] for name in ("format_version", "command", "trials", "failed")
        }
    document = with_checksum(document)
    write_atomically(out / "provenance.json", (json.dumps(document, indent=2) + "\n").encode())
    return document


def description(trials: Sequence[Trial], provenance: Mapping[str, Any], plan: Progress) -> list[str]:
    """Lines for the report: trials, sizes, training, time and machine; the last if there is provenance."""
    seeds = sorted({trial.seed for trial in trials})
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    lines = [f"{plan}, {named}"]
    numbers: dict[str, set[int]] = {}
    for trial in trials:
        numbers.setdefault(trial.scheme, set()).add(trial.trial)
    for scheme, known in numbers.items():
        if len(known) < plan.declared:
            lines[0] += f"; {len(known)} of {display_name(scheme)}"
    if failed := len(provenance.get("failed", ())):
        lines[0] += f"; {failed} runs failed"
    sizes = {
        (
            trial.scenario.get("devices", {}).get("count"),
            *(trial.scenario.get("receiver", {}).get(name) for name in RECEIVER),
        )
        for trial in trials
    }
    devices, waveguides, antennas = sizes.pop()
    if not sizes and None not in (devices, waveguides, antennas):
        lines.append(f"{devices} devices, {waveguides} waveguides, {antennas} antennas per waveguide")
    if (training := trials[0].training) is not None:
        lines.append("training: " + ", ".join(f"{name} = {value}" for name, value in training.items()))
    return [*lines, *(machine(provenance) if provenance else ())]


def machine(provenance: Mapping[str, Any]) -> list[str]:
    """Lines for reports and the terminal: time and machine."""
    seconds = provenance["seconds"]
    return [
        f"{f'{seconds:.0f} s' if seconds < 120 else f'{seconds / 60:.0f} minutes'} "
        f"on {provenance['workers']}, {provenance['cores']} cores "
        f"({provenance['processor']}, {provenance['memory_gib']} GiB), airpass {provenance['airpass']}"
    ]


def _processor() -> str:
    """Model of the processor, where the system has it."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for entry in table.read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _memory_gib() -> int | None:
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    known = getattr(os, "sysconf_names", {})
    if not all(name in known for name in names):
        return None
    return round(os.sysconf(names[0]) * os.sysconf(names[1]) / 2**30)
