"""`airpass schedule`: designs that serve the devices by turns."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import (
    check_picture,
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
    print_heading,
    write_json,
)
from airpass.cli.progress import (
    progress,
)
from airpass.cli.root import cli
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.designs.base import DesignMethod
    from airpass.designs.book import Book
    from airpass.scenario import Scenario

MOST_NAMED = 30  # devices that are listed by number
EVEN = 1.0 + 1e-6  # times 1/T

move_option = click.option(
    "--move",
    type=click.Choice(["antennas", "beams"]),
    help="What changes between turns: antennas and beam, or only the beam.  [default: antennas]",
)


all_devices_option = click.option(
    "--all-devices",
    is_flag=True,
    help="Serve all devices, with the smallest error that is found, instead of as many as meet "
    "the threshold ε.",
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
@turns_option("auto", "Number of designs; auto: as few as are found that serve all devices, up to 32.")
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

    A device may send a part of its weight in every turn; over a cycle of turns the parts add up to all of it.
    Devices that provably cannot be served in this many turns are named.
    """
    check_picture(figure_path)
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
    served, shares = book.served, book.shares
    print_heading(
        book.method.name,
        f"M={receiver.waveguides} waveguides, N={receiver.antennas} antennas "
        f"each, K={served.size} devices, {radio.summary}",
    )
    parts = [
        f"{book.turns} turn{'' if book.turns == 1 else 's'}, {_moves(book)}",
        f"{int(served.sum())} of {served.size} devices served",
    ]
    if served.any():
        parts.append(f"error of a round's mean update {book.update_mse:.3g}")
    screen.print(", ".join([*parts, f"{book.seconds:.3g} s"]), soft_wrap=True)
    number = f"{book.turns} turn{'' if book.turns == 1 else 's'}"
    for label, mask in (
        (f"cannot be served in {number} by any designs", book.unservable),
        ("not served", book.missing),
    ):
        if mask.any():
            screen.print(f"{label}: {_devices(mask.nonzero()[0].tolist())}", soft_wrap=True)
    screen.print()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("turn", "smallest share", "largest share", "error"):
        table.add_column(name, justify="right")
    table.add_column("devices with a more than even share", overflow="fold")
    for link in book.links if served.any() else ():
        sent = shares[link.turn - 1]
        table.add_row(
            str(link.turn),
            f"{sent[served].min():.3f}",
            f"{sent[served].max():.3f}",
            f"{link.mse:.3g}",
            _devices((sent > EVEN / book.turns).nonzero()[0].tolist()) or "-",
        )
    screen.print(table)


def _moves(book: "Book") -> str:
    """What changes between turns."""
    if all(one.beam.tobytes() == book.designs[0].beam.tobytes() for one in book.designs):
        return "all with the same antennas and beam" if book.turns > 1 else "one design"
    return f"{book.move} move"


def _devices(numbers: Sequence[int]) -> str:
    """Device numbers; only the first if there are many."""
    text = " ".join(map(str, numbers[:MOST_NAMED]))
    return text if len(numbers) <= MOST_NAMED else f"{text} ... {len(numbers)} in all"
