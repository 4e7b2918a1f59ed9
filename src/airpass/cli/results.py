"""`airpass show` and `airpass plot`: stored results on the terminal and as pictures."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from airpass.cli.options import check_picture
from airpass.cli.output import (
    console,
    print_design,
    print_draws,
    print_fresh_draws,
    print_life,
    print_selection,
    print_set,
    print_tolerance,
    print_track,
    print_training,
)
from airpass.cli.root import OutputFile, cli
from airpass.cli.studies import print_table
from airpass.cli.turns import print_book
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.study.stored import StoredStudy

HISTORY, ROWS = "history.json", "rows.parquet"

result_argument = click.argument("path", type=click.Path(path_type=Path), metavar="FILE|RUN")


def is_study(path: Path) -> bool:
    """Whether a path is a study: a folder or a file of rows. If not, it is JSON or a training run."""
    if not path.is_dir():
        return path.suffix == ".parquet"
    if (path / HISTORY).exists():
        return False
    if (path / ROWS).exists():
        return True
    found = sorted(part.parent.name for name in (HISTORY, ROWS) for part in path.glob(f"*/{name}"))
    hint = f"its folders {', '.join(found)} do" if found else "give a folder of train, reproduce or sweep"
    raise InvalidInput(f"{path}: holds neither {HISTORY} nor {ROWS}; {hint}")


@cli.command()
@result_argument
def show(path: Path) -> None:
    """Print a stored result: FILE of --json or save, or the folder of train, reproduce or sweep."""
    if is_study(path):
        from airpass.study.stored import open_study

        _show_study(open_study(path))
        return
    from airpass.aircomp import Link
    from airpass.designs.api import Design
    from airpass.designs.book import Book
    from airpass.designs.life import Life
    from airpass.designs.track import Track
    from airpass.documents import (
        certificate_from,
        described_damage,
        fresh_draws_from,
        layout_certificate_from,
        life_from,
        read,
        tolerance_from,
    )
    from airpass.learning.history import Runs
    from airpass.selection.api import Selection

    document, result = read(path / HISTORY if path.is_dir() else path)
    with described_damage(path):  # of what belongs to a result
        bound = document.get("certificate")
        certificate = None if bound is None else certificate_from(bound)
        if isinstance(result, Design):
            everywhere = document.get("layout_certificate")
            print_design(
                result, certificate, None if everywhere is None else layout_certificate_from(everywhere)
            )
            if "tolerance" in document:
                print_tolerance(tolerance_from(document["tolerance"], result.scenario.radio.mse_threshold))
            if "fresh_draws" in document:
                print_fresh_draws(fresh_draws_from(document["fresh_draws"]))
            if "life" in document:
                print_life(life_from(document["life"]))
        elif isinstance(result, Selection):
            print_selection(result, certificate)
            if "set" in document:
                print_set(document["set"]["devices"], document["set"]["verdict"])
        elif isinstance(result, Book):
            print_book(result)
        elif isinstance(result, Link):
            console().print(repr(result), soft_wrap=True)
        elif isinstance(result, Life):
            print_life(result)
        elif isinstance(result, Track):
            print_track(result)
        elif isinstance(result, Runs):
            print_training(result, path if path.is_dir() else None, status=True)
        else:
            draws = document["draws"]
            bounds = [draw["certificate"]["at_most"] for draw in draws if "certificate" in draw]
            print_draws(
                result, bounds, [draw["set"]["verdict"] for draw in draws if "set" in draw], every=True
            )


def _show_study(study: "StoredStudy") -> None:
    from airpass.study.report import claims_text

    for line in study.about():
        console().print(line, soft_wrap=True)
    console().print()
    headings = study.headings()
    for place, (metric, table) in enumerate(study.tables().items()):
        if metric in headings:
            console().print(f"{'' if place == 0 else chr(10)}{headings[metric]}\n", soft_wrap=True)
        print_table(table)
    if verdicts := study.verdicts():
        console().print()
        console().print(claims_text(verdicts), soft_wrap=True)


@cli.command()
@result_argument
@click.option(
    "--out",
    type=OutputFile(),
    help="Picture, .png, .pdf or .svg.  [default: a .png beside FILE; of a study .pdf and .png]",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FIG.toml",
    help="For a study: file with a table [figure].  [default: that of the sweep]",
)
def plot(path: Path, out: Path | None, config: Path | None) -> None:
    """Draw a stored result: a design as a room, a selection as scores, a book as a chart, or curves."""
    check_picture(out)
    if is_study(path):
        written = _plot_study(path, out, config)
    elif config is not None:
        raise InvalidInput("--config is for studies: give a folder of reproduce or sweep, or rows.parquet")
    else:
        from airpass.results import load

        target = out or (path / "curves.png" if path.is_dir() else path.with_suffix(".png"))
        result = load(path)
        if type(result) is list:
            raise InvalidInput(f"{path}: holds a stack of draws; select one with --draw, and plot that")
        result.plot(target)
        written = str(target)
    console().print(written, soft_wrap=True)


def _plot_study(path: Path, out: Path | None, config: Path | None) -> str:
    """Draw a study, and return what was written."""
    from airpass.figures.style import checked_format
    from airpass.study.replot import redraw, stem_of, write_chart

    kinds = ("pdf", "png") if out is None else (checked_format(out),)
    chart = redraw(path, config)
    stem = stem_of(path) if out is None else out.with_suffix("")
    write_chart(chart, stem, kinds)
    caption = f" ({chart.trials})" if chart.trials else ""
    return " and ".join(f"{stem}.{kind}" for kind in kinds) + caption
