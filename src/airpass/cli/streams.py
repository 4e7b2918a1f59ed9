"""The standard streams of a command, messages, and interrupts that must not get lost."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

import click

from airpass.core.errors import InvalidInput
from airpass.core.text import one_line

AGAIN_S = 0.02  # after which an interrupt that Python has ignored is repeated


class Closed(TextIOWrapper):
    """Takes the place of a standard stream that was closed, and discards what is written."""


def open_streams() -> None:
    """Open closed standard streams again, on the null device.

    Otherwise the next file that is opened would get the number of the closed stream, and what a library
    prints would end in that file.
    """
    for number, name, mode in ((0, "stdin", "rb"), (1, "stdout", "wb"), (2, "stderr", "wb")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, Closed(open(os.devnull, mode), encoding="utf-8", errors="replace"))  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Greek letters shows "?"


def repeat_interrupts() -> None:
    """Repeat an interrupt that Python ignores.

    Ctrl-C may arrive while Python runs a callback of the garbage collector. Then Python prints a traceback
    and goes on, as if nothing had happened.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            timer = threading.Timer(AGAIN_S, _interrupt)
            timer.daemon = True
            timer.start()
        else:
            before(unraisable)

    sys.unraisablehook = hook


def _interrupt() -> None:
    """Send SIGINT to the main thread, also while it sleeps."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def tell(message: str) -> None:
    """Print a message on standard error, in one line. Nothing happens if nobody can read it."""
    with suppress(OSError, ValueError):
        click.echo(f"airpass: {one_line(message)}", err=True)


class JsonOutput:
    """Standard output for one JSON document."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def write(self, content: bytes) -> None:
        """Keep the document until the command ends."""
        self.content = content


@contextmanager
def json_only() -> Iterator[JsonOutput]:
    """Write a JSON document and nothing else to standard output.

    What is printed meanwhile, also by compiled libraries and by methods of the user, goes to standard error.
    """
    if isinstance(sys.stdout, Closed):
        raise InvalidInput("--json -: standard output is closed; give the name of a file")
    output, before = JsonOutput(), sys.stdout
    before.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield output
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)
        if output.content is not None:
            if hasattr(before, "buffer"):
                before.buffer.write(output.content)
            else:  # a stream of text that a program has put there
                before.write(output.content.decode())
            before.flush()
