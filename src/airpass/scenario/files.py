"""Scenario files: TOML tables."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airpass.core.errors import InvalidInput


def scenario_tables(path: str | Path) -> dict[str, Any]:
    """The tables of a scenario file; paths in it are relative to its folder."""
    return _anchored(read_tables(path), Path(path).parent)


def read_tables(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        with Path(path).open("rb") as file:  # not `open`, which takes a number for an open file
            return tomllib.load(file)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # TOML syntax, encoding, or a number with too many digits
        raise InvalidInput(f"{path}: not valid TOML: {error}") from None


def _anchored(tables: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tables with a relative path of `channel.responses` made relative to a folder."""
    channel = tables.get("channel")
    given = channel.get("responses") if isinstance(channel, Mapping) else None
    if isinstance(given, str):
        changed: Any = str(folder / given)
    elif isinstance(given, Mapping) and isinstance(given.get("file"), str):
        changed = {**given, "file": str(folder / given["file"])}
    else:
        return tables
    return {**tables, "channel": {**tables["channel"], "responses": changed}}
