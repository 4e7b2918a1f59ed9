"""Homotopy schedules: a parameter that moves geometrically up to a bound and stays there."""

from airpass.kernels.jit import kernel


@kernel
def grow(value: float, factor: float, ceiling: float) -> float:
    """min(factor * value, ceiling), factor > 1."""
    return min(factor * value, ceiling)


@kernel
def shrink(value: float, factor: float, floor: float) -> float:
    """max(factor * value, floor), factor < 1."""
    return max(factor * value, floor)
