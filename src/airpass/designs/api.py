"""`design`: choose devices, beam and antenna layout for a scenario."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from airpass.aircomp import Link, checked_beam
from airpass.channel.colocated import ColocatedArray
from airpass.channel.model import ChannelModel
from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.registry import Report, discard, with_options
from airpass.core.threads import one_blas_thread
from airpass.core.types import Real
from airpass.designs import METHODS
from airpass.designs.alternating import Alternation
from airpass.designs.base import DesignMethod, OnStep, Start, Step, checked_search, discard_step
from airpass.geometry import METHODS as GEOMETRY_METHODS
from airpass.geometry.base import GeometryMethod
from airpass.kernels.clock import Stopwatch
from airpass.scenario import Scenario
from airpass.selection import METHODS as SELECTION_METHODS
from airpass.selection.base import SelectionMethod
from airpass.wideband import WidebandLink

DEFAULT_METHOD = "airpass-plus"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Design(Link):
    """A link whose antennas and beam were found by a design method.

    Parameters
    ----------
    scenario
        Input of the design.
    method
        The method with its options.
    layout
        Antenna positions, shape (M, N), metres; None for a co-located array.
    array
        Antennas [x, y, z] of a co-located array, metres; None for a layout.
    trace
        The outer iterations.
    status
        Why the search ended.
    work
        Operation counts, such as iterations.
    seconds
        Duration of the search, without the compilation of kernels.
    compile_seconds
        Time spent on compiling kernels, or on loading them from the cache.
    seed
        Seed of the search.
    """

    scenario: Scenario
    method: DesignMethod
    layout: Real | None
    array: Real | None
    trace: tuple[Step, ...]
    status: str
    work: Mapping[str, int]
    seconds: float
    compile_seconds: float
    seed: int

    @property
    def value(self) -> float:
        """Sum of the selected devices' priorities; their number if there are no priorities."""
        return float(self.scenario.priorities[self.selected].sum())

    def __repr__(self) -> str:
        return f"Design({self.method.name}: {self._outcome()})"

    def receive_gain(self, x_m: Real, y_m: Real, z_m: Real | float = 0.0) -> Real:
        """|m^H g(x, y, z)|^2 of devices of unit gain at given points.

        Parameters
        ----------
        x_m, y_m
            Coordinates of the points in metres, shape (points,).
        z_m
            Their heights, shape (points,) or one number; on the floor by default.

        Returns
        -------
        Real
            Receive gain, shape (points,).
        """
        if self.layout is not None:
            channels = self._uplink_at(x_m, y_m, z_m).channels(self.layout)
        else:
            channels = self._array_at(x_m, y_m, z_m).channels()
        gain: Real = np.abs(np.conj(self.beam) @ channels) ** 2
        return gain

    def _uplink_at(self, x_m: Real, y_m: Real, z_m: Real | float) -> ChannelModel:
        return self.scenario.uplink.with_devices(x_m, y_m, z_m, np.ones(x_m.size))

    def _array_at(self, x_m: Real, y_m: Real, z_m: Real | float) -> ColocatedArray:
        assert self.array is not None
        array = self.scenario.array_at(self.array)
        return replace(array, device_x=x_m, device_y=y_m, device_z=z_m, gain=np.ones(x_m.size))

    def mean_gain(self, x_m: Real, y_m: Real, z_m: Real | float = 0.0) -> Real:
        """Receive gain of devices of unit gain, averaged over the neighbourhood of given points.

        Over some wavelengths the phases of antennas that are far apart take all values, so that the
        powers of the antennas add up. Unlike `receive_gain` it varies over metres only.

        Parameters
        ----------
        x_m, y_m, z_m
            As for `receive_gain`.

        Returns
        -------
        Real
            Mean receive gain, shape (points,).
        """
        if self.layout is not None:
            powers = self._uplink_at(x_m, y_m, z_m).mean_powers(self.layout).sum(axis=1)
        else:
            powers = self._array_at(x_m, y_m, z_m).mean_powers()
        gain: Real = np.abs(self.beam) ** 2 @ powers
        return gain


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WidebandDesign(WidebandLink, Design):
    """A design with subcarriers: `channels` has the shape (S, M, K) and `beam` the shape (S, M)."""

    def __repr__(self) -> str:
        count = len(self.channels)
        return f"WidebandDesign({self.method.name}: {self._outcome()}, {count} subcarriers, {self.rule} rule)"

    def receive_gain(self, x_m: Real, y_m: Real, z_m: Real | float = 0.0) -> Real:
        """|m_s^H g_s(x, y, z)|^2 of devices of unit gain at given points, averaged over the subcarriers.

        Parameters
        ----------
        x_m, y_m, z_m
            As for `Design.receive_gain`.

        Returns
        -------
        Real
            Receive gain, shape (points,).
        """
        gain: Real = np.mean([one.receive_gain(x_m, y_m, z_m) for one in self._alone()], axis=0)
        return gain

    def mean_gain(self, x_m: Real, y_m: Real, z_m: Real | float = 0.0) -> Real:
        """Mean of `Design.mean_gain` over the subcarriers.

        Parameters
        ----------
        x_m, y_m, z_m
            As for `Design.receive_gain`.

        Returns
        -------
        Real
            Mean receive gain, shape (points,).
        """
        gain: Real = np.mean([one.mean_gain(x_m, y_m, z_m) for one in self._alone()], axis=0)
        return gain

    def _alone(self) -> list[Design]:
        """The design on every subcarrier alone."""
        kept = {item.name: getattr(self, item.name) for item in fields(Design)}
        return [
            Design(**kept | {"scenario": scenario, "channels": channels, "beam": beam})
            for scenario, channels, beam in zip(
                self.scenario.subcarriers, self.channels, self.beam, strict=True
            )
        ]


def design_method(
    method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
    selection: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] | None = None,
    geometry: str | GeometryMethod | type[GeometryMethod] | Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> DesignMethod:
    """The design method that `design` would run with these arguments.

    Parameters
    ----------
    method, selection, geometry, options
        As for `design`.

    Returns
    -------
    DesignMethod
        The method with its options.
    """
    if selection is None and geometry is None:
        return METHODS.resolve(DEFAULT_METHOD if method is None else method, options)
    if method is not None:
        raise InvalidInput("method cannot be combined with selection or geometry")
    pair = Alternation(
        selection=SELECTION_METHODS.resolve(selection or "hrmc", label="selection"),
        geometry=GEOMETRY_METHODS.resolve(geometry or "hago", label="geometry"),
    )
    found: DesignMethod = with_options(pair, {} if options is None else options)
    return found


def _start(scenario: Scenario, layout: Any, beam: Any) -> Start | None:
    """A checked design to start from."""
    if layout is None:
        if beam is not None:
            raise InvalidInput("start_beam requires start_layout")
        return None
    layout = scenario.checked_layout(layout)
    if beam is not None:
        beam = checked_beam(beam, scenario.receiver.waveguides, "start_beam", unit=False)
    return Start(layout, beam)


def design(
    scenario: Scenario,
    method: str | DesignMethod | type[DesignMethod] | Callable[..., Any] | None = None,
    *,
    selection: str | SelectionMethod | type[SelectionMethod] | Callable[..., Any] | None = None,
    geometry: str | GeometryMethod | type[GeometryMethod] | Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    on_step: OnStep | None = None,
    report: Report | None = None,
    start_layout: Any = None,
    start_beam: Any = None,
) -> Design:
    """Design the receiver of a scenario.

    Parameters
    ----------
    scenario
        Receiver, radio, devices and weights.
    method
        Name of a design method, an object such as `AirpassPlus(effort="fast")`, a function (scenario, seed)
        that returns a layout and a beam, `file.py:Name` or `package.module:Name`; "airpass-plus" if nothing
        is given.
    selection, geometry
        Instead of `method`: Algorithm 3 with these methods, given in the same ways. A function for
        `selection` takes (effective, rng) and returns a beam; one for `geometry` takes (scenario, layout,
        beam, devices, rng) and returns a layout.
    options
        Changes of the method's options, such as {"selection": {"starts": 16}}.
    seed
        Seed of everything random. Default: the seed that the scenario's devices were drawn with, or 0 if they
        were given.
    on_step
        Callback after every outer iteration. Those of several chains of `airpass-plus` come as they happen;
        the trace of the result has a fixed order.
    report
        Callback for progress messages.
    start_layout
        Antenna positions to start from, shape (M, N), metres, such as those of a design for other
        devices. Designs of co-located arrays raise `InvalidInput`.
    start_beam
        With `start_layout`: the beam to start from, shape (M,), of any norm. With both, `airpass-plus`
        continues a previous design, for example after devices have moved. Other methods raise
        `InvalidInput`.

    Returns
    -------
    Design
        Layout, beam, scores, selected devices and their transmit scaling; a `WidebandDesign` if the scenario
        has subcarriers.
    """
    checks.instance("scenario", scenario, Scenario, "Scenario.paper()")
    chosen = design_method(method, selection, geometry, options)
    seed = scenario.seed if seed is None else checks.whole("seed", seed, 0)
    start = _start(scenario, start_layout, start_beam)
    priorities = scenario.priorities
    if not chosen.uses_priorities and (priorities != priorities[0]).any():
        raise InvalidInput(f"devices.priority: {chosen.name} cannot use priorities; airpass-plus can")
    is_wideband = scenario.channel.subcarriers > 1
    run = chosen.run_wideband if is_wideband else chosen.run
    with one_blas_thread():
        watch = Stopwatch()
        found = checked_search(
            chosen, run(scenario, seed, on_step or discard_step, report or discard, start), scenario
        )
    kind = partial(WidebandDesign, rule=scenario.channel.subcarrier_rule) if is_wideband else Design
    return kind(
        channels=found.channels,
        weights=scenario.weights,
        beam=found.beam,
        budget=scenario.budget,
        power=scenario.radio.power,
        mse_threshold=scenario.radio.mse_threshold,
        scenario=scenario,
        method=chosen,
        layout=found.layout,
        array=found.array,
        trace=tuple(replace(step, layout=None) for step in found.trace),
        status=found.status,
        work=found.work,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
        seed=seed,
    )
