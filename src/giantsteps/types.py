"""The array type of the library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Real or complex numbers of any shape.
Array: TypeAlias = NDArray[Any]
#: Double precision numbers of any shape.
FloatArray: TypeAlias = NDArray[np.float64]
