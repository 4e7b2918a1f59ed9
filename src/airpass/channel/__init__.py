"""Uplink channels from device positions to the receiver's chains."""

from airpass.channel.factor import ChannelFactor
from airpass.core.registry import Registry

MODELS = Registry(ChannelFactor, __name__)
