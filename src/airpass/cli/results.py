"""`airpass show` and `airpass plot`: stored results on the terminal and as pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.options import check_outputs
from airpass.cli.output import (
    console,
    print_design,
    print_selection,
    print_set,
    print_tolerance,
    print_training,
)
from airpass.cli.root import cli
from airpass.cli.studies import print_table
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
    from airpass.documents import certificate_from, read, tolerance_from
    from airpass.selection.api import Selection

    document, result = read(path / HISTORY if path.is_dir() else path)
    if isinstance(result, Design):
        print_design(result)
        if "tolerance" in document:
            print_tolerance(tolerance_from(document["tolerance"], result.scenario.radio.mse_threshold))
    elif isinstance(result, Selection):
        bound = document.get("certificate")
        print_selection(result, None if bound is None else certificate_from(bound))
        if "set" in document:
            print_set(document["set"]["devices"], document["set"]["verdict"])
    elif isinstance(result, Link):
        console().print(repr(result), soft_wrap=True)
    else:
        print_training(result, path if path.is_dir() else None)


def _show_study(study: "StoredStudy") -> None:
    from airpass.study.report import claims_text

    for line in study.about():
        console().print(line, soft_wrap=True, markup=False)
    console().print()
    print_table(study.table())
    if verdicts := study.verdicts():
        console().print()
        console().print(claims_text(verdicts), soft_wrap=True)


@cli.command()
@result_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Picture, .png, .pdf or .svg.  [default: a .png beside FILE, or in the folder]",
)
def plot(path: Path, out: Path | None) -> None:
    """Draw a stored result: a design as a room, a selection as scores, training and studies as curves."""
    check_outputs(None, out)
    drawn, default = _drawn_study(path) if is_study(path) else _drawn_result(path)
    from airpass.figures.style import save

    target = out or default
    save(drawn, target)
    console().print(str(target), soft_wrap=True, markup=False)


def _drawn_result(path: Path) -> tuple[Any, Path]:
    """The picture of a JSON result or a training run, and where it goes by default."""
    from airpass.results import load

    return load(path).plot(), path / "curves.png" if path.is_dir() else path.with_suffix(".png")


def _drawn_study(path: Path) -> tuple[Any, Path]:
    """The chart of a study, and where it goes by default."""
    from airpass.figures.study import draw_chart
    from airpass.study.stored import open_study

    study = open_study(path)
    chart = study.chart()
    if chart is None:
        raise InvalidInput(f"{path}: has neither an axis nor training, so no chart; see airpass show")
    return draw_chart(chart), (path if path.is_dir() else path.parent) / f"{study.name}.png"
