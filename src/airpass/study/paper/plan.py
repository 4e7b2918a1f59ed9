"""How many trials each figure has, and their seeds.

The numbers are fixed before a run. They are not changed after rows have been looked at: a study that is
extended until a claim is decided decides too often. A study with fewer trials than declared is interim.

The seeds of scale "paper" begin at 6000: no choice in this package was made on them, and no earlier run
used them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from airpass.study.trial import Trial

SLOW = ("sdr-dc", "airpass-sdr-dc")


@dataclass(frozen=True)
class Plan:
    """The trials of a figure at a scale.

    Parameters
    ----------
    trials
        Number of trials.
    slow_trials
        Number of trials of the schemes in `SLOW`; None for the same.
    first_seed
        Trial t has the seed first_seed + t.
    """

    trials: int
    slow_trials: int | None = None
    first_seed: int = 0

    def count(self, scheme: str) -> int:
        """Number of trials of a scheme."""
        return self.slow_trials if self.slow_trials is not None and scheme in SLOW else self.trials

    def seeds(self) -> list[tuple[int, int]]:
        """Number and seed of each trial."""
        return [(number, self.first_seed + number) for number in range(self.trials)]


FRESH = 6000  # first seed of scale "paper"
ADDED = (
    "devices-chains",
    "devices-k",
    "devices-threshold",
    "energy-k",
    "life",
    "time-k",
    "tolerance",
    "turns-snr",
)  # figures that are not in the paper
PLANS: dict[str, dict[str, Plan]] = {
    "smoke": {
        **dict.fromkeys(("fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8"), Plan(1)),
        **dict.fromkeys(("fig9", "table1"), Plan(2, 1)),
        **dict.fromkeys(ADDED, Plan(1)),
    },
    "lite": {
        **dict.fromkeys(("fig2", "fig3", "fig4", "fig6", "fig7", "fig8"), Plan(3)),
        "fig5": Plan(1),
        "fig9": Plan(5, 1),
        "table1": Plan(5, 2),
        **dict.fromkeys(ADDED, Plan(3)),
    },
    "paper": {
        **dict.fromkeys(("fig2", "fig6", "fig7", "fig8"), Plan(20, first_seed=FRESH)),
        **dict.fromkeys(("fig3", "fig5"), Plan(3, first_seed=FRESH)),
        "fig4": Plan(10, first_seed=FRESH),
        **dict.fromkeys(("fig9", "table1"), Plan(50, 10, first_seed=FRESH)),
        **dict.fromkeys(ADDED, Plan(20, 5, first_seed=FRESH)),
    },
}


@dataclass(frozen=True)
class Progress:
    """Number of complete trials beside the declared number."""

    done: int
    declared: int

    @property
    def interim(self) -> bool:
        """Whether trials are missing."""
        return self.done < self.declared

    def __str__(self) -> str:
        text = f"{self.done} of {self.declared} {'trial' if self.declared == 1 else 'trials'}"
        return f"{text}; interim" if self.interim else text


def progress(declared: Iterable[Trial], stored: Iterable[str]) -> Progress:
    """How far a study is.

    Parameters
    ----------
    declared
        All trials of the study.
    stored
        Keys of the stored trials.

    Returns
    -------
    Progress
        Counts numbers of trials. A number is done if every scheme and point with it is stored.
    """
    known, numbers, missing = set(stored), set(), set()
    for trial in declared:
        numbers.add(trial.trial)
        if trial.key not in known:
            missing.add(trial.trial)
    return Progress(len(numbers - missing), len(numbers))
