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
    loss_db_per_m = document["scenario"].get("channel", {}).get("loss_db_per_m", 0.0)
    kappa = 2 * math.pi / radio["wavelength_m"]
    y = receiver["waveguide_y_m"][m] if "waveguide_y_m" in receiver else m * receiver["spacing_m"]
    length, height, feed = (
        value[m] if isinstance(value, list) else value
        for value in (receiver["length_m"], receiver["height_m"], receiver["feed"])
    )
    start = {"left": 0.0, "right": length, "centre": length / 2}[feed]
    total = 0j
    for position in document["layout_m"][m]:
        distance = math.sqrt(
            (devices["x_m"][k] - position) ** 2
            + (devices["y_m"][k] - y) ** 2
            + (devices["z_m"][k] - height) ** 2
        )
        phase = kappa * (distance + radio["refractive_index"] * abs(position - start))
        loss = 10 ** (-loss_db_per_m * abs(position - start) / 20)
        total += loss * cmath.exp(-1j * phase) / (math.sqrt(receiver["antennas"]) * distance)
    return complex(radio["path_gain"] * devices["gain"][k] * total)


def array_channel(document: Document, k: int, i: int) -> complex:
    """Free-space channel of device k to antenna i of a co-located array."""
    radio, devices = document["scenario"]["radio"], document["scenario"]["devices"]
    x, y, z = document["array_m"][i]
    distance = math.dist((x, y, z), (devices["x_m"][k], devices["y_m"][k], devices["z_m"][k]))
    phase = 2 * math.pi / radio["wavelength_m"] * distance
    return complex(radio["path_gain"] * devices["gain"][k] * cmath.exp(-1j * phase) / distance)


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
    if scenario["weights"]["normalisation"] == "share":
        weights = [n / sum(samples) for n in samples]
    else:
        weights = [float(n) for n in samples]
    assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(weights, document["weights"], strict=True))

    noise = radio["power"] / 10 ** (radio["snr_db"] / 10)
    budget = radio["power"] * radio["mse_threshold"] / noise
    assert math.isclose(budget, document["budget"], rel_tol=1e-12)

    received = []
    for k in range(count):
        channel = pass_channel if document["layout_m"] is not None else array_channel
        received.append(sum(beam[m].conjugate() * channel(document, k, m) for m in range(len(beam))))
    # The phase of a term is kappa times some 100 m, so its rounding is about 1e-12 rad.
    for k in range(count):
        score = budget * abs(received[k]) ** 2 / weights[k] ** 2
        assert math.isclose(score, document["scores"][k], rel_tol=1e-6, abs_tol=1e-9)
        assert document["selected"][k] == (document["scores"][k] >= 1.0)
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
    error = noise / eta  # the noise term of eq. (17), for a unit beam
    for k in chosen:
        assert abs(transmit[k]) ** 2 <= radio["power"] * (1 + 1e-9)
        aligned = received[k] * transmit[k] / math.sqrt(eta)
        assert abs(aligned - weights[k]) <= 1e-6 * weights[k]
        error += abs(aligned - weights[k]) ** 2  # the misalignment term
    assert math.isclose(error, document["mse"], rel_tol=1e-6)
    assert document["mse"] <= document["mse_threshold"] * (1 + 1e-9)
    assert document["mse_threshold"] == radio["mse_threshold"]
    best = max(document["trace"], key=lambda step: (step["selected_count"], step["weakest_score"]))
    assert best["selected_count"] == len(chosen)
