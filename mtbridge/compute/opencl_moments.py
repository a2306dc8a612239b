"""Moments on an OpenCL device: columns are measured, centred and packed where they lie.

A GPU chooses the origins itself (kernels/centring.clh), so that nothing waits for the host on the way. A
processor's memory is the host's, which chooses there. For ordinary columns only: what is extreme (vast, tiny,
on a processor NaN and inf too) is left to `centre`, on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import padded
from mtbridge.compute.centre import ordinary_centre
from mtbridge.compute.forms import MEASURING, SQUARE, Form, upper_triangle
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_packing import queue_packing
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SUM = np.dtype(np.float64)

ELEMENTS = 1 << 16
"""Smaller matrices the host centres faster than two more kernels are launched."""

CHUNK_ROWS = 128
MOST_CHUNKS = 64
"""Chunks of rows are measured and packed one by one: enough to share the work, few to add up."""

UNIT_GROUPS = 16
"""Groups for each unit of a GPU that chunks aim at. There is no use in more, and all add up the chunks."""

LOOKED = 1 << 26
"""Bytes of float32 up to which groups that pack look at their columns before: a launch less. What is larger
leaves a GPU's cache before it is packed: on an H200 four times as much took longer."""

SHARING, MOST_SHARING = 2, 8
"""Such groups for each compute unit, and the most that share columns, each of which reads all of them."""

CHUNK_COLUMNS = 32

COVARIANCE_SIDE = SQUARE
"""Side of the blocks in which a covariance matrix is made of sums."""


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
    slot : for the names of its buffers, where two matrices are packed side by side
    """

    source: Any
    shape: tuple[int, int]
    steps: tuple[int, int]
    source_dtype: np.dtype[Any]
    dtype: np.dtype[Any]
    form: Form
    missing: bool = False
    slot: str = "right"

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

    @property
    def summed(self) -> bool:
        """Whether what is packed is summed up: of float32 a GPU need not (kernels/centring.clh, `taken`)."""
        single = self.source_dtype.itemsize == self.dtype.itemsize == 4
        return self.missing or not (single and self.form.squares)

    @property
    def squares(self) -> dict[str, int]:
        """The macros of the squares in which a GPU reads the matrix; a power of two of rows shares one."""
        return {"SQUARE": SQUARE, "DOWN": 1 << (self.form.squares.bit_length() - 1)}

    def chunk_rows(self, rows: int, device: Device) -> int:
        """Return the rows of a chunk of the matrix, or of a slab of so many `rows`."""
        if not self.form.squares:
            return chunk_rows(rows)
        return chunk_rows(rows, -(-UNIT_GROUPS * device.units * SQUARE // self.width))

    def measures(self, device: Device) -> Measures:
        """Return a place for what `measure` finds."""
        chunk = self.chunk_rows(self.shape[0], device)
        chunks = -(-self.shape[0] // chunk)
        return Measures(*device.result("columns", (3 * chunks, self.shape[1]), SUM), chunk, chunks)

    def measure(self, device: Device, measures: Measures) -> None:
        """Queue the kernel that measures the columns."""
        rows, columns = self.shape
        defines = {"SOURCE_BITS": 8 * self.source_dtype.itemsize, "SUM_BITS": 8 * SUM.itemsize}
        if self.missing:
            defines["MISSING"] = 1
        headers: tuple[str, ...] = ()
        if self.form.squares:
            headers, file, across = (MEASURING,), "moments/columns_squares.cl", SQUARE
            defines |= self.squares
            local = (SQUARE, defines["DOWN"])
        else:
            file, local, across = "moments/columns.cl", (1, 1), CHUNK_COLUMNS
            defines["COLUMNS"] = CHUNK_COLUMNS
        kernel = device.kernel("columns", (*headers, file), defines)
        sizes = (np.int32(columns), np.int32(rows), np.int32(measures.chunk))
        steps = (np.int64(self.steps[0]), np.int64(self.steps[1]))
        groups = (-(-columns // across), measures.chunks)
        device.run(kernel, groups, local, self.source, measures.buffer, *sizes, *steps)

    def measured(self, device: Device) -> tuple[Vector, Vector, Vector]:
        """Return the sum, the smallest and the largest of each column, once the device has found them."""
        measures = self.measures(device)
        self.measure(device, measures)
        found = device.receive(measures.buffer, measures.parts).reshape(measures.chunks, 3, -1)
        with np.errstate(invalid="ignore", over="ignore"):
            return found[:, 0].sum(axis=0), found[:, 1].min(axis=0), found[:, 2].max(axis=0)

    def centring(self, device: Device, slabs: Iterable[slice], *, finite: bool = False) -> Centring | None:
        """Return the matrix as one that is centred in these slabs of rows, by the device where it is a GPU.

        With `finite`, and on a processor, the host chooses origins and exponents, and the answer is None
        where a column is not ordinary or holds NaN or inf.
        """
        if self.form.squares and not finite:
            return self.self_centred(device, slabs)
        total, low, high = self.measured(device)
        chosen = ordinary_centre(total, low, high, rows=self.shape[0], dtype=self.dtype)
        # a device that takes subnormal numbers for 0 sees a constant where there may be none
        doubtful = not device.subnormals and ((low == 0) & (high == 0)).any()
        return None if chosen is None or doubtful else self.centred(device, *chosen, slabs)

    def self_centred(self, device: Device, slabs: Iterable[slice]) -> Centring:
        """Return the matrix as one that a GPU centres as it finds best while it packs these slabs of rows."""
        slabs = list(slabs)
        shared = self.looked(device, slabs)
        if not shared or self.summed:
            return self._centring(device, slabs, None, self.measures(device))
        rows = self.shape[0]
        measures = Measures(None, np.empty((0, 0)), self.chunk_rows(rows, device), 0)
        chunk = padded(-(-rows // shared), CHUNK_ROWS)
        return self._centring(device, slabs, None, measures, chunk)

    def looked(self, device: Device, slabs: Sequence[slice]) -> int:
        """Return into how many chunks rows are packed by groups that each look at all of them before.

        0 where a launch before that one is faster, or there are several slabs.
        """
        shared = -(-SHARING * device.units * SQUARE // self.width)
        fitting = self.shape[0] * self.width * self.dtype.itemsize <= LOOKED and shared <= MOST_SHARING
        return shared if self.form.squares and fitting and len(slabs) == 1 else 0

    def centred(
        self, device: Device, origin: Vector, exponent: NDArray[np.int64], slabs: Iterable[slice]
    ) -> Centring:
        """Return the matrix as one that is centred by this origin and exponent, in these slabs of rows."""
        # columns that do not exist are never read, whatever their origin
        table = np.zeros((2, self.width))
        table[0, : len(origin)] = origin
        table[1, : len(origin)] = np.ldexp(1.0, -exponent.astype(np.int32))
        return self._centring(device, slabs, table, device.send(f"{self.slot} centre", table))

    def given(self, device: Device, centre: Any, slabs: Iterable[slice]) -> Centring:
        """Return the matrix as one that is centred by the origins and scales in the buffer `centre`.

        They, and the sums of what is packed, stay on the device.
        """
        chunk, chunks = self._chunks(device, slabs)
        target = device.buffer(f"{self.slot} residue", (chunks + 2) * self.width * SUM.itemsize)
        return Centring(self, np.empty((2, 0)), centre, target, np.empty((0, 0)), chunk)

    def _chunks(self, device: Device, slabs: Iterable[slice], chunk: int = 0) -> tuple[int, int]:
        """Rows of a chunk of a slab, as given or as suits, and the most chunks of one."""
        deepest = max(slab.stop - slab.start for slab in slabs)
        chunk = chunk or self.chunk_rows(deepest, device)
        return chunk, -(-padded(deepest, self.form.inner) // chunk)

    def _centring(
        self, device: Device, slabs: Iterable[slice], table: Matrix | None, centre: Any, chunk: int = 0
    ) -> Centring:
        chunk, chunks = self._chunks(device, slabs, chunk)
        target, found = device.result(f"{self.slot} residue", (chunks + 2, self.width), SUM)
        return Centring(self, table, centre, target, found, chunk)


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """What a device finds of columns, chunk by chunk of rows: sums, smallest and largest values.

    Attributes
    ----------
    buffer, parts : buffer and array, (3 * chunks, columns); None where the groups that pack look themselves
    chunk, chunks : rows of a chunk, and how many there are in the buffer
    """

    buffer: Any
    parts: Matrix
    chunk: int
    chunks: int


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """A matrix that is centred and scaled on its way into panels; it is packed in place of an array.

    Slabs of rows are packed from the first to the last.

    Attributes
    ----------
    table : float64 of shape (2, width), origins and scales, kept while the device reads it; None where the
        device chooses them, of columns that it measures before it packs the first slab
    centre : the buffer of the table, or what is measured
    target, found : buffer and array, (chunks + 2, width): sums over the chunks of a slab of what is packed,
        those of all slabs added up; then origins, then scales
    chunk : rows of a chunk of a slab
    """

    raw: Uncentred
    table: Matrix | None
    centre: Any
    target: Any
    found: Matrix
    chunk: int

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
        raw = self.raw
        if self.table is not None:
            return queue_packing(device, raw, slab, self.chunk, (self.centre, self.target))
        if self.centre.buffer is None:
            tables = (self.target, self.target)
            return queue_packing(
                device, raw, slab, self.chunk, tables, measured=self.centre.chunk, looking=True
            )
        if slab.start == 0:
            raw.measure(device, self.centre)
        measures = self.centre
        return queue_packing(
            device, raw, slab, self.chunk, (measures.buffer, self.target), measured=measures.chunks
        )

    def chosen(self, device: Device) -> tuple[Vector, NDArray[np.int64]] | None:
        """Return origins and exponents, once all is packed; None where a column was not ordinary after all.

        A column that holds NaN or inf has the origin NaN.
        """
        columns = self.shape[1]
        origin, scale = device.receive(self.target, self.found)[-2:, :columns]
        if np.isnan(scale).any():
            return None
        # a scale is 2 ** (e - 1), as frexp tells it
        return origin.copy(), 1 - np.frexp(scale)[1].astype(np.int64)

    def scales(self, device: Device) -> Vector:
        """Return the scales alone; NaN for a column that was not ordinary after all.

        Those that the device chose are waited for, until all is packed.
        """
        if self.table is not None:
            return np.asarray(self.table[1, : self.shape[1]], SUM)
        last = len(self.found) - 1
        row = self.found[last]
        return device.downloaded(self.target, row, offset=last * row.nbytes)[: self.shape[1]]

    def mean(self, device: Device) -> Vector:
        """Return the mean of each centred column, once the device has packed them all."""
        rows, columns = self.shape
        sums: Vector = device.receive(self.target, self.found)[:-2].sum(axis=0)
        return sums[:columns] / rows

    def covariance(
        self,
        device: Device,
        sums: Any,
        answer: Any,
        dtype: np.dtype[Any],
        ddof: int,
        blocks: tuple[Any, int] | None = None,
    ) -> None:
        """Queue the covariance matrix, both triangles in `dtype`, from the upper one of the sums of products.

        `sums` is their buffer, float64 of shape (columns, columns); `answer` may be that same buffer.
        `blocks` of COVARIANCE_SIDE, a table and their number, are all that touch the upper triangle, or some
        of them.
        """
        (rows, columns), side, down = self.shape, COVARIANCE_SIDE, self.raw.squares["DOWN"]
        defines = {"REAL_BITS": 8 * dtype.itemsize, "SUM_BITS": 8 * SUM.itemsize, "SIDE": side, "DOWN": down}
        kernel = device.kernel("covariance", ("moments/covariance.cl",), defines)
        table, count = blocks or device.table(
            (columns, (side, side)), lambda: upper_triangle(columns, (side, side))
        )
        sizes = (np.int32(columns), np.int32(self.raw.width), np.int32(len(self.found) - 2))
        share = SUM.type(1 / (rows - ddof) if rows > ddof else np.nan)
        buffers, group = (sums, answer, self.target), (side, down)
        device.run(kernel, (count, 1), group, *buffers, *sizes, SUM.type(rows), share, table)


def chunk_rows(rows: int, most: int = MOST_CHUNKS) -> int:
    """Rows of a chunk of a matrix, or of a slab of one, in `most` chunks or fewer: whole squares."""
    return padded(-(-rows // max(1, min(most, MOST_CHUNKS))), CHUNK_ROWS)
