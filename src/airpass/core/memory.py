"""How much memory can be had, and refusal of problems that need more.

Linux grants memory that does not exist and ends the process when it is used, so that large problems have to
be refused before.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from airpass.core.errors import InvalidInput

UNCHECKED = 2**27  # bytes that are taken without a look at the available memory
SYSTEM = Path("/")
# Of control groups, versions 2 and 1: folder, limit, use, and the part of the use that can be freed.
GROUPS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def require(needed: float, purpose: str, options: str) -> None:
    """Raise `InvalidInput` if more memory is needed than can be had.

    Parameters
    ----------
    needed
        Bytes, estimated.
    purpose
        What needs the memory, in the plural, such as "channels".
    options
        The options that determine how much, such as "devices.count".
    """
    if needed <= UNCHECKED:
        return
    free = available()
    if needed > free:
        raise InvalidInput(
            f"{options}: {purpose} need {_text(needed)} of memory, {_text(free)} are available; "
            f"lower {options}"
        )


def available() -> float:
    """Memory that this process can still take.

    Returns
    -------
    float
        Bytes; the least of free memory, the limit of a control group (container) and that of the process.
        Infinity if the system does not say.
    """
    return max(0.0, min(_system(SYSTEM), *_groups(SYSTEM), _process(SYSTEM)))


def _system(root: Path) -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def _groups(root: Path) -> Iterator[float]:
    """What is left of the limits of this process's control groups."""
    yield float("inf")
    paths = {Path()}
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            own = Path(line.split(":", 2)[-1].lstrip("/"))
            paths |= {own, *own.parents}
    for folder, limit, use, freeable in GROUPS:
        for path in paths:
            with suppress(OSError, ValueError):  # no such group, or "max"
                group = root / folder / path
                left = int((group / limit).read_text()) - int((group / use).read_text())
                for line in (group / "memory.stat").read_text().splitlines():
                    if line.split()[0] == freeable:
                        left += int(line.split()[1])
                yield float(left)


def _process(root: Path) -> float:
    """What is left of the limit of the address space."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int((root / "proc/self/statm").read_text().split()[0])
            return float(limit - pages * resource.getpagesize())
    return float("inf")


def _text(size: float) -> str:
    """A number of bytes in decimal units."""
    for unit in ("MB", "GB", "TB", "PB"):
        size /= 1000.0 if unit != "MB" else 1e6
        if size < 999.5 or unit == "PB":
            break
    return f"{size:.3g} {unit}"
