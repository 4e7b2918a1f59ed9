"""One trial: a scheme at a point of a sweep, for one seed. Its rows are a pure function of its fields.

The seed fixes devices, data split, initial weights and noise, so that all schemes and points of the
same trial number see the same ones.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from math import nan
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from airpass import __version__
from airpass.aircomp import Link
from airpass.core.arrays import read_array
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference, referenced_file
from airpass.core.registry import with_threads
from airpass.core.types import Complex, Real
from airpass.designs.api import Design, design, design_method
from airpass.designs.base import DesignMethod
from airpass.designs.book import Book
from airpass.designs.colocated import ArrayDesign
from airpass.designs.life import life
from airpass.designs.tolerance import tolerance
from airpass.designs.turns import checked_turns, schedule
from airpass.learning import FEDAVG
from airpass.scenario import Scenario
from airpass.selection import METHODS
from airpass.selection.api import checked_stack, checked_weights, select

SECONDS = "seconds"  # the only metric that differs between runs of the same trial
DESIGN_METRICS = ("selected_count", "weakest_score", "mse", "sdr_db")
ROUND_METRICS = (
    "test_accuracy",
    "test_loss",
    "train_loss",
    "selected_count",
    "predicted_mse",
    "measured_mse",
    "predicted_sdr_db",
    "measured_sdr_db",
    "largest_power",
)


@dataclass(frozen=True)
class Row:
    """One value of one metric."""

    figure: str
    scheme: str
    x: float | None  # position on the sweep's axis; None without an axis, or if it is not a number
    x_label: str
    trial: int
    round: int  # of training; 0 before training
    metric: str
    value: float  # NaN if undefined, such as the error if no device is selected
    seed: int
    key: str  # of the trial
    version: str = ""  # of airpass; "" in rows of versions that did not store it


@dataclass(frozen=True, repr=False)
class Trial:
    """Description of a computation, as plain data: it is sent to workers and stored with the rows.

    Parameters
    ----------
    job
        "select": device selection at the uniform layout, timed; "design": a design; "train": a
        design and training with it.
    figure, scheme, x, x_label, trial
        Copied to the rows.
    seed
        Seed of the computation.
    scenario
        Tables as in a scenario file.
    method
        Arguments of `select` or `design`. {"method": "fedavg"} is training with ideal aggregation. With
        `turns`, a number or "auto", training goes through a book of `schedule`.
    training
        Data set and options of training; None unless the job is "train".
    repeats
        Number of timed runs; 0 unless the job is "select".
    evaluation
        For the job "evaluate": `displacement_wavelengths` or `position_mm`, and the number of `draws`.
    channels
        For the job "select": `file`, `variable`, `transpose`, `weights`, `weights_variable` and `draw`, the
        channels to select for instead of those of the scenario, of which only the radio is used.
    """

    job: Literal["select", "design", "train", "evaluate"]
    figure: str
    scheme: str
    x: float | None
    x_label: str
    trial: int
    seed: int
    scenario: Mapping[str, Any]
    method: Mapping[str, Any]
    training: Mapping[str, Any] | None = None
    repeats: int = 0
    channels: Mapping[str, Any] | None = None
    evaluation: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.channels is not None and self.job != "select":
            raise InvalidInput("channels: can be given for the job 'select' only")
        if (self.job == "train") != (self.training is not None):
            raise InvalidInput("training: must be given for the job 'train', and for no other")
        if (self.job == "evaluate") != (self.evaluation is not None):
            raise InvalidInput("evaluation: must be given for the job 'evaluate', and for no other")
        if (self.job == "select") != (self.repeats > 0):
            raise InvalidInput("repeats: must be at least 1 for the job 'select', and 0 for any other")

    def __repr__(self) -> str:
        return f"<Trial {self.job} {self.name}>"

    @cached_property
    def key(self) -> str:
        """Fingerprint of everything that the rows depend on. Stored rows are found by it."""
        fields = asdict(self)
        del fields["job"]  # follows from training and repeats
        for name in ("channels", "evaluation"):
            if fields[name] is None:
                del fields[name]
        return _fingerprint(fields | {"version": __version__} | self._files)

    @cached_property
    def computation(self) -> str:
        """Fingerprint of what is computed. Trials that differ only in their place in a figure share it."""
        scenario = dict(self.scenario)
        if self.method.get("method") == FEDAVG:  # does not depend on the receiver
            scenario = {
                name: scenario[name] for name in scenario if name not in ("receiver", "radio", "channel")
            }
        parts = (scenario, dict(self.method), self.training, self.repeats, self.seed, __version__)
        given = tuple(one for one in (self.channels, self.evaluation) if one is not None)
        return _fingerprint((*parts, self._files, *given))

    @cached_property
    def _files(self) -> dict[str, dict[str, str]]:
        """SHA-256 of user-defined files that the trial reads: data sets, channels and Python files."""
        digests = {}
        for text in _texts((self.scenario, self.method, self.training)):
            path = referenced_file(text) if is_reference(text) else Path(text)
            if path is not None and path.suffix in (".npz", ".mat", ".py") and path.is_file():
                digests[text] = hashlib.sha256(path.read_bytes()).hexdigest()
        for name in ("file", "weights"):
            given = (self.channels or {}).get(name)
            if given is not None and Path(given).is_file():
                digests[given] = _file_digest(given, *_stamp(given))
        return {"files": digests} if digests else {}

    @property
    def name(self) -> str:
        """Description in messages."""
        where = f" at {self.x_label}" if self.x_label else ""
        return f"{self.figure}: {self.scheme}{where}, trial {self.trial}"

    def row(self, metric: str, value: float, round_number: int = 0) -> Row:
        """A row of this trial."""
        place = (self.figure, self.scheme, self.x, self.x_label, self.trial)
        return Row(*place, round_number, metric, value, self.seed, self.key, __version__)


def _stamp(path: str) -> tuple[int, int]:
    """Size and time of a file, which change when it is written."""
    about = Path(path).stat()
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=16)
def _file_digest(path: str, size: int, time_ns: int) -> str:
    """SHA-256 of a file. Many trials read the same one."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def given_channels(table: Mapping[str, Any]) -> tuple[Complex, Real | None]:
    """Read the channels of a trial, or of the `[channels]` table of a sweep.

    Parameters
    ----------
    table
        `file`, and optionally `variable`, `transpose`, `weights` and `weights_variable`.

    Returns
    -------
    tuple of Complex and Real or None
        Draws, shape (T, M, K), and weights if they are given.
    """
    path, weights = table["file"], table.get("weights")
    for name in (path, weights):
        if name is not None and not Path(name).is_file():
            raise InvalidInput(f"{name}: no such file")
    arguments = (path, table.get("variable"), bool(table.get("transpose", False)))
    draws = _read_channels(*arguments, *_stamp(path))
    if weights is None:
        return draws, None
    read = read_array(Path(weights), table.get("weights_variable"), "channels.weights_variable")
    return draws, checked_weights(read, draws.shape[2], weights)


@lru_cache(maxsize=2)
def _read_channels(path: str, variable: str | None, transpose: bool, size: int, time_ns: int) -> Complex:
    return checked_stack(read_array(Path(path), variable, "channels.variable"), path, transpose)


def _fingerprint(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _texts(value: Any) -> Iterator[str]:
    """Every text in nested tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def relabel(rows: Iterable[Row], trial: Trial) -> list[Row]:
    """The rows of a trial with the same computation, as rows of `trial`."""
    return [trial.row(row.metric, row.value, row.round) for row in rows]


def check(trial: Trial) -> None:
    """Raise InvalidInput if a trial cannot run."""
    Scenario.from_dict(trial.scenario)
    name = trial.method.get("method")
    options = trial.method.get("options", {})
    if "time_limit_s" in options:
        raise InvalidInput(
            "options.time_limit_s: rows must not depend on the speed of a machine; give effort"
        )
    if trial.job == "select":
        METHODS.resolve(str(name), options)
    elif name != FEDAVG:
        method = design_method(**_without_turns(trial))
        if "turns" in trial.method:
            _check_turns(trial, method)
    elif trial.job == "design":
        raise InvalidInput(f"scheme = {FEDAVG!r}: needs training; this study has none")
    elif "turns" in trial.method:
        raise InvalidInput(f"schemes: turns of {trial.scheme!r}: {FEDAVG} has no design; leave turns out")
    if trial.training is not None:
        from airpass.learning.options import training_options

        training_options(trial.training)


def _check_turns(trial: Trial, method: DesignMethod) -> None:
    if trial.job != "train":
        raise InvalidInput(f"schemes: turns of {trial.scheme!r}: needs training; this study has none")
    if isinstance(method, ArrayDesign):
        raise InvalidInput(f"schemes: turns of {trial.scheme!r}: {method.name} has no antennas that move")
    try:
        checked_turns(trial.method["turns"], method)
    except InvalidInput as error:
        raise InvalidInput(f"schemes: {trial.scheme!r}: {error}") from None


def run(trial: Trial) -> list[Row]:
    """Compute a trial.

    Parameters
    ----------
    trial
        What to compute.

    Returns
    -------
    list[Row]
        All rows, in an order that depends on the trial only.
    """
    jobs = {
        "select": _selection_rows,
        "design": _design_rows,
        "train": _training_rows,
        "evaluate": _evaluation_rows,
    }
    return jobs[trial.job](trial, Scenario.from_dict(trial.scenario))


def _selection_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    """Number of selected devices, counts of operations, and the median of the times."""
    if trial.channels is None:
        channels, weights = scenario.channels(scenario.uniform_layout()), scenario.weights
        metrics: Sequence[str] = ("selected_count",)
    else:
        draws, given = given_channels(trial.channels)
        channels, weights = draws[trial.channels["draw"]], checked_weights(given, draws.shape[2])
        metrics = DESIGN_METRICS
    results = [
        select(
            channels,
            weights,
            scenario.budget,
            **trial.method,
            mse_threshold=scenario.radio.mse_threshold,
            power=scenario.radio.power,
            seed=trial.seed,
        )
        for _ in range(1 + trial.repeats)  # the first may compile
    ]
    counts = {f"work_{name}": float(count) for name, count in sorted(results[0].work.items())}
    values = {name: _value(results[0], name) for name in metrics} | counts
    rows = [trial.row(name, value) for name, value in values.items()]
    return [*rows, trial.row(SECONDS, median(result.seconds for result in results[1:]))]


def _value(link: Link, metric: str) -> float:
    """A metric of a link; NaN for the weakest score if no device is selected."""
    if metric == "weakest_score" and not link.selected_count:
        return nan
    return float(getattr(link, metric))


def _without_turns(trial: Trial) -> dict[str, Any]:
    """Arguments of `design`."""
    return {name: value for name, value in trial.method.items() if name != "turns"}


def _method(trial: Trial) -> DesignMethod:
    """The design method with one compute thread per worker; results do not depend on it."""
    return with_threads(design_method(**_without_turns(trial)), 1)


def _design(trial: Trial, scenario: Scenario) -> Design:
    return design(scenario, _method(trial), seed=trial.seed)


def _rows_of(trial: Trial, result: Design) -> list[Row]:
    return [trial.row(name, _value(result, name)) for name in DESIGN_METRICS]


def _design_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    result = _design(trial, scenario)
    return [*_rows_of(trial, result), trial.row(SECONDS, result.seconds)]


def _evaluation_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    """Mean numbers of aligned devices of a design after something has moved, by receiver."""
    assert trial.evaluation is not None
    result, draws = _design(trial, scenario), int(trial.evaluation["draws"])
    if "position_mm" in trial.evaluation:
        error = float(trial.evaluation["position_mm"])
        found = tolerance(result, position_mm=error, draws=draws, seed=trial.seed)
        means = {name: outcome.mean for name, outcome in found.outcomes.items()}
    else:
        distance = float(trial.evaluation["displacement_wavelengths"]) * scenario.radio.wavelength_m
        lived = life(result, [distance], draws=draws, seed=trial.seed)
        at = int(np.argmin(np.abs(lived.distances_m - distance)))
        means = {name: float(lived.mean(name)[at]) for name in lived.counts}
    rows = [
        trial.row(f"aligned_{name.replace(' ', '_').replace('-', '_')}", mean) for name, mean in means.items()
    ]
    return [
        *rows,
        trial.row("selected_count", float(result.selected_count)),
        trial.row(SECONDS, result.seconds),
    ]


def _training_rows(trial: Trial, scenario: Scenario) -> list[Row]:
    from airpass.learning.options import training_options
    from airpass.learning.training import prepare, train

    assert trial.training is not None
    dataset, options, data_dir = training_options(trial.training)
    weighted, data = prepare(scenario, dataset, options, trial.seed, data_dir)
    link: Design | Book | None = None
    if "turns" in trial.method:
        link = schedule(weighted, trial.method["turns"], "antennas", _method(trial), seed=trial.seed)
    elif trial.method.get("method") != FEDAVG:
        link = _design(trial, weighted)
    done = train(link, data, seed=trial.seed, scenario=weighted, options=options, workers=1, progress=False)
    if not done.finished:
        if done.diverged:
            raise InvalidInput(f"training {done.status}; try a smaller learning_rate")
        if done.interrupted:
            raise KeyboardInterrupt
        raise RuntimeError(f"training was {done.status}")
    # The number of selected devices is recorded for every round.
    rows = _rows_of(trial, link)[1:] if isinstance(link, Design) else []
    for record in done.history:
        for metric in ROUND_METRICS:
            rows.append(trial.row(metric, float(getattr(record, metric)), record.round))
    return [*rows, trial.row(SECONDS, done.history[-1].seconds)]
