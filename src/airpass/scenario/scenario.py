"""The input of a design: receiver, radio, devices, weights and channel.

`Scenario.paper()` holds the values of the paper's section VI-A, `Scenario.preset(name)` those of other
set-ups. A scenario file is TOML with
one table per part; `Scenario.load` and `Scenario.save` read and write it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import tomli_w

from airpass.channel.colocated import AXES, SHAPES, ColocatedArray, line_array, plane_array
from airpass.channel.factored import FactoredUplink
from airpass.channel.model import ChannelModel
from airpass.channel.pass_uplink import PassUplink
from airpass.channel.sampled import SampledResponse
from airpass.channel.sampled_uplink import SampledUplink
from airpass.channel.segments import Segments
from airpass.core import checks, memory
from airpass.core.errors import InvalidInput
from airpass.core.files import write_atomically
from airpass.core.numbers import reals
from airpass.core.text import shown
from airpass.core.types import Complex, Real
from airpass.scenario.candidates import Candidates, candidates_on
from airpass.scenario.channel import Channel, channel_from
from airpass.scenario.devices import COLUMNS, LISTS, PRIORITY, DeviceDraw, Devices
from airpass.scenario.files import scenario_tables
from airpass.scenario.presets import with_preset
from airpass.scenario.radio import LIGHT_M_S, Radio
from airpass.scenario.receiver import ROUNDING, Receiver
from airpass.scenario.responses import at_feeds, candidates_at, check_devices, devices_of, radio_table
from airpass.scenario.segments import (
    check_segments,
    layout_spans,
    segments_at,
    segments_on,
    spread_segments,
)
from airpass.scenario.weights import Weighting
from airpass.wideband import WORST

CLOSEST_M = 1e-6  # smallest distance of a device to a waveguide

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Scenario:
    """One receiver, one radio, one set of devices, their weights, and the channel between them."""

    receiver: Receiver = field(default_factory=Receiver)
    radio: Radio = field(default_factory=Radio)
    # Drawn by default; with `channel.responses`, the devices of the responses.
    devices: Devices = None  # type: ignore[assignment]
    weighting: Weighting = field(default_factory=Weighting)
    channel: Channel = field(default_factory=Channel)

    def __post_init__(self) -> None:
        for item, kind in _PARTS.items():
            if item != "devices" or cast(Devices | None, self.devices) is not None:
                checks.instance(item, getattr(self, item), kind, f"{kind.__name__}(...)")
        self._check_channel()
        if self.channel.responses is not None:
            return
        receiver, devices = self.receiver, self.devices
        memory.require(
            96.0 * receiver.waveguides * devices.count, "channels", "devices.count or receiver.waveguides"
        )
        if devices.z_m.max() < receiver.heights.min() - CLOSEST_M:
            return
        for m, (y, z, length) in enumerate(
            zip(receiver.waveguide_y, receiver.heights, receiver.lengths, strict=True)
        ):
            dx = devices.x_m - np.clip(devices.x_m, 0.0, length)
            distance = np.sqrt(dx**2 + (devices.y_m - y) ** 2 + (devices.z_m - z) ** 2)
            for k in np.flatnonzero(distance < CLOSEST_M)[:1]:
                raise InvalidInput(
                    f"devices.z_m[{k}] = {devices.z_m[k]:g}: device {k} is on waveguide {m}, at distance "
                    "zero; change its position or the waveguide's"
                )

    def _check_channel(self) -> None:
        """Set the open seeds of the channel, and check it against the receiver."""
        if not isinstance(self.channel, Channel):
            raise InvalidInput(f"channel = {shown(self.channel)}: must be an airpass.Channel")
        responses = self.channel.response_source
        if cast(Devices | None, self.devices) is None:
            own = DeviceDraw().draw() if responses is None else devices_of(responses.sampled, {})
            checks.keep(self, devices=own)
        checks.keep(self, channel=self.channel.seeded(self.seed))
        longest = float(self.receiver.lengths.max())
        checks.decibels("channel.loss_db_per_m times length_m", self.channel.loss_db_per_m * longest)
        if self.split_delta is not None and (self.receiver.feed_side == 0.0).any():
            raise InvalidInput(
                f"channel.power_split = {self.channel.power_split!r}: antennas are counted from the feed, "
                "so that receiver.feed must be left or right"
            )
        if responses is None:
            candidates = candidates_on(self.receiver, self.channel.candidates_m)
            segments_on(self.receiver, self.channel, candidates)
        else:
            check_devices(self.devices, responses.sampled if responses.loaded else None)
            if responses.loaded:
                candidates_at(self._at_feeds, self.receiver, self.channel.candidates_m)
        self._check_band()

    def _check_band(self) -> None:
        """Check that the bandwidth of the subcarriers is given once, and below the carrier."""
        channel, budget = self.channel, self.radio.link_budget
        if channel.subcarriers == 1:
            return
        by_radio = None if budget is None else budget.bandwidth_mhz
        if by_radio is not None and channel.bandwidth_mhz is not None:
            raise InvalidInput("channel.bandwidth_mhz cannot be combined with radio.bandwidth_mhz: remove it")
        if by_radio is None and channel.bandwidth_mhz is None:
            raise InvalidInput(
                f"channel.bandwidth_mhz is missing: channel.subcarriers = {channel.subcarriers} requires it, "
                "or radio.bandwidth_mhz"
            )
        carrier_mhz = 1e-6 * LIGHT_M_S / self.radio.wavelength_m
        if not self.bandwidth_mhz < carrier_mhz:
            raise InvalidInput(
                f"bandwidth_mhz = {self.bandwidth_mhz:g}: must be below the carrier, {carrier_mhz:g} MHz"
            )

    @classmethod
    def paper(
        cls,
        devices: int = 10,
        waveguides: int = 5,
        antennas: int = 5,
        snr_db: float = 10.0,
        seed: int = 0,
    ) -> "Scenario":
        """The paper's set-up. The defaults are those of its figures 2 and 3.

        Parameters
        ----------
        devices
            Number of devices K.
        waveguides
            Number of waveguides M.
        antennas
            Antennas per waveguide N.
        snr_db
            P0/sigma^2 in dB.
        seed
            Seed of the devices' positions and gains.

        Returns
        -------
        Scenario
            The scenario.
        """
        return cls(
            receiver=Receiver(waveguides=waveguides, antennas=antennas),
            radio=Radio(snr_db=snr_db),
            devices=DeviceDraw(count=devices, seed=seed).draw(),
        )

    @classmethod
    def preset(
        cls,
        name: str,
        devices: int | None = None,
        waveguides: int | None = None,
        antennas: int | None = None,
        seed: int = 0,
    ) -> "Scenario":
        """A named set-up. `airpass presets` lists them with their values.

        Parameters
        ----------
        name
            "paper" or "indoor-28ghz".
        devices
            K; that of the preset if None.
        waveguides
            M; that of the preset if None.
        antennas
            N, per waveguide; that of the preset if None.
        seed
            Seed of the devices' positions and gains.

        Returns
        -------
        Scenario
            The scenario.
        """
        sizes = {"waveguides": waveguides, "antennas": antennas}
        return cls.from_dict(
            {
                "preset": name,
                "receiver": {key: value for key, value in sizes.items() if value is not None},
                "devices": {"seed": seed} | ({} if devices is None else {"count": devices}),
            }
        )

    @property
    def seed(self) -> int:
        """Seed that the devices were drawn with, the default seed of searches; 0 if they were given."""
        drawn = self.devices.drawn_from
        return 0 if drawn is None else drawn.seed

    # Physics -------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Real:
        """phi_k, shape (K,)."""
        return self.weighting.weights(self.devices.samples)

    @property
    def priorities(self) -> Real:
        """v_k >= 0, shape (K,). Designs maximise their sum over the selected devices."""
        return self.devices.priority

    @property
    def budget(self) -> float:
        """Gamma, eq. (24)."""
        return self.radio.budget

    @property
    def split_delta(self) -> float | None:
        """delta of the split of power; None for the paper's equal shares."""
        return self.channel.split_delta(self.receiver.antennas)

    @cached_property
    def candidates(self) -> Candidates | None:
        """Where antennas can be; None if anywhere."""
        if self.channel.responses is not None:
            return candidates_at(self._at_feeds, self.receiver, self.channel.candidates_m)
        return candidates_on(self.receiver, self.channel.candidates_m)

    @property
    def bandwidth_mhz(self) -> float:
        """B, of the link budget or of the channel; zero if there is none."""
        budget = self.radio.link_budget
        if budget is not None and budget.bandwidth_mhz is not None:
            return budget.bandwidth_mhz
        return self.channel.bandwidth_mhz or 0.0

    @property
    def frequencies_hz(self) -> Real:
        """f_s = f_c + (s - (S - 1)/2) B/S of the subcarriers, shape (S,); f_c alone for one carrier."""
        carrier = LIGHT_M_S / self.radio.wavelength_m
        return carrier * (1.0 + self._detuning)

    @property
    def _detuning(self) -> Real:
        """(f_s - f_c)/f_c, shape (S,)."""
        count = self.channel.subcarriers
        spacing = 1e6 * self.bandwidth_mhz / count * (self.radio.wavelength_m / LIGHT_M_S)
        shifts: Real = np.arange(count, dtype=np.float64) - (count - 1) / 2.0
        return shifts * np.float64(spacing)

    @cached_property
    def subcarriers(self) -> tuple["Scenario", ...]:
        """The scenario on every subcarrier alone, with one carrier of wavelength c/f_s and all else the same.

        The path gain xi stays that of the centre, and so does what is drawn at random: the same links are
        blocked on all subcarriers, and the same waves are scattered. P0/sigma^2 is the SNR of a subcarrier,
        as both powers are divided by S.
        """
        if self.channel.subcarriers == 1:
            return (self,)
        return tuple(self._tuned(self.radio.wavelength_m / (1.0 + shift)) for shift in self._detuning)

    @cached_property
    def centre(self) -> "Scenario":
        """The scenario with the carrier f_c alone; the same object if it has only that."""
        return self if self.channel.subcarriers == 1 else self._tuned(self.radio.wavelength_m)

    def _tuned(self, wavelength_m: float) -> "Scenario":
        """The scenario with one carrier of this wavelength."""
        channel = replace(self.channel, subcarriers=1, bandwidth_mhz=None, subcarrier_rule=WORST)
        radio = self.radio
        if wavelength_m != radio.wavelength_m:
            radio = replace(radio, wavelength_m=wavelength_m, link_budget=None)
        return replace(self, radio=radio, channel=channel)

    def require_one_carrier(self, what: str) -> None:
        """Refuse subcarriers.

        Parameters
        ----------
        what
            What cannot use them, for the message.
        """
        if (count := self.channel.subcarriers) > 1:
            raise InvalidInput(
                f"channel.subcarriers = {count}: {what} requires 1; only design and train support more"
            )

    @cached_property
    def _at_feeds(self) -> SampledResponse:
        """The responses of the channel, which has some, at the feeds."""
        responses = self.channel.response_source
        assert responses is not None
        check_devices(self.devices, responses.sampled)
        return at_feeds(responses.sampled, self.receiver, self.radio, self.channel.loss_db_per_m)

    @cached_property
    def segments(self) -> Segments | None:
        """The segments that waveguides are cut into; None if they are whole."""
        if self.channel.segments == 1:
            return None
        return segments_on(self.receiver, self.channel, self.candidates)

    @property
    def selects_segments(self) -> bool:
        """Whether all antennas of a waveguide are on one segment."""
        return self.segments is not None and self.segments.selected

    @cached_property
    def uplink(self) -> ChannelModel:
        """The pinching-antenna channel as a function of the antenna positions.

        With subcarriers there is one for each: `subcarriers[s].uplink`.
        """
        self.require_one_carrier("a single channel")
        if self.channel.responses is not None:
            return SampledUplink(self._at_feeds)
        closed_form = PassUplink(
            device_x=self.devices.x_m,
            device_y=self.devices.y_m,
            device_z=self.devices.z_m,
            gain=self.devices.gain,
            waveguide_y=self.receiver.waveguide_y,
            height=np.array(self.receiver.height_m),
            feed=self.receiver.feed_x / self.channel.segments,
            side=self.receiver.feed_side,
            loss_db_per_m=self.channel.loss_db_per_m,
            split_delta=self.split_delta,
            segments=self.segments,
            wavelength=self.radio.wavelength_m,
            refractive_index=self.radio.refractive_index,
            path_gain=self.radio.path_gain,
        )
        if not self.channel.factors:
            return closed_form
        return FactoredUplink(closed_form, self.channel.factors, self.receiver.lengths)

    def channels(self, layout: Real) -> Complex:
        """G(L), complex, shape (M, K), eq. (12).

        Parameters
        ----------
        layout
            Antenna positions, shape (M, N), metres.

        Returns
        -------
        Complex
            Channels of the waveguides to the devices.
        """
        return self.uplink.channels(self.checked_layout(layout))

    def colocated(self, antennas: int, shape: str = "x") -> ColocatedArray:
        """A half-wavelength array at the midpoint of the structure.

        Parameters
        ----------
        antennas
            Number of antennas.
        shape
            Axis of a line ("x", "y", "z") or plane of a near-square array ("xy", "xz", "yz").

        Returns
        -------
        ColocatedArray
            The array with the channels to the scenario's devices.
        """
        checks.whole("antennas", antennas, 1)
        checks.one_of("axis", shape, SHAPES)
        build = line_array if shape in AXES else plane_array
        return self.array_at(build(self.receiver.centre, antennas, self.radio.wavelength_m / 2.0, shape))

    def array_at(self, positions: Real) -> ColocatedArray:
        """Antennas at given points, [x, y, z] in metres, each with a receive chain of its own.

        Parameters
        ----------
        positions
            [x, y, z] in metres, shape (antennas, 3).

        Returns
        -------
        ColocatedArray
            The array with the channels to the scenario's devices. Blockage, fading and models of the
            scenario's channel apply; loss, split of power and given places concern waveguides only.
        """
        self.require_one_carrier("a single channel")
        positions = reals("positions", positions, "must be [x, y, z] of every antenna")
        if positions.ndim != 2 or positions.shape[1] != 3 or not np.isfinite(positions).all():
            raise InvalidInput(
                f"positions has shape {positions.shape}: must be finite, [x, y, z] of every antenna"
            )
        if self.channel.responses is not None:
            raise InvalidInput(
                f"{self.channel.label}: holds for antennas on waveguides; leave it out for arrays without "
                "waveguides"
            )
        places = np.column_stack([self.devices.x_m, self.devices.y_m, self.devices.z_m])
        for k in np.flatnonzero((positions[:, None] == places).all(axis=2).any(axis=0))[:1]:
            raise InvalidInput(
                f"devices.z_m[{k}] = {places[k, 2]:g}: device {k} is at the place of an antenna of the "
                "array, at distance zero; change its position"
            )
        return ColocatedArray(
            positions=positions,
            device_x=self.devices.x_m,
            device_y=self.devices.y_m,
            device_z=self.devices.z_m,
            gain=self.devices.gain,
            wavelength=self.radio.wavelength_m,
            path_gain=self.radio.path_gain,
            factors=self.channel.factors,
            waveguides=self.uplink.room if isinstance(self.uplink, FactoredUplink) else None,
        )

    def spans(self, layout: Real) -> tuple[Real, Real]:
        """Where the antennas of each waveguide can be if they keep their segment.

        Parameters
        ----------
        layout
            Antenna positions, shape (M, N), metres.

        Returns
        -------
        low, high : Real
            Metres, shape (M,): 0 and L_m, or the ends of the segment if one is selected.
        """
        return self._spans_of(segments_at(self.segments, layout)[:, 0])

    def uniform_layout(self) -> Real:
        """Antennas evenly spaced on every waveguide, or at the places nearest to that; shape (M, N).

        If segments are selected, antennas are evenly spaced on one segment, and waveguides take the segments
        in turn.
        """
        low, high = self._spans_of(spread_segments(self.segments, self.receiver.waveguides))
        count = self.receiver.antennas
        slack = self.receiver.free_within(high - low)[:, None] * (np.arange(count) + 1) / (count + 1)
        return self._placed(low, high, slack)

    def random_layout(self, rng: np.random.Generator) -> Real:
        """Layout drawn uniformly from all feasible ones, or the places nearest to that; shape (M, N).

        If segments are selected, those are drawn first.

        Parameters
        ----------
        rng
            Source of randomness.

        Returns
        -------
        Real
            Antenna positions in metres.
        """
        waveguides, count = self.receiver.waveguides, self.receiver.antennas
        drawn = rng.integers(self.channel.segments, size=waveguides) if self.selects_segments else 0.0
        low, high = self._spans_of(np.broadcast_to(np.float64(drawn), (waveguides,)))
        shares = np.sort(rng.random((waveguides, count)), axis=1)
        return self._placed(low, high, self.receiver.free_within(high - low)[:, None] * shares)

    def _spans_of(self, numbers: Real) -> tuple[Real, Real]:
        """Ends of the given segments if segments are selected, or of the waveguides."""
        return layout_spans(self.receiver, self.segments, numbers)

    def _placed(self, low: Real, high: Real, slack: Real) -> Real:
        """The layout with the given free lengths before its antennas, or the places nearest to it."""
        layout: Real = low[:, None] + (slack + np.arange(self.receiver.antennas) * self.receiver.min_gap_m)
        return layout if self.candidates is None else self.candidates.nearest(layout, low, high)

    def checked_layout(self, layout: Any) -> Real:
        """Check a layout against eqs. (6)-(8) and return it as an array of shape (M, N).

        Parameters
        ----------
        layout
            M lists of N positions in metres.

        Returns
        -------
        Real
            The layout. `InvalidInput` is raised if it is not feasible.
        """
        values = reals("layout", layout, "must be M lists of N positions")
        shape = (self.receiver.waveguides, self.receiver.antennas)
        if values.shape != shape:
            raise InvalidInput(f"layout has shape {values.shape}: must be {shape}, a row per waveguide")
        if not np.isfinite(values).all():
            raise InvalidInput("layout holds a value that is not finite")
        lengths = self.receiver.lengths
        slack = ROUNDING * lengths
        for m, positions in enumerate(values):
            if positions[0] < -slack[m] or positions[-1] > lengths[m] + slack[m]:
                raise InvalidInput(
                    f"layout[{m}] runs from {positions[0]:g} to {positions[-1]:g} m: "
                    f"must stay within 0 and {lengths[m]:g} m"
                )
            gaps = np.diff(positions)
            if gaps.size and gaps.min() < self.receiver.min_gap_m - slack[m]:
                raise InvalidInput(
                    f"layout[{m}] has neighbours {gaps.min():g} m apart: must be in rising order, "
                    f"at least {self.receiver.min_gap_m:g} m apart"
                )
        responses = self.channel.response_source
        if (responses is None or responses.loaded) and self.candidates is not None:
            self.candidates.check(values, lengths)
        if self.segments is not None:
            check_segments(self.segments, values)
        return values

    # Files ---------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Every value as used, with the devices as explicit lists."""
        # TOML has no null: without `waveguide_y_m`, y_m follows from `spacing_m`.
        receiver = {name: _plain(value) for name, value in asdict(self.receiver).items() if value is not None}
        devices = {name: getattr(self.devices, name).tolist() for name in COLUMNS}
        devices["samples"] = [int(n) if n.is_integer() else n for n in devices["samples"]]
        if self.devices.has_priorities:
            devices[PRIORITY] = self.devices.priority.tolist()
        tables = {
            "receiver": receiver,
            "radio": self.radio.to_dict(),
            "devices": devices,
            "weights": asdict(self.weighting),
        }
        channel = self.channel.to_dict()
        return tables | ({"channel": channel} if channel else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], trusted: bool = True) -> "Scenario":
        """The scenario of nested tables, as in a scenario file; absent keys take defaults.

        Parameters
        ----------
        data
            Tables `receiver`, `radio`, `devices`, `weights` and `channel`, and the name of a `preset` whose
            values are the defaults instead of the paper's.
        trusted
            Whether a channel model `file.py:Name` may be imported. If not, a placeholder with its name and
            options stands for it, and for any model that is not registered.

        Returns
        -------
        Scenario
            The scenario.
        """
        checks.known_keys("", data, ("preset", "receiver", "radio", "devices", "weights", "channel"))
        data = with_preset(data)
        for name, table in data.items():
            if not isinstance(table, Mapping):
                raise InvalidInput(f"{name} = {shown(table)}: must be a table of keys")
        channel = channel_from(data.get("channel", {}), trusted)
        radio, devices = data.get("radio", {}), data.get("devices", {})
        sampled = None
        if channel.response_source is not None and channel.response_source.loaded:
            sampled = channel.response_source.sampled
            radio = radio_table(radio, sampled)
        return cls(
            receiver=_build(Receiver, "receiver", data.get("receiver", {})),
            radio=Radio.from_dict(radio),
            devices=_devices(devices) if sampled is None else devices_of(sampled, devices),
            weighting=_build(Weighting, "weights", data.get("weights", {})),
            channel=channel,
        )

    @classmethod
    def load(cls, path: str | Path) -> "Scenario":
        """Read a scenario file.

        Parameters
        ----------
        path
            TOML file.

        Returns
        -------
        Scenario
            The scenario.
        """
        return cls.from_dict(scenario_tables(path))

    def save(self, path: str | Path) -> None:
        """Write a scenario file, devices as explicit lists.

        Parameters
        ----------
        path
            TOML file.
        """
        write_atomically(Path(path), tomli_w.dumps(self.to_dict()).encode())

    def with_samples(self, samples: Any) -> "Scenario":
        """The same scenario with other sample counts |D_k| and the weights that follow.

        Parameters
        ----------
        samples
            |D_k|, one per device.

        Returns
        -------
        Scenario
            A new scenario.
        """
        return replace(self, devices=replace(self.devices, samples=samples))

    def with_priorities(self, priorities: Any) -> "Scenario":
        """The same scenario with other priorities v_k.

        Parameters
        ----------
        priorities
            v_k >= 0, one per device, or one number for all.

        Returns
        -------
        Scenario
            A new scenario.
        """
        return replace(self, devices=replace(self.devices, priority=priorities))

    def with_radio(self, **changes: Any) -> "Scenario":
        """The same scenario with other radio values.

        Parameters
        ----------
        changes
            Fields of `Radio`, or of `LinkBudget`; see `Radio.changed`.

        Returns
        -------
        Scenario
            A new scenario.
        """
        return replace(self, radio=self.radio.changed(**changes))


_PARTS: dict[str, type] = {
    "receiver": Receiver,
    "radio": Radio,
    "devices": Devices,
    "weighting": Weighting,
}


def _plain(value: Any) -> Any:
    """Tuples as lists."""
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _build(kind: type[T], section: str, table: Mapping[str, Any]) -> T:
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    checks.known_keys(section, table, names)
    return kind(**table)


def _devices(table: Mapping[str, Any]) -> Devices:
    given = list(LISTS)
    drawn = [item.name for item in fields(DeviceDraw)]
    checks.known_keys("devices", table, (*drawn, *given, PRIORITY))
    lists = [name for name in given if name in table]
    if not lists:
        found = _build(DeviceDraw, "devices", {key: table[key] for key in table if key != PRIORITY}).draw()
        return replace(found, priority=table[PRIORITY]) if PRIORITY in table else found
    if mixed := [name for name in drawn if name in table and name not in COLUMNS]:
        raise InvalidInput(
            f"devices.{mixed[0]} cannot be combined with devices.{lists[0]}: devices are either drawn "
            f"({', '.join(drawn)}) or given ({', '.join(given)})"
        )
    if missing := [name for name in given if name not in table]:
        raise InvalidInput(f"devices.{missing[0]} is missing: give all of {', '.join(given)}")
    return Devices(**table)
