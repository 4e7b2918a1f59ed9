"""Devices that move: the life of designs, and tracking them.

    python benchmarks/motion.py run          # appends missing rows to docs/data/motion-*.csv
    python benchmarks/motion.py table        # prints the tables of docs/howto/motion.md
    python benchmarks/motion.py figure       # draws docs/images/motion-*.png
    python benchmarks/motion.py animation    # draws docs/images/motion.gif

K = 50, M = N = 10. The seeds are used for nothing else. Rows are stored case by case; a run that was
interrupted continues.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from airpass import RandomWaypoint, Scenario, design, life, track
from airpass.core.types import Real
from airpass.designs.base import DesignMethod
from airpass.designs.colocated import MimoMnPlus, MimoMPlus
from airpass.designs.distributed import DistributedM, DistributedMn
from airpass.designs.life import Life
from airpass.designs.plus import AirpassPlus
from airpass.designs.tolerance import RECEIVERS

DOCS = Path(__file__).parent.parent / "docs"
LIFE, TRACK = DOCS / "data" / "motion-life.csv", DOCS / "data" / "motion-track.csv"
LEAD = DOCS / "data" / "motion-lead.csv"
WAVELENGTHS_M = {"2.4 GHz": 0.125, "28 GHz": 0.0107}
SNRS_DB = (-10, -5, 0)
LIFE_SEEDS, LIFE_DRAWS = range(8400, 8406), 5
TRACK_SEEDS, TRACK_SNRS_DB = range(8410, 8416), (-10, -5)
SECONDS, SPEED_M_S, BEAM_S = 1.0, 1.0, 0.01
EVERY_S = (0.01, 0.03, 0.1, 0.3, 1.0)
ANTENNA_SPEEDS_M_S = (1.0, 0.1)
NAMES = {
    "airpass-plus": "airpass-plus",
    "distributed-m": "waveguides, even spacing (M chains)",
    "mimo-m-plus": "co-located, M chains, upright line",
    "mimo-mn-plus-z": "co-located, MN chains, upright line",
    "mimo-mn-plus-xz": "co-located, MN chains, upright plane",
    "distributed-mn": "distributed, MN chains",
}
LIFE_FIELDS = ("carrier", "snr_db", "seed", "scheme", "receiver", "distance_m", "wavelengths", "aligned")
TRACK_FIELDS = (
    "snr_db", "seed", "scheme", "update", "layout_every_s", "layout_delay_s", "antenna_speed_m_s",
    "designed", "mean_selected", "least_selected", "beam_ms", "layout_ms", "largest_travel_mm",
)  # fmt: skip


def schemes() -> dict[str, DesignMethod]:
    """Label and method."""
    return {
        "airpass-plus": AirpassPlus(effort="fast", threads=1),
        "distributed-m": DistributedM(),
        "mimo-m-plus": MimoMPlus(axis="z"),
        "mimo-mn-plus-z": MimoMnPlus(axis="z"),
        "mimo-mn-plus-xz": MimoMnPlus(axis="xz"),
        "distributed-mn": DistributedMn(),
    }


def rows(path: Path) -> list[dict[str, str]]:
    """All stored rows."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: tuple[str, ...], found: list[dict[str, Any]]) -> None:
    """Store the rows of one case."""
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if fresh:
            writer.writeheader()
        writer.writerows(found)


def room(snr_db: float, seed: int, wavelength_m: float = 0.125) -> Scenario:
    """The setting of all measurements."""
    return Scenario.paper(50, 10, 10, snr_db, seed).with_radio(wavelength_m=wavelength_m)


def run_life() -> None:
    """Lives that are missing."""
    done = {(row["carrier"], row["snr_db"], row["seed"], row["scheme"]) for row in rows(LIFE)}
    for seed in LIFE_SEEDS:
        for carrier, wavelength in WAVELENGTHS_M.items():
            for snr_db in SNRS_DB:
                for label, method in schemes().items():
                    key = {"carrier": carrier, "snr_db": snr_db, "seed": seed, "scheme": label}
                    if tuple(map(str, key.values())) in done:
                        continue
                    lived = life(design(room(snr_db, seed, wavelength), method, seed=seed), draws=LIFE_DRAWS)
                    append(LIFE, LIFE_FIELDS, list(_life_rows(key, lived)))
                    print(key, flush=True)


def _life_rows(key: dict[str, Any], lived: Life) -> Iterator[dict[str, Any]]:
    for receiver in RECEIVERS:
        for distance, mean in zip(lived.distances_m, lived.mean(receiver), strict=True):
            yield key | {
                "receiver": receiver,
                "distance_m": f"{distance:.6g}",
                "wavelengths": f"{distance / lived.wavelength_m:.6g}",
                "aligned": f"{mean:.4g}",
            }


def cases() -> Iterator[tuple[str, str, float, float, float | None]]:
    """Scheme, update, time between layouts, delay, antenna speed."""
    for label in NAMES:
        if label != "airpass-plus":
            yield label, "redesign", 0.1, 0.0, None
    for every in EVERY_S:
        for update in ("redesign", "follow"):
            yield "airpass-plus", update, every, 0.0, None
    for update, every in (("redesign", 0.03), ("follow", 0.01), ("follow", 0.03)):
        yield "airpass-plus", update, every, every, None  # computing takes as long as the layout is used
    for speed in ANTENNA_SPEEDS_M_S:
        for every in (0.01, 0.1, 1.0):
            for update in ("redesign", "follow"):
                yield "airpass-plus", update, every, 0.0, speed


def run_track() -> None:
    """Tracks that are missing."""
    done = {tuple(row[name] for name in TRACK_FIELDS[:7]) for row in rows(TRACK)}
    for seed in TRACK_SEEDS:
        for snr_db in TRACK_SNRS_DB:
            for label, update, every, delay, speed in cases():
                values = (snr_db, seed, label, update, every, delay, "" if speed is None else speed)
                if tuple(map(str, values)) in done:
                    continue
                found = track(
                    room(snr_db, seed),
                    RandomWaypoint(SPEED_M_S, 0.0, seed),
                    seconds=SECONDS,
                    beam_every_s=BEAM_S,
                    layout_every_s=every,
                    layout_delay_s=delay,
                    antenna_speed_m_s=speed,
                    method=schemes()[label],
                    update=update,
                    seed=seed,
                )
                layout_ms = [1e3 * row.layout_seconds for row in found.rows[1:]]
                counted = [value for value in layout_ms if np.isfinite(value)]
                measured = {
                    "designed": int(found.counts[0]),
                    "mean_selected": f"{found.mean_count:.3f}",
                    "least_selected": int(found.counts[1:].min()),
                    "beam_ms": f"{1e3 * np.median([row.beam_seconds for row in found.rows[1:]]):.3f}",
                    "layout_ms": f"{np.median(counted):.3f}" if counted else "",
                    "largest_travel_mm": f"{1e3 * max(row.travel_m for row in found.rows):.3f}",
                }
                append(TRACK, TRACK_FIELDS, [dict(zip(TRACK_FIELDS, values, strict=False)) | measured])
                print(*values, measured["mean_selected"], flush=True)


LEADS = ((0.03, 0.03, 0.0), (0.03, 0.03, 0.03), (0.03, 0.03, 0.04), (0.05, 0.05, 0.07))
LEAD_FIELDS = (
    "snr_db",
    "seed",
    "layout_every_s",
    "layout_delay_s",
    "lead_s",
    "mean_selected",
    "least_selected",
)


def run_lead() -> None:
    """Redesigns that take as long as the layout is used, found for where devices will be."""
    done = {tuple(row[name] for name in LEAD_FIELDS[:5]) for row in rows(LEAD)}
    for seed in TRACK_SEEDS:
        for snr_db in TRACK_SNRS_DB:
            for every, delay, lead in LEADS:
                values = (snr_db, seed, every, delay, lead)
                if tuple(map(str, values)) in done:
                    continue
                found = track(
                    room(snr_db, seed),
                    RandomWaypoint(SPEED_M_S, 0.0, seed),
                    seconds=SECONDS,
                    beam_every_s=BEAM_S,
                    layout_every_s=every,
                    layout_delay_s=delay,
                    lead_s=lead,
                    method=schemes()["airpass-plus"],
                    seed=seed,
                )
                measured = (f"{found.mean_count:.3f}", int(found.counts[1:].min()))
                append(LEAD, LEAD_FIELDS, [dict(zip(LEAD_FIELDS, (*values, *measured), strict=True))])
                print(*values, *measured, flush=True)


def run() -> None:
    """Compute what is missing."""
    run_track()
    run_lead()
    run_life()


def curves(carrier: str, snr_db: int, scheme: str, receiver: str) -> tuple[Real, Real]:
    """Distances in wavelengths, and aligned devices, shape (seeds, distances)."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows(LIFE):
        if (row["carrier"], row["snr_db"], row["scheme"], row["receiver"]) == (
            carrier,
            str(snr_db),
            scheme,
            receiver,
        ):
            found.setdefault(row["seed"], []).append((float(row["wavelengths"]), float(row["aligned"])))
    every = np.array([sorted(points) for points in found.values()])
    return every[0, :, 0], every[:, :, 1]


def coherence(carrier: str, snr_db: int, scheme: str, receiver: str) -> float:
    """Coherence distance of the mean curve, wavelengths."""
    distances, counts = curves(carrier, snr_db, scheme, receiver)
    one = Life("", 50, 1.0, distances, len(counts), 0, {receiver: counts.T})
    return one.coherence_m(receiver)


def table() -> None:
    """Print all tables."""
    shown = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 10.0)
    for carrier in WAVELENGTHS_M:
        for snr_db in SNRS_DB:
            print(f"\n{carrier}, {snr_db} dB: aligned devices\n")
            print("| scheme | reaction | " + " | ".join(f"{at:.3g} λ" for at in shown) + " | coherence |")
            print("|---" * (len(shown) + 3) + "|")
            for label, name in NAMES.items():
                for receiver in RECEIVERS if label == "airpass-plus" else ("rescaled", "re-solved"):
                    distances, counts = curves(carrier, snr_db, label, receiver)
                    means = counts.mean(axis=0)
                    cells = [f"{means[np.argmin(np.abs(distances - at))]:.1f}" for at in shown]
                    kept = coherence(carrier, snr_db, label, receiver)
                    end = "-" if np.isnan(kept) else f"{kept:.3f} λ"
                    print(f"| {name} | {receiver} | " + " | ".join(cells) + f" | {end} |")
    stored = rows(TRACK)
    for snr_db in TRACK_SNRS_DB:
        print(f"\nTracking at {SPEED_M_S:g} m/s, {snr_db} dB\n")
        print(
            "| scheme | update | every | delay | antennas | designed | mean | least | beam | layout "
            "| travel |"
        )
        print("|---" * 11 + "|")
        for label, update, every, delay, speed in cases():
            key = (str(snr_db), label, update, str(every), str(delay), "" if speed is None else str(speed))
            names = ("snr_db", "scheme", "update", "layout_every_s", "layout_delay_s", "antenna_speed_m_s")
            of_case = [row for row in stored if tuple(row[name] for name in names) == key]
            if not of_case:
                continue

            def mean(name: str, of_case: list[dict[str, str]] = of_case) -> float:
                return float(np.mean([float(row[name] or "nan") for row in of_case]))

            moves = label == "airpass-plus"
            print(
                f"| {NAMES[label]} | {update if moves else '-'} | {1e3 * every:g} ms | {1e3 * delay:g} ms | "
                f"{'-' if not moves else 'no limit' if speed is None else f'{speed:g} m/s'} | "
                f"{mean('designed'):.1f} | {mean('mean_selected'):.1f} | {mean('least_selected'):.1f} | "
                f"{mean('beam_ms'):.2f} ms | {mean('layout_ms'):.1f} ms | "
                f"{mean('largest_travel_mm'):.3g} mm |"
            )

    ahead = rows(LEAD)
    print("\n| every | delay | lead | " + " | ".join(f"{snr_db} dB" for snr_db in TRACK_SNRS_DB) + " |")
    print("|---" * (3 + len(TRACK_SNRS_DB)) + "|")
    for case in LEADS:
        keys = LEAD_FIELDS[2:5]
        of_lead = [row for row in ahead if tuple(row[name] for name in keys) == tuple(map(str, case))]
        cells = [
            f"{np.mean([float(row['mean_selected']) for row in of_lead if row['snr_db'] == str(snr_db)]):.1f}"
            for snr_db in TRACK_SNRS_DB
        ]
        print("| " + " | ".join([*(f"{1e3 * value:g} ms" for value in case), *cells]) + " |")


def figure() -> None:
    """Draw lives, and tracks against the time between layouts."""
    import matplotlib as mpl

    from airpass.core.display import LOOKS
    from airpass.figures.style import RC, new_figure, plot, save, typeset

    with mpl.rc_context(RC):
        picture = new_figure(9.0, 5.4)
        grid = picture.subplots(2, 3, sharex=True, sharey=True)
        for row, carrier in zip(grid, WAVELENGTHS_M, strict=True):
            for axes, snr_db in zip(row, SNRS_DB, strict=True):
                for place, (label, name) in enumerate(NAMES.items()):
                    distances, counts = curves(carrier, snr_db, label, "re-solved")
                    plot(axes, LOOKS[label], distances[1:], counts.mean(axis=0)[1:], name, place, len(NAMES))
                axes.set_xscale("log")
                axes.set(ylim=(0, 52), title=typeset(f"{carrier}, {snr_db} dB"))
                axes.grid(True)
            row[0].set_ylabel("aligned devices of 50")
        for axes in grid[1]:
            axes.set_xlabel("displacement, wavelengths")
        picture.legend(
            *grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
        )
        save(picture, DOCS / "images" / "motion-life.png")

        picture = new_figure(9.0, 4.2)
        both = picture.subplots(1, len(TRACK_SNRS_DB), sharey=True)
        stored = rows(TRACK)
        for axes, snr_db in zip(both, TRACK_SNRS_DB, strict=True):
            here = [row for row in stored if row["snr_db"] == str(snr_db)]
            lines: tuple[tuple[str, str, Any], ...] = (
                ("redesign", "", {"ls": "-", "marker": "o"}),
                ("follow", "", {"ls": "--", "marker": "o", "mfc": "white"}),
                ("follow", "1.0", {"ls": "-.", "marker": "^", "mfc": "white"}),
                ("follow", "0.1", {"ls": ":", "marker": "v", "mfc": "white"}),
            )
            for update, speed, style in lines:
                times: dict[float, list[float]] = {}
                for row in here:
                    kind = (row["scheme"], row["update"], row["layout_delay_s"], row["antenna_speed_m_s"])
                    if kind == ("airpass-plus", update, "0.0", speed):
                        every = float(row["layout_every_s"])
                        times.setdefault(every, []).append(float(row["mean_selected"]))
                x = sorted(times)
                limit = f", antennas at most {float(speed):g} m/s" if speed else ""
                axes.plot(
                    [1e3 * at for at in x],
                    [np.mean(times[at]) for at in x],
                    color=LOOKS["airpass-plus"].colour,
                    label=f"airpass-plus, {update}{limit}",
                    **style,
                )
            for label, name in NAMES.items():
                values = [float(row["mean_selected"]) for row in here if row["scheme"] == label]
                if label != "airpass-plus" and values:
                    look = LOOKS[label]
                    axes.axhline(float(np.mean(values)), color=look.colour, ls=look.dash, lw=1.0, label=name)
            axes.set_xscale("log")
            axes.set(xlabel="time between layouts, ms", title=typeset(f"{SPEED_M_S:g} m/s, {snr_db} dB"))
            axes.set_ylim(0, 52)
            axes.grid(True)
        both[0].set_ylabel("selected devices of 50, mean over time")
        picture.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
        save(picture, DOCS / "images" / "motion-track.png")


def animation() -> None:
    """Draw one second of tracking."""
    from airpass.figures.motion import save_animation

    seed = TRACK_SEEDS[0]
    found = track(
        room(-10, seed),
        RandomWaypoint(SPEED_M_S, 0.0, seed),
        seconds=SECONDS,
        layout_every_s=0.1,
        method=schemes()["airpass-plus"],
        seed=seed,
    )
    save_animation(found, DOCS / "images" / "motion.gif")


if __name__ == "__main__":
    {"run": run, "table": table, "figure": figure, "animation": animation}[sys.argv[1]]()
