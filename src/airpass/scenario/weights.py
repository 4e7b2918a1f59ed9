"""Aggregation weights from sample counts."""

from dataclasses import dataclass

from airpass.core import checks
from airpass.core.types import Real

NORMALISATIONS = ("share", "count")


@dataclass(frozen=True)
class Weighting:
    """Rule that turns sample counts into the weights phi_k.

    `share` is |D_k|/sum_j |D_j|. `count` is |D_k|, as printed in the paper, under which
    no device can meet an error threshold of 0.03 (see docs/deviations.md).
    """

    normalisation: str = "share"

    def __post_init__(self) -> None:
        checks.one_of("weights.normalisation", self.normalisation, NORMALISATIONS)

    def weights(self, samples: Real) -> Real:
        """phi_k."""
        return samples / samples.sum() if self.normalisation == "share" else samples.copy()
