"""`airpass.load`: stored results and studies."""

import os
from pathlib import Path
from typing import Any

from airpass import results

ROWS = "rows.parquet"


def load(path: str | Path) -> Any:
    """Open a stored result.

    Parameters
    ----------
    path
        JSON file that `save`, or a command with --json, wrote; or the folder of `airpass train`,
        `reproduce` or `sweep`.

    Returns
    -------
    Design, Selection, Link, Book, Runs, Life, Track, StoredStudy or list of Selection
        The result, with the same numbers. Training runs are a list even if there is only one; so are the
        selections for a stack of draws.
    """
    place = Path(path)
    if os.path.isdir(place):  # unlike `Path.is_dir`, it takes names of any length
        study = (place / ROWS).exists() and not (place / results.HISTORY).exists()
    else:
        study = place.suffix == ".parquet"
    if not study:
        return results.load(place)
    from airpass.study.stored import open_study  # training runs are opened without PyTorch

    return open_study(place)
