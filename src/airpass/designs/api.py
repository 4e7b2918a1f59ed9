"""`design`: devices, beam and antenna layout together, by any named method."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airpass import designs
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import build_options, lookup
from airpass.core.threads import one_blas_thread
from airpass.core.types import Complex, Mask, Real
from airpass.designs.alternating import alternation
from airpass.designs.base import DesignMethod, OnStep, Step
from airpass.scenario import Scenario
from airpass.selection.api import Selection, silent
from airpass.selection.base import Report

DEFAULT_METHOD = "airpass-plus"


@dataclass(frozen=True, eq=False)
class Design:
    """A layout (or a co-located array) with the beam and the selection that go with it."""

    scenario: Scenario
    method: str
    parts: Mapping[str, str]  # the blocks it is made of
    options: Any
    layout: Real | None  # (M, N) positions in metres; None for a co-located array
    array: Real | None  # [x, y, z] in metres of a co-located array's antennas
    selection: Selection
    trace: tuple[Step, ...]
    status: str
    work: Mapping[str, int]
    seconds: float
    seed: int

    @property
    def channels(self) -> Complex:
        """G, shape (M, K)."""
        return self.selection.channels

    @property
    def beam(self) -> Complex:
        """m, unit norm."""
        return self.selection.beam

    @property
    def scores(self) -> Real:
        """z_k, eq. (31)."""
        return self.selection.scores

    @property
    def selected(self) -> Mask:
        """z_k >= 1."""
        return self.selection.selected

    @property
    def selected_count(self) -> int:
        """How many are selected."""
        return self.selection.selected_count

    @property
    def mse(self) -> float:
        """Eq. (22); not a number when nobody is selected."""
        return self.selection.mse

    def receive_gain(self, x_m: Real, y_m: Real) -> Real:
        """|m^H g(x, y)|^2 of devices of unit gain at points on the floor."""
        there: dict[str, Any] = {"device_x": x_m, "device_y": y_m, "gain": np.ones(x_m.size)}
        if self.layout is not None:
            channels = replace(self.scenario.uplink, **there).channels(self.layout)
        else:
            assert self.array is not None
            channels = replace(self.scenario.colocated(1), positions=self.array, **there).channels()
        gain: Real = np.abs(np.conj(self.beam) @ channels) ** 2
        return gain


def method_named(
    method: str | None = None, selection: str | None = None, geometry: str | None = None
) -> DesignMethod:
    """The design called `method`, or Algorithm 3 with the blocks `selection` and `geometry`."""
    if selection is None and geometry is None:
        return lookup("method", method or DEFAULT_METHOD, designs.methods())
    if method is not None:
        raise InvalidInput(f"method = {method!r} stands beside selection or geometry: give one or the other")
    return alternation(selection or "hrmc", geometry or "hago")


def _ignore(step: Step) -> None:
    """Where steps go when nobody asked for them."""


def design(
    scenario: Scenario,
    method: str | None = None,
    *,
    selection: str | None = None,
    geometry: str | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    on_step: OnStep | None = None,
    report: Report | None = None,
    start_layout: Real | None = None,
) -> Design:
    """Design the receiver of `scenario` by a named method, or by a pair of blocks.

    `options` changes the method's defaults, e.g. {"selection": {"starts": 16}}. `on_step`
    is called after every outer iteration, `report` told in words how long work goes on.
    `start_layout` is where the antennas begin, such as those of a design for other devices.
    """
    chosen = method_named(method, selection, geometry)
    settings = build_options(chosen.options(), options or {})
    checks.whole("seed", seed, 0)
    start = None if start_layout is None else scenario.checked_layout(start_layout)
    began = time.perf_counter()
    with one_blas_thread():
        found = chosen.run(scenario, settings, seed, on_step or _ignore, report or silent, start)
    seconds = time.perf_counter() - began
    return Design(
        scenario=scenario,
        method=chosen.name,
        parts=chosen.parts,
        options=settings,
        layout=found.layout,
        array=found.array,
        selection=Selection(
            method=chosen.parts.get("selection", chosen.name),
            options=settings,
            channels=found.channels,
            weights=scenario.weights,
            budget=scenario.budget,
            beam=found.beam,
            power=scenario.radio.power,
            mse_threshold=scenario.radio.mse_threshold,
            status=found.status,
            work=found.work,
            seconds=seconds,
            seed=seed,
        ),
        trace=found.trace,
        status=found.status,
        work=found.work,
        seconds=seconds,
        seed=seed,
    )
