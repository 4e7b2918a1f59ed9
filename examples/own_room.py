"""A room of one's own: waveguides with their own place, height and feed, devices on a table or the floor.

Run: python examples/own_room.py
"""

import airpass

room = airpass.Scenario.from_dict(
    {
        "receiver": {
            "waveguides": 3,
            "antennas": 6,
            "length_m": [12.0, 12.0, 8.0],
            "waveguide_y_m": [1.0, 3.5, 6.0],
            "height_m": [3.0, 3.0, 2.6],
            "feed": ["left", "centre", "right"],
            "min_gap_m": 0.1,
        },
        "radio": {"snr_db": 0.0},
        "devices": {"count": 15, "x_range_m": [0.5, 11.5], "y_range_m": [0.5, 6.5], "z_m": 0.8, "seed": 3},
    }
)
design = airpass.design(room)
print(design)
design.plot("own_room.png")
room.save("own_room.toml")
