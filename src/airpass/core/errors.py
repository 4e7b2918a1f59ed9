"""The error raised for invalid input."""


class InvalidInput(ValueError):
    """Invalid input. The message names the field, its value and what is allowed, in one line."""
