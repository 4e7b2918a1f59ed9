"""The complex unit sphere {m in C^n : ||m|| = 1} as a Riemannian manifold.

The metric is the real inner product Re(x^H y). With gradients in the Wirtinger convention
(derivative with respect to m*, half the real gradient), the rate of change of f along a tangent vector
d is 2 Re(d^H grad f). `slope` implements this.
"""

import numpy as np

from airpass.core.types import Complex
from airpass.kernels.jit import kernel


@kernel
def inner(x: Complex, y: Complex) -> float:
    """Re(x^H y), the metric."""
    total = 0.0
    for i in range(x.size):
        total += x[i].real * y[i].real + x[i].imag * y[i].imag
    return total


@kernel
def project(point: Complex, vector: Complex, out: Complex) -> None:
    """The tangent part of `vector` at `point`: v - m Re(m^H v). `out` may be `vector`."""
    along = inner(point, vector)
    for i in range(point.size):
        out[i] = vector[i] - complex(point[i].real * along, point[i].imag * along)


@kernel
def retract(point: Complex, direction: Complex, step: float, out: Complex) -> None:
    """Normalised retraction (m + t d)/||m + t d||. `out` may be `point`."""
    for i in range(point.size):
        out[i] = point[i] + complex(step * direction[i].real, step * direction[i].imag)
    length = np.sqrt(inner(out, out))
    for i in range(point.size):
        out[i] = complex(out[i].real / length, out[i].imag / length)


@kernel
def transport(arrival: Complex, vector: Complex, out: Complex) -> None:
    """Carry a tangent vector to `arrival` by projecting it on the tangent space there."""
    project(arrival, vector, out)


@kernel
def slope(direction: Complex, gradient: Complex) -> float:
    """Rate of change along `direction` of a function with Wirtinger gradient `gradient`."""
    return 2.0 * inner(direction, gradient)
