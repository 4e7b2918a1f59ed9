"""What was measured, as a page of text."""

import datetime
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from airpass.core.threads import processors
from suite.measure import duration

SECTIONS = ("stage", "selection", "geometry", "designs", "learning", "growth", "limits", "starting")
PACKAGES = ("airpass", "numpy", "scipy", "numba", "torch", "scs", "clarabel", "cvxpy", "pymanopt", "jax")

HEAD = """# Benchmarks

`make bench` measures all of this on your machine and writes this page and `benchmarks/latest.json`, which
holds every single time, the versions and the machine. `python benchmarks/run.py SECTION` measures one part.

Sides of a comparison are called in turn in one run, after a first call that does not count. A ratio is how
many times our time the other side takes: the median over the turns, with the least and the greatest. Times
are medians. Unless it says otherwise everything runs on one thread.
"""


def provenance() -> dict[str, Any]:
    """Versions, machine and day."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line for line in lines if line.startswith("model name")]
    return {
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": found,
        "processor": models[0].split(":")[1].strip() if models else platform.processor(),
        "processors": processors(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
    }


def markdown(document: Mapping[str, Any]) -> str:
    """The whole page."""
    lines = [HEAD]
    for name in SECTIONS:
        if name in document["sections"]:
            section = document["sections"][name]
            lines += [f"## {section['title']}", "", section["about"], "", *section_lines(section)]
            lines += [_measured(name, section), ""]
    return "\n".join(lines)


def _measured(name: str, section: Mapping[str, Any]) -> str:
    where = section["measured"]
    versions = ", ".join(f"{package} {number}" for package, number in where["versions"].items())
    return (
        f"<sub>`{name}`, {where['day']}, {section['took_s']} s on {where['processors']} cores "
        f"({where['processor']}, {where['memory_gib']} GiB); Python {where['python']}, {versions}.</sub>"
    )


def section_lines(section: Mapping[str, Any]) -> list[str]:
    """Comparisons and tables as Markdown."""
    lines = []
    if section["comparisons"]:
        rows = [row for comparison in section["comparisons"] for row in _rows(comparison)]
        lines += _table(("case", "airpass", "the other", "its time", "ratio", "range", "aim"), rows)
        notes = dict.fromkeys(item["note"] for item in section["comparisons"] if item["note"])
        lines += [line for note in notes for line in (note, "")]
    for table in section["tables"]:
        lines += [f"**{table['title']}**", "", *_table(table["head"], table["rows"])]
        if table["note"]:
            lines += [table["note"], ""]
    return lines


def _rows(comparison: Mapping[str, Any]) -> list[tuple[str, ...]]:
    (_, ours), *others = comparison["seconds"].items()
    rows: list[tuple[str, ...]] = []
    for name, theirs in others:
        median, least, greatest = comparison["ratios"][name]
        aim = comparison["targets"].get(name)
        verdict = "" if aim is None else f"{aim:,g}: {'reached' if median >= aim else 'missed'}"
        rows.append(
            (
                comparison["case"],
                duration(statistics.median(ours)),
                name,
                duration(statistics.median(theirs)),
                f"**{_plain(median)}**",
                f"{_plain(least)} to {_plain(greatest)}",
                verdict,
            )
        )
    return rows


def _plain(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]
