"""Random streams keyed by purpose: what one part draws never shifts what another sees.

Two schemes run with the same seed see the same devices, whatever else each of them draws.
"""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of every seeded result: never reuse one."""

    DEVICES = 0  # positions and gains
    SELECTION = 1  # random starts of a selection method
    GEOMETRY = 2  # random choices of a geometry method
    PARTITION = 3  # who holds which samples
    INITIAL_WEIGHTS = 4  # of the model
    BATCHES = 5  # a device's mini-batches and dropout in a round
    NOISE = 6  # receiver noise of a round
    CHANNEL_ERROR = 7  # what devices get wrong about their channel in a round
    JOINT = 8  # random layouts of the joint search
    BUILD_ERROR = 9  # how far antennas end up from where they were meant


def stream(seed: int, purpose: Purpose, *indices: int) -> np.random.Generator:
    """The generator for one purpose (and trial, or round, ... in `indices`) under a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(purpose), *indices)))
