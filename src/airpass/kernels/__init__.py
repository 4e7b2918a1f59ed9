"""Numba machinery: compilation, vector code, elementary functions and sums."""
