"""How a product is cut on a CPU device: chunks of rows of one strip of columns, packed by the group itself.

A launch on PoCL takes 60 us, nearly as long as a BLAS takes for matrices of 256 x 256. So there is only one
(kernels/multiply/packed.cl), whose groups pack what they need of B and read A where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import Form
from mtbridge.compute.slices import add_slices, slice_count

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

# Groups for each compute unit that chunks aim at, so that threads end together
EVEN = 20
# Rows of the smallest chunk: to pack a strip then takes a few hundredths of its products
THINNEST = 128
# Rows of the tallest: so many rows of A stay in the caches that threads share, for the next strip
TALLEST = 1024

Source = tuple[Any, tuple[int, int]]
"""A buffer, and the elements from one row of its matrix to the next and from one column to the next."""


def chunk_rows(rows: int, *, strips: int, micro: int, units: int) -> int:
    """Return how many rows of a strip one group does, whole micro-tiles of `micro` rows.

    Parameters
    ----------
    rows : rows of the result, not 0
    strips : strips of columns of the result
    units : compute units of the device
    """
    wanted = max(-(-EVEN * units // strips), -(-rows // TALLEST))
    chunks = max(1, min(wanted, rows // THINNEST))
    return padded(-(-rows // chunks), micro)


def strip_macros(defines: Mapping[str, int], local_bytes: int) -> dict[str, int]:
    """Return the macros of multiply/packed.cl: those of the form, and strips that fit the local memory."""
    deepest = max(local_bytes // row_bytes(defines), 1)
    return {**defines, "RIGHT_LOCAL": 1, "STRIP_INNER": min(defines["STRIP_INNER"], deepest)}


def row_bytes(defines: Mapping[str, int]) -> int:
    """Bytes of one inner index of a strip."""
    return defines["MICRO_COLUMNS"] * defines["REAL_BITS"] // 8


@dataclass(frozen=True, slots=True)
class Strips:
    """A product of matrices where they lie, which its kernel sums up in `target`.

    Attributes
    ----------
    files, defines : the program of the kernel; see `strip_macros`
    form : how the product is cut up
    shape : (rows, inner, columns), none of them 0
    total : dtype of the result
    target : buffer of the result, (rows, columns)
    limit : bytes that a buffer may have
    """

    files: tuple[str, ...]
    defines: Mapping[str, int]
    form: Form
    shape: tuple[int, int, int]
    total: np.dtype[Any]
    target: Any
    limit: int

    def queue(self, device: Device, left: Source, right: Source) -> None:
        """Queue the product of the matrices that `left` and `right` hold."""
        rows, inner, columns = self.shape
        (A, left_steps), (B, right_steps) = left, right
        strips = -(-columns // self.form.right)
        chunk = chunk_rows(rows, strips=strips, micro=self.form.left, units=device.units)
        groups = -(-rows // chunk) * strips
        sliced = slice_count(
            self.form,
            self.shape,
            groups=groups,
            units=device.units,
            total=self.total.itemsize,
            limit=self.limit,
        )
        strip = device.local(min(inner, self.defines["STRIP_INNER"]) * row_bytes(self.defines))
        sizes = np.array((rows, columns, inner, columns, chunk), np.int32)
        steps = np.array((*left_steps, *right_steps), np.int64)
        if sliced == 1:
            kernel = device.kernel("multiply", self.files, self.defines)
            device.run(kernel, (groups,), (1,), A, B, strip, self.target, *sizes, *steps)
            return
        elements = rows * columns
        partial = device.buffer("slices", sliced * elements * self.total.itemsize)
        kernel = device.kernel("multiply", self.files, {**self.defines, "SLICED": 1})
        device.run(kernel, (groups, sliced), (1, 1), A, B, strip, partial, *sizes, *steps)
        add_slices(device, partial, self.target, elements, sliced, self.total)
