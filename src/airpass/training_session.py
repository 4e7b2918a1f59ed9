"""`airpass train`: several schemes on the same devices, data and initial weights, with a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airpass import designs
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.registry import with_options
from airpass.designs.api import design as run_design
from airpass.documents import encode, training_document, training_table
from airpass.figures.style import render
from airpass.figures.training import draw_training
from airpass.learning.aggregation import LinkOptions
from airpass.learning.partition import PartitionOptions
from airpass.learning.training import FEDAVG, TrainingRun, TrainOptions, prepare, train
from airpass.scenario import Scenario


class Bars:
    """A progress bar for every scheme."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def start(self, scheme: str, rounds: int) -> Any:
        """A new bar."""
        return self._progress.add_task(scheme, total=rounds, note="")

    def show(self, bar: Any, done: int, values: Mapping[str, float]) -> None:
        """Move a bar: accuracy of the last test, training loss and error of the last round."""
        note = (
            f"accuracy {100 * values['accuracy']:.1f} %  loss {values['loss']:.3f}  "
            f"selected {values['selected']:g}  MSE {values['mse']:.3g}"
        )
        self._progress.update(bar, completed=done, note=note)


def checked_schemes(text: str) -> list[str]:
    """Scheme names from "a,b,c"."""
    known = [FEDAVG, *designs.METHODS.methods()]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise InvalidInput(f"scheme = {name!r}: must be one of {', '.join(known)}")
    if len(set(names)) != len(names):
        raise InvalidInput(f"scheme = {text!r}: names a scheme twice")
    return names


def options_from(settings: Mapping[str, Any]) -> TrainOptions:
    """Training options from the flat names of the command line."""
    own = {name: settings[name] for name in settings if name in TrainOptions.__dataclass_fields__}
    own.pop("partition")
    return TrainOptions(
        **own,
        partition=PartitionOptions(
            kind=settings["partition"],
            classes_per_device=settings["classes_per_device"],
            concentration=settings["concentration"],
        ),
        link=LinkOptions(
            normalise=settings["normalise"],
            channel_error=settings["channel_error"],
            phase_error_deg=settings["phase_error_deg"],
        ),
    )


def training_options(table: Mapping[str, Any]) -> tuple[str, TrainOptions, Path | None]:
    """Data set, options and data directory from a table of names, as a study has them."""
    given = dict(table)
    dataset = str(given.pop("dataset", "mnist-mini"))
    data_dir = given.pop("data_dir", None)
    if data_dir is not None and not isinstance(data_dir, str | Path):
        raise InvalidInput(f"train.data_dir = {data_dir!r}: must be a folder")
    options: TrainOptions = with_options(TrainOptions(), given, "train.")
    return dataset, options.filled(dataset), None if data_dir is None else Path(data_dir)


def run_all(
    scenario: Scenario,
    schemes: Sequence[str],
    dataset: str,
    options: TrainOptions,
    seed: int,
    out: Path,
    resume: bool,
    workers: int | None,
    data_dir: Path | None,
    bars: Bars,
) -> list[TrainingRun]:
    """Design and train every scheme; results are written after each, and when interrupted."""
    options = options.filled(dataset)
    weighted, _, _ = prepare(scenario, dataset, options, seed, data_dir)
    runs: list[TrainingRun] = []
    for scheme in schemes:
        bar = bars.start(scheme, options.rounds)
        link = None if scheme == FEDAVG else run_design(weighted, scheme, seed=seed)
        run = train(
            link,
            dataset,
            seed=seed,
            scenario=weighted,
            options=options,
            workers=workers,
            data_dir=data_dir,
            checkpoint=out / f"{scheme}.checkpoint.npz",
            resume=resume,
            on_round=lambda done, values, bar=bar: bars.show(bar, done, values),  # type: ignore[misc]
        )
        runs.append(run)
        write_results(runs, out)
        if not run.finished:
            break
    return runs


def write_results(runs: Sequence[TrainingRun], out: Path) -> None:
    """History as JSON and Parquet, and the curves."""
    write_atomically(out / "history.json", encode(training_document(runs)))
    write_atomically(out / "history.parquet", training_table(runs))
    figure = draw_training(runs)
    for kind in ("png", "pdf"):
        write_atomically(out / f"curves.{kind}", render(figure, kind))
