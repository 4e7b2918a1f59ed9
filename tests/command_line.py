"""What tests of the command line share."""

PROGRESS = ("airpass: Designing: ", "airpass: Selecting: ", "airpass: Scheduling: ", "airpass: Tracking: ")


class Outcome:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Exit code 2 and one line that says what is wrong; nothing on standard output."""
    assert outcome.code == 2
    assert outcome.out == ""
    # Work that takes long, such as compiling on a fresh machine, prints lines of progress before.
    lines = [line for line in outcome.err.splitlines() if not line.startswith(PROGRESS)]
    assert len(lines) == 1
    assert outcome.err.endswith("\n")
    assert outcome.err.startswith("airpass: ")
    for word in words:
        assert word in outcome.err
