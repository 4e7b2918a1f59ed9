"""Rich's console without markup: texts of users are printed as they are."""

from typing import Any

from rich.console import Console
from rich.text import Text

from airpass.core.text import printable


class Screen(Console):
    """A console that takes no text for markup, emoji or escapes of the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Text of a message or of a cell."""
        return super().render_str(printable(text, keep="\n"), **options)
