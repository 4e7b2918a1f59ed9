"""Array types."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = NDArray[np.float64]
Complex: TypeAlias = NDArray[np.complex128]
Mask: TypeAlias = NDArray[np.bool_]
Single: TypeAlias = NDArray[np.float32]
Index: TypeAlias = NDArray[np.int64]
Short: TypeAlias = NDArray[np.int16]
Flag: TypeAlias = NDArray[np.uint8]  # of one entry, set by another thread
