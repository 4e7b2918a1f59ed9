"""`sweep` and `reproduce`: run studies from Python. The commands of the same names use their parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import Report, discard
from airpass.core.threads import processors
from airpass.study import paper
from airpass.study.known import known_figures
from airpass.study.paper.base import SCALES, PaperFigure
from airpass.study.run import output_folders, run_sweep
from airpass.study.run import reproduce as run_figures
from airpass.study.runner import DaskCluster, Executor, LocalProcesses, Outcome
from airpass.study.stored import StoredStudy, open_study
from airpass.study.sweep import from_dict, load
from airpass.study.trial import Trial, check


def sweep(
    study: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    report: Report = discard,
) -> StoredStudy:
    """Run a sweep: schemes x values of a field x trials.

    Parameters
    ----------
    study
        A TOML file, or its tables as a dictionary; docs/howto/studies.md describes them.
    out
        Folder for rows, pictures and the report. Default: runs/NAME. Stored rows are reused.
    workers
        Number of local processes. Default: one per available processor.
    dask
        Address of a Dask scheduler, instead of local processes.
    report
        Callback for progress messages.

    Returns
    -------
    StoredStudy
        Rows, table and chart.
    """
    chosen = from_dict(study) if isinstance(study, Mapping) else load(study)
    folder = Path("runs") / chosen.name if out is None else Path(out)
    with (
        output_folders([chosen.name], "", lambda _: folder, report),
        closing(executor(workers, dask, chosen.trials, report)(report)) as where,
    ):
        outcome, _, _ = run_sweep(
            chosen, folder, where, "airpass.sweep(...)", lambda trial: report(trial.name), report
        )
    _check([outcome])
    return open_study(folder)


def reproduce(
    figures: str | Sequence[str],
    scale: str = "smoke",
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    report: Report = discard,
) -> list[StoredStudy]:
    """Reproduce figures of the paper.

    Parameters
    ----------
    figures
        Names: "fig2" to "fig9", "table1"; or "all".
    scale
        "smoke", "lite" or "paper".
    out
        Folder; that of a figure is out/FIGURE. Default: runs/FIGURE-SCALE. Stored rows are reused.
    workers, dask, report
        As for `sweep`.

    Returns
    -------
    list[StoredStudy]
        Rows, table, chart and verdicts on the paper's claims, per figure.
    """
    checks.one_of("scale", scale, SCALES)
    chosen = named_figures([figures] if isinstance(figures, str) else figures)

    def folder(name: str) -> Path:
        if out is None:
            return Path("runs") / f"{name}-{scale}"
        return Path(out) if name == "all" else Path(out) / name

    trials = [trial for figure in chosen for trial in figure.trials(scale)]
    with (
        output_folders([figure.name for figure in chosen], scale, folder, report),
        closing(executor(workers, dask, trials, report)(report)) as where,
    ):
        outcomes, _ = run_figures(
            chosen,
            scale,
            folder,
            where,
            "airpass.reproduce(...)",
            lambda trial: report(trial.name),
            notice=report,
        )
    _check(outcomes.values())
    return [open_study(folder(figure.name)) for figure in chosen]


def named_figures(names: Sequence[str]) -> list[PaperFigure]:
    """Figures by name, in the paper's order; "all" for all."""
    known = known_figures()
    if not names:
        raise InvalidInput(f"no figure given: choose from {', '.join(known)}, all or added")
    for name in names:
        checks.one_of("figure", name, (*known, "all", "added"))
    groups = {name: "all" if name in paper.figures() else "added" for name in known}
    return [figure for name, figure in known.items() if groups[name] in names or name in names]


def executor(
    workers: int | None, dask: str | None, trials: Sequence[Trial], report: Report
) -> Callable[[Report], Executor]:
    """Where trials run, given a callback for messages.

    Parameters
    ----------
    workers
        Number of local processes; None for one per processor or GPU.
    dask
        Address of a Dask scheduler, instead of local processes.
    trials
        What will run. Data sets that they need are downloaded first if processes are local.
    report
        Callback for messages about downloads.

    Returns
    -------
    Callable
        Takes a callback for messages about missing workers, and returns the executor.
    """
    if dask is not None:
        if workers is not None:
            raise InvalidInput("workers cannot be combined with dask")
        return DaskCluster(dask).with_notice
    if workers is not None:
        checks.whole("workers", workers, 1)
    gpus: tuple[str, ...] = ()
    if any(trial.job == "train" for trial in trials):
        from airpass.learning.client import gpu_names

        for trial in trials:  # before what they name is downloaded
            check(trial)
        fetch_data(trials, report)
        gpus = gpu_names()
    local = LocalProcesses(workers or len(gpus) or processors(), gpus)
    return lambda _: local


def fetch_data(trials: Sequence[Trial], report: Report) -> None:
    """Download the data sets that trials need. Trials whose data set is missing fail later."""
    from airpass.learning.data import data_source
    from airpass.learning.data.download import Download
    from airpass.learning.options import DATASET

    tables = [trial.training for trial in trials if trial.training is not None]
    needed = {(table.get("dataset"), table.get("data_dir")) for table in tables}
    for name, folder in sorted(needed, key=str):
        try:
            source = data_source(str(name or DATASET))
            if isinstance(source, Download):
                source.fetch(None if folder is None else Path(folder), report)
        except InvalidInput as error:
            report(str(error))


def failures(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Error messages by trial."""
    return {trial.name: why for outcome in outcomes for trial, why in outcome.failures}


def _check(outcomes: Iterable[Outcome]) -> None:
    failed = failures(outcomes)
    if failed:
        name, why = next(iter(failed.items()))
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise InvalidInput(f"{name}: {why}{more}; the other rows are stored, and reused by another call")
