"""Results as objects: save them, open them again, draw them, and turn them into data frames."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from airpass.aircomp import Link
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.designs.life import Life
from airpass.designs.track import Track
from airpass.documents import (
    book_document,
    encode,
    history_rows,
    life_document,
    life_rows,
    link_document,
    read,
    track_document,
    training_document,
)
from airpass.learning.history import Runs, TrainingRun
from airpass.wideband import WidebandLink

HISTORY = "history.json"  # in the folder of `airpass train`


def load(path: str | Path) -> Any:
    """Open a stored result that is not a study.

    Parameters
    ----------
    path
        JSON file that `save`, or a command with --json, wrote; or the folder of `airpass train`.

    Returns
    -------
    Design, Selection, Link, Book, Runs, Life, Track or list of Selection
        The result, with the same numbers. Training runs are a list even if there is only one; so are the
        selections for a stack of draws.
    """
    place = Path(path)
    if os.path.isdir(place):  # unlike `Path.is_dir`, it takes names of any length
        if not (place / HISTORY).exists():
            raise InvalidInput(
                f"{path}: holds no results; give a file, or the folder of train, reproduce or sweep"
            )
        place /= HISTORY
    return read(place)[1]


def save(result: Link | Book | Life | Track | TrainingRun | Runs, path: str | Path) -> None:
    """Write a result to a JSON file.

    Parameters
    ----------
    result
        A link, selection or design, a book, the life of a design, a track, a training run, or several.
    path
        The file. It is replaced if it exists.
    """
    if isinstance(result, Link):
        document = link_document(result)
    elif isinstance(result, Book):
        document = book_document(result)
    elif isinstance(result, Life):
        document = life_document(result)
    elif isinstance(result, Track):
        document = track_document(result)
    else:
        document = training_document(_runs(result))
    write_atomically(Path(path), encode(document))


def plot(result: Link | Book | Life | Track | TrainingRun | Runs, path: str | Path | None = None) -> Any:
    """Draw a result.

    Parameters
    ----------
    result
        A design is drawn as a room with scores, another link as scores, a book as a chart of devices and
        turns, the others as curves.
    path
        Also write the picture to this .png, .pdf or .svg file.

    Returns
    -------
    matplotlib.figure.Figure
        The picture.
    """
    from airpass.figures import motion, room, style, training, turns

    if path is not None:
        style.checked_format(Path(path))
    if isinstance(result, Design):
        figure = room.draw_design(result)
    elif isinstance(result, Link):
        figure = room.draw_selection(result)
    elif isinstance(result, Book):
        figure = turns.draw_book(result)
    elif isinstance(result, Life):
        figure = motion.draw_life(result)
    elif isinstance(result, Track):
        figure = motion.draw_track(result)
    else:
        figure = training.draw_training(_runs(result))
    if path is not None:
        style.save(figure, Path(path))
    return figure


def to_frame(result: Link | Book | Life | Track | TrainingRun | Runs) -> Any:
    """A result as a data frame.

    Parameters
    ----------
    result
        A link, selection or design, a book, the life of a design, a track, a training run, or several.

    Returns
    -------
    pandas.DataFrame
        A row per device with its weight, score, scaling and, for a design, position, gain and samples; for a
        book a row per turn and device; a row per receiver, distance and draw of a life; a row per step of a
        track; or a row per scheme and evaluated round.
    """
    try:
        import pandas
    except ModuleNotFoundError:
        raise InvalidInput("to_frame needs pandas: pip install 'airpass[frames]'") from None
    if isinstance(result, Link):
        return pandas.DataFrame(_device_columns(result))
    if isinstance(result, Life):
        return pandas.DataFrame(life_rows(result))
    if isinstance(result, Track):
        return pandas.DataFrame([asdict(row) for row in result.rows])
    if isinstance(result, Book):
        parts = [
            pandas.DataFrame({"turn": number, **_device_columns(one), "share": sent})
            for number, (one, sent) in enumerate(zip(result.designs, result.shares, strict=True), start=1)
        ]
        return pandas.concat(parts, ignore_index=True)
    return pandas.DataFrame(history_rows(_runs(result)))


def _runs(result: TrainingRun | Sequence[TrainingRun]) -> Sequence[TrainingRun]:
    return [result] if isinstance(result, TrainingRun) else result


def _device_columns(link: Link) -> dict[str, Any]:
    columns: dict[str, Any] = {"device": np.arange(link.weights.size)}
    if isinstance(link, Design):
        devices = link.scenario.devices
        columns |= {name: getattr(devices, name) for name in ("x_m", "y_m", "gain", "samples")}
    columns |= {"weight": link.weights, "score": link.scores, "selected": link.selected}
    if isinstance(link, WidebandLink):
        return columns | {
            "strongest_subcarrier_score": link.subcarrier_scores.max(axis=0),
            "transmit_power": np.sum(np.abs(link.transmit) ** 2, axis=0),
        }
    return columns | {
        "transmit_re": link.transmit.real,
        "transmit_im": link.transmit.imag,
        "transmit_power": np.abs(link.transmit) ** 2,
    }
