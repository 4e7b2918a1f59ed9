"""Selected devices against SNR, for evenly spaced antennas, the paper's method and airpass-plus.

Run: python examples/snr_sweep.py
"""

from typing import Any

import numpy as np

import airpass

SEEDS = range(5)

SCHEMES: dict[str, dict[str, Any]] = {
    "evenly spaced": {"selection": "hrmc", "geometry": "fixed"},
    "airpass": {"method": "airpass"},
    "airpass-plus": {"method": "airpass-plus", "options": {"effort": "fast"}},
}

print("SNR dB", *(f"{name:>15}" for name in SCHEMES))
for snr_db in (-15.0, -10.0, -5.0, 0.0, 5.0):
    scenarios = [airpass.Scenario.paper(50, 10, 10, snr_db, seed) for seed in SEEDS]
    means = [
        np.mean([airpass.design(scenario, **how).selected_count for scenario in scenarios])
        for how in SCHEMES.values()
    ]
    print(f"{snr_db:6g}", *(f"{mean:15.1f}" for mean in means))
