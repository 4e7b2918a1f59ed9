"""Results as JSON documents; docs/formats.md describes them."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from airpass import __version__
from airpass.aircomp import Link
from airpass.core.registry import Method, options_dict, parts
from airpass.core.types import Complex
from airpass.designs.api import Design
from airpass.designs.tolerance import Tolerance
from airpass.selection.api import Selection
from airpass.selection.certificate import Certificate, SetCheck

if TYPE_CHECKING:
    from airpass.learning.training import TrainingRun


def selection_document(selection: Selection) -> dict[str, Any]:
    """The result of `select`."""
    return {
        "method": _method(selection.method),
        **_link(selection),
        "status": selection.status,
        "work": dict(selection.work),
        "seconds": selection.seconds,
        "version": __version__,
        "seed": selection.seed,
    }


def draws_document(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of `select` for a stack of draws."""
    counts = [draw["selected_count"] for draw in draws]
    return {
        "draws": list(draws),
        "mean_selected_count": sum(counts) / len(counts),
        "version": __version__,
    }


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """The upper bound of `select --certify`."""
    return {
        "at_most": certificate.at_most,
        "bound": certificate.bound,
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
    return {
        "scenario": design.scenario.to_dict(),
        "method": _method(design.method),
        "layout_m": None if design.layout is None else design.layout.tolist(),
        "array_m": None if design.array is None else design.array.tolist(),
        **_link(design),
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
        "version": __version__,
        "seed": design.seed,
    }


def tolerance_document(tolerance: Tolerance) -> dict[str, Any]:
    """The distribution of aligned devices of `design --tolerance-mm`."""
    return {
        "position_mm": tolerance.position_mm,
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


def training_document(runs: Sequence["TrainingRun"]) -> dict[str, Any]:
    """The result of `train`."""
    return {
        "runs": [
            {
                "scheme": run.scheme,
                "dataset": run.dataset,
                "scenario": None if run.scenario is None else run.scenario.to_dict(),
                "design": None if run.design is None else design_document(run.design),
                "config": dict(run.config),
                "parameters": run.parameters,
                "history": [asdict(record) for record in run.history],
                "finished": run.finished,
                "status": run.status,
            }
            for run in runs
        ],
        "version": __version__,
    }


def training_table(runs: Sequence["TrainingRun"]) -> bytes:
    """All histories as one Parquet file, a row per scheme and evaluated round."""
    import pyarrow
    from pyarrow import parquet

    rows = [
        {"scheme": run.scheme, "dataset": run.dataset, **asdict(record)}
        for run in runs
        for record in run.history
    ]
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())


def _link(link: Link) -> dict[str, Any]:
    return {
        "beam": _complex(link.beam),
        "weights": link.weights.tolist(),
        "budget": link.budget,
        "scores": link.scores.tolist(),
        "selected": link.selected.tolist(),
        "selected_count": link.selected_count,
        "mse": link.mse,
        "mse_threshold": link.mse_threshold,
        "sdr_db": link.sdr_db,
        "denoising_factor": link.denoising_factor,
        "transmit": _complex(link.transmit),
    }


def _method(method: Method) -> dict[str, Any]:
    return {"name": method.name, **parts(method), "options": options_dict(method)}


def _complex(values: Complex) -> dict[str, list[float]]:
    return {"re": values.real.tolist(), "im": values.imag.tolist()}


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
