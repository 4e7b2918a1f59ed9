"""Priorities v_k of devices that follow from their data.

    samples   v_k proportional to |D_k|: the selected devices hold as many samples as possible.
    classes   v_k proportional to the sum of 1/h_c over the classes c that device k holds, where h_c is the
              number of devices that hold class c. Every class counts one in total, shared by its holders, so
              that a device with a class that few others have is worth more.

Both are scaled to a mean of one.
"""

from typing import Any

import numpy as np

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.types import Real
from airpass.learning.data.base import CLASSIFICATION
from airpass.learning.data.partition import FederatedData
from airpass.scenario.devices import sample_priorities
from airpass.selection.api import checked_priorities

KINDS = ("samples", "classes")


def data_priorities(priorities: Any, data: FederatedData) -> Real:
    """Priorities of the devices that hold some data.

    Parameters
    ----------
    priorities
        "samples", "classes", or v_k >= 0: one number for all devices or one for each.
    data
        The data of every device.

    Returns
    -------
    Real
        v_k, shape (K,).
    """
    if not isinstance(priorities, str):
        return checked_priorities(priorities, len(data.samples))
    if checks.one_of("priorities", priorities, KINDS) == "samples":
        return sample_priorities(np.array(data.counts, dtype=np.float64))
    labels = data.dataset.y_train
    if data.dataset.task != CLASSIFICATION:
        raise InvalidInput("priorities = 'classes': needs classes, and the targets are floats; use samples")
    holds = np.zeros((len(data.samples), data.dataset.classes), dtype=bool)
    for k, share in enumerate(data.samples):
        holds[k, np.unique(labels[share])] = True
    values: Real = holds @ (1.0 / np.maximum(holds.sum(axis=0), 1))
    values /= values.mean()
    return values
