"""The error raised for invalid input, and where errors of a user's own code come from."""

import os
import sys
import traceback
from pathlib import Path


class InvalidInput(ValueError):
    """Invalid input. The message names the field, its value and what is allowed, in one line."""


def users_line(error: BaseException) -> str | None:
    """File, line and function of the user's own code that an error comes from, if it does."""
    installed = [Path(__file__).parents[1], Path(sys.prefix), Path(os.__file__).parent]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(path.resolve().is_relative_to(folder) for folder in installed):
            return f"{path.name}, line {frame.lineno}, in {frame.name}"
    return None
