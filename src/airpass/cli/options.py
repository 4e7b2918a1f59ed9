"""Shared options of commands; scenarios from files and flags."""

import tomllib
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.root import OutputFile
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.text import shown

if TYPE_CHECKING:
    from airpass.scenario import Scenario

json_option = click.option(
    "--json",
    "json_path",
    type=OutputFile(plain=True),
    metavar="PATH",
    help="Write the result as JSON to PATH ('-' for standard output).",
)
figure_option = click.option(
    "--figure",
    "figure_path",
    type=OutputFile(),
    help="Draw the result to a .png, .pdf or .svg file.",
)
all_option = click.option(
    "--all", "every", is_flag=True, help="Print every device, not only the 20 strongest."
)
option_option = click.option(
    "--option",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change an option of the method, e.g. starts=16 for select, selection.starts=16 for design. "
    "May be repeated; `airpass methods --options` lists them.",
)


def priorities_options(*words: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --priorities; the command receives `priorities`: a word, an array, or None.

    Parameters
    ----------
    words
        Words that the command understands besides files.

    Returns
    -------
    callable
        A decorator.
    """
    texts = {
        "samples": "samples: by their number of samples",
        "classes": "classes: by their classes, rare ones count more",
    }
    listed = "".join(f"{texts[word]}; " for word in words)

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--priorities",
            metavar="|".join([*words, "FILE"]),
            help=f"Priorities v_k of the devices, whose sum is maximised. {listed}"
            "FILE: one number per device (.npy, .npz or .mat).  [default: 1 each]",
        )
        @click.option("--priorities-variable", help="Name of the priorities in a file with several arrays.")
        @wraps(command)
        def with_priorities(priorities: str | None, priorities_variable: str | None, **others: Any) -> None:
            if priorities is None or priorities in texts:
                if priorities_variable is not None:
                    raise InvalidInput("--priorities-variable requires a file in --priorities")
                if priorities is not None and priorities not in words:
                    raise InvalidInput(
                        f"--priorities {priorities}: is not known without data; give a file, or use "
                        "airpass train"
                    )
                command(priorities=priorities, **others)
                return
            from airpass.core.arrays import read_array

            values = read_array(Path(priorities), priorities_variable, "--priorities-variable")
            if values.ndim == 2 and 1 in values.shape:  # vectors of MATLAB
                values = values.reshape(-1)
            command(priorities=values, **others)

        return with_priorities

    return add


def with_sample_priorities(scenario: "Scenario", priorities: Any) -> "Scenario":
    """The scenario with the priorities of a flag, if it was given; "samples" are those of the scenario."""
    if priorities is None:
        return scenario
    if isinstance(priorities, str):
        from airpass.scenario.devices import sample_priorities

        return scenario.with_priorities(sample_priorities(scenario.devices.samples))
    from airpass.selection.api import checked_priorities

    return scenario.with_priorities(checked_priorities(priorities, scenario.devices.count))


def scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe a scenario; the command receives `scenario` and `seed`."""

    @click.option("--scenario", "scenario_path", type=click.Path(path_type=Path), help="Scenario file, TOML.")
    @click.option(
        "--preset",
        metavar="NAME",
        help="Set-up whose values take the place of the defaults: paper or indoor-28ghz; `airpass presets` "
        "lists their values.",
    )
    @click.option("--devices", type=int, help="Number of devices K.  [default: 10]")
    @click.option("--waveguides", type=int, help="Number of waveguides M.  [default: 5]")
    @click.option("--antennas", type=int, help="Antennas on each waveguide N.  [default: 5]")
    @click.option("--snr-db", type=float, help="Transmit power over noise power P0/σ², dB.  [default: 10]")
    @click.option(
        "--seed",
        type=int,
        help="Seed of everything random, including devices that are drawn.  "
        "[default: devices.seed of the scenario, else 0]",
    )
    @click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Change a value of the scenario, e.g. receiver.length_m=20. May be repeated.",
    )
    @wraps(command)
    def with_scenario(
        scenario_path: Path | None,
        preset: str | None,
        devices: int | None,
        waveguides: int | None,
        antennas: int | None,
        snr_db: float | None,
        seed: int | None,
        overrides: Sequence[str],
        **others: Any,
    ) -> None:
        shorthand = {
            "devices.count": devices,
            "receiver.waveguides": waveguides,
            "receiver.antennas": antennas,
            "radio.snr_db": snr_db,
        }
        scenario = _scenario(scenario_path, preset, shorthand, seed, overrides)
        used = scenario.seed if seed is None else checks.whole("seed", seed, 0)
        command(scenario=scenario, seed=used, **others)

    return with_scenario


def _scenario(
    path: Path | None,
    preset: str | None,
    shorthand: dict[str, Any],
    seed: int | None,
    overrides: Sequence[str],
) -> "Scenario":
    """The scenario of a file or a preset, or the paper's, with some values changed."""
    from airpass.scenario import Scenario, scenario_tables
    from airpass.scenario.devices import LISTS

    tables = scenario_tables(path) if path is not None else {}
    if preset is not None:
        tables["preset"] = preset
    given = [f"{key}={value}" for key, value in shorthand.items() if value is not None]
    _merge(tables, nested(given, "set"))
    _merge(tables, nested(overrides, "set"))
    devices, channel = tables.get("devices", {}), tables.get("channel", {})
    drawn = isinstance(devices, dict) and not set(LISTS) & set(devices)
    if seed is not None and drawn and not (isinstance(channel, dict) and "responses" in channel):
        tables.setdefault("devices", {})["seed"] = seed
    return Scenario.from_dict(tables)


def nested(assignments: Sequence[str], flag: str) -> dict[str, Any]:
    """{"a": {"b": value}} from "a.b=value"; values are TOML, but text for --option."""
    tree: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        keys = name.strip().split(".")
        if not equals or not all(keys):
            raise InvalidInput(f"--{flag} {shown(text)}: must have the form NAME=VALUE")
        branch = tree
        for key in keys[:-1]:
            branch = branch.setdefault(key, {})
            if not isinstance(branch, dict):
                raise InvalidInput(f"--{flag} {shown(text)}: {key} already has a value")
        branch[keys[-1]] = _toml_value(value.strip()) if flag != "option" else value.strip()
    return tree


def _toml_value(text: str) -> Any:
    """A value of a flag: TOML, or else plain text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # syntax, numbers of too many digits, or brackets too deep
        return text


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and key in into:
            if not isinstance(into[key], dict):
                raise InvalidInput(f"{key} = {shown(into[key])}: must be a table of keys")
            _merge(into[key], value)
        else:
            into[key] = value


def check_picture(path: Path | None) -> None:
    """Check the format of a picture before any work is done."""
    if path is not None:
        from airpass.figures.style import checked_format

        checked_format(path)
