"""Moments on an OpenCL device: columns are measured, centred and packed where they lie, without the host.

For ordinary columns only: what is extreme (NaN, inf, vast, tiny) is left to `centre`, on the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import SQUARE, Form, skew
from mtbridge.compute.moments import Vector
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SUM = np.dtype(np.float64)

ELEMENTS = 1 << 16
"""Smaller matrices the host centres faster than two more kernels are launched."""

CHUNK_ROWS = 128
MOST_CHUNKS = 64
"""Chunks of rows are measured and packed one by one: enough to share the work, few for the host to add."""

CHUNK_COLUMNS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Uncentred:
    """A matrix on a device that is yet to be centred.

    Attributes
    ----------
    source : buffer with the data, float32 or float64
    shape : (rows, columns), neither of them 0
    steps : elements of the source from one row to the next, and from one column to the next
    source_dtype : of the source
    dtype : in which products are taken
    form : of the products
    missing : NaN is a missing value: no sum takes it, and it is packed as 0
    """

    source: Any
    shape: tuple[int, int]
    steps: tuple[int, int]
    source_dtype: np.dtype[Any]
    dtype: np.dtype[Any]
    form: Form
    missing: bool = False

    @property
    def width(self) -> int:
        """Columns of all panels, those behind the last of the matrix among them."""
        return padded(self.shape[1], self.form.right)

    @property
    def largest_buffer(self) -> int:
        """Bytes of the largest buffer that measuring needs; the residue is never larger."""
        rows, columns = self.shape
        measures = 3 * -(-rows // chunk_rows(rows)) * self.width * SUM.itemsize
        return max(rows * columns * self.source_dtype.itemsize, measures)

    def measured(self, device: Device) -> tuple[Vector, Vector, Vector]:
        """Return the sum, the smallest and the largest of each column, once the device has found them."""
        rows, columns = self.shape
        chunk = chunk_rows(rows)
        chunks = -(-rows // chunk)
        target, parts = device.result("columns", (3 * chunks, columns), SUM)
        defines = {"SOURCE_BITS": 8 * self.source_dtype.itemsize, "SUM_BITS": 8 * SUM.itemsize}
        if self.missing:
            defines["MISSING"] = 1
        if self.form.squares:
            file, local, across = "moments/columns_squares.cl", (SQUARE, self.form.squares), SQUARE
            defines |= {"SQUARE": SQUARE, "DOWN": self.form.squares}
        else:
            file, local, across = "moments/columns.cl", (1, 1), CHUNK_COLUMNS
            defines["COLUMNS"] = CHUNK_COLUMNS
        kernel = device.kernel("columns", (file,), defines)
        sizes = (np.int32(columns), np.int32(rows), np.int32(chunk))
        steps = (np.int64(self.steps[0]), np.int64(self.steps[1]))
        device.run(kernel, (-(-columns // across), chunks), local, self.source, target, *sizes, *steps)
        found = device.receive(target, parts).reshape(chunks, 3, columns)
        with np.errstate(invalid="ignore", over="ignore"):
            return found[:, 0].sum(axis=0), found[:, 1].min(axis=0), found[:, 2].max(axis=0)

    def centred(
        self, device: Device, origin: Vector, exponent: NDArray[np.int64], slabs: Iterable[slice]
    ) -> Centring:
        """Return the matrix as one that is centred by this origin and exponent, in these slabs of rows."""
        # columns that do not exist are never read, whatever their origin
        table = np.zeros((2, self.width))
        table[0, : len(origin)] = origin
        table[1, : len(origin)] = np.ldexp(1.0, -exponent.astype(np.int32))
        chunks: dict[int, int] = {}
        total = 0
        for slab in slabs:
            rows = slab.stop - slab.start
            chunks[slab.start] = total
            total += -(-padded(rows, self.form.inner) // chunk_rows(rows))
        target, residue = device.result("residue", (total, self.width), SUM)
        return Centring(self, table, device.send("centre", table), target, residue, chunks)


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """A matrix that is centred and scaled on its way into panels; it is packed in place of an array.

    Attributes
    ----------
    table : float64 of shape (2, width), origins and scales; kept while the device reads it
    centre : the buffer of the table
    target, residue : buffer and array, (chunks, width), for the sums of what is packed
    chunks : the first chunk of a slab, by its first row
    """

    raw: Uncentred
    table: Matrix
    centre: Any
    target: Any
    residue: Matrix
    chunks: dict[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.raw.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.raw.dtype

    @property
    def itemsize(self) -> int:
        return self.raw.dtype.itemsize

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        """Queue the packing of a slab of rows; return its panels and their padded inner size."""
        raw, form = self.raw, self.raw.form
        rows = slab.stop - slab.start
        depth = padded(rows, form.inner)
        panels = device.buffer("right panels", raw.width * depth * self.itemsize)
        chunk = chunk_rows(rows)
        defines = {
            "SOURCE_BITS": 8 * raw.source_dtype.itemsize,
            "REAL_BITS": 8 * self.itemsize,
            "SUM_BITS": 8 * SUM.itemsize,
            "PANEL": form.right,
        }
        if raw.missing:
            defines["MISSING"] = 1
        if form.squares:
            file = "moments/pack_centred_split.cl" if form.halves else "moments/pack_centred_squares.cl"
            local, across = (SQUARE, form.squares), SQUARE
            defines |= {"SQUARE": SQUARE, "DOWN": form.squares, **skew(form)}
        else:
            file, local, across = "moments/pack_centred.cl", (1, 1), form.right
        files = (form.headers[0], file) if form.halves else (file,)
        kernel = device.kernel("pack_centred", files, defines)
        numbers = (raw.shape[1], rows, depth, chunk, self.chunks[slab.start])
        sizes = tuple(np.int32(number) for number in numbers)
        steps = (np.int64(raw.steps[0]), np.int64(raw.steps[1]))
        groups = (raw.width // across, -(-depth // chunk))
        buffers = (raw.source, panels, self.centre, self.target)
        device.run(kernel, groups, local, *buffers, *sizes, *steps, offset=(0, slab.start))
        return panels, depth

    def mean(self, device: Device) -> Vector:
        """Return the mean of each centred column, once the device has packed them all."""
        rows, columns = self.shape
        sums: Vector = device.receive(self.target, self.residue).sum(axis=0)
        return sums[:columns] / rows


def chunk_rows(rows: int) -> int:
    """Rows of a chunk of a matrix, or of a slab of one: whole squares."""
    return padded(-(-rows // MOST_CHUNKS), CHUNK_ROWS)
