"""Texts of users as they are shown: printable, in one line, and not too long."""

from typing import Any

LONGEST_VALUE = 80  # characters of a value in a message
LONGEST_LINE = 360  # characters of a message
LONGEST_NAME = 60  # characters of a name in a table or a picture


def printable(text: str, keep: str = "") -> str:
    """Text whose characters are all visible.

    Control characters, ANSI escapes among them, marks that change the direction of writing, and bytes of file
    names that are not UTF-8 become escapes such as ``\\x1b``.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters that are kept although they are not visible, such as a line feed.

    Returns
    -------
    str
        Text without such characters.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def shortened(text: str, longest: int) -> str:
    """Text of at most `longest` characters. The middle of a longer one is left out: the ends say more."""
    if len(text) <= longest:
        return text
    end = (longest - 3) // 2
    return f"{text[: longest - 3 - end]}...{text[-end:]}"


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Text as one printable line of at most `longest` characters."""
    return shortened(printable(" ".join(text.split())), longest)


def shown(value: Any) -> str:
    """A value of any kind as Python writes it, for a message.

    Parameters
    ----------
    value
        Any object. Its `repr` may be long, of several lines, or fail.

    Returns
    -------
    str
        One printable line of at most `LONGEST_VALUE` characters.
    """
    try:
        plain = value.item() if getattr(value, "ndim", None) == 0 else value  # scalars of NumPy
        return one_line(repr(plain), LONGEST_VALUE)
    except Exception:  # whole numbers of thousands of digits, nested lists, and objects of users
        if isinstance(value, int):
            return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
        return f"an object of type {type(value).__name__}"
