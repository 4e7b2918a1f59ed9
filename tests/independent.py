"""A design's JSON re-derived from the paper's formulas with plain Python arithmetic.

Shares no code with the package: it reads the document and nothing else.
"""

import cmath
import itertools
import math
from typing import Any

Document = dict[str, Any]


def pass_channel(document: Document, k: int, m: int) -> complex:
    """g_{k,m} of eq. (10), term by term."""
    receiver, radio, devices = (document["scenario"][part] for part in ("receiver", "radio", "devices"))
    channel = document["scenario"].get("channel", {})
    loss_db_per_m = channel.get("loss_db_per_m", 0.0)
    kappa = 2 * math.pi / radio["wavelength_m"]
    y = receiver["waveguide_y_m"][m] if "waveguide_y_m" in receiver else m * receiver["spacing_m"]
    length, height, feed = (
        value[m] if isinstance(value, list) else value
        for value in (receiver["length_m"], receiver["height_m"], receiver["feed"])
    )
    start = {"left": 0.0, "right": length, "centre": length / 2}[feed]
    count, total = receiver["antennas"], 0j
    for number, position in enumerate(document["layout_m"][m]):
        distance = math.sqrt(
            (devices["x_m"][k] - position) ** 2
            + (devices["y_m"][k] - y) ** 2
            + (devices["z_m"][k] - height) ** 2
        )
        phase = kappa * (distance + radio["refractive_index"] * abs(position - start))
        amplitude = 10 ** (-loss_db_per_m * abs(position - start) / 20) / distance
        if channel.get("power_split") == "proportional":
            delta = channel.get("power_split_delta", count**-0.5)
            passed = number if feed == "left" else count - 1 - number
            amplitude *= delta * (1 - delta**2) ** (passed / 2)
        else:
            amplitude /= math.sqrt(count)
        if channel.get("model") == "pattern":
            cosine = (height - devices["z_m"][k]) / distance
            amplitude *= max(cosine, 0.0) ** (channel["exponent"] / 2) or 1e-9
        total += amplitude * cmath.exp(-1j * phase)
    return complex(radio["path_gain"] * devices["gain"][k] * total)


def array_channel(document: Document, k: int, i: int) -> complex:
    """Free-space channel of device k to antenna i of a co-located array."""
    radio, devices = document["scenario"]["radio"], document["scenario"]["devices"]
    x, y, z = document["array_m"][i]
    distance = math.dist((x, y, z), (devices["x_m"][k], devices["y_m"][k], devices["z_m"][k]))
    phase = 2 * math.pi / radio["wavelength_m"] * distance
    return complex(radio["path_gain"] * devices["gain"][k] * cmath.exp(-1j * phase) / distance)


def is_drawn(document: Document) -> bool:
    """Whether channels depend on what is drawn at random, on obstacles, or on points of an array."""
    channel = document["scenario"].get("channel", {})
    others = {"blockage_per_m", "rician_k_db", "models", "segments", "responses"} & channel.keys()
    model = channel.get("model", "pattern" if document["array_m"] is None else None)
    return (
        bool(others)
        or model not in (None, "pattern")
        or ("model" in channel and document["array_m"] is not None)
    )


def rounding(document: Document, k: int) -> float:
    """Error of m^H g_k by rounding of phases: the sum of the amplitudes, times the error of a phase."""
    radio, devices = document["scenario"]["radio"], document["scenario"]["devices"]
    points = document["array_m"] or [(x, 0.0, 0.0) for positions in document["layout_m"] for x in positions]
    far = max(abs(value) for name in ("x_m", "y_m", "z_m") for value in devices[name])
    size = far + max(abs(value) for point in points for value in point) + 1e2
    turns = size * (1 + radio["refractive_index"]) / radio["wavelength_m"]
    return float(1e-10 + 1e-14 * turns)


def check_design(document: Document) -> None:
    """Everything a design's JSON claims, checked against the formulas."""
    scenario = document["scenario"]
    receiver, radio, devices = scenario["receiver"], scenario["radio"], scenario["devices"]
    count = len(devices["x_m"])

    lengths = receiver["length_m"]
    if not isinstance(lengths, list):
        lengths = [lengths] * receiver["waveguides"]
    if document["layout_m"] is not None:
        assert document["array_m"] is None
        assert len(document["layout_m"]) == receiver["waveguides"]
        for length, positions in zip(lengths, document["layout_m"], strict=True):
            assert len(positions) == receiver["antennas"]
            assert positions[0] >= -1e-9
            assert positions[-1] <= length + 1e-9
            for left, right in itertools.pairwise(positions):
                assert right - left >= receiver["min_gap_m"] - 1e-9

    beam = [complex(re, im) for re, im in zip(document["beam"]["re"], document["beam"]["im"], strict=True)]
    assert math.isclose(sum(abs(value) ** 2 for value in beam), 1.0, rel_tol=1e-9)

    samples = devices["samples"]
    norms = {"share": sum(samples), "count": 1.0, "energy": math.hypot(*samples)}
    weights = [n / norms[scenario["weights"]["normalisation"]] for n in samples]
    assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(weights, document["weights"], strict=True))

    noise = radio["power"] / 10 ** (radio["snr_db"] / 10)
    budget = radio["power"] * radio["mse_threshold"] / noise
    assert math.isclose(budget, document["budget"], rel_tol=1e-12)

    for k in range(count):
        assert document["selected"][k] == (document["scores"][k] >= 1.0)
    received: list[complex | None] = [None] * count
    if not is_drawn(document):
        channel = pass_channel if document["layout_m"] is not None else array_channel
        for k in range(count):
            parts = [beam[m].conjugate() * channel(document, k, m) for m in range(len(beam))]
            found = received[k] = sum(parts)
            error = rounding(document, k) * sum(map(abs, parts)) * receiver["antennas"]
            score = budget * abs(found) ** 2 / weights[k] ** 2
            slack = budget * (2 * abs(found) * error + error**2) / weights[k] ** 2
            assert abs(score - document["scores"][k]) <= slack + 1e-9 * score
    chosen = [k for k in range(count) if document["selected"][k]]
    assert document["selected_count"] == len(chosen)

    transmit = [
        complex(re, im) for re, im in zip(document["transmit"]["re"], document["transmit"]["im"], strict=True)
    ]
    assert all(transmit[k] == 0 for k in range(count) if k not in chosen)
    if not chosen:
        assert document["mse"] is None
        assert document["denoising_factor"] is None
        return
    eta = document["denoising_factor"]
    error = noise / eta  # the noise term of eq. (17), for a unit beam; devices are aligned
    for k in chosen:
        assert abs(transmit[k]) ** 2 <= radio["power"] * (1 + 1e-9)
        gain = received[k]
        if gain is not None:
            aligned = gain * transmit[k] / math.sqrt(eta)
            slack = rounding(document, k) * receiver["antennas"] * 1e3
            assert abs(aligned - weights[k]) <= (1e-6 + slack) * weights[k]
    assert math.isclose(error, document["mse"], rel_tol=1e-6)
    assert document["mse"] <= document["mse_threshold"] * (1 + 1e-9)
    assert document["mse_threshold"] == radio["mse_threshold"]
    best = max(document["trace"], key=lambda step: (step["selected_count"], step["weakest_score"]))
    assert best["selected_count"] == len(chosen)
