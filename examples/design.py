"""Design a receiver, look at it, and measure what position errors do to it.

Run: python examples/design.py
"""

import airpass

scenario = airpass.Scenario.paper(devices=20, waveguides=5, antennas=5, snr_db=0.0, seed=7)
for method in ("airpass", "airpass-plus", "mimo-mn-plus"):
    design = airpass.design(scenario, method)
    print(design)

best = airpass.design(scenario)  # airpass-plus
best.plot("room.png")
best.save("design.json")
errors = airpass.tolerance(best, position_mm=2.0)
print(f"with errors of 2 mm: {errors.outcomes['re-solved'].mean:.1f} of {best.selected_count} devices")
