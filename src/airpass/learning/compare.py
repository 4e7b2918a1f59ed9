"""Comparison of several schemes on the same devices or channels, data and initial weights."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from airpass import designs, selection
from airpass.aircomp import Link
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.locks import locks_folder
from airpass.core.references import is_reference
from airpass.core.registry import Report, discard
from airpass.designs.api import design
from airpass.designs.base import DesignMethod
from airpass.designs.book import Book
from airpass.designs.moving import Moving
from airpass.designs.queues import Queues
from airpass.designs.round_links import RoundLinks
from airpass.designs.together import design_for_all
from airpass.designs.turns import schedule
from airpass.learning import FEDAVG
from airpass.learning.data import Data
from airpass.learning.data.partition import FederatedData, Split
from airpass.learning.history import Runs, TrainingRun
from airpass.learning.options import DATASET, TrainOptions
from airpass.learning.priorities import data_priorities
from airpass.learning.rounds import scheme_name
from airpass.learning.training import check_model, federated, prepare, train
from airpass.scenario import Scenario
from airpass.selection.api import Draws, checked_stack, checked_weights, select_draws
from airpass.selection.base import SelectionMethod

BLOCKS = ("held", "per-round")

Scheme = str | DesignMethod | type[DesignMethod] | Link | Book | Callable[..., Any]
OnStart = Callable[[str], None]
OnSchemeRound = Callable[[str, int, Mapping[str, float]], None]
OnEnd = Callable[[Sequence[TrainingRun]], None]


@locks_folder
def compare(
    scenario: Scenario,
    schemes: Sequence[Scheme] | Mapping[str, Scheme],
    dataset: Data | FederatedData = DATASET,
    options: TrainOptions | None = None,
    seed: int | None = None,
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
    progress: bool | None = None,
    turns: int | str | None = None,
    move: str = "antennas",
    all_devices: bool = False,
    moving: Moving | None = None,
    policy: Queues | None = None,
    priorities: Any = None,
) -> Runs:
    """Design and train several schemes.

    Parameters
    ----------
    scenario
        Receiver, radio and devices. Their weights are set by the data.
    schemes
        Each "fedavg", a design method (by name, `file.py:Name`, `package.module:Name`, object or function),
        or a link or book that is ready, such as a design for the scenario that `prepare` gives. A mapping
        gives them names of one's own.
    dataset, options, seed, workers, data_dir
        As for `train`.
    folder
        Folder for a checkpoint per scheme, locked meanwhile; None: no checkpoints.
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
    progress
        As for `train`.
    turns, move
        As for `schedule`: design methods find a book, whose designs are used by turns. None: one design.
        `move` is also that of `policy`.
    all_devices
        Whether design methods serve all devices with the smallest error, as `design_for_all` does.
    moving
        Rounds take time while devices move: design methods track the devices. None: devices do
        not move.
    policy
        Which devices a round serves, such as `Queues()`: those with the largest debts. None: as many as
        possible.
    priorities
        "samples" or "classes": priorities that follow from the data of the devices
        (`airpass.learning.priorities`); or v_k >= 0, one number per device. None: those of the scenario.

    Returns
    -------
    Runs
        A list with a run per scheme. If one is interrupted, it is the last. After one that
        diverges, the others follow.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    options = options or TrainOptions()
    for name, given in (("turns", turns), ("moving", moving), ("policy", policy)):
        if all_devices and given is not None:
            raise InvalidInput(f"all_devices cannot be combined with {name}")
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    if isinstance(schemes, Mapping):
        chosen = {name: _resolved(scheme) for name, scheme in schemes.items()}
    else:
        chosen = {_name(scheme): scheme for scheme in map(_resolved, schemes)}
    if len(chosen) != len(schemes):
        raise InvalidInput("scheme: a scheme is named twice")
    if moving is not None:
        _check_moving(moving, chosen, resume)
    if moving is not None or policy is not None:
        _check_changing("policy" if moving is None else "moving", chosen, options, turns)
    if isinstance(dataset, FederatedData):
        if split is not None:
            raise InvalidInput("split: the data are split already; give it to prepare")
        weighted, data = scenario.with_samples(dataset.counts), dataset
    else:
        weighted, data = prepare(scenario, dataset, options, seed, data_dir, split=split, report=report)
    if priorities is not None:
        for name, scheme in chosen.items():
            if isinstance(scheme, Link | Book):
                raise InvalidInput(f"priorities: cannot be combined with scheme {name}, which is ready")
        weighted = weighted.with_priorities(data_priorities(priorities, data))
    check_model(data, options, seed)  # before the designs, which may take long

    def link(scheme: DesignMethod | Link | Book | None) -> Link | Book | RoundLinks | None:
        if not isinstance(scheme, DesignMethod):
            return scheme
        if all_devices:
            return design_for_all(weighted, scheme, seed=seed)
        if policy is not None:
            return policy.links(weighted, options.rounds, scheme, move=move, moving=moving, seed=seed)
        if moving is not None:
            return moving.links(weighted, options.rounds, scheme, seed=seed)
        if turns is None:
            return design(weighted, scheme, seed=seed)
        return schedule(weighted, turns, move, scheme, seed=seed)

    return _train_each(
        {name: partial(link, scheme) for name, scheme in chosen.items()},
        data,
        {
            "seed": seed,
            "scenario": weighted,
            "options": options,
            "workers": workers,
            "resume": resume,
            "progress": progress,
        },
        folder,
        on_start,
        on_round,
        on_end,
    )


@locks_folder
def compare_channels(
    channels: Any,
    schemes: Sequence[str | SelectionMethod | type[SelectionMethod] | Callable[..., Any]],
    dataset: Data | FederatedData = DATASET,
    options: TrainOptions | None = None,
    seed: int = 0,
    *,
    snr_db: float,
    mse_threshold: float,
    weights: Any = None,
    blocks: str = "held",
    policy: Queues | None = None,
    priorities: Any = None,
    workers: int | None = None,
    data_dir: Path | None = None,
    folder: Path | None = None,
    resume: bool = False,
    on_start: OnStart | None = None,
    on_round: OnSchemeRound | None = None,
    on_end: OnEnd | None = None,
    split: Split | None = None,
    report: Report = discard,
    progress: bool | None = None,
) -> Runs:
    """Train over given channels, with several selection methods.

    Parameters
    ----------
    channels
        Complex, shape (M, K), or (T, M, K) for a stack of draws.
    schemes
        Each "fedavg", or a selection method: by name, `file.py:Name`, `package.module:Name`, object or
        function.
    snr_db
        P0/sigma^2 in dB.
    mse_threshold
        Largest error of a received sum, eps.
    weights
        phi_k, shape (K,); each device's share of the training data if not given.
    blocks
        "held": the first draw in all rounds. "per-round": draw (r - 1) mod T in round r = 1, 2, ..., with a
        selection for each.
    policy, priorities
        As for `compare`.
    dataset, options, seed, workers, data_dir, folder, resume, split, report, progress
        As for `compare`.
    on_start, on_round, on_end
        As for `compare`.

    Returns
    -------
    Runs
        As for `compare`.
    """
    options = options or TrainOptions()
    stack = checked_stack(channels)
    if checks.one_of("channel_blocks", blocks, BLOCKS) == "held":
        stack = stack[:1]
    methods = [
        None if scheme == FEDAVG else selection.METHODS.resolve(scheme, label="scheme") for scheme in schemes
    ]
    chosen = {FEDAVG if method is None else method.name: method for method in methods}
    if len(chosen) != len(schemes):
        raise InvalidInput("scheme: a scheme is named twice")
    devices = stack.shape[2]
    phi = None if weights is None else checked_weights(weights, devices)
    if isinstance(dataset, FederatedData):
        if split is not None:
            raise InvalidInput("split: the data are split already; give it to prepare")
        data = dataset
    else:
        data = federated(dataset, devices, options, seed, data_dir, split, report)
    check_model(data, options, seed)
    if phi is None:
        counts = np.asarray(data.counts, dtype=np.float64)
        phi = counts / counts.sum()
    values = None if priorities is None else data_priorities(priorities, data)

    def link(method: SelectionMethod | None) -> Draws | RoundLinks | None:
        if method is None:
            return None
        if policy is not None:
            return policy.draws(
                stack,
                options.rounds,
                phi,
                method=method,
                snr_db=snr_db,
                mse_threshold=mse_threshold,
                seed=seed,
                priorities=values,
            )
        return select_draws(
            stack,
            phi,
            method=method,
            snr_db=snr_db,
            mse_threshold=mse_threshold,
            seed=seed,
            priorities=values,
        )

    return _train_each(
        {name: partial(link, method) for name, method in chosen.items()},
        data,
        {
            "seed": seed,
            "weights": phi,
            "options": options,
            "workers": workers,
            "resume": resume,
            "progress": progress,
        },
        folder,
        on_start,
        on_round,
        on_end,
    )


def _train_each(
    schemes: Mapping[str, Callable[[], Link | Draws | Book | RoundLinks | None]],
    data: FederatedData,
    arguments: Mapping[str, Any],
    folder: Path | None,
    on_start: OnStart | None,
    on_round: OnSchemeRound | None,
    on_end: OnEnd | None,
) -> Runs:
    """Train schemes one after the other; `schemes` makes their links, `arguments` are those of `train`."""
    runs = Runs()
    for name, make in schemes.items():
        if on_start is not None:
            on_start(name)
        link = make()
        own = {key: value for key, value in arguments.items() if key != "weights" or link is None}
        run = train(
            link,
            data,
            checkpoint=None if folder is None else folder / f"{name}.checkpoint.npz",
            on_round=None if on_round is None else partial(on_round, name),
            name=name,
            **own,
        )
        runs.append(run)
        if on_end is not None:
            on_end(runs)
        if not run.finished and not run.diverged:
            break
    return runs


def _check_changing(
    argument: str,
    schemes: Mapping[str, DesignMethod | Link | Book | None],
    options: TrainOptions,
    turns: int | str | None,
) -> None:
    """Refuse what cannot be combined with links that are found round by round."""
    if turns is not None:
        raise InvalidInput(f"turns: cannot be combined with {argument}: a book is made before training")
    if options.redraw_every is not None:
        raise InvalidInput(f"redraw_every: cannot be combined with {argument}")
    for name, scheme in schemes.items():
        if isinstance(scheme, Link | Book):
            raise InvalidInput(
                f"scheme {name}: is ready, but {argument} needs a link per round; give a design method"
            )


def _check_moving(
    moving: Moving, schemes: Mapping[str, DesignMethod | Link | Book | None], resume: bool
) -> None:
    """Refuse a time limit that no scheme uses, or after which a run cannot be resumed."""
    if moving.time_limit_s is not None:
        if resume:
            raise InvalidInput(
                "time_limit_s: a run with a time limit cannot be resumed, as its links would differ; omit it"
            )
        methods = [scheme for scheme in schemes.values() if scheme is not None]
        if methods and not any(hasattr(method, "time_limit_s") for method in methods):
            raise InvalidInput("time_limit_s: no scheme has such an option; airpass-plus has")


def _resolved(scheme: Scheme | None) -> DesignMethod | Link | Book | None:
    """A design method, a link, a book, or None for ideal FedAvg."""
    if scheme is None or isinstance(scheme, Link | Book):
        return scheme
    if scheme == FEDAVG:
        return None
    if isinstance(scheme, str) and not is_reference(scheme):
        checks.one_of("scheme", scheme, [FEDAVG, *designs.METHODS.methods(), "file.py:Name"])
    return designs.METHODS.resolve(scheme, label="scheme")


def _name(scheme: DesignMethod | Link | Book | None) -> str:
    return scheme.name if isinstance(scheme, DesignMethod) else scheme_name(scheme)
