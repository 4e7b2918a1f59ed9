"""A sweep, drawn as a figure of one column for a paper.

Run: python examples/sweep.py
"""

import airpass

STUDY = {
    "name": "height",
    "schemes": ["airpass-plus", "airpass", "mimo-mn-plus"],
    "trials": 4,
    "axis": {"field": "receiver.height_m", "values": [2.0, 4.0, 6.0, 8.0]},
    "scenario": {
        "receiver": {"waveguides": 4, "antennas": 4},
        "devices": {"count": 16},
        "radio": {"snr_db": 5.0},
    },
    "figure": {"mode": "paper", "width": "ieee-1", "font": "times", "x_label": "height $a$", "x_unit": "m"},
}

if __name__ == "__main__":  # workers import this file
    study = airpass.sweep(STUDY, "runs/height")
    print(study.to_frame().groupby(["scheme", "x", "metric"])["value"].mean().unstack())
    print("figure: runs/height/height.pdf, page: runs/height/report.html")
