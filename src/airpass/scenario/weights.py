"""Aggregation weights from sample counts."""

from dataclasses import dataclass

import numpy as np

from airpass.core import checks
from airpass.core.types import Real

NORMALISATIONS = ("share", "energy", "count")


@dataclass(frozen=True)
class Weighting:
    """Rule that turns sample counts into the weights phi_k.

    The wanted sum of uncorrelated symbols of unit power has the power sum_k phi_k^2. The rule decides
    what an error threshold eps means in relation to it, if all devices are selected:

    - `share`, phi_k = |D_k|/sum_j |D_j|: the power is 1/K for equal counts, so that eps is a
      distortion-to-signal ratio of K eps. At K eps >= 1 a receiver that outputs zero meets it.
    - `energy`, phi_k = |D_k|/sqrt(sum_j |D_j|^2): the power is 1, and eps is the distortion-to-signal
      ratio whatever K.
    - `count`, phi_k = |D_k|, as printed in the paper: no device can meet a threshold of 0.03
      (see docs/concepts/error-scale.md).

    Training divides the received sum by the sum of the weights, so that the rule does not change
    the mean that is learned from, only who is selected.
    """

    normalisation: str = "share"

    def __post_init__(self) -> None:
        checks.one_of("weights.normalisation", self.normalisation, NORMALISATIONS)

    def weights(self, samples: Real) -> Real:
        """phi_k."""
        scale = {"share": samples.sum(), "energy": np.sqrt(np.sum(samples**2)), "count": 1.0}
        weights: Real = samples / scale[self.normalisation]
        return weights
