"""Interface of selection methods: find a beam for given effective channels.

The selected devices follow from the beam by eq. (29).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from airpass import aircomp
from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, RecordedMethod, Report
from airpass.core.types import Complex, Real

DRAWN = 10_000  # random beams that are drawn at a time


@dataclass(frozen=True, eq=False)
class BeamSearch:
    """Result of a search."""

    beam: Complex  # unit norm, shape (M,)
    status: str = "done"  # or a description of the problem
    work: Mapping[str, int] = field(default_factory=dict)  # counts (iterations, solves), for diagnosis


class SelectionMethod(Method, ABC):
    """A method that selects devices by choosing a beam."""

    @abstractmethod
    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Find a beam.

        Parameters
        ----------
        effective
            Columns sqrt(Gamma) g_k/phi_k, shape (M, K).
        rng
            The only source of randomness.
        report
            Callback for progress messages.

        Returns
        -------
        BeamSearch
            A beam of unit norm.
        """

    def prioritised(
        self, effective: Complex, priorities: Real, rng: np.random.Generator, report: Report
    ) -> BeamSearch:
        """Find a beam for the largest sum of priorities, not for the most devices.

        Methods that can do so override this. It is called by `find`, if priorities differ.

        Parameters
        ----------
        effective, rng, report
            As for `search`.
        priorities
            v_k >= 0, shape (K,), scaled such that the largest is one.

        Returns
        -------
        BeamSearch
            A beam of unit norm.
        """
        raise InvalidInput(f"priorities: {self.name} cannot use them; hrmc, hrmc+ and exhaustive can")

    def find(
        self, effective: Complex, priorities: Real, rng: np.random.Generator, report: Report
    ) -> BeamSearch:
        """Find a beam: `search` if all priorities are equal, else `prioritised`.

        Parameters
        ----------
        effective, rng, report
            As for `search`.
        priorities
            v_k >= 0, shape (K,); at least one is > 0.

        Returns
        -------
        BeamSearch
            A beam of unit norm. Multiplying all priorities by a power of two does not change it.
        """
        if (priorities == priorities[0]).all():
            return self.search(effective, rng, report)
        return self.prioritised(effective, scaled_priorities(priorities), rng, report)


def scaled_priorities(priorities: Real) -> Real:
    """Priorities over the largest of them."""
    scaled: Real = priorities / priorities.max()
    return scaled


@dataclass(frozen=True)
class RecordedSelection(RecordedMethod, SelectionMethod):
    """A selection method of a stored result that is not registered."""

    def search(self, effective: Complex, rng: np.random.Generator, report: Report) -> BeamSearch:
        """Refuse to run."""
        raise self.refuse()


def checked_search(method: SelectionMethod, found: BeamSearch, chains: int) -> BeamSearch:
    """The result of a method's search; `InvalidInput` is raised if it is not a beam of unit norm."""
    if not isinstance(found, BeamSearch):
        raise InvalidInput(f"{method.name}: search returned {type(found).__name__}: must be a BeamSearch")
    aircomp.checked_beam(found.beam, chains, method.name)
    return found


def dominant_eigenvector(effective: Complex, priorities: Real | None = None) -> Complex:
    """Unit eigenvector of sum_k v_k Q_k for its largest eigenvalue, the default start of a search.

    Parameters
    ----------
    effective
        Effective channels, shape (M, K).
    priorities
        v_k, shape (K,); one each if not given.

    Returns
    -------
    Complex
        A beam of unit norm, shape (M,).
    """
    if priorities is not None and (priorities != 1.0).any():
        effective = effective * np.sqrt(priorities)
    _, vectors = np.linalg.eigh(effective @ effective.conj().T)
    start: Complex = np.ascontiguousarray(vectors[:, -1])
    return start


def random_beams(count: int, dimension: int, rng: np.random.Generator) -> Complex:
    """Unit beams, uniform on the sphere; shape (count, dimension).

    They are drawn one after the other: the first beams do not depend on `count`.
    """
    unit = np.empty((count, dimension), np.complex128)
    for start in range(0, count, DRAWN):  # in blocks, because Ctrl-C waits for the end of each
        stop = min(start + DRAWN, count)
        parts = rng.standard_normal((stop - start, 2, dimension))
        beams = parts[:, 0] + 1j * parts[:, 1]
        unit[start:stop] = beams / np.linalg.norm(beams, axis=1, keepdims=True)
    return unit
