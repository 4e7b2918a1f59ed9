"""Accuracy and training loss against rounds, a line for each scheme."""

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airpass.figures.style import LINES, RC, new_figure
from airpass.learning.training import TrainingRun


def draw_training(runs: Sequence[TrainingRun]) -> Figure:
    """Test accuracy on the left, training loss on the right."""
    with mpl.rc_context(RC):
        figure = new_figure(9.0, 3.4)
        left, right = figure.subplots(1, 2)
        for run, (colour, dash, marker) in zip(runs, _styles(len(runs)), strict=True):
            chosen = f"{run.scheme} ({run.history[-1].selected_count} devices)"
            rounds = [record.round for record in run.history]
            look = {
                "color": colour,
                "linestyle": dash,
                "marker": marker,
                "markevery": max(1, len(rounds) // 8),
                "markersize": 4,
                "linewidth": 1.4,
            }
            left.plot(rounds, [100 * record.test_accuracy for record in run.history], label=chosen, **look)
            right.plot(rounds, [record.train_loss for record in run.history], **look)
        left.set(xlabel="communication round", ylabel="test accuracy, %")
        right.set(xlabel="communication round", ylabel="training loss")
        for axes in (left, right):
            _frame(axes)
        left.set_ylim(0, 100)
        first = runs[0]
        snr = "" if first.scenario is None else f", {first.scenario.radio.snr_db:g} dB"
        left.set_title(f"{first.dataset}, K={first.devices}{snr}")
        left.legend(loc="lower right", fontsize=8)
    return figure


def _styles(count: int) -> list[tuple[str, str, str]]:
    return [LINES[i % len(LINES)] for i in range(count)]


def _frame(axes: Axes) -> None:
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(left=0)
