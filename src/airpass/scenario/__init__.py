"""Input of a design: receiver, radio, devices and weights."""

from airpass.scenario.devices import DeviceDraw, Devices
from airpass.scenario.radio import Radio
from airpass.scenario.receiver import Receiver
from airpass.scenario.scenario import Scenario, read_tables
from airpass.scenario.weights import Weighting

__all__ = ["DeviceDraw", "Devices", "Radio", "Receiver", "Scenario", "Weighting", "read_tables"]
