"""Optimisation on the complex sphere and along lines; knows nothing of radio."""
