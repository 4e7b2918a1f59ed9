"""A design that a joint search has found."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airpass.core.types import Complex, Index, Real
from airpass.optim.ranking import value_rank


@dataclass(frozen=True, eq=False)
class Found:
    """A layout, its beam, and the scores they give, in units of the margins."""

    layout: Real
    beam: Complex  # shape (M,); with subcarriers, one for each, shape (S, M)
    scores: Real  # with subcarriers, combined; shape (K,)
    priorities: Real  # v_k

    @cached_property
    def rank(self) -> tuple[float, float]:
        """Sum of the selected devices' priorities, and the weakest score among them."""
        return value_rank(self.scores, self.priorities)

    @property
    def value(self) -> float:
        """Sum of the selected devices' priorities."""
        return self.rank[0]

    @cached_property
    def selected(self) -> Index:
        """The selected devices with a priority above zero, by number."""
        return np.flatnonzero((self.scores >= 1.0) & (self.priorities > 0.0))

    @cached_property
    def order(self) -> Index:
        """The devices with a priority above zero: the selected first, each part by falling v_k z_k."""
        counts = self.priorities > 0.0
        order = np.lexsort((-self.priorities * self.scores, ~((self.scores >= 1.0) & counts)))
        return order[counts[order]]

    def first(self, count: int) -> Index:
        """The first devices of `order`, by number."""
        return np.sort(self.order[:count])

    def number_above(self, value: float) -> int:
        """How many of the first devices of `order` are worth more than `value`; all if they are not."""
        worth = np.cumsum(self.priorities[self.order])
        return min(int(np.searchsorted(worth, value, side="right")) + 1, worth.size)

    def smooth_count(self, power: float) -> float:
        """sum_k v_k/(1 + z_k^p), the smooth count of devices that are not selected."""
        return float(np.sum(self.priorities / (1.0 + self.scores**power)))

    def weakest(self, devices: Index) -> float:
        """The smallest score of some devices."""
        return float(self.scores[devices].min())
