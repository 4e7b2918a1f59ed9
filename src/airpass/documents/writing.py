"""Results as JSON."""

import json
import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from airpass.aircomp import Link
from airpass.core.registry import Method, options_dict, parts
from airpass.core.types import Complex, Single
from airpass.core.version import __version__
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.designs.bounds import LayoutCertificate
from airpass.designs.fresh import Counts, FreshDraws
from airpass.designs.life import Life
from airpass.designs.tolerance import Tolerance
from airpass.designs.track import Track
from airpass.documents.common import FORMAT_VERSION, channels_of
from airpass.learning.history import TrainingRun
from airpass.scenario import DeviceDraw, Scenario
from airpass.scenario.channel import is_registered
from airpass.scenario.radio import LIGHT_M_S
from airpass.selection.api import Selection
from airpass.selection.certificate import Certificate, SetCheck


def link_document(link: Link) -> dict[str, Any]:
    """A link, with what is known of how it was found."""
    if isinstance(link, Design):
        return design_document(link)
    if isinstance(link, Selection):
        return selection_document(link)
    return {**_header("link"), "channels": _complex(link.channels), **_link(link), "version": __version__}


def selection_document(selection: Selection) -> dict[str, Any]:
    """The result of `select`."""
    return {
        **_header("selection"),
        "channels": _complex(selection.channels),
        "method": _method(selection.method),
        **_link(selection),
        "status": selection.status,
        "work": dict(selection.work),
        "seconds": selection.seconds,
        "compile_seconds": selection.compile_seconds,
        "version": __version__,
        "seed": selection.seed,
        **({} if selection.priorities is None else {"priorities": selection.priorities.tolist()}),
    }


def draws_document(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of `select` for a stack of draws."""
    counts = [draw["selected_count"] for draw in draws]
    return {
        **_header("draws"),
        "draws": list(draws),
        "mean_selected_count": sum(counts) / len(counts),
        "version": __version__,
    }


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """The upper bound of `--certify` for every beam on given channels."""
    return {
        "at_most": certificate.at_most,
        "bound": certificate.bound,
        "multipliers": certificate.multipliers.tolist(),
    }


def layout_certificate_document(certificate: LayoutCertificate) -> dict[str, Any]:
    """The upper bound of `design --certify` for every beam and every layout."""
    return {
        "at_most": certificate.at_most,
        "bounds": dict(certificate.bounds),
        "best_scores": certificate.best_scores.tolist(),
        "unservable": np.flatnonzero(certificate.unservable).tolist(),
        "multipliers": certificate.multipliers.tolist(),
    }


def set_document(devices: list[int], check: SetCheck) -> dict[str, Any]:
    """The verdict of `select --check-set` with its proof."""
    return {
        "devices": devices,
        "verdict": check.verdict,
        "beam": None if check.beam is None else _complex(check.beam),
        "multipliers": None if check.multipliers is None else check.multipliers.tolist(),
    }


def design_document(design: Design) -> dict[str, Any]:
    """The result of `design`."""
    drawn = design.scenario.devices.drawn_from
    follows = is_registered(design.scenario.channel.models) and _same(
        design.channels, channels_of(design.scenario, design.layout, design.array)
    )
    return {
        **_header("design"),
        "scenario": design.scenario.to_dict(),
        "drawn_from": None if drawn is None else asdict(drawn),
        "channels": None if follows else _complex(design.channels),
        "method": _method(design.method),
        "layout_m": None if design.layout is None else design.layout.tolist(),
        "array_m": None if design.array is None else design.array.tolist(),
        **_link(design),
        "link_budget": {**_radio(design.scenario), "median_received_snr_db": design.median_snr_db},
        "trace": [
            {
                "iteration": step.iteration,
                "phase": step.phase,
                "selected_count": step.selected_count,
                "weakest_score": step.weakest_score,
                "seconds": step.seconds,
                "best": step.best,
            }
            for step in design.trace
        ],
        "status": design.status,
        "work": dict(design.work),
        "seconds": design.seconds,
        "compile_seconds": design.compile_seconds,
        "version": __version__,
        "seed": design.seed,
    }


def book_document(book: Book) -> dict[str, Any]:
    """The result of `schedule`."""
    return {
        **_header("book"),
        "move": book.move,
        "turns": book.turns,
        "designs": [design_document(one) for one in book.designs],
        "covered": book.covered.tolist(),
        "cycle_scores": book.cycle_scores.tolist(),
        "shares": book.shares.tolist(),
        "served": np.flatnonzero(book.served).tolist(),
        "unservable": np.flatnonzero(book.unservable).tolist(),
        "missing": np.flatnonzero(book.missing).tolist(),
        "least_turns": book.least_turns.tolist(),
        "update_mse": None if math.isnan(book.update_mse) else book.update_mse,
        "seconds": book.seconds,
        "version": __version__,
        "seed": book.seed,
    }


def tolerance_document(tolerance: Tolerance) -> dict[str, Any]:
    """The distribution of aligned devices of `design --tolerance-mm`."""
    return {
        "position_mm": tolerance.position_mm,
        "displacement_mm": tolerance.displacement_mm,
        "channel_error": tolerance.channel_error,
        "draws": tolerance.draws,
        "seed": tolerance.seed,
        "nominal_count": tolerance.nominal,
        "receivers": {
            name: {
                "mean_count": outcome.mean,
                "count_quantiles": dict(zip(("5%", "50%", "95%"), outcome.quantiles, strict=True)),
                "within_threshold": outcome.within,
                "misalignment": outcome.misalignment,
                "mse_95%": outcome.high_mse,
                "senders": [int(count) for count in outcome.senders],
                "counts": [int(count) for count in outcome.counts],
                "misalignments": outcome.misalignments.tolist(),
                "mse": outcome.mses.tolist(),
            }
            for name, outcome in tolerance.outcomes.items()
        },
    }


def fresh_draws_document(fresh: FreshDraws) -> dict[str, Any]:
    """The counts on fresh draws of `design --for-draws`."""

    def counts(found: Counts) -> dict[str, Any]:
        return {
            "mean_count": found.mean,
            "standard_error": found.standard_error,
            "counts": [int(count) for count in found.counts],
        }

    return {
        "draws": fresh.draws,
        "seed": fresh.seed,
        "searched": None if fresh.searched is None else counts(fresh.searched),
        "receivers": {name: counts(found) for name, found in fresh.fresh.items()},
    }


def life_document(life: Life) -> dict[str, Any]:
    """Aligned devices against displacement, of `design --life`."""
    return {
        **_header("life"),
        "method": life.method,
        "devices": life.devices,
        "wavelength_m": life.wavelength_m,
        "distances_m": life.distances_m.tolist(),
        "draws": life.draws,
        "seed": life.seed,
        "receivers": {
            name: {
                "mean_count": life.mean(name).tolist(),
                "coherence_m": life.coherence_m(name),
                "counts": [[int(count) for count in row] for row in counts],
            }
            for name, counts in life.counts.items()
        },
        "version": __version__,
    }


def life_rows(life: Life) -> list[dict[str, Any]]:
    """A life as rows, one per receiver, distance and draw."""
    return [
        {
            "method": life.method,
            "receiver": name,
            "distance_m": float(distance),
            "wavelengths": float(distance / life.wavelength_m),
            "draw": draw,
            "aligned": int(count),
        }
        for name, counts in life.counts.items()
        for distance, row in zip(life.distances_m, counts, strict=True)
        for draw, count in enumerate(row)
    ]


def track_document(track: Track) -> dict[str, Any]:
    """The result of `track`."""
    drawn = _drawn_from(track.scenario)
    return {
        **_header("track"),
        "scenario": track.scenario.to_dict(),
        "drawn_from": None if drawn is None else asdict(drawn),
        "link_budget": _radio(track.scenario),
        "method": _method(track.method),
        "update": track.update,
        "beam_every_s": track.beam_every_s,
        "layout_every_s": track.layout_every_s,
        "layout_delay_s": track.layout_delay_s,
        "lead_s": track.lead_s,
        "antenna_speed_m_s": track.antenna_speed_m_s,
        "time_limit_s": track.time_limit_s,
        "mean_selected_count": track.mean_count,
        "rows": [asdict(row) for row in track.rows],
        "places_m": track.places_m.tolist(),
        "layouts_m": None if track.layouts_m is None else track.layouts_m.tolist(),
        "array_m": None if track.array_m is None else track.array_m.tolist(),
        "beams": _complex(track.beams),
        "selected": [np.flatnonzero(chosen).tolist() for chosen in track.selected],
        "version": __version__,
        "seed": track.seed,
    }


def training_document(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """The result of `train`."""
    return {
        **_header("training"),
        "runs": [
            {
                "scheme": run.scheme,
                "dataset": run.dataset,
                "devices": run.devices,
                "scenario": None if run.scenario is None else run.scenario.to_dict(),
                "drawn_from": None if (drawn := _drawn_from(run.scenario)) is None else asdict(drawn),
                "design": None if run.design is None else design_document(run.design),
                "link": None if run.link is None or run.design is not None else link_document(run.link),
                "config": dict(run.config),
                "parameters": run.parameters,
                "history": [asdict(record) for record in run.history],
                "finished": run.finished,
                "status": run.status,
                "state": _single(run.state),
                **({} if run.book is None else {"book": book_document(run.book)}),
            }
            for run in runs
        ],
        "version": __version__,
    }


def training_table(runs: Sequence[TrainingRun]) -> bytes:
    """All histories as one Parquet file, a row per scheme and evaluated round."""
    import pyarrow
    from pyarrow import parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(history_rows(runs)), sink)
    return bytes(sink.getvalue())


def history_rows(runs: Sequence[TrainingRun]) -> list[dict[str, Any]]:
    """All histories as rows, one per scheme and evaluated round."""
    return [
        {"scheme": run.scheme, "dataset": run.dataset, **asdict(record)}
        for run in runs
        for record in run.history
    ]


def _header(kind: str) -> dict[str, Any]:
    return {"format_version": FORMAT_VERSION, "kind": kind}


def _drawn_from(scenario: Scenario | None) -> DeviceDraw | None:
    return None if scenario is None else scenario.devices.drawn_from


def _link(link: Link) -> dict[str, Any]:
    return {
        "beam": _complex(link.beam),
        "weights": link.weights.tolist(),
        "budget": link.budget,
        "power": link.power,
        "scores": link.scores.tolist(),
        "selected": link.selected.tolist(),
        "selected_count": link.selected_count,
        "mse": link.mse,
        "mse_threshold": link.mse_threshold,
        "sdr_db": link.sdr_db,
        "denoising_factor": link.denoising_factor,
        "transmit": _complex(link.transmit),
    }


def _radio(scenario: Scenario) -> dict[str, Any]:
    """The radio in both forms; null for what only a link budget has."""
    radio, given = scenario.radio, scenario.radio.link_budget
    return {
        "carrier_ghz": 1e-9 * LIGHT_M_S / radio.wavelength_m if given is None else given.carrier_ghz,
        "power_dbm": None if given is None else given.power_dbm,
        "noise_dbm": None if given is None else given.noise_power_dbm,
        "snr_db": radio.snr_db,
        "wavelength_m": radio.wavelength_m,
        "path_gain": radio.path_gain,
    }


def _method(method: Method) -> dict[str, Any]:
    return {"name": method.name, **parts(method), "options": options_dict(method)}


def _complex(values: Complex) -> dict[str, list[float]]:
    return {"re": values.real.tolist(), "im": values.imag.tolist()}


def _single(values: Single) -> dict[str, str]:
    return {"float32": b64encode(values.astype("<f4").tobytes()).decode()}


def encode(document: Any) -> bytes:
    """JSON text. NaN and infinity become null."""
    return (json.dumps(_plain(document), indent=2, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _same(one: Complex, other: Complex | None) -> bool:
    return other is not None and np.array_equal(one, other)
