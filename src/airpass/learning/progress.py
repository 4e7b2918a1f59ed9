"""Progress of training in Python: a line on standard error. The commands have bars of their own."""

import sys
import time
from collections.abc import Mapping
from math import isnan
from typing import TextIO

TERMINAL_S, LOG_S = 0.1, 10.0  # shortest time between two states of the line; between two lines of a log


def is_interactive(stream: TextIO) -> bool:
    """Whether somebody reads a stream as it is written: on a terminal, or in a notebook."""
    if stream.isatty():
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"  # of Jupyter


class RoundLine:
    """The last round as a line, which is overwritten by the next; in a log, a line now and then.

    Parameters
    ----------
    wanted
        Whether to show it. None: on a terminal and in a notebook.
    scheme
        Name of the scheme.
    rounds
        Number of rounds.
    """

    def __init__(self, wanted: bool | None, scheme: str, rounds: int) -> None:
        self._stream = sys.stderr
        self._overwrites = is_interactive(self._stream)
        self.shown = self._overwrites if wanted is None else wanted
        self._name = f"airpass: {scheme}"
        self._rounds = rounds
        self._began = time.monotonic()
        self._next = 0.0  # time from which on something may be written
        self._length = 0  # of the line on the screen
        self._text = ""  # of the last round, if it is not written yet

    def message(self, text: str) -> None:
        """Write a message, such as one about a download."""
        if self.shown:
            self._write(f"{self._name}: {text}")

    def show(self, number: int, values: Mapping[str, float]) -> None:
        """Write a round, unless another was written just before."""
        if not self.shown:
            return
        accuracy = values["accuracy"]
        measured = "" if isnan(accuracy) else f"accuracy {100 * accuracy:.1f} %, "
        self._text = (
            f"{self._name}: round {number} of {self._rounds}, {measured}loss {values['loss']:.3g}, "
            f"{values['selected']:g} devices, {time.monotonic() - self._began:.0f} s"
        )
        if time.monotonic() >= self._next:
            self._write(self._text)

    def close(self) -> None:
        """Write the last round, and end the line."""
        if not self.shown:
            return
        if self._text:
            self._write(self._text)
        if self._length:
            self._stream.write("\n")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._text = ""
        if self._overwrites:
            self._stream.write("\r" + text.ljust(self._length))
            self._length = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
        self._next = time.monotonic() + (TERMINAL_S if self._overwrites else LOG_S)
