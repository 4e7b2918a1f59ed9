"""The benchmark page as Markdown."""

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

`make bench` runs all benchmarks and writes this page and `benchmarks/latest.json`, which holds all individual
times, the package versions and the machine. `python benchmarks/run.py SECTION` runs one section.

The compared programs run alternately, after a warm-up call that is not timed. The ratio is the time of the
other program divided by the time of airpass: the median over the repetitions, with minimum and maximum. Times
are medians. Everything runs on one thread unless stated otherwise.
"""


def provenance() -> dict[str, Any]:
    """Package versions, machine and date."""
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
    """The complete page."""
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
        lines += _table(("case", "airpass", "compared with", "time", "ratio", "range"), rows)
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
        rows.append(
            (
                comparison["case"],
                duration(statistics.median(ours)),
                name,
                duration(statistics.median(theirs)),
                f"**{_plain(median)}**",
                f"{_plain(least)} to {_plain(greatest)}",
            )
        )
    return rows


def _plain(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]
