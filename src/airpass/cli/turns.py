"""`airpass schedule`: designs that serve the devices by turns."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import (
    check_outputs,
    figure_option,
    json_option,
    nested,
    option_option,
    priorities_options,
    scenario_options,
    with_sample_priorities,
)
from airpass.cli.output import (
    console,
    write_json,
)
from airpass.cli.progress import (
    progress,
)
from airpass.cli.root import cli
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.designs.base import DesignMethod
    from airpass.designs.turns import Book
    from airpass.scenario import Scenario

MOST_NAMED = 30  # devices that are listed by number

move_option = click.option(
    "--move",
    type=click.Choice(["antennas", "beams"]),
    help="What changes between turns: antennas and beam, or only the beam.  [default: antennas]",
)


def turns_option(default: str | None, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The flag --turns."""
    shown = f"  [default: {default}]" if default else ""
    return click.option("--turns", metavar="N|auto", default=default, help=text + shown)


def turns_of(text: str) -> int | str:
    """The argument `turns` of `schedule`."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"--turns {text}: must be a whole number >= 1, or auto") from None


@cli.command()
@scenario_options
@turns_option("auto", "Number of designs; auto: as few as serve all devices that can be served.")
@move_option
@click.option(
    "--method",
    help="Design method: a name from `airpass methods`, or file.py:Name.  "
    "[default: airpass-plus with effort fast]",
)
@option_option
@priorities_options("samples")
@json_option
@figure_option
def schedule(
    scenario: "Scenario",
    seed: int,
    turns: str,
    move: str | None,
    method: str | None,
    changes: Sequence[str],
    priorities: Any,
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Find designs that serve the devices by turns.

    Every device that can be served is in at least one design, if one is found. Devices that no design can
    serve are named.
    """
    check_outputs(json_path, figure_path)
    from airpass.designs.api import design_method

    options = nested(changes, "option")
    chosen = None if method is None and not options else design_method(method, options=options)
    scenario = with_sample_priorities(scenario, priorities)
    run_schedule(scenario, turns, move, chosen, seed, json_path, figure_path)


def run_schedule(
    scenario: "Scenario",
    turns: str,
    move: str | None,
    method: "DesignMethod | None",
    seed: int,
    json_path: str | None,
    figure_path: Path | None,
) -> None:
    """Find a book, write it, draw it, and print it."""
    from airpass.designs.turns import schedule as run

    number = turns_of(turns)
    with progress("Scheduling") as report:
        book = run(scenario, number, move or "antennas", method, seed=seed, report=report)
    from airpass.documents import book_document

    write_json(json_path, lambda: book_document(book))
    if figure_path is not None:
        book.plot(figure_path)
    if json_path != "-":
        print_book(book)


def print_book(book: "Book") -> None:
    """Summary of a book, and its turns."""
    from rich.table import Table

    screen = console()
    receiver, radio = book.scenario.receiver, book.scenario.radio
    covered = book.covered
    screen.print(
        f"[bold]{book.method.name}[/]  M={receiver.waveguides} waveguides, N={receiver.antennas} antennas "
        f"each, K={covered.size} devices, {radio.snr_db:g} dB"
    )
    served = covered[covered > 0]
    parts = [
        f"{book.turns} turn{'' if book.turns == 1 else 's'}, {book.move} move",
        f"{served.size} of {covered.size} devices served",
    ]
    if served.size:
        parts.append(f"each in {served.min()} to {served.max()} turns, {served.mean():.1f} on average")
    screen.print(", ".join([*parts, f"{book.seconds:.3g} s"]), soft_wrap=True)
    for label, mask in (("cannot be served by any design", book.unservable), ("not served", book.missing)):
        if mask.any():
            screen.print(f"{label}: {_devices(mask.nonzero()[0].tolist())}", soft_wrap=True)
    screen.print()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("turn", "selected", "only here", "weakest score"):
        table.add_column(name, justify="right")
    table.add_column("devices", overflow="fold")
    for number, one in enumerate(book.designs, start=1):
        table.add_row(
            str(number),
            str(one.selected_count),
            str(int((one.selected & (covered == 1)).sum())),
            f"{one.weakest_score:.4g}" if one.selected_count else "-",
            _devices(one.selected.nonzero()[0].tolist()),
        )
    screen.print(table)


def _devices(numbers: Sequence[int]) -> str:
    """Device numbers; only the first if there are many."""
    text = " ".join(map(str, numbers[:MOST_NAMED]))
    return text if len(numbers) <= MOST_NAMED else f"{text} ... {len(numbers)} in all"
