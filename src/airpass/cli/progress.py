"""Progress of commands on stderr: bars on a terminal, else lines."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isnan
from typing import TYPE_CHECKING, Any, Protocol

import click

from airpass.cli.root import is_quiet
from airpass.cli.streams import tell
from airpass.core.text import LONGEST_NAME, one_line

if TYPE_CHECKING:
    from airpass.study.trial import Trial

COMPILED = "airpass.compiled"  # key in the context: whether the command has compiled kernels
FIRST_LINE_S = 0.5  # before the first line of progress in a log
LINE_EVERY_S = 30.0  # between further ones


def note(text: str) -> None:
    """Print a line on stderr, unless the command is quiet."""
    if not is_quiet():
        tell(f"{text}")


class Display(Protocol):
    """Where progress is shown."""

    def add(self, task: str, total: int | None) -> None:
        """Begin a task of `total` steps, or of an unknown number."""

    def show(self, task: str, text: str, done: int | None = None) -> None:
        """Show the state of a task, with the number of steps done."""

    def notice(self, text: str) -> None:
        """Show a message that must not wait."""


class Silence:
    """Progress is not shown."""

    def add(self, task: str, total: int | None) -> None:
        """Do nothing."""

    def show(self, task: str, text: str, done: int | None = None) -> None:
        """Do nothing."""

    def notice(self, text: str) -> None:
        """Do nothing."""


class Bars:
    """A spinner or a bar per task, on a terminal."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def add(self, task: str, total: int | None) -> None:
        """Add a bar."""
        self._tasks[task] = self._progress.add_task(one_line(task, LONGEST_NAME), total=total, text="")

    def show(self, task: str, text: str, done: int | None = None) -> None:
        """Update a bar and the text beside it."""
        self._progress.update(
            self._tasks[task], text=one_line(text), **({} if done is None else {"completed": done})
        )

    def notice(self, text: str) -> None:
        """Show the text beside the last bar."""
        self._progress.update(list(self._tasks.values())[-1], text=one_line(text))


class Lines:
    """A plain line now and then, for log files.

    The first line comes after half a second, so that short commands and refusals print none. The next
    come at most every half a minute, and only if there is something new.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._totals: dict[str, int | None] = {}
        self._text = ""
        self._printed = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, task: str, total: int | None) -> None:
        """Remember the number of steps."""
        self._totals[task] = total
        self._text = f"{task}: started"

    def show(self, task: str, text: str, done: int | None = None) -> None:
        """Remember the text for the next line."""
        count = "" if done is None else f"{done} of {self._totals[task]}, "
        self._text = f"{task}: {count}{text}"

    def notice(self, text: str) -> None:
        """Print a line at once."""
        self._print(text)

    def close(self, failed: bool) -> None:
        """Print the last line, if there was a first."""
        self._done.set()
        self._thread.join()
        if self._printed and not failed:
            if self._text != self._printed:
                self._print(self._text)
            self._print(f"done in {time.monotonic() - self._began:.0f} s")

    def _run(self) -> None:
        pause = FIRST_LINE_S
        while not self._done.wait(pause):
            text = self._text
            if text != self._printed:
                self._printed = text
                self._print(text)
                pause = LINE_EVERY_S

    def _print(self, text: str) -> None:
        tell(f"{text}")


@contextmanager
def display(counted: bool) -> Iterator[Display]:
    """Progress on stderr: bars on a terminal, else lines; nothing with `--quiet`.

    Parameters
    ----------
    counted
        Whether tasks have a number of steps. If not, a spinner is shown, and removed at the end.
    """
    if is_quiet():
        yield Silence()
        return
    from rich import progress as rich

    from airpass.cli.screen import Screen

    screen = Screen(stderr=True)
    if not screen.is_terminal:
        lines = Lines()
        failed = True
        try:
            yield lines
            failed = False
        finally:
            lines.close(failed)
        return
    text = rich.TextColumn("{task.fields[text]}", markup=False)
    if counted:
        name = rich.TextColumn("{task.description:<16}", markup=False)
        columns = [name, rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn()]
        columns += [rich.TimeRemainingColumn(), text]
    else:
        columns = [rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False), text]
        columns += [rich.TimeElapsedColumn()]
    with rich.Progress(*columns, console=screen, transient=not counted) as bars:
        yield Bars(bars)


@contextmanager
def progress(label: str) -> Iterator[Callable[[str], None]]:
    """Progress of one task without a number of steps; yields a callback for messages."""
    from airpass.kernels.compiling import on_compilation

    ctx = click.get_current_context(silent=True)
    with display(counted=False) as shown:
        shown.add(label, None)

        def compiling() -> None:
            shown.show(label, "compiling kernels, once on this machine (a minute or two)")
            if ctx is not None:
                ctx.meta[COMPILED] = True

        with on_compilation(compiling):
            yield lambda text: shown.show(label, text)


class TrainingBars:
    """Progress of every scheme."""

    def __init__(self, shown: Display, rounds: int) -> None:
        self._display = shown
        self._rounds = rounds
        self._kind: str | None = None  # of the last message about loading

    def report(self, text: str) -> None:
        """Show a message about loading; the first of each kind at once."""
        if self._kind is None:
            self._display.add("data", None)
        kind = text.partition(":")[0]
        if kind == self._kind:
            self._display.show("data", text)
        else:
            self._display.notice(text)
        self._kind = kind

    def start(self, scheme: str) -> None:
        """Begin a scheme."""
        self._display.add(scheme, self._rounds)

    def show(self, scheme: str, done: int, values: Mapping[str, float]) -> None:
        """Show a round. Accuracy is that of the last evaluation, loss and MSE those of the last round."""
        accuracy = "" if isnan(values["accuracy"]) else f"accuracy {100 * values['accuracy']:.1f} %  "
        text = (
            f"{accuracy}loss {values['loss']:.3f}  selected {values['selected']:g}  MSE {values['mse']:.3g}"
        )
        self._display.show(scheme, text, done)


@contextmanager
def training_bars(rounds: int) -> Iterator[TrainingBars]:
    """Progress of training, per scheme."""
    with display(counted=True) as shown:
        yield TrainingBars(shown, rounds)


class TrialBar:
    """Progress over trials."""

    def __init__(self, shown: Display, total: int) -> None:
        self._display = shown
        self._done = 0
        shown.add("trials", total)

    def advance(self, trial: "Trial") -> None:
        """Count a finished trial."""
        self._done += 1
        self._display.show("trials", trial.name, self._done)

    def notice(self, text: str) -> None:
        """Show a message that must not wait."""
        self._display.notice(text)


@contextmanager
def trial_bar(total: int) -> Iterator[TrialBar]:
    """Progress of a study."""
    try:
        with display(counted=True) as shown:
            yield TrialBar(shown, total)
    except KeyboardInterrupt:
        note("finished trials are stored: the same command continues")
        raise
