"""Write channels.npz: eight draws of the channels of fifty devices to ten waveguides, antennas evenly spaced.

The array `channels` has the shape (8, 10, 50): draws, receive chains, devices. Draw t has the devices
of seed t.

Run: python examples/make_channels.py
"""

from pathlib import Path

import numpy as np

import airpass

draws = []
for seed in range(8):
    scenario = airpass.Scenario.paper(devices=50, waveguides=10, antennas=10, seed=seed)
    draws.append(scenario.channels(scenario.uniform_layout()))
np.savez_compressed(Path(__file__).with_name("channels.npz"), channels=np.array(draws, dtype=np.complex64))
