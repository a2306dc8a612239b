"""Sums over the rows of pairs by products with masks, in halves on tensor cores.

A mask of 1 and 0 is exact in one half, so two products of halves give the sums of every column over the rows
of every other, and one the rows that they have in common. That takes the same time however many values are
missing; where few columns have gaps, lists of them take less (opencl_gaps.py). Squares are not summed up: how
far they go at least is known without (kernels/pairwise/capped_squares.cl), which is enough for covariances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.forms import HALVES, SQUARE, Form, nearby, upper_triangle, whole_grid
from mtbridge.compute.gap_plan import Shares
from mtbridge.compute.opencl_gap_columns import WORD, found_columns
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.opencl_presence import BITS
from mtbridge.compute.shares import SharedSums
from mtbridge.compute.split_mma import MOST_ERROR
from mtbridge.compute.tensor_cores import form_of
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

REAL = np.dtype(np.float32)

LISTS_COST = {"split_wgmma": (1.5, 30.0), "split_mma": (0.6, 12.0)}
"""What lists of all columns take, and what more if they named all rows, in times of products, on an H200."""

MOST_MISSING = 0.5
"""With more missing, what is known of squares without summing them up is too little for most pairs."""

MOST_ROWS = 1 << 24
"""Up to here float32 counts."""

FEW = 10
"""One column in so many may have more gaps than what is known of squares is made for."""

LEVELS = 6
"""Caps of squares that are tried; kernels/pairwise/capped_squares.cl."""

CAPPED_BYTES = 4
"""Of a sum of them."""

PANELS = "split_panels.clh"
"""The file of kernels/ that says how panels of halves lie."""

MASKERS = 256
"""Items of a group of kernels/pairwise/mask_panels.cl."""

SHAPES = ((37, 130), (5003, 200))
"""(rows, columns) of what is checked: ragged, and one deep enough to be cut into slices."""

MISSING_THERE = 0.3
EXPONENT_THERE = 3
"""Share that is missing there, and the power of two by which normal numbers are within 1."""


def worthwhile(form: Form, counts: NDArray[np.int64], leads: NDArray[np.int64], rows: int) -> bool:
    """Whether products with masks are right and faster.

    Parameters
    ----------
    form : of the products of columns
    counts, leads : the rows of each column, and those before the first of them
    rows : of the matrix
    """
    if not form.masks or form.file not in LISTS_COST or rows > MOST_ROWS:
        return False
    lengths, every = Shares.of(counts, leads, rows).lengths, rows * len(counts)
    a_list, a_row = LISTS_COST[form.file]
    cost = a_list * np.count_nonzero(lengths) / len(counts) + a_row * lengths.sum() / every
    return bool(cost >= 1 and counts.sum() >= (1 - MOST_MISSING) * every)


class MaskSums:
    """Sums of every column over the rows of the others, queued slab by slab of rows after their products.

    Attributes
    ----------
    bits : buffer of which values are there
    sums : buffer, float32 of (columns, columns): of the row's column over the rows of the other one
    common : buffer, float32 of the same shape: rows of both, of which the upper triangle is right

    Raises
    ------
    DeviceError
        If a kernel cannot be built.
    MemoryError
        If there is no room.
    """

    def __init__(
        self, device: Device, centring: Centring, bits: Any, counts: NDArray[np.int64], limit: int
    ) -> None:
        self._device, self._centring, self.bits, self._limit = device, centring, bits, limit
        self._rows_of = counts.astype(np.int32)
        columns, form = centring.shape[1], centring.raw.form
        capability = device.capability if form.defines.get("RETARGET", form.defines.get("PTX")) else 0
        size = columns * columns * REAL.itemsize
        self.sums = device.buffer("mask sums", size)
        self.common = device.buffer("mask counts", size)
        two, one = (form_of(form.file, capability, products) for products in (2, 1))
        block, counted = (two.rows, two.columns), (one.rows, one.columns)
        blocks = device.table(
            ("products", columns, block), lambda: nearby(whole_grid(columns, columns, block))
        )
        self._products = self._sums("multiply", two, blocks, self.sums)
        blocks = device.table(("counts", columns, counted), lambda: nearby(upper_triangle(columns, counted)))
        self._counts = self._sums("gram", one, blocks, self.common)
        self._floors = self._queue_floors()

    def _sums(self, name: str, form: Form, blocks: tuple[Any, int], target: Any) -> SharedSums:
        """Return what sums up products by a kernel, which is built now."""
        rows, columns = self._centring.shape
        defines = {**form.defines, "REAL_BITS": 32, "SUM_BITS": 32, "MIRRORED": 0}
        files, shape = (*form.headers, f"{name}/{form.file}.cl"), (columns, rows, columns)
        self._device.kernel(name, files, defines)
        return SharedSums(name, files, defines, form, shape, *blocks, REAL, target, self._limit)

    def _queue_floors(self) -> Any:
        """Queue how far the squares of each column go at least; return the buffer."""
        device, raw = self._device, self._centring.raw
        rows, columns = raw.shape
        chunk = raw.chunk_rows(rows, device)
        chunks = -(-rows // chunk)
        sums = device.buffer("capped squares", chunks * LEVELS * columns * CAPPED_BYTES)
        floors = device.buffer("floors", 2 * columns * REAL.itemsize)
        down = raw.squares["DOWN"]
        defines = {"SOURCE_BITS": 8 * raw.source_dtype.itemsize, "SUM_BITS": 64, "LEVELS": LEVELS}
        kernel = device.kernel(
            "capped_squares", ("pairwise/capped_squares.cl",), {**defines, "ACROSS": SQUARE, "DOWN": down}
        )
        sizes = tuple(np.int32(size) for size in (columns, raw.width, rows, chunk))
        steps = tuple(np.int64(step) for step in raw.steps)
        across = -(-columns // SQUARE)
        given = (raw.source, self._centring.centre, sums, *sizes, *steps)
        device.run(kernel, (across, chunks), (SQUARE, down), *given)
        defines = {"SUM_BITS": 64, "LEVELS": LEVELS, "ACROSS": SQUARE}
        kernel = device.kernel("floors_of", ("pairwise/floors.cl",), defines)
        # of columns with more gaps most pairs are doubtful, but not those of all others
        gaps = rows - int(np.partition(self._rows_of, columns // FEW)[columns // FEW])
        sizes = tuple(np.int32(size) for size in (columns, chunks, gaps))
        device.run(kernel, (across, 1), (SQUARE, LEVELS), sums, floors, *sizes)
        return floors

    def sum_up(self, panels: Any, depth: int, slab: slice) -> None:
        """Queue the sums over a slab, of which `panels` are the halves that are just packed."""
        device, raw = self._device, self._centring.raw
        columns, form = raw.shape[1], raw.form
        masks = device.buffer("mask panels", raw.width * depth * REAL.itemsize // 2)
        files = (PANELS, HALVES, "pairwise/mask_panels.cl")
        kernel = device.kernel("mask_panels", files, {"REAL_BITS": 32})
        sizes = tuple(np.int32(size) for size in (columns, slab.start, slab.stop - slab.start, depth))
        device.run(kernel, (raw.width // 32, depth // form.inner), (MASKERS, 1), self.bits, masks, *sizes)
        extent, inner = np.int32(columns), (np.int32(depth), np.int32(columns))
        self._products.queue(device, (panels, masks), (extent, extent, *inner), slab)
        self._counts.queue(device, (masks,), (extent, *inner), slab)

    def queue_answers(
        self,
        defines: dict[str, int],
        products: Any,
        outputs: tuple[Any, ...],
        doubts: tuple[Any, Any],
        blocks: tuple[Any, int],
    ) -> None:
        """Queue the covariances; `doubts` are buffers for doubtful pairs, and how many a block has."""
        device, raw = self._device, self._centring.raw
        table, count = blocks
        down = raw.form.squares
        kernel = device.kernel(
            "mask_answers",
            ("pairwise/answers.clh", "pairwise/mask_answers.cl"),
            {**defines, "SIDE": SQUARE, "DOWN": down},
        )
        rows = device.send("rows of columns", self._rows_of)
        given = (products, self._floors, rows, self.sums, self.common, *outputs, *doubts)
        device.run(kernel, (count, 1), (SQUARE, down), *given, np.int32(raw.shape[1]), table)


def fault_of(device: Device, form: Form) -> str:
    """Return what products with masks by `form` do wrong on `device`, without an end mark, or nothing."""
    random = np.random.default_rng(1)
    for rows, columns in SHAPES:
        X = random.standard_normal((rows, columns)).astype(REAL)
        X[random.random(X.shape) < MISSING_THERE] = np.nan
        there = (~np.isnan(X)).astype(SUM)
        z = np.nan_to_num(X.astype(SUM)) / 2.0**EXPONENT_THERE
        (sums, common), again = (_of_masks(device, form, X) for _ in range(2))
        what = f"of {rows} x {columns}"
        if sums.tobytes() != again[0].tobytes():
            return f"sums over the rows of pairs {what} have other bits each time"
        if not (np.abs(sums - z.T @ there) <= bound(z, there)).all():
            return f"sums over the rows of pairs {what} are wrong"
        if not np.array_equal(np.triu(common), np.triu(there.T @ there)):
            return f"rows of pairs {what} are wrong"
    return ""


def bound(z: Matrix, there: Matrix) -> Matrix:
    """Return what the sums of columns within 1, 0 where missing, over the rows of others may be wrong by.

    MOST_ERROR in norms of the two factors, a column on those rows and a mask. With hi alone it would be more.
    """
    most: Matrix = MOST_ERROR * np.sqrt((z * z).T @ there * there.sum(axis=0))
    return most


def _of_masks(device: Device, form: Form, X: Matrix) -> tuple[Matrix, ...]:
    """Return the sums, and the rows in common, of float32 columns within 2**EXPONENT_THERE."""
    (rows, columns), every = X.shape, slice(0, len(X))
    source = device.send("right source", X)
    raw = Uncentred(source, (rows, columns), (columns, 1), REAL, REAL, form, missing=True)
    found = found_columns(device, raw, device.buffer("presence", -(-rows // BITS) * columns * WORD))
    centring = raw.centred(device, np.zeros(columns), np.full(columns, EXPONENT_THERE), [every])
    masks = MaskSums(device, centring, found.bits, found.counts, device.largest_buffer)
    masks.sum_up(*centring.packed(device, every), every)
    square = (columns, columns)
    return tuple(device.downloaded(each, np.empty(square, REAL)) for each in (masks.sums, masks.common))
