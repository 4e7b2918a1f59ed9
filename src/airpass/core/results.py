"""What all results have in common: they can be saved, drawn, and turned into a data frame."""

from importlib import import_module
from pathlib import Path
from typing import Any


class Result:
    """Base class of results: a link, a selection, a design, a training run.

    How a result is written and drawn is known in `airpass.results`, which lies above all results. It is found
    by name when it is needed, as the public names of `airpass` are; nothing else looks upwards.
    """

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file, which `airpass.load` reads.

        Parameters
        ----------
        path
            The file. It is replaced if it exists.
        """
        _views().save(self, path)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the result: a design as a room with scores, a selection as scores, training as curves.

        Parameters
        ----------
        path
            Also write the picture to this .png, .pdf or .svg file.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.
        """
        return _views().plot(self, path)

    def to_frame(self) -> Any:
        """The result as a table: a row per device, or per evaluated round of training.

        Returns
        -------
        pandas.DataFrame
            The table. pandas has to be installed; airpass itself does not need it.
        """
        return _views().to_frame(self)


def _views() -> Any:
    return import_module("airpass.results")
