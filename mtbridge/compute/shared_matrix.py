"""A matrix that lies on each of several devices, and an answer of which each of them has a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mtbridge.compute.device_matrix import DeviceMatrix


@dataclass(frozen=True, slots=True, eq=False)
class SharedMatrix(DeviceMatrix):
    """What `SeveralEngine.upload` returns: the same matrix on every device.

    To whatever is not shared it is the `DeviceMatrix` of the first device. The memory is freed with it.

    Attributes
    ----------
    others : the matrix on the other devices, in the order of the engine
    """

    others: tuple[DeviceMatrix, ...] = ()

    @classmethod
    def of(cls, copies: list[DeviceMatrix]) -> Self:
        """Return a matrix of which each device has one of `copies`."""
        first, *others = copies
        return cls(first.buffer, first.shape, first.dtype, first.steps, first.device, tuple(others))

    @property
    def copies(self) -> tuple[DeviceMatrix, ...]:
        """The matrix on each device, in the order of the engine."""
        return (self, *self.others)

    @property
    def transposed(self) -> Self:
        """The transpose of the same memory."""
        others = [copy.transposed for copy in self.others]
        first = DeviceMatrix(self.buffer, self.shape, self.dtype, self.steps, self.device).transposed
        return self.of([first, *others])

    def __repr__(self) -> str:
        return f"SharedMatrix({'x'.join(map(str, self.shape))} {self.dtype} on {len(self.copies)} devices)"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one device has of a symmetric matrix: the rows of a stripe from the diagonal on, and their mirror.

    Attributes
    ----------
    stripe : rows
    matrix : as large as the whole; what is not of the stripe is not written
    """

    stripe: slice
    matrix: DeviceMatrix


@dataclass(frozen=True, slots=True, eq=False)
class SharedAnswer:
    """A symmetric matrix that several devices computed, for `SeveralEngine.download`.

    Each device has a stripe of its rows. The memory is freed with it, unless it is given as `out` to be used
    again.

    Attributes
    ----------
    parts : of different devices, whose stripes are all rows, in any order; a single one where one did it all
    """

    parts: tuple[Part, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.parts[0].matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parts[0].matrix.dtype

    @property
    def devices(self) -> list[Any]:
        """The device of each part."""
        return [part.matrix.device for part in self.parts]

    def __repr__(self) -> str:
        return f"SharedAnswer({'x'.join(map(str, self.shape))} {self.dtype} on {len(self.parts)} devices)"


def alone(matrix: DeviceMatrix) -> SharedAnswer:
    """Return what one device computed as an answer with a single part."""
    return SharedAnswer((Part(slice(0, matrix.shape[0]), matrix),))
