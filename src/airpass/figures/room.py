"""A design from above: floor, obstacles, waveguides, antennas and devices, and the scores as bars."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from airpass.aircomp import Link
from airpass.channel.blockage import Cylinders
from airpass.core.display import BLUE, ORANGE, VERMILLION
from airpass.core.types import Real
from airpass.designs.api import Design
from airpass.figures.chart import plain_name
from airpass.figures.style import RC, new_figure, typeset
from airpass.scenario import Receiver, Scenario
from airpass.scenario.segments import segments_at

FLOOR_POINTS = 240  # along the longer side; the mean gain is smooth, and the picture interpolates
SMALLEST_SPAN_DB, LARGEST_SPAN_DB = 6.0, 30.0  # range of the shading
WHITE_SHARE = 0.02  # of the floor; shadows of obstacles may have no gain at all
ROOM_WIDTH_IN = 7.4  # of the figure's 9 inches
SCORES_HEIGHT_IN = 2.5
MOST_BARS = 300  # more bars would be thinner than a pixel, and are drawn as an area
MOST_LABELS = 24  # more devices are not numbered
STACK_PT = 16.0  # distance in the picture of waveguides at the same y
SEGMENT_GAP_M = 0.12  # between a border of segments and their drawn ends
LINEAR_TOP = 20.0  # largest score on a linear axis


def draw_design(design: Design) -> Figure:
    """Draw the room above the scores of a design."""
    left, right, bottom, top = _floor(design)
    # The room keeps its proportions: its height follows from its width.
    room_height = ROOM_WIDTH_IN * min((top - bottom) / (right - left), 2.0) + 1.0
    with mpl.rc_context(RC):
        figure = new_figure(9.0, room_height + SCORES_HEIGHT_IN)
        room, bars = figure.subplots(2, 1, height_ratios=[room_height, SCORES_HEIGHT_IN])
        _draw_room(figure, room, design)
        draw_scores(bars, design)
    return figure


def draw_selection(selection: Link) -> Figure:
    """Draw the scores of a selection."""
    with mpl.rc_context(RC):
        figure = new_figure(9.0, SCORES_HEIGHT_IN)
        draw_scores(figure.subplots(), selection)
    return figure


def _floor(design: Design) -> tuple[float, float, float, float]:
    """Limits of the floor shown: waveguides and devices with a margin of a metre."""
    receiver, devices = design.scenario.receiver, design.scenario.devices
    return (
        min(0.0, float(devices.x_m.min())) - 1.0,
        max(float(receiver.lengths.max()), float(devices.x_m.max())) + 1.0,
        min(float(receiver.waveguide_y.min()), float(devices.y_m.min())) - 1.0,
        max(float(receiver.waveguide_y.max()), float(devices.y_m.max())) + 1.0,
    )


def _draw_room(figure: Figure, axes: Axes, design: Design) -> None:
    devices = design.scenario.devices
    left, right, bottom, top = _floor(design)
    if design.scenario.channel.responses is None:
        _draw_gain(figure, axes, design)
    axes.set_aspect("equal")
    draw_obstacles(axes, design.scenario)
    if design.layout is not None:
        _draw_waveguides(axes, design.scenario, design.layout)
    if design.array is not None:
        axes.plot(design.array[:, 0], design.array[:, 1], "|", color="black", ms=9, mew=1.0, label="antenna")
    chosen = design.selected
    for mask, marker, colour, name in (
        (chosen, "o", BLUE, "device, selected"),
        (~chosen, "X", VERMILLION, "device, not selected"),
    ):
        if not mask.any():
            continue
        axes.scatter(
            devices.x_m[mask],
            devices.y_m[mask],
            s=42,
            marker=marker,
            color=colour,
            edgecolor="white",
            linewidth=0.8,
            zorder=4,
            label=name,
        )
    if devices.count <= MOST_LABELS:
        _label_devices(axes, design, ROOM_WIDTH_IN * 72.0 / (right - left))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="x, m", ylabel="y, m", xlim=(left, right), ylim=(bottom, top))
    count = design.selected_count
    limit = design.scenario.radio.mse_threshold
    error = f", MSE {design.mse:.3g} (limit {limit:.3g}), SDR {design.sdr_db:z.1f} dB" if count else ""
    radio = design.scenario.radio.short_summary
    axes.set_title(
        typeset(f"{plain_name(design.method.name)}: {count} of {devices.count} devices at {radio}{error}"),
        pad=22,
    )
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=6,
        handlelength=1.2,
        handletextpad=0.4,
        columnspacing=1.4,
    )


def draw_obstacles(axes: Axes, scenario: Scenario) -> None:
    """Draw the cylinders of a scenario's channel."""
    for model in scenario.channel.models:
        if isinstance(model, Cylinders):
            for x, y, radius in zip(model.x_m, model.y_m, model.radii, strict=True):
                axes.add_patch(Circle((x, y), radius, color=ORANGE, lw=0.0, zorder=2.5))
            axes.plot(model.x_m, model.y_m, "o", color=ORANGE, ms=3.0, mew=0.0, zorder=2.5)
            axes.plot([], [], "o", color=ORANGE, ms=6.5, mew=0.0, label="obstacle")


def _draw_gain(figure: Figure, axes: Axes, design: Design) -> None:
    """The mean gain as shades of grey; responses on candidate places have none off their devices."""
    left, right, bottom, top = _floor(design)
    step = max(right - left, top - bottom) / FLOOR_POINTS
    x = np.arange(left + step / 2, right, step)
    y = np.arange(bottom + step / 2, top, step)
    z = float(np.median(design.scenario.devices.z_m))
    level = 10.0 * np.log10(np.maximum(floor_gain(design, x, y, z), 1e-300))
    peak = float(level.max())
    span = min(max(SMALLEST_SPAN_DB, peak - float(np.quantile(level, WHITE_SHARE))), LARGEST_SPAN_DB)
    image = axes.imshow(
        np.maximum(level, peak - span),  # else pixels next to those without gain would be white too
        extent=(left, right, bottom, top),
        origin="lower",
        cmap="Greys",
        vmin=peak - span,
        vmax=peak + span,  # the darkest shade stays lighter than the markers
        interpolation="bilinear",
        interpolation_stage="data",
    )
    bar = figure.colorbar(image, cax=axes.inset_axes((1.01, 0.0, 0.012, 1.0)))
    bar.ax.set_ylim(peak - span, peak)
    bar.set_label(typeset(f"mean receive gain{f' at z = {z:g} m' if z else ''}, dB"))


def _draw_waveguides(axes: Axes, scenario: Scenario, layout: Real) -> None:
    """Waveguides with their antennas, feeds and given places, and their heights if these differ.

    Waveguides above each other, at the same y, are drawn side by side, the highest at the top. Segments that
    are not connected are grey.
    """
    receiver, count = scenario.receiver, scenario.channel.segments
    # The many places of responses would hide the antennas.
    candidates = scenario.candidates if scenario.channel.responses is None else None
    figure = axes.get_figure(root=True)
    assert figure is not None
    heights, offsets = receiver.heights, _offsets_pt(receiver)
    for m, (length, y, positions) in enumerate(
        zip(receiver.lengths, receiver.waveguide_y, layout, strict=True)
    ):
        moved = offsets[m]
        where = axes.transData + ScaledTranslation(0.0, moved / 72.0, figure.dpi_scale_trans)
        style: Any = {"color": "black", "transform": where}
        connected = np.full(count, not scenario.selects_segments)
        connected[np.unique(segments_at(scenario.segments, layout)[m].astype(int))] = True
        for q, on in enumerate(connected):
            edges = np.array([q, q + 1]) * length / count
            edges += SEGMENT_GAP_M * np.array([q > 0, -(q < count - 1)])
            line: Any = style if on else style | {"color": "0.55"}
            axes.plot(edges, [y, y], lw=0.8, zorder=2, **line)
            feed = (receiver.feed_x[m] + q * length) / count
            edge = line["color"]
            axes.plot(feed, y, "s", mfc="white", mec=edge, ms=5.5, mew=1.2, zorder=3, transform=where)
        axes.plot(positions, np.full(positions.size, y), "|", ms=9, mew=1.8, zorder=3, **style)
        if candidates is not None:
            places = candidates.places[m]
            axes.plot(places, np.full(places.size, y), "|", ms=3.5, mew=0.7, zorder=2, **style)
        if np.ptp(heights) > 0.0:
            place = f"y = {y:g} m, " if moved else ""
            axes.annotate(
                typeset(f"{place}height {heights[m]:g} m"),
                (0.0, y),
                xytext=(7, 4 + moved),
                textcoords="offset points",
                fontsize=7.5,
                zorder=5,
                bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.8},
            )
    axes.plot([], [], "|", color="black", ms=9, mew=1.8, label="antenna on its waveguide")
    if candidates is not None:
        axes.plot([], [], "|", color="black", ms=3.5, mew=0.7, label="place")
    axes.plot([], [], "s", mfc="white", mec="black", ms=5.5, mew=1.2, label="feed")


def _offsets_pt(receiver: Receiver) -> Real:
    """How far waveguides are moved in the picture, in points, so that those at the same y can be seen."""
    offsets = np.zeros(receiver.waveguides)
    for y in np.unique(receiver.waveguide_y):
        there = np.flatnonzero(receiver.waveguide_y == y)
        upwards = there[np.argsort(receiver.heights[there], kind="stable")]
        offsets[upwards] = STACK_PT * (np.arange(there.size) - (there.size - 1) / 2.0)
    return offsets


def _label_devices(axes: Axes, design: Design, points_per_m: float) -> None:
    """Number and score beside every device, on the first side that is free."""
    devices = design.scenario.devices
    at = points_per_m * np.column_stack([devices.x_m, devices.y_m])
    size = np.array([34.0, 11.0])  # of a label, in points
    sides = ((0.0, 11.0), (0.0, -11.0), (24.0, 0.0), (-24.0, 0.0), (0.0, 22.0), (0.0, -22.0))
    taken: list[Real] = []
    for k in range(devices.count):
        others = np.delete(at, k, axis=0)

        def free(offset: tuple[float, float], k: int = k, others: Real = others) -> bool:
            middle = at[k] + offset
            on_label = any((np.abs(middle - label) < size).all() for label in taken)
            return not on_label and not (np.abs(middle - others) < size / 2 + 4.0).all(axis=1).any()

        offset = next((side for side in sides if free(side)), sides[0])
        taken.append(at[k] + offset)
        score = design.scores[k]
        axes.annotate(
            f"{k}: {score:.2f}" if score < 10.0 else f"{k}: {score:.3g}",
            (devices.x_m[k], devices.y_m[k]),
            xytext=offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7.5,
            zorder=5,
            bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.8},
        )


def draw_scores(axes: Axes, selection: Link) -> None:
    """Draw the scores as bars, strongest first, with the threshold of one.

    The axis is linear, or logarithmic if the largest score is far above the threshold.
    """
    order = np.argsort(-selection.scores, kind="stable")
    scores = np.maximum(selection.scores[order], 0.0)
    chosen = selection.selected[order]
    place = np.arange(scores.size)
    top = max(1.1, float(scores.max()))
    _set_score_scale(axes, top)
    for mask, colour, hatch in ((chosen, BLUE, None), (~chosen, VERMILLION, "////")):
        if scores.size > MOST_BARS:
            height = np.where(mask, scores, 0.0)
            axes.fill_between(place, 0.0, height, step="mid", color=colour, linewidth=0.0)
            continue
        axes.bar(
            place[mask],
            scores[mask],
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.3,
            width=0.85,
        )
    axes.axhline(1.0, color="black", lw=1.0, ls="--")
    axes.annotate(
        "threshold 1",
        (1.0, 1.0),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        fontsize=8,
        annotation_clip=False,
    )
    axes.set_xlim(-0.8, scores.size - 0.2)
    axes.set(ylabel="score z", xlabel="device, strongest first")
    ticks = place if scores.size <= 60 else place[:: max(1, scores.size // 20)]
    axes.set_xticks(ticks, [str(k) for k in order[ticks]], fontsize=8 if scores.size <= MOST_LABELS else 6.5)
    axes.tick_params(axis="x", length=0)


def _set_score_scale(axes: Axes, top: float) -> None:
    """A linear axis from zero, or a logarithmic one if the largest score is far above the threshold."""
    if top <= LINEAR_TOP:
        axes.set_ylim(0.0, 1.05 * top)
    else:
        axes.set_yscale("log")
        axes.set_ylim(0.1, 1.5 * top)


def floor_gain(design: Design, x: Real, y: Real, z: float = 0.0) -> Real:
    """Mean receive gain of a device with unit gain at every point of a grid at height z, shape (y, x)."""
    return np.array([design.mean_gain(x, np.full(x.size, at), z) for at in y])
