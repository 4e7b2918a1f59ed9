"""What writing and reading share."""

from airpass.core.types import Complex, Real
from airpass.designs.base import subcarrier_channels
from airpass.scenario import Scenario

FORMAT_VERSION = 2  # of the files that are written; files of version 1, by airpass 0.1, have no number


def channels_of(scenario: Scenario, layout: Real | None, array: Real | None) -> Complex | None:
    """The channels that follow from a scenario and its antennas; (S, M, K) with subcarriers."""
    if scenario.channel.subcarriers > 1:
        return None if layout is array is None else subcarrier_channels(scenario, layout, array)
    if layout is not None:
        return scenario.uplink.channels(layout)
    return None if array is None else scenario.array_at(array).channels()
