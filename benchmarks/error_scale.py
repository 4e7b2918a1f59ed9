"""What the error threshold is as a signal-to-distortion ratio: formula and measurement against K.

    python benchmarks/error_scale.py run       # appends missing rows to docs/data/error-scale.csv (a minute)
    python benchmarks/error_scale.py table     # prints the tables of docs/concepts/error-scale.md
    python benchmarks/error_scale.py figure    # draws docs/images/error-scale.png

Rows of part `limit` have all K devices and an MSE of exactly the threshold: a beam at the uniform layout, and
the noise power at which its smallest score is one. Rows of part `design` are designs by airpass-plus (effort
fast) at an SNR at which about half of the devices are selected. Both are measured by sending uncorrelated
complex normal symbols through the link. `expected_db` is the formula of `limit_sdr_db`, or `sdr_db` of the
design.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import log, log10, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from airpass import Link, Scenario, Weighting, design, select
from airpass.core.types import Real
from airpass.designs.plus import AirpassPlus

ROOT = Path(__file__).parent.parent / "docs"
FILE = ROOT / "data" / "error-scale.csv"
THRESHOLD = 0.03
DEVICES = (5, 10, 20, 50, 100)
# With shares, airpass-plus selects about half of the devices at these SNRs (seeds 7000 to 7003). With energy
# weights the same designs need 10 log10(K) dB more.
HALF_DB = {5: 4.0, 10: 0.0, 20: -4.0, 50: -13.0, 100: -16.0}
SEEDS = range(8000, 8010)
SYMBOLS = {"limit": 200_000, "design": 20_000}
BLOCK = 20_000  # symbols sent at a time
KEYS = ("part", "normalisation", "samples", "devices", "seed")
PARTS = (  # part, normalisation, samples
    ("limit", "share", "equal"),
    ("limit", "energy", "equal"),
    ("limit", "count", "equal"),
    ("limit", "share", "unequal"),
    ("limit", "energy", "unequal"),
    ("design", "share", "equal"),
    ("design", "energy", "equal"),
)
FIELDS = (*KEYS, "snr_db", "selected", "weakest", "expected_db", "measured_db", "half_width_db")
MINUS = "\u2212"
Row = dict[str, str]


def limit_sdr_db(normalisation: str, samples: Real, threshold: float) -> float:
    """Signal-to-distortion ratio if all devices are selected and the MSE equals the threshold, dB.

    Parameters
    ----------
    normalisation
        "share", "energy" or "count".
    samples
        |D_k|, shape (K,).
    threshold
        eps.

    Returns
    -------
    float
        10 log10(sum_k phi_k^2/eps).
    """
    spread = 1.0 + np.var(samples) / np.mean(samples) ** 2
    power = {
        "share": spread / samples.size,
        "energy": 1.0,
        "count": spread * samples.sum() ** 2 / samples.size,
    }
    return 10.0 * log10(power[normalisation] / threshold)


def measured_sdr_db(link: Link, symbols: int, rng: np.random.Generator) -> tuple[float, float]:
    """Send symbols through a link, eqs. (13)-(16), and compare the wanted sum with the error.

    Parameters
    ----------
    link
        Its noise power must be known.
    symbols
        Number of symbols that each selected device sends.
    rng
        Source of symbols and noise.

    Returns
    -------
    tuple of two floats
        Ratio of the mean powers in dB, and half the width of its 95 % confidence interval.
    """
    assert link.noise_power is not None
    chosen = link.selected
    channels, transmit, weights = link.channels[:, chosen], link.transmit[chosen], link.weights[chosen]
    wanted, wrong = np.empty(symbols), np.empty(symbols)
    for start in range(0, symbols, BLOCK):
        size = min(BLOCK, symbols - start)
        drawn = rng.standard_normal((2, weights.size + link.beam.size, size)) / sqrt(2.0)
        unit = drawn[0] + 1j * drawn[1]  # circular, of unit power
        sent, noise = unit[: weights.size], sqrt(link.noise_power) * unit[weights.size :]
        received = channels @ (transmit[:, None] * sent) + noise
        estimate = np.conj(link.beam) @ received / sqrt(link.denoising_factor)
        total = weights @ sent
        wanted[start : start + size] = np.abs(total) ** 2
        wrong[start : start + size] = np.abs(estimate - total) ** 2
    ratio = wanted.mean() / wrong.mean()
    relative = np.std(wanted / wanted.mean() - wrong / wrong.mean(), ddof=1) / sqrt(symbols)
    return 10.0 * log10(ratio), 1.96 * 10.0 / log(10.0) * float(relative)


def scenario_of(normalisation: str, samples: str, devices: int, snr_db: float, seed: int) -> Scenario:
    """The paper's set-up; unequal samples are 100 to 900 per device, drawn uniformly."""
    side = 5 if devices <= 20 else 10
    scenario = replace(
        Scenario.paper(devices, side, side, snr_db, seed), weighting=Weighting(normalisation)
    ).with_radio(mse_threshold=THRESHOLD)
    if samples == "equal":
        return scenario
    return scenario.with_samples(np.random.default_rng(seed).integers(100, 901, devices))


def at_the_limit(scenario: Scenario) -> Link:
    """All devices, with the noise power at which the smallest score is one."""
    channels = scenario.channels(scenario.uniform_layout())
    # Weights and budget such that all devices are selected with a margin; the beam is what is wanted.
    unit = scenario.weights / scenario.weights.max()
    picked = select(channels, unit, 1e6, method="hrmc+", seed=0)
    assert picked.selected.all()
    link = Link(
        channels, scenario.weights, picked.beam, 1.0, scenario.radio.power, scenario.radio.mse_threshold
    )
    return replace(link, budget=(1.0 + 1e-12) / float(link.scores.min()))


def half_db(normalisation: str, devices: int) -> float:
    """SNR of the designs in dB."""
    return HALF_DB[devices] + (10.0 * log10(devices) if normalisation == "energy" else 0.0)


def wanted_rows() -> Iterator[Row]:
    """The rows to measure."""
    for part, normalisation, samples in PARTS:
        for devices in DEVICES:
            for seed in SEEDS if part == "design" else SEEDS[:1]:
                yield dict(zip(KEYS, (part, normalisation, samples, str(devices), str(seed)), strict=True))


def measured(key: Row) -> Row:
    """Measure one row."""
    part, normalisation, samples, devices, seed = (key[name] for name in KEYS)
    snr_db = half_db(normalisation, int(devices))
    scenario = scenario_of(normalisation, samples, int(devices), snr_db, int(seed))
    link: Link
    if part == "limit":
        link = at_the_limit(scenario)
        expected = limit_sdr_db(normalisation, scenario.devices.samples, THRESHOLD)
    else:
        link = design(scenario, AirpassPlus(effort="fast", threads=1), seed=int(seed))
        expected = link.sdr_db
    place = PARTS.index((part, normalisation, samples))  # independent symbols and noise for every row
    rng = np.random.default_rng([int(seed), int(devices), place])
    found, half = measured_sdr_db(link, SYMBOLS[part], rng)
    assert link.noise_power is not None
    return key | {
        "snr_db": f"{10.0 * log10(link.power / link.noise_power):.3f}",
        "selected": str(link.selected_count),
        "weakest": f"{link.weakest_score:.6f}",
        "expected_db": f"{expected:.4f}",
        "measured_db": f"{found:.4f}",
        "half_width_db": f"{half:.4f}",
    }


def rows() -> list[Row]:
    """All stored rows."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Compute what is missing."""
    done = {tuple(row[name] for name in KEYS) for row in rows()}
    with FILE.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for key in wanted_rows():
            if tuple(key.values()) not in done:
                writer.writerow(measured(key))
                file.flush()


def chosen(part: str, normalisation: str, samples: str, devices: int) -> list[Row]:
    """Stored rows of one point."""
    wanted = (part, normalisation, samples, str(devices))
    return [row for row in rows() if tuple(row[name] for name in KEYS[:4]) == wanted]


def mean(found: list[Row], field: str) -> tuple[float, float]:
    """Mean over the draws, and half the width of its 95 % confidence interval."""
    from scipy import stats

    values = [float(row[field]) for row in found]
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def table() -> None:
    """Print formula and measurement at the limit, then the designs."""
    for samples in ("equal", "unequal"):
        names = [name for part, name, kind in PARTS if (part, kind) == ("limit", samples)]
        print(f"\n| K, {samples} samples | " + " | ".join(f"{n}: formula | measured" for n in names) + " |")
        print("|---" * (1 + 2 * len(names)) + "|")
        for devices in DEVICES:
            cells = []
            for name in names:
                row = chosen("limit", name, samples, devices)[0]
                cells.append(f"{float(row['expected_db']):.2f} dB")
                cells.append(f"{float(row['measured_db']):.2f} ± {float(row['half_width_db']):.2f}")
            print(f"| {devices} | " + " | ".join(cells).replace("-", MINUS) + " |")
    gaps = [
        abs(float(row["measured_db"]) - float(row["expected_db"])) <= float(row["half_width_db"])
        for row in rows()
    ]
    print(f"\n{sum(gaps)} of {len(gaps)} intervals contain the expected value.")
    print("\n| K | M = N | share: SNR | selected | SDR | energy: SNR | selected | SDR |")
    print("|---" * 8 + "|")
    for devices in DEVICES:
        cells = []
        for name in ("share", "energy"):
            found = chosen("design", name, "equal", devices)
            value, half = mean(found, "expected_db")
            cells.append(f"{float(found[0]['snr_db']):.1f} dB")
            cells.append(f"{mean(found, 'selected')[0]:.1f}")
            cells.append(f"{value:.1f} ± {half:.1f} dB")
        print(f"| {devices} | {5 if devices <= 20 else 10} | " + " | ".join(cells).replace("-", MINUS) + " |")


def figure() -> None:
    """Draw the ratios against K."""
    import matplotlib as mpl

    from airpass.core.display import BLACK, BLUE, VERMILLION
    from airpass.figures.style import RC, new_figure, save

    with mpl.rc_context(RC):
        picture = new_figure(6.3, 3.4)
        axes = picture.add_subplot()
        for name, colour, dash, marker in (("energy", BLUE, "-", "o"), ("share", VERMILLION, "--", "^")):
            formula = [limit_sdr_db(name, np.ones(k), THRESHOLD) for k in DEVICES]
            text = "1/ε" if name == "energy" else "1/(Kε)"
            axes.plot(DEVICES, formula, color=colour, linestyle=dash, label=f"{name}: all selected, {text}")
            limit = [float(chosen("limit", name, "equal", k)[0]["measured_db"]) for k in DEVICES]
            points: Any = {"color": colour, "linestyle": "", "marker": marker, "markersize": 5}
            axes.plot(DEVICES, limit, label=f"{name}: the same, measured", **points)
            values = [mean(chosen("design", name, "equal", k), "expected_db") for k in DEVICES]
            axes.errorbar(
                DEVICES,
                [value for value, _ in values],
                [half for _, half in values],
                markerfacecolor="white",
                capsize=2,
                label=f"{name}: designs, half selected",
                **points,
            )
        axes.axhline(0.0, color=BLACK, linewidth=0.8, linestyle=":")
        axes.annotate("output of zero", (5.0, -0.2), va="top", fontsize=8)
        axes.set_xscale("log")
        axes.set_xticks(DEVICES, [str(k) for k in DEVICES])
        axes.minorticks_off()
        axes.set(xlabel="devices K", ylabel="signal-to-distortion ratio, dB")
        axes.set_title(f"Error threshold ε = {THRESHOLD}")
        handles, labels = axes.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda i: labels[i].partition(":")[0])  # energy, then share
        picture.legend(
            [handles[i] for i in order], [labels[i] for i in order], loc="outside right center", fontsize=8
        )
        axes.grid(alpha=0.25)
        save(picture, ROOT / "images" / "error-scale.png")


if __name__ == "__main__":
    {"run": run, "table": table, "figure": figure}[sys.argv[1]]()
