"""Selected devices against SNR, with antennas evenly spaced and moved. Run: python examples/snr_sweep.py"""

import numpy as np

import airpass

SEEDS = range(5)

print("SNR dB   evenly spaced   moved")
for snr_db in (-10.0, -5.0, 0.0, 5.0):
    scenarios = [airpass.Scenario.paper(50, 10, 10, snr_db, seed) for seed in SEEDS]
    fixed = [airpass.design(scenario, selection="hrmc", geometry="fixed") for scenario in scenarios]
    moved = [airpass.design(scenario) for scenario in scenarios]
    counts = [np.mean([result.selected_count for result in group]) for group in (fixed, moved)]
    print(f"{snr_db:6g} {counts[0]:15.1f} {counts[1]:7.1f}")
