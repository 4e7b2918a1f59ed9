"""Results from JSON."""

import json
import math
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from airpass import designs, geometry, selection
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.checksums import Damaged, check_document
from airpass.core.errors import InvalidInput
from airpass.core.registry import Method, RecordedMethod, Registry, options_dict, parts, with_options
from airpass.core.text import shown
from airpass.core.types import Complex, Real, Single
from airpass.core.version import __version__
from airpass.designs.alternating import Alternation
from airpass.designs.api import Design, WidebandDesign
from airpass.designs.base import RecordedDesign, Step
from airpass.designs.book import Book
from airpass.designs.bounds import LayoutCertificate
from airpass.designs.fresh import Counts, FreshDraws
from airpass.designs.life import Life
from airpass.designs.tolerance import RECEIVERS, Outcome, Tolerance
from airpass.designs.track import Track, TrackRow
from airpass.designs.turns import MOVES
from airpass.documents.common import FORMAT_VERSION, channels_of
from airpass.learning.history import Record, Runs, TrainingRun
from airpass.scenario import DeviceDraw, Scenario
from airpass.selection.api import Selection, checked_channels, checked_priorities, checked_weights
from airpass.selection.base import RecordedSelection
from airpass.selection.certificate import Certificate
from airpass.wideband import RULES, WidebandLink

SCORE_ERROR = 1e-6  # largest difference of scores that are recomputed, relative to the largest score

M = TypeVar("M", bound=Method)
Stored = Link | Book | Runs | Life | Track | list[Selection]


def read(path: str | Path) -> tuple[dict[str, Any], Stored]:
    """Read a result.

    Parameters
    ----------
    path
        JSON file that `save`, or a command with --json, wrote.

    Returns
    -------
    document : dict[str, Any]
        Content of the file.
    result : Link, Book, Runs, Life, Track or list of Selection
        A design, a selection, a link, a book, training runs, the life of a design, a track, or the selections
        for a stack of draws.
    """
    document = _decoded(path)
    kind = document.get("kind") or _kind_of_first_version(document)
    readers: dict[str, Callable[[Mapping[str, Any]], Stored]] = {
        "design": _design,
        "selection": _selection,
        "draws": lambda stack: [_selection(draw) for draw in stack["draws"]],
        "link": _bare_link,
        "book": _book,
        "life": life_from,
        "track": _track,
        "training": _training,
    }
    if not isinstance(kind, str) or kind not in readers:
        raise InvalidInput(f"{path}: not a result of airpass design, select, schedule, track or train")
    with described_damage(path):
        return document, readers[kind](document)


@contextmanager
def described_damage(path: str | Path) -> Iterator[None]:
    """Turn errors of reading a document into one line that names the file."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    except KeyError as error:
        raise InvalidInput(f"{path}: {error.args[0]} is missing; the file is damaged") from None
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise InvalidInput(f"{path}: damaged ({error})") from None


def _decoded(path: str | Path) -> dict[str, Any]:
    """The content of a file, after a look at the version of its format."""
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror})") from None
    except TypeError:
        raise InvalidInput(f"path = {shown(path)}: must be the name of a file") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path}: not JSON; give a file that airpass wrote with --json or save") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{path}: not a result of airpass design, select or train")
    version = document.get("format_version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InvalidInput(f"{path}: format_version = {shown(version)}: must be a whole number >= 1")
    if version > FORMAT_VERSION:
        raise InvalidInput(
            f"{path}: has format version {version}, written by airpass {document.get('version', '?')}; "
            f"airpass {__version__} reads versions up to {FORMAT_VERSION}: install a newer one"
        )
    try:
        check_document(document)
    except Damaged as error:
        raise InvalidInput(f"{path}: {error}") from None
    return document


def _kind_of_first_version(document: Mapping[str, Any]) -> str:
    kinds = {"runs": "training", "scenario": "design", "beam": "selection"}
    return next((kind for key, kind in kinds.items() if key in document), "")


def _design(document: Mapping[str, Any]) -> Design:
    scenario = _scenario(document)
    layout = None if document["layout_m"] is None else scenario.checked_layout(document["layout_m"])
    array = None if document["array_m"] is None else np.array(document["array_m"], dtype=np.float64)
    stored = document.get("channels")
    channels = channels_of(scenario, layout, array) if stored is None else _complex_from(stored)
    if channels is None:
        raise InvalidInput("layout_m, array_m and channels are all missing; the file is damaged")
    is_wideband = scenario.channel.subcarriers > 1
    kind = partial(WidebandDesign, rule=scenario.channel.subcarrier_rule) if is_wideband else Design
    found = kind(
        channels=channels,
        # Those of the scenario, or in a book a share of them.
        weights=checked_weights(document["weights"], channels.shape[-1]),
        beam=_complex_from(document["beam"]),
        budget=scenario.budget,
        power=scenario.radio.power,
        mse_threshold=scenario.radio.mse_threshold,
        scenario=scenario,
        method=_method_from(document["method"], designs.METHODS, RecordedDesign),
        layout=layout,
        array=array,
        trace=tuple(Step(**step) for step in document["trace"]),
        status=str(document["status"]),
        work=dict(document["work"]),
        seconds=float(document["seconds"]),
        compile_seconds=float(document.get("compile_seconds", 0.0)),
        seed=checks.whole("seed", document["seed"], 0),
    )
    _check_scores(found, document)
    return found


def _selection(document: Mapping[str, Any]) -> Selection:
    if "channels" not in document:
        raise InvalidInput(
            f"written by airpass {document.get('version', '0.1')}, whose selections do not hold their "
            "channels: run airpass select again"
        )
    stored = document.get("priorities")
    found = Selection(
        **_link_fields(document),
        method=_method_from(document["method"], selection.METHODS, RecordedSelection),
        status=str(document["status"]),
        work=dict(document["work"]),
        seconds=float(document["seconds"]),
        compile_seconds=float(document["compile_seconds"]),
        seed=checks.whole("seed", document["seed"], 0),
        priorities=None if stored is None else checked_priorities(stored, len(document["weights"])),
    )
    _check_scores(found, document)
    return found


def _book(document: Mapping[str, Any]) -> Book:
    designs = tuple(_design(one) for one in document["designs"])
    scenario = designs[0].scenario
    found = Book(
        scenario=scenario,
        designs=tuple(replace(one, scenario=scenario) for one in designs),
        move=checks.one_of("move", document["move"], MOVES),
        least_turns=np.array([checks.whole("least_turns", t, 1) for t in document["least_turns"]], np.intp),
        seconds=float(document["seconds"]),
        seed=checks.whole("seed", document["seed"], 0),
    )
    if found.least_turns.size != found.served.size:
        raise InvalidInput("least_turns has not one number per device; the file was changed")
    if not np.allclose(found.shares, document["shares"], rtol=1e-9, atol=1e-12):
        raise InvalidInput("shares do not follow from the designs; the file was changed")
    return found


def _bare_link(document: Mapping[str, Any]) -> Link:
    found = _wideband_link(document) if "subcarrier_rule" in document else Link(**_link_fields(document))
    _check_scores(found, document)
    return found


def _wideband_link(document: Mapping[str, Any]) -> WidebandLink:
    channels = _complex_from(document["channels"])
    for one in channels:
        checked_channels(one)
    alone = {**document, "channels": {part: document["channels"][part][0] for part in ("re", "im")}}
    rule = checks.one_of("subcarrier_rule", document["subcarrier_rule"], RULES)
    return WidebandLink(**_link_fields(alone) | {"channels": channels, "rule": rule})


def _link_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    channels = checked_channels(_complex_from(document["channels"]))
    threshold = document["mse_threshold"]
    return {
        "channels": channels,
        "weights": checked_weights(document["weights"], channels.shape[1]),
        "beam": _complex_from(document["beam"]),
        "budget": checks.positive("budget", document["budget"]),
        "power": checks.positive("power", document["power"]),
        "mse_threshold": None if threshold is None else checks.positive("mse_threshold", threshold),
    }


def _training(document: Mapping[str, Any]) -> Runs:
    return Runs(_run(run) for run in document["runs"])


def _run(run: Mapping[str, Any]) -> TrainingRun:
    found = None if run["design"] is None else _design(run["design"])
    scenario = None
    if found is not None:
        scenario = found.scenario
    elif run["scenario"] is not None:
        scenario = _scenario(run)
    link: Link | None = found
    if (stored := run.get("link")) is not None:
        link = _selection(stored) if stored["kind"] == "selection" else _bare_link(stored)
    known = len(run["scenario"]["devices"]["x_m"]) if "devices" not in run else run["devices"]
    return TrainingRun(
        scheme=str(run["scheme"]),
        dataset=str(run["dataset"]),
        devices=checks.whole("devices", known, 1),
        scenario=scenario,
        link=link,
        config=dict(run["config"]),
        parameters=checks.whole("parameters", run["parameters"], 0),
        history=tuple(_record(row) for row in run["history"]),
        state=_single_from(run["state"]) if "state" in run else np.empty(0, np.float32),
        finished=bool(run["finished"]),
        status=str(run["status"]),
        book=_book(run["book"]) if "book" in run else None,
    )


def _record(row: Mapping[str, Any]) -> Record:
    """A round. Values that are null or, in files of airpass 0.1, absent were not numbers."""
    values: dict[str, Any] = {
        item.name: row[item.name] if item.type in (int, "int") else _float(row.get(item.name))
        for item in fields(Record)
        if item.name != "turn" or "turn" in row
    }
    for name in ("predicted", "measured"):
        if values[f"{name}_mse"] == 0.0:
            values[f"{name}_sdr_db"] = math.inf
    return Record(**values)


def tolerance_from(document: Mapping[str, Any], threshold: float) -> Tolerance:
    """The tolerance of a design's document.

    Parameters
    ----------
    document
        As `tolerance_document` makes it.
    threshold
        Largest aggregation error of the design.

    Returns
    -------
    Tolerance
        The outcomes.
    """
    return Tolerance(
        position_mm=document["position_mm"],
        channel_error=document["channel_error"],
        draws=document["draws"],
        seed=document["seed"],
        nominal=document["nominal_count"],
        displacement_mm=document.get("displacement_mm", 0.0),
        outcomes={
            name: Outcome(
                senders=_reals(outcome["senders"]),
                counts=_reals(outcome["counts"]),
                misalignments=_reals(outcome["misalignments"]),
                mses=_reals(outcome["mse"]),
                threshold=threshold,
            )
            for name, outcome in document["receivers"].items()
        },
    )


def fresh_draws_from(document: Mapping[str, Any]) -> FreshDraws:
    """The counts on fresh draws of a design's document.

    Parameters
    ----------
    document
        As `fresh_draws_document` makes it.

    Returns
    -------
    FreshDraws
        The counts.
    """
    searched = document["searched"]
    return FreshDraws(
        draws=document["draws"],
        seed=document["seed"],
        searched=None if searched is None else Counts(_reals(searched["counts"])),
        fresh={name: Counts(_reals(found["counts"])) for name, found in document["receivers"].items()},
    )


def life_from(document: Mapping[str, Any]) -> Life:
    """The life of a design.

    Parameters
    ----------
    document
        As `life_document` makes it.

    Returns
    -------
    Life
        Aligned devices against displacement.
    """
    distances = np.array(document["distances_m"], dtype=np.float64)
    draws = checks.whole("draws", document["draws"], 1)
    counts = {name: np.array(document["receivers"][name]["counts"], dtype=np.float64) for name in RECEIVERS}
    if any(values.shape != (distances.size, draws) for values in counts.values()):
        raise InvalidInput("counts do not fit distances_m and draws; the file was changed")
    return Life(
        method=str(document["method"]),
        devices=checks.whole("devices", document["devices"], 1),
        wavelength_m=checks.positive("wavelength_m", document["wavelength_m"]),
        distances_m=distances,
        draws=draws,
        seed=checks.whole("seed", document["seed"], 0),
        counts=counts,
    )


def _track(document: Mapping[str, Any]) -> Track:
    scenario = _scenario(document)
    layouts, array = (
        None if document[name] is None else np.array(document[name], dtype=np.float64)
        for name in ("layouts_m", "array_m")
    )
    selected = np.zeros((len(document["rows"]), scenario.devices.count), dtype=np.bool_)
    for chosen, devices in zip(selected, document["selected"], strict=True):
        chosen[devices] = True
    return Track(
        scenario=scenario,
        method=_method_from(document["method"], designs.METHODS, RecordedDesign),
        update=str(document["update"]),
        beam_every_s=document["beam_every_s"],
        layout_every_s=document["layout_every_s"],
        layout_delay_s=document["layout_delay_s"],
        lead_s=document["lead_s"],
        antenna_speed_m_s=document["antenna_speed_m_s"],
        time_limit_s=document["time_limit_s"],
        seed=checks.whole("seed", document["seed"], 0),
        rows=tuple(
            TrackRow(**{**row, "layout_seconds": _float(row["layout_seconds"])}) for row in document["rows"]
        ),
        places_m=np.array(document["places_m"], dtype=np.float64),
        layouts_m=layouts,
        array_m=array,
        beams=_complex_from(document["beams"]),
        selected=selected,
    )


def certificate_from(document: Mapping[str, Any]) -> Certificate:
    """The certificate of a selection's or design's document.

    Parameters
    ----------
    document
        As `certificate_document` makes it.

    Returns
    -------
    Certificate
        The upper bound.
    """
    return Certificate(document["at_most"], document["bound"], np.array(document["multipliers"]))


def layout_certificate_from(document: Mapping[str, Any]) -> LayoutCertificate:
    """The certificate for all layouts of a design's document.

    Parameters
    ----------
    document
        As `layout_certificate_document` makes it.

    Returns
    -------
    LayoutCertificate
        The upper bound.
    """
    return LayoutCertificate(
        at_most=document["at_most"],
        bounds=dict(document["bounds"]),
        best_scores=np.array(document["best_scores"]),
        multipliers=np.array(document["multipliers"]),
    )


def _scenario(document: Mapping[str, Any]) -> Scenario:
    """The scenario of a design or a run, with the distribution that its devices were drawn from."""
    scenario = Scenario.from_dict(document["scenario"], trusted=False)
    drawn = document.get("drawn_from")
    if drawn is None:
        return scenario
    return replace(scenario, devices=replace(scenario.devices, drawn_from=DeviceDraw(**drawn)))


def _check_scores(link: Link, document: Mapping[str, Any]) -> None:
    """Refuse a file whose parts do not fit together."""
    stored = np.array(document["scores"], dtype=np.float64)
    scores = link.scores
    same = stored.shape == scores.shape
    if not same or not np.abs(stored - scores).max() <= SCORE_ERROR * scores.max():
        raise InvalidInput("the scores do not follow from channels, weights and beam; the file was changed")


def _method_from(
    document: Mapping[str, Any], registry: Registry[M], placeholder: type[RecordedMethod]
) -> Any:
    """The method of a result: the registered one with its options, or a placeholder.

    No code is imported that a file names: only registered methods are looked up.
    """
    name, options = str(document["name"]), dict(document["options"])
    nested = {key: value for key, value in document.items() if key not in ("name", "options")}
    base: Any = registry.methods().get(name, Alternation() if registry.base is designs.METHODS.base else None)
    if base is not None:
        try:
            chosen = {key: _part(getattr(base, key), part) for key, part in nested.items()}
            found = with_options(replace(base, **chosen), options)
            if (found.name, parts(found), options_dict(found)) == (name, nested, options):
                return found
        except (InvalidInput, AttributeError, TypeError, ValueError):
            pass  # options of another version, or a nested method that is not registered
    return placeholder(name, nested, options)


def _part(current: Method, name: str) -> Method:
    """A nested method by name, of the kind that is there by default."""
    if current.name == name:
        return current
    registries: tuple[Registry[Any], ...] = (selection.METHODS, geometry.METHODS, designs.METHODS)
    kind = next(registry for registry in registries if isinstance(current, registry.base))
    found = kind.methods().get(name)
    if found is None:
        raise InvalidInput(f"method {name}: is not registered")
    part: Method = found
    return part


def _complex_from(document: Mapping[str, Any]) -> Complex:
    re, im = (np.array(document[part], dtype=np.float64) for part in ("re", "im"))
    values = np.empty(np.broadcast_shapes(re.shape, im.shape), np.complex128)
    values.real, values.imag = re, im  # re + 1j * im would lose the sign of zeros
    return values


def _single_from(document: Mapping[str, str]) -> Single:
    return np.frombuffer(b64decode(document["float32"], validate=True), "<f4").astype(np.float32)


def _reals(values: Sequence[Any]) -> Real:
    return np.array([_float(value) for value in values])


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
