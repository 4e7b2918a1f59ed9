"""The traced sample against eq. (64): pictures of a response and of a design, and selected devices.

Run: python benchmarks/traced.py. Writes docs/images/traced.png and traced-design.png, and prints the table of
docs/howto/ray-tracing.md.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from airpass import Channel, SampledResponse, Scenario, design, load_responses, select
from airpass.channel.pass_uplink import PassUplink
from make_traced_sample import FILE, RECEIVER

SCENARIO = FILE.with_suffix(".toml")
PICTURE, DESIGN = (
    Path(__file__).parent.parent / "docs" / "images" / name for name in ("traced.png", "traced-design.png")
)
INDEX = 1.45  # refractive index; that of the scenario
WAVEGUIDE, DEVICE = 1, 0


def by_formula(room: SampledResponse) -> SampledResponse:
    """Eq. (64) at the same places, with xi = lambda/(4 pi)."""
    assert room.device_xyz_m is not None
    assert room.carrier_ghz is not None
    wavelength = 0.299_792_458 / room.carrier_ghz
    x, y, z = room.device_xyz_m.T
    model = PassUplink(
        device_x=x,
        device_y=y,
        device_z=z,
        gain=np.ones(x.size),
        waveguide_y=RECEIVER.waveguide_y,
        height=RECEIVER.heights,
        wavelength=wavelength,
        refractive_index=INDEX,
        path_gain=wavelength / (4.0 * np.pi),
    )
    terms = model.terms(room.places_m) * np.sqrt(room.places_m.shape[1])  # of single antennas
    return replace(room, response=terms, waveguide_included=True, description="eq. (64)")


def draw(room: SampledResponse, formula: SampledResponse) -> None:
    """Path gain along a waveguide."""
    import matplotlib as mpl

    from airpass.figures.style import RC, new_figure, save

    with mpl.rc_context(RC):
        figure = new_figure(6.4, 2.8)
        axes = figure.subplots()
        for values, label, colour, dash in (
            (room, "traced by Sionna RT", "#0072b2", "-"),
            (formula, "eq. (64), line of sight", "#d55e00", "--"),
        ):
            gain = 20.0 * np.log10(np.abs(values.response[WAVEGUIDE, :, DEVICE]))
            axes.plot(
                values.places_m[WAVEGUIDE], gain, color=colour, linestyle=dash, linewidth=1.3, label=label
            )
        axes.set_xlabel("place on the waveguide, m")
        axes.set_ylabel("path gain, dB")
        axes.grid(True)
        axes.set_ylim(-82.0, -48.0)
        axes.legend(loc="lower center", ncols=2)
        save(figure, PICTURE)


def main() -> None:
    """Draw the pictures and print the table."""
    scenario = Scenario.load(SCENARIO)
    room = load_responses(FILE).with_waveguides(RECEIVER, INDEX)
    formula = by_formula(room)
    draw(room, formula)
    design(scenario).plot(DESIGN)
    print("| SNR, dB | median received, dB | even spacing | elementwise | plus for eq. (64) | plus |")
    for snr_db in (36.0, 39.0, 42.0, 45.0, 48.0):
        here = scenario.with_radio(snr_db=snr_db)
        free = replace(here, channel=Channel(responses=formula))
        channels = here.channels(np.asarray(design(free).layout))
        counts = (
            design(here, "distributed-m"),
            design(here, selection="hrmc+", geometry="elementwise"),
            select(channels, here.weights, here.budget, "hrmc+"),
            design(here),
        )
        shown = " | ".join(str(found.selected_count) for found in counts)
        print(f"| {snr_db:g} | {room.median_snr_db(snr_db):.1f} | {shown} |")


if __name__ == "__main__":
    main()
