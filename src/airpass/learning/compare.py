"""Comparison of several schemes on the same devices, data and initial weights."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from airpass import designs
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference
from airpass.core.registry import Report, discard
from airpass.designs.api import design
from airpass.designs.base import DesignMethod
from airpass.learning import FEDAVG
from airpass.learning.data import Data
from airpass.learning.data.partition import FederatedData, Split
from airpass.learning.options import DATASET, TrainOptions
from airpass.learning.training import TrainingRun, check_model, prepare, scheme_name, train
from airpass.scenario import Scenario

Scheme = str | DesignMethod | Link
OnStart = Callable[[str], None]
OnSchemeRound = Callable[[str, int, Mapping[str, float]], None]
OnEnd = Callable[[Sequence[TrainingRun]], None]


def compare(
    scenario: Scenario,
    schemes: Sequence[Scheme],
    dataset: Data | FederatedData = DATASET,
    options: TrainOptions | None = None,
    seed: int = 0,
    *,
    workers: int | None = None,
    data_dir: Path | None = None,
    folder: Path | None = None,
    resume: bool = False,
    on_start: OnStart | None = None,
    on_round: OnSchemeRound | None = None,
    on_end: OnEnd | None = None,
    split: Split | None = None,
    report: Report = discard,
) -> list[TrainingRun]:
    """Design and train several schemes.

    Parameters
    ----------
    scenario
        Receiver, radio and devices. Their weights are set by the data.
    schemes
        Each "fedavg", a design method (by name, `file.py:Name`, `package.module:Name` or object), or a link
        that is ready, such as a design for the scenario that `prepare` gives.
    dataset, options, seed, workers, data_dir
        As for `train`.
    folder
        Folder for a checkpoint per scheme; None: no checkpoints.
    resume
        Continue from the checkpoints in `folder`.
    on_start
        Callback before a scheme is designed and trained, with its name.
    on_round
        Callback after every round, with the name of the scheme and the arguments of `train`'s callback.
    on_end
        Callback after every scheme, with all runs so far.
    split, report
        As for `prepare`.

    Returns
    -------
    list of TrainingRun
        A run per scheme. If one is interrupted, it is the last.
    """
    options = options or TrainOptions()
    chosen = {_name(scheme): scheme for scheme in map(_resolved, schemes)}
    if len(chosen) != len(schemes):
        raise InvalidInput("scheme: a scheme is named twice")
    if isinstance(dataset, FederatedData):
        if split is not None:
            raise InvalidInput("split: the data are split already; give it to prepare")
        weighted, data = scenario.with_samples(dataset.counts), dataset
    else:
        weighted, data = prepare(scenario, dataset, options, seed, data_dir, split=split, report=report)
    check_model(data, options, seed)  # before the designs, which may take long
    runs: list[TrainingRun] = []
    for name, scheme in chosen.items():
        if on_start is not None:
            on_start(name)
        run = train(
            design(weighted, scheme, seed=seed) if isinstance(scheme, DesignMethod) else scheme,
            data,
            seed=seed,
            scenario=weighted,
            options=options,
            workers=workers,
            checkpoint=None if folder is None else folder / f"{name}.checkpoint.npz",
            resume=resume,
            on_round=None if on_round is None else partial(on_round, name),
        )
        runs.append(run)
        if on_end is not None:
            on_end(runs)
        if not run.finished:
            break
    return runs


def _resolved(scheme: Scheme) -> DesignMethod | Link | None:
    """A design method, a link, or None for ideal FedAvg."""
    if not isinstance(scheme, str):
        return scheme
    if scheme == FEDAVG:
        return None
    if not is_reference(scheme):
        checks.one_of("scheme", scheme, [FEDAVG, *designs.METHODS.methods(), "file.py:Name"])
    return designs.METHODS.resolve(scheme, label="scheme")


def _name(scheme: DesignMethod | Link | None) -> str:
    return scheme.name if isinstance(scheme, DesignMethod) else scheme_name(scheme)
