"""Write examples/traced.npz: responses in a room, traced by Sionna RT.

Run in an environment with `airpass[sionna]`: python benchmarks/make_traced_sample.py [FILE]. The room is
Sionna RT's scene `box`, 10 m x 10 m x 5 m, with walls, floor and ceiling of concrete (ITU-R P.2040), at
3.5 GHz with up to two reflections. Four waveguides of 9 m hang 4 m above the floor, with a candidate place
every 5 cm. Twelve devices are drawn at a height of 1 m.
"""

import sys
from pathlib import Path

import numpy as np

from airpass import Receiver, SampledResponse
from airpass.core.randomness import Purpose, stream
from airpass.importers import sionna

FILE = Path(__file__).parent.parent / "examples" / "traced.npz"
RECEIVER = Receiver(waveguides=4, antennas=4, length_m=9.0, spacing_m=2.0, height_m=4.0, min_gap_m=0.05)
ORIGIN_M = (-4.5, -3.0, 0.0)  # in the scene, whose origin is in the middle of the floor
PLACES_M = np.linspace(0.0, 9.0, 181)
DEVICES, SEED = 12, 2026


def traced() -> SampledResponse:
    """Trace the room."""
    sionna.require_sionna()
    from sionna import rt as tracer

    scene = tracer.load_scene(tracer.scene.box)
    scene.frequency = 3.5e9
    concrete = tracer.ITURadioMaterial("concrete-0.2-m", "concrete", thickness=0.2)
    for item in scene.objects.values():
        item.radio_material = concrete
    draw = stream(SEED, Purpose.DEVICES).uniform([0.0, -1.5], [9.0, 7.5], (DEVICES, 2))
    return sionna.trace(
        scene,
        RECEIVER,
        PLACES_M,
        np.column_stack([draw, np.ones(DEVICES)]),
        origin_m=ORIGIN_M,
        max_depth=2,
        samples_per_src=200_000,  # with 20,000, some weak paths are missed
        refraction=False,
        description="Sionna RT 2.2.0, box of 10 m x 10 m x 5 m, concrete, 3.5 GHz, up to two reflections",
    )


def main() -> None:
    """Write the file and print what it holds."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    sampled = traced()
    sampled.save(path, single=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB, {sampled}")


if __name__ == "__main__":
    main()
