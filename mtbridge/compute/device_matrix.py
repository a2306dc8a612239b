"""A matrix, or a batch of some, that lies on a device, for chains of products that stay there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMatrix:
    """What `Engine.upload` returns on a device, to be handed to the methods of that same engine.

    Attributes
    ----------
    buffer : the runtime's handle; the memory is the matrix's own and is freed with it
    shape : (…, rows, columns)
    dtype : float32 or float64
    steps : elements from one row to the next, and from one column to the next; of a batch from one matrix to
        the next before those. Windows of one table overlap.
    device : the device that holds it
    """

    buffer: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    steps: tuple[int, ...]
    device: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    @property
    def transposed(self) -> Self:
        """The transpose, or those of the matrices of a batch, of the same memory."""
        shape, steps = ((*both[:-2], both[-1], both[-2]) for both in (self.shape, self.steps))
        return type(self)(self.buffer, shape, self.dtype, steps, self.device)

    def __repr__(self) -> str:
        return f"DeviceMatrix({'x'.join(map(str, self.shape))} {self.dtype})"
