"""Uplink channels from device positions to the receiver's chains."""
