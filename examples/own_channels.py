"""Train over measured or simulated channels: a stack (T, M, K) of draws, one per round.

Run: python examples/own_channels.py
"""

from pathlib import Path

import numpy as np

import airpass

channels = np.load(Path(__file__).parent / "channels.npz")["channels"]  # complex, (T, M, K)
print("draws, receive chains, devices:", channels.shape)

draws = airpass.select_draws(channels, method="hrmc+", snr_db=0.0, mse_threshold=0.03)
print("selected per draw:", [selection.selected_count for selection in draws])

run = airpass.train(draws, options=airpass.TrainOptions(rounds=24, evaluate_every=6))
print(run, "selected in round 6, 12, ...:", [record.selected_count for record in run.history[1:]])
run.plot("own_channels.png")
