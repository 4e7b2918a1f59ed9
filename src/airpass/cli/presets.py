"""`airpass presets`."""

from typing import Any

from airpass.cli.options import json_option
from airpass.cli.output import console, print_heading, write_json
from airpass.cli.root import cli


@cli.command()
@json_option
def presets(json_path: str | None) -> None:
    """List the presets of scenarios with their values.

    `--preset NAME` of design, train, schedule and track uses one; flags and --set change single values.
    A scenario file that starts with preset = "NAME" uses one as well.
    """
    from airpass.scenario import PRESETS, Scenario

    rows: dict[str, dict[str, Any]] = {}
    for name in PRESETS:
        scenario = Scenario.preset(name)
        tables = scenario.to_dict() | {"devices": _distribution(scenario)}
        rows[name] = {"summary": (PRESETS[name].__doc__ or "").partition("\n")[0], **tables}
    write_json(json_path, lambda: {"presets": rows})
    if json_path == "-":
        return
    screen = console()
    for name, row in rows.items():
        print_heading(name, row["summary"])
        for section, table in row.items():
            if section != "summary":
                values = ", ".join(f"{key} = {_text(value)}" for key, value in table.items())
                screen.print(f"  {section}: {values}", soft_wrap=True)


def _distribution(scenario: Any) -> dict[str, Any]:
    """How the devices of a preset are drawn."""
    from dataclasses import asdict

    return {key: value for key, value in asdict(scenario.devices.drawn_from).items() if key != "seed"}


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
