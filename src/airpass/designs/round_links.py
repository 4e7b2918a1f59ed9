"""Links of consecutive communication rounds that are computed as training goes on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from airpass.aircomp import Link
from airpass.core.registry import Method


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RoundLink(Link):
    """The link of a round.

    Parameters
    ----------
    method
        The method that found it.
    """

    method: Method


class RoundLinks(Sequence[Link]):
    """The links of consecutive rounds, each computed when it is first used, in their order.

    Only the first and the last link that were used are kept. Going back starts from the first round again.

    Parameters
    ----------
    start
        Starts an iterator over the links of rounds 1, 2, and so on. All iterators give the same links.
    rounds
        Number of rounds. The first links do not depend on it.
    config
        What the links depend on, as plain data; part of the configuration of a training run.
    """

    def __init__(self, start: Callable[[], Iterator[Link]], rounds: int, config: Mapping[str, Any]) -> None:
        self.config = config
        self._start = start
        self._rounds = rounds
        self._links = start()
        self._at = 0
        self._first = self._last = next(self._links)

    def __len__(self) -> int:
        return self._rounds

    @overload
    def __getitem__(self, index: int) -> Link: ...

    @overload
    def __getitem__(self, index: slice) -> list[Link]: ...

    def __getitem__(self, index: int | slice) -> Link | list[Link]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        wanted = range(len(self))[index]
        if wanted == 0:
            return self._first
        if wanted < self._at:
            self._links, self._at = self._start(), 0
            next(self._links)
        while self._at < wanted:
            self._last = next(self._links)
            self._at += 1
        return self._last

    def __repr__(self) -> str:
        return f"RoundLinks({len(self)} rounds, {self._first.weights.size} devices)"
