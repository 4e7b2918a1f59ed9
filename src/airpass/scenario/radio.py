"""Power, noise and propagation constants."""

from dataclasses import dataclass

from airpass import aircomp
from airpass.core import checks


@dataclass(frozen=True)
class Radio:
    """Power, noise and propagation."""

    snr_db: float = 10.0  # P0/sigma^2; figures 2-7
    mse_threshold: float = 0.03  # eps; section VI-A
    wavelength_m: float = 0.125  # lambda; section VI-A
    refractive_index: float = 1.45  # i_ref; section VI-A
    path_gain: float = 1.0  # xi; section VI-A
    power: float = 1.0  # P0; section VI-A

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

    @property
    def noise_power(self) -> float:
        """sigma^2 = P0/SNR."""
        return float(self.power / 10.0 ** (self.snr_db / 10.0))

    @property
    def budget(self) -> float:
        """Gamma = P0 eps/sigma^2, eq. (24)."""
        return aircomp.budget(self.power, self.mse_threshold, self.noise_power)
