"""The command line. `main` runs it; commands are in designs.py, learning.py, methods.py, motion.py,
presets.py, results.py, studies.py and turns.py."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from airpass.cli import (  # noqa: F401  (they add their commands)
    designs,
    learning,
    methods,
    motion,
    presets,
    results,
    studies,
    turns,
)
from airpass.cli.root import cli
from airpass.core.errors import InvalidInput, users_line

__all__ = ["cli", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors end in one line on stderr and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Greek letters shows "?"
    try:
        cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="airpass",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "airpass"
        _fail(f"{error.format_message()} (see {where} --help)")
    except click.ClickException as error:
        _fail(error.format_message())
    except InvalidInput as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        _fail("training needs PyTorch: install the package with its extra, pip install 'airpass[learn]'")
    except MemoryError:
        _fail("not enough memory for a problem of this size")
    except (KeyboardInterrupt, click.Abort):
        _interrupted()
    except SystemError as error:
        from airpass.kernels.interrupts import was_interrupted

        if not isinstance(was_interrupted(error), KeyboardInterrupt):
            raise
        _interrupted()
    except BrokenPipeError:
        # The reader of a pipe (head, less) has ended. Keep Python from reporting it again
        # when it flushes standard output at exit.
        sys.stdout = None
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}")
    except Exception as error:
        place = users_line(error)
        if place is None:
            raise
        _fail(f"{place}: {type(error).__name__}: {error}")


def _interrupted() -> None:
    click.echo("airpass: interrupted", err=True)
    sys.exit(130)


def _fail(message: str) -> None:
    click.echo("airpass: " + " ".join(message.split()), err=True)
    sys.exit(2)
