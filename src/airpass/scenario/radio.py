"""Power, noise and propagation constants: normalised, or from a link budget in GHz and dBm."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from airpass import aircomp
from airpass.core import checks
from airpass.core.errors import InvalidInput

LIGHT_M_S = 299_792_458.0  # c, exact
THERMAL_W_HZ = 1.380649e-23 * 290.0  # k T: Boltzmann's constant, exact, at the standard 290 K
NORMALISED = ("snr_db", "wavelength_m", "path_gain", "power")  # what a link budget replaces


@dataclass(frozen=True)
class LinkBudget:
    """A radio in GHz and dBm, with the gain of free space.

    The noise power is given, or it is that of thermal noise at 290 K in a bandwidth, raised by the noise
    figure of the receiver: k T B F, which is -174 dBm per hertz.

    Parameters
    ----------
    carrier_ghz
        Carrier frequency, GHz.
    power_dbm
        Largest transmit power of a device, dBm.
    noise_dbm
        Noise power of a receive chain, dBm; None if it follows from the bandwidth.
    bandwidth_mhz, noise_figure_db
        Bandwidth in MHz and noise figure in dB, both or neither.
    """

    carrier_ghz: float
    power_dbm: float
    noise_dbm: float | None = None
    bandwidth_mhz: float | None = None
    noise_figure_db: float | None = None

    def __post_init__(self) -> None:
        checks.keep(
            self,
            carrier_ghz=checks.positive("radio.carrier_ghz", self.carrier_ghz),
            power_dbm=checks.decibels("radio.power_dbm", self.power_dbm),
        )
        if self.carrier_ghz > (most := LIGHT_M_S / (1e-6 * 1e9)):
            raise InvalidInput(f"radio.carrier_ghz = {self.carrier_ghz:g}: must be <= {most:g}")
        thermal = {"bandwidth_mhz": self.bandwidth_mhz, "noise_figure_db": self.noise_figure_db}
        given = [name for name, value in thermal.items() if value is not None]
        if self.noise_dbm is not None:
            if given:
                raise InvalidInput(
                    f"radio.noise_dbm cannot be combined with radio.{given[0]}: "
                    f"remove noise_dbm, or {' and '.join(given)}"
                )
            checks.keep(self, noise_dbm=checks.decibels("radio.noise_dbm", self.noise_dbm))
        elif len(given) < 2:
            missing = [name for name in thermal if name not in given]
            raise InvalidInput(
                f"radio.{missing[0]} is missing: give noise_dbm, or bandwidth_mhz with noise_figure_db"
            )
        else:
            checks.keep(
                self,
                bandwidth_mhz=checks.positive("radio.bandwidth_mhz", self.bandwidth_mhz),
                noise_figure_db=checks.at_least("radio.noise_figure_db", self.noise_figure_db, 0.0),
            )
        if abs(self.snr_db) > 300.0:
            raise InvalidInput(
                f"radio.power_dbm = {self.power_dbm:g}: is {self.snr_db:g} dB above the noise of "
                f"{self.noise_power_dbm:g} dBm; must be within ±300 dB"
            )

    @property
    def noise_power_dbm(self) -> float:
        """Noise power, as given or k T B F, dBm."""
        if self.noise_dbm is not None:
            return self.noise_dbm
        assert self.bandwidth_mhz is not None
        assert self.noise_figure_db is not None
        return 10.0 * math.log10(1e3 * THERMAL_W_HZ * 1e6 * self.bandwidth_mhz) + self.noise_figure_db

    @property
    def snr_db(self) -> float:
        """P0/sigma^2 in dB, transmit power over noise power."""
        return self.power_dbm - self.noise_power_dbm

    @property
    def wavelength_m(self) -> float:
        """lambda = c/f, metres."""
        return LIGHT_M_S / (1e9 * self.carrier_ghz)

    @property
    def path_gain(self) -> float:
        """xi = lambda/(4 pi), the amplitude gain of free space at 1 m."""
        return self.wavelength_m / (4.0 * math.pi)

    def radio(self, **others: float) -> "Radio":
        """The normalised radio, with P0 = 1.

        Parameters
        ----------
        others
            `mse_threshold` and `refractive_index`, if they are not the defaults.

        Returns
        -------
        Radio
            The radio, which keeps this link budget.
        """
        return Radio(**self._normalised(), **others, link_budget=self)

    def _normalised(self) -> dict[str, float]:
        return {
            "snr_db": self.snr_db,
            "wavelength_m": self.wavelength_m,
            "path_gain": self.path_gain,
            "power": 1.0,
        }


PHYSICAL = tuple(item.name for item in fields(LinkBudget))


@dataclass(frozen=True)
class Radio:
    """Power, noise and propagation."""

    snr_db: float = 10.0  # P0/sigma^2; figures 2-7
    mse_threshold: float = 0.03  # eps; section VI-A
    wavelength_m: float = 0.125  # lambda; section VI-A
    refractive_index: float = 1.45  # i_ref; section VI-A
    path_gain: float = 1.0  # xi; section VI-A
    power: float = 1.0  # P0; section VI-A
    link_budget: LinkBudget | None = None  # what the values follow from; None if they were given

    def __post_init__(self) -> None:
        checks.keep(
            self,
            snr_db=checks.decibels("radio.snr_db", self.snr_db),
            mse_threshold=checks.positive("radio.mse_threshold", self.mse_threshold),
            # Below a micrometre, rounding destroys the phase over metres.
            wavelength_m=checks.at_least("radio.wavelength_m", self.wavelength_m, 1e-6),
            refractive_index=checks.at_least("radio.refractive_index", self.refractive_index, 1.0),
            path_gain=checks.positive("radio.path_gain", self.path_gain),
            power=checks.positive("radio.power", self.power),
        )
        if self.link_budget is not None:
            checks.instance("link_budget", self.link_budget, LinkBudget, "LinkBudget(...)")
            for name, value in self.link_budget._normalised().items():
                if getattr(self, name) != value:
                    raise InvalidInput(
                        f"radio.{name} = {getattr(self, name):g}: must be {value:g}, which follows from the "
                        "link budget; use LinkBudget(...).radio(), or change the link budget"
                    )

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Radio":
        """The radio of a table: normalised, or a link budget.

        Parameters
        ----------
        table
            Keys as in the table [radio] of a scenario file.

        Returns
        -------
        Radio
            The radio.
        """
        names = [item.name for item in fields(cls) if item.name != "link_budget"]
        checks.known_keys("radio", table, (*names, *PHYSICAL))
        physical = {name: table[name] for name in PHYSICAL if name in table}
        if not physical:
            return cls(**table)
        _refuse_half([name for name in NORMALISED if name in table], physical)
        for name in ("carrier_ghz", "power_dbm"):
            if name not in physical:
                raise InvalidInput(
                    f"radio.{name} is missing: it is needed with radio.{next(iter(physical))}, or remove "
                    f"{', '.join(physical)}"
                )
        others = {name: table[name] for name in table if name not in PHYSICAL}
        return LinkBudget(**physical).radio(**others)

    def to_dict(self) -> dict[str, Any]:
        """The table [radio], in the form in which it was given."""
        table = asdict(self)
        given = table.pop("link_budget")
        if given is None:
            return table
        stated = {name: value for name, value in given.items() if value is not None}  # TOML has no null
        return stated | {name: table[name] for name in table if name not in NORMALISED}

    def changed(self, **changes: Any) -> "Radio":
        """The same radio with other values.

        Parameters
        ----------
        changes
            Fields of `Radio`, or of `LinkBudget`. A whole link budget replaces normalised values; `noise_dbm`
            replaces bandwidth and noise figure, and the other way round.

        Returns
        -------
        Radio
            A new radio.
        """
        if self.link_budget is None and not set(PHYSICAL) & set(changes):
            return replace(self, **changes)
        kept = {name: value for name, value in self.to_dict().items() if name not in NORMALISED}
        return Radio.from_dict(without_replaced_noise(kept, changes) | changes)

    @property
    def noise_power(self) -> float:
        """sigma^2 = P0/SNR."""
        return float(self.power / 10.0 ** (self.snr_db / 10.0))

    @property
    def budget(self) -> float:
        """Gamma = P0 eps/sigma^2, eq. (24)."""
        return aircomp.budget(self.power, self.mse_threshold, self.noise_power)

    @property
    def summary(self) -> str:
        """Carrier, power, noise and SNR, or only the SNR if there is no link budget."""
        given = self.link_budget
        if given is None:
            return f"{self.snr_db:g} dB"
        return (
            f"{given.carrier_ghz:g} GHz, {given.power_dbm:g} dBm, noise {given.noise_power_dbm:.4g} dBm "
            f"(SNR {self.snr_db:.4g} dB)"
        )

    @property
    def short_summary(self) -> str:
        """Carrier and power, or the SNR if there is no link budget."""
        given = self.link_budget
        return self.summary if given is None else f"{given.carrier_ghz:g} GHz and {given.power_dbm:g} dBm"


def without_replaced_noise(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A table [radio] without the noise that `changes` give in the other form.

    Parameters
    ----------
    table
        The table.
    changes
        Values that will be put into it.

    Returns
    -------
    dict[str, Any]
        A copy.
    """
    thermal = ("bandwidth_mhz", "noise_figure_db")
    replaced = thermal if "noise_dbm" in changes else ()
    if any(name in changes for name in thermal):
        replaced = (*replaced, "noise_dbm")
    return {name: value for name, value in table.items() if name not in replaced or name in changes}


def _refuse_half(normalised: Iterable[str], physical: Iterable[str]) -> None:
    """Refuse normalised values next to a link budget."""
    first, second = list(normalised), list(physical)
    if first:
        raise InvalidInput(
            f"radio.{first[0]} cannot be combined with radio.{second[0]}: a radio is either normalised or in "
            f"GHz and dBm; remove {', '.join(first)}, or {', '.join(second)}"
        )
