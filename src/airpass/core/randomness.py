"""Random streams keyed by purpose.

Streams are independent: numbers drawn for one purpose do not change those of another. Two schemes
with the same seed see the same devices.
"""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """Purpose of a stream. The numbers are part of every seeded result: never reuse one."""

    DEVICES = 0  # positions and gains
    SELECTION = 1  # random starts of a selection method
    GEOMETRY = 2  # random choices of a geometry method
    PARTITION = 3  # assignment of samples to devices
    INITIAL_WEIGHTS = 4  # of the model
    BATCHES = 5  # a device's mini-batches and dropout in a round
    NOISE = 6  # receiver noise of a round
    CHANNEL_ERROR = 7  # channel estimation errors of a round
    JOINT = 8  # random layouts of the joint search
    BUILD_ERROR = 9  # position errors of antennas
    TURNS = 12  # seeds of the designs of a book, and layouts that stay
    DISPLACEMENT = 13  # of devices
    DIRECTIONS = 20  # directions in which devices are displaced
    MOTION = 21  # a device's path
    BLOCKAGE = 30  # of a device's lines of sight
    SCATTER = 31  # a device's scattered waves


def stream(seed: int, purpose: Purpose, *indices: int) -> np.random.Generator:
    """Generator for one purpose under a seed; `indices` number trials, rounds or devices."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(purpose), *indices)))
