"""A matrix that lies on a device, for chains of products that never come back to the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMatrix:
    """What `Engine.upload` returns on a device, to be handed to the methods of that same engine.

    Attributes
    ----------
    buffer : the runtime's handle; the memory is the matrix's own and is freed with it
    shape : (rows, columns)
    dtype : float32 or float64
    steps : elements from one row to the next, and from one column to the next
    device : the device that holds it
    """

    buffer: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    steps: tuple[int, int]
    device: Any

    @property
    def ndim(self) -> int:
        return 2

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.itemsize

    @property
    def transposed(self) -> Self:
        """The transpose, of the same memory."""
        return type(self)(self.buffer, self.shape[::-1], self.dtype, self.steps[::-1], self.device)

    def __repr__(self) -> str:
        return f"DeviceMatrix({self.shape[0]}x{self.shape[1]} {self.dtype})"
