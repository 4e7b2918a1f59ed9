"""Accuracy and training loss against rounds, one line per scheme."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from airpass.core.display import looks
from airpass.figures.chart import plain
from airpass.figures.style import RC, new_figure, plot, typeset

if TYPE_CHECKING:
    from airpass.learning.history import TrainingRun

LARGEST_RATIO = 1.5  # of the top of an axis of losses to the largest loss of the runs that did not diverge


def draw_training(runs: Sequence["TrainingRun"]) -> Figure:
    """Draw test accuracy on the left, test loss for regression, and training loss on the right.

    Parameters
    ----------
    runs
        Training runs of one scenario and data set.

    Returns
    -------
    Figure
        A matplotlib figure.
    """
    by_scheme = {run.scheme: run for run in runs}
    classified = not any(math.isnan(run.history[-1].test_accuracy) for run in runs)
    with mpl.rc_context(RC):
        figure = new_figure(9.0, 4.0)
        left, right = figure.subplots(1, 2)
        for place, (scheme, look) in enumerate(looks(by_scheme).items()):
            history = by_scheme[scheme].history
            rounds = [record.round for record in history]
            counts = sorted({record.selected_count for record in history[1:] or history})
            devices = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
            label = f"{plain(look.name)}, {devices} device{'' if counts == [1] else 's'}"
            if by_scheme[scheme].diverged:
                label += f", {plain(by_scheme[scheme].status)}"
            tests = [100 * record.test_accuracy if classified else record.test_loss for record in history]
            plot(left, look, rounds, tests, label, place, len(runs))
            losses = [record.train_loss for record in history]
            plot(right, look, rounds, losses, label, place, len(runs))
        for axes, ylabel in (
            (left, "test accuracy, %" if classified else "test loss"),
            (right, "training loss"),
        ):
            axes.set(xlabel="communication round", ylabel=ylabel)
            axes.grid(True)
            last = max(run.history[-1].round for run in runs)
            axes.set_xlim(left=0, right=None if last else 1)
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 2.5, 5, 10]))
        if classified:
            left.set_ylim(0, 100)
        if any(run.diverged for run in runs):
            _mark_divergence(left, runs, "test_accuracy" if classified else "test_loss")
            _mark_divergence(right, runs, "train_loss")
        first = runs[0]
        snr = "" if first.scenario is None else f", {first.scenario.radio.short_summary}"
        left.set_title(typeset(f"{plain(first.dataset)}, K = {first.devices}{snr}"))
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _mark_divergence(axes: Axes, runs: Sequence["TrainingRun"], metric: str) -> None:
    """A cross at the end of the line of every run that diverged.

    Its last losses can be huge; they do not set the scale.
    """
    top = 100.0
    if metric != "test_accuracy":
        kept = [
            getattr(record, metric)
            for run in runs
            for record in (run.history[:1] if run.diverged else run.history)
        ]
        top = LARGEST_RATIO * max((value for value in kept if math.isfinite(value)), default=1.0)
        axes.set_ylim(top=min(top, axes.get_ylim()[1]))
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))  # a margin below zero belongs to the huge scale
    for run in runs:
        if run.diverged:
            end = getattr(run.history[-1], metric)
            value = (100.0 if metric == "test_accuracy" else 1.0) * (end if math.isfinite(end) else top)
            place = min(value, axes.get_ylim()[1])
            axes.plot(run.history[-1].round, place, "x", color="black", ms=7, mew=1.5, clip_on=False)
