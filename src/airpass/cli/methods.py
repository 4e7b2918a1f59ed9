"""`airpass check-method`."""

import sys
from collections.abc import Sequence

import click

from airpass.cli.options import json_option, nested, option_option
from airpass.cli.output import (
    console,
    print_heading,
    write_json,
)
from airpass.cli.root import cli


@cli.command("check-method")
@click.argument("name", metavar="NAME")
@click.option(
    "--kind",
    type=click.Choice(["selection", "geometry", "design"]),
    help="Kind of method; needed for functions.  [default: that of the class]",
)
@option_option
@json_option
def check_method(name: str, kind: str | None, changes: Sequence[str], json_path: str | None) -> None:
    """Check that a method does what every method must.

    NAME is a name from `airpass methods`, file.py:Name or package.module:Name. The method runs on small
    random scenarios. The exit code is 0 if all checks pass, and 1 if one fails.
    """
    from airpass import contracts

    method = contracts.resolve(name, kind, nested(changes, "option"))
    screen = console()
    outcomes = []
    if json_path != "-":
        print_heading(method.name, f"{contracts.kind_of(method)} method")
    for outcome in contracts.check_method(method):
        outcomes.append(outcome)
        if json_path != "-":
            state = "ok    " if outcome.ok else "FAILED"
            detail = f": {outcome.detail}" if outcome.detail else ""
            screen.print(f"{state}  {outcome.check}{detail}", soft_wrap=True)
    write_json(
        json_path,
        lambda: {
            "method": method.name,
            "kind": contracts.kind_of(method),
            "ok": all(outcome.ok for outcome in outcomes),
            "checks": [
                {"check": outcome.check, "ok": outcome.ok, "detail": outcome.detail} for outcome in outcomes
            ],
        },
    )
    if not all(outcome.ok for outcome in outcomes):
        sys.exit(1)
