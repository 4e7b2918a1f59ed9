"""What tests of the command line share."""


class Outcome:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Exit code 2 and one line that says what is wrong; nothing on standard output."""
    assert outcome.code == 2
    assert outcome.out == ""
    *progress, message = outcome.err.splitlines()  # long work prints progress before
    assert all(line.startswith("airpass: ") for line in (*progress, message))
    assert outcome.err.endswith("\n")
    assert outcome.err.startswith("airpass: ")
    for word in words:
        assert word in outcome.err
