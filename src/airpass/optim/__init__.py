"""Optimisation on the complex sphere, and semidefinite programs; independent of the radio model."""
