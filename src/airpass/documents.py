"""Results as JSON documents, as described in docs/formats.md."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from airpass import __version__
from airpass.core.registry import options_dict
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
        "method": {"name": selection.method, "options": options_dict(selection.options)},
        **_common(selection),
        "status": selection.status,
        "work": dict(selection.work),
        "seconds": selection.seconds,
        "version": __version__,
        "seed": selection.seed,
    }


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """The bound of `select --certify`."""
    return {
        "at_most": certificate.at_most,
        "bound": certificate.bound,
        "multipliers": certificate.multipliers.tolist(),
    }


def set_document(devices: list[int], check: SetCheck) -> dict[str, Any]:
    """The verdict of `select --check-set`, with what proves it."""
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
        "method": {"name": design.method, **design.parts, "options": options_dict(design.options)},
        "layout_m": None if design.layout is None else design.layout.tolist(),
        "array_m": None if design.array is None else design.array.tolist(),
        **_common(design.selection),
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
    """The distribution of selected devices of `design --tolerance-mm`."""
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
                "scenario": run.scenario.to_dict(),
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
    """All histories as one Parquet file, a row for each scheme and evaluated round."""
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


def _common(selection: Selection) -> dict[str, Any]:
    return {
        "beam": _complex(selection.beam),
        "weights": selection.weights.tolist(),
        "budget": selection.budget,
        "scores": selection.scores.tolist(),
        "selected": selection.selected.tolist(),
        "selected_count": selection.selected_count,
        "mse": selection.mse,
        "mse_threshold": selection.mse_threshold,
        "denoising_factor": selection.aggregation.denoising_factor,
        "transmit": _complex(selection.aggregation.transmit),
    }


def _complex(values: Complex) -> dict[str, list[float]]:
    return {"re": values.real.tolist(), "im": values.imag.tolist()}


def encode(document: Any) -> bytes:
    """JSON text, where what is not a number (an error with nobody selected) is null."""
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
