"""Input of a design: receiver, radio, devices, weights and channel."""

from airpass.scenario.channel import Channel
from airpass.scenario.devices import DeviceDraw, Devices
from airpass.scenario.files import read_tables, scenario_tables
from airpass.scenario.motion import Motion, Paths, RandomWaypoint, StraightLines, read_paths
from airpass.scenario.presets import PRESETS
from airpass.scenario.radio import LinkBudget, Radio
from airpass.scenario.receiver import Receiver
from airpass.scenario.scenario import Scenario
from airpass.scenario.weights import Weighting

__all__ = [
    "PRESETS",
    "Channel",
    "DeviceDraw",
    "Devices",
    "LinkBudget",
    "Motion",
    "Paths",
    "Radio",
    "RandomWaypoint",
    "Receiver",
    "Scenario",
    "StraightLines",
    "Weighting",
    "read_paths",
    "read_tables",
    "scenario_tables",
]
