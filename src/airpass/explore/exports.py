"""A design for use elsewhere: files, pictures, and the lines that reproduce it."""

import json
import shlex
from base64 import b64encode
from collections.abc import Mapping
from threading import Lock
from typing import Any

import tomli_w

from airpass.core import checks
from airpass.core.registry import options_dict
from airpass.designs import METHODS
from airpass.designs.api import Design
from airpass.designs.base import RecordedDesign
from airpass.documents import design_document, encode
from airpass.explore.state import LIVE

PICTURES = ("png", "svg", "pdf")
KINDS = ("toml", "json")
SCENARIO, DESIGN, AGAIN = "scenario.toml", "design.json", "again.json"

_drawing = Lock()  # settings of matplotlib are those of the process


def text_export(found: Design, kind: str) -> str:
    """A file as text.

    Parameters
    ----------
    found
        The design.
    kind
        "toml": the scenario. "json": the design, as `airpass design --json` writes it.

    Returns
    -------
    str
        Content of the file.
    """
    if checks.one_of("kind", kind, KINDS) == "toml":
        return tomli_w.dumps(found.scenario.to_dict())
    return encode(design_document(found)).decode()


def picture(found: Design, kind: str) -> str:
    """A picture of the room and the scores, in base 64.

    Parameters
    ----------
    found
        The design.
    kind
        "png", "svg" or "pdf".

    Returns
    -------
    str
        The picture as `airpass design --figure` draws it.
    """
    from airpass.figures.room import draw_design
    from airpass.figures.style import render

    checks.one_of("kind", kind, PICTURES)
    with _drawing:
        return b64encode(render(draw_design(found), kind)).decode()


def commands(found: Design) -> dict[str, str]:
    """The lines that reproduce a design from scenario.toml.

    Parameters
    ----------
    found
        The design.

    Returns
    -------
    dict[str, str]
        `command`, `python`, and a `note` on what they need; without lines if the method is not registered.
    """
    if isinstance(found.method, RecordedDesign):
        note = f"The design was read from a file. Its method, {found.method.name}, is not installed here."
        return {"command": "", "python": "", "note": note}
    changes = changed_options(found)
    moved = found.method == LIVE and not _evenly_spaced(found)
    words = ["airpass", "design", "--scenario", SCENARIO, "--method", found.method.name]
    for name, value in _flat(changes).items():
        words += ["--option", f"{name}={_plain(value)}"]
    if moved:
        words += ["--start", DESIGN]
    words += ["--seed", str(found.seed), "--json", AGAIN if moved else DESIGN]
    lines = ["import airpass", "", f'scenario = airpass.Scenario.load("{SCENARIO}")']
    arguments = [f'method="{found.method.name}"']
    if changes:
        arguments.append(f"options={changes!r}")
    if moved:
        lines.append(f'layout = airpass.load("{DESIGN}").layout')
        arguments.append("start_layout=layout")
    arguments.append(f"seed={found.seed}")
    lines += [f"design = airpass.design(scenario, {', '.join(arguments)})", "print(design)"]
    files = f"{SCENARIO} and {DESIGN}" if moved else SCENARIO
    note = f"Save {files} first."
    if "time_limit_s" in changes:
        note += " A search with a time limit depends on the speed of the machine."
    return {"command": shlex.join(words), "python": "\n".join(lines), "note": note}


def _evenly_spaced(found: Design) -> bool:
    return found.layout is not None and bool((found.layout == found.scenario.uniform_layout()).all())


def changed_options(found: Design) -> dict[str, Any]:
    """The options of a design's method that are not the defaults, nested."""
    return _difference(options_dict(found.method), options_dict(METHODS.resolve(found.method.name)))


def _difference(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            if inner := _difference(value, defaults.get(name) or {}):
                changed[name] = inner
        elif value != defaults.get(name):
            changed[name] = value
    return changed


def _flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _plain(value: Any) -> str:
    """A value as --option takes it."""
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)
