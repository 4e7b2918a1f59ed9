"""The command line. `main` runs it; commands are in designs.py, explore.py, learning.py, methods.py,
motion.py, presets.py, results.py, studies.py and turns.py."""

import os
import sys
import traceback
from collections.abc import Sequence

import click

from airpass.cli import (  # noqa: F401  (they add their commands)
    designs,
    explore,
    learning,
    methods,
    motion,
    presets,
    results,
    studies,
    turns,
)
from airpass.cli.root import Debug, cli
from airpass.cli.streams import open_streams, repeat_interrupts, tell
from airpass.core.errors import InvalidInput, users_line
from airpass.core.text import LONGEST_LINE, shortened

__all__ = ["cli", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors end in one line on stderr.

    Exit codes: 0 for success, 1 for a failed computation, 2 for wrong input, 130 for an interrupt.
    """
    open_streams()
    Debug.wanted = False
    if "_AIRPASS_COMPLETE" in os.environ:  # the shell asks for words that complete a command
        cli.main(prog_name="airpass")
    try:
        if arguments is None:  # a process of its own
            repeat_interrupts()
        # Not cli.main: it takes the end of a file, an EOFError, for an interrupt.
        with cli.make_context("airpass", list(sys.argv[1:] if arguments is None else arguments)) as ctx:
            cli.invoke(ctx)
        sys.stdout.flush()
    except BrokenPipeError:
        _end_of_pipe()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except Exception as error:
        if Debug.wanted:
            traceback.print_exc()
        code, message = _explained(error)
        tell(message)
        sys.exit(code)
    except KeyboardInterrupt:
        tell("interrupted")
        sys.exit(130)


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code and the message of an error."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx is not None else "airpass"
        message = shortened(" ".join(error.format_message().split()), LONGEST_LINE - 40)
        return 2, f"{message} (see {where} --help)"
    if isinstance(error, click.ClickException):
        return 2, error.format_message()
    if isinstance(error, InvalidInput):
        return 2, str(error)
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return 2, "training needs PyTorch: install the package with its extra, pip install 'airpass[learn]'"
    if isinstance(error, MemoryError):
        return 2, "not enough memory for a problem of this size"
    if isinstance(error, click.Abort):
        return 130, "interrupted"
    if isinstance(error, SystemError):
        from airpass.kernels.interrupts import was_interrupted

        if isinstance(was_interrupted(error), KeyboardInterrupt):
            return 130, "interrupted"
    if isinstance(error, OSError) and error.strerror:
        return 2, f"{error.filename or 'output'}: {error.strerror}"
    kind = type(error).__name__
    place = users_line(error)
    if place is not None:
        return 2, f"{place}: {kind}: {error}"
    text = shortened(" ".join(str(error).split()), LONGEST_LINE - 100)
    return 1, f"internal error: {kind}{': ' if text else ''}{text} (run with --debug for the traceback)"


def _end_of_pipe() -> None:
    """End quietly, as the reader of a pipe (head, less) has ended."""
    # Keep Python from reporting it again when it flushes standard output at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)
