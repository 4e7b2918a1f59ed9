"""The one error that callers are meant to catch: something they passed in cannot be used."""


class InvalidInput(ValueError):
    """An input that names its field, its value and what is allowed, in one line."""
