"""Pairwise moments on a processor by OpenCL: one gram matrix, and sums over short lists of rows.

Values are centred and packed where they lie, 0 where one is missing, so the kernel of the gram matrix gives
the sums of z_i z_j over the rows that i and j have in common. What column i sums up to on the rows of j needs
no product: it is the sum of all its own rows less that of the rows that j misses, or, where j misses more
than half of them, the sum over the rows that j has. A column in which nothing is missing costs nothing more.
A GPU does the same by kernels of its own (opencl_gap_pairs.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.centre import ordinary_centre
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.forms import Form
from mtbridge.compute.launches import Launches, Operand, contiguous
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_careful import CarefulDevice
from mtbridge.compute.opencl_gap_pairs import ordinary_gaps
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.opencl_presence import BITS, COLUMNS, queue_presence
from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.compute.pair_sums import SHARE, done_again
from mtbridge.compute.row_lists import Lists
from mtbridge.compute.slices import slab_depth

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

ROWS = 16
LISTS = 16
TILE = {"COLUMNS": COLUMNS, "ROWS": ROWS}
"""The macros of the kernels that go through pairs of columns in tiles."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedCentring(Centring):
    """A `Centring` that also sums up each slab over lists of rows, as soon as it is packed.

    Attributes
    ----------
    lists : the lists
    sums : buffer for the sums of z and of z squared over each list, (2, lists, width)
    rows : buffer of the rows of the lists
    edges : of each slab, by its first row; kept while the device reads them
    """

    lists: Lists
    sums: Any
    rows: Any
    edges: dict[int, NDArray[np.int32]]

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        # no zero-argument super() in a class that slots made anew
        panels, depth = Centring.packed(self, device, slab)
        lists = len(self.lists.columns)
        if not lists:
            return panels, depth
        panel = self.raw.form.right
        defines = {
            "REAL_BITS": 8 * self.itemsize,
            "SUM_BITS": 8 * SUM.itemsize,
            "PANEL": panel,
            "LISTS": LISTS,
        }
        kernel = device.kernel("listed_sums", ("pairwise/listed_sums.cl",), defines)
        edges = device.send("edges", self.edges[slab.start])
        numbers = (np.int32(number) for number in (lists, depth, slab.start, slab.start > 0))
        groups = (self.raw.width // panel, -(-lists // LISTS))
        device.run(kernel, groups, (1, 1), panels, self.rows, edges, self.sums, *numbers)
        return panels, depth


def pair_moments(
    device: Device, launches: Launches, form: Form, X: Operand, dtype: np.dtype[Any], *, limit: int
) -> PairMoments | None:
    """Return the pairwise moments of `X`, which has elements; NaN is missing.

    None where a column is not ordinary (it holds inf, or is vast, or tiny), or a buffer would have more than
    `limit` bytes. The device may still read arrays of this function if it raises; wait for it then.
    """
    held = X if isinstance(X, DeviceMatrix) else contiguous(X)
    if form.squares:
        pairs = ordinary_gaps(device, launches, form, held, dtype, limit=limit)
        return None if pairs is None else pairs.moments()
    rows, columns = X.shape
    whole = (columns, rows, columns)
    size = dtype.itemsize
    if block_sizes(form, whole, size=size, total=SUM.itemsize, limit=limit, square=True) != whole:
        return None
    source, steps = launches.source("right", held)
    raw = Uncentred(source, (rows, columns), steps, X.dtype, dtype, form, missing=True)
    if max(raw.largest_buffer, 2 * columns * raw.width * SUM.itemsize) > limit:
        return None
    words, bits = device.result("presence", (-(-rows // BITS), columns), np.dtype(np.uint32))
    queue_presence(device, raw, words)
    total, low, high = raw.measured(device)
    device.receive(words, bits)
    # counted while the host makes lists
    counts = _common_rows(device, words, raw)
    lists = Lists.of(bits, rows)  # type: ignore[arg-type]
    there = lists.counts > 0
    total, low, high = (np.where(there, found, 0.0) for found in (total, low, high))
    chosen = ordinary_centre(total, low, high, rows=np.maximum(lists.counts, 1), dtype=dtype)
    # a device that takes subnormal numbers for 0 sees a constant where there may be none
    unsure = not device.subnormals and (there & (low == 0) & (high == 0)).any()
    if chosen is None or unsure:
        device.finish()
        return None
    slabs = list(spans(rows, slab_depth(form, whole, size=size, units=device.units)))
    centring = _listed(device, raw.centred(device, *chosen, slabs), lists, slabs)
    products = device.buffer("pair products", columns * columns * SUM.itemsize)
    launches.gram(form, centring, SUM, products, limit)
    found, doubtful = _differences(device, centring, products, counts, chosen)
    again = CarefulDevice(device, raw, held, chosen[1], limit)
    return done_again(found, doubtful, again.pairs, same=True)


def _common_rows(device: Device, words: Any, raw: Uncentred) -> Any:
    """Queue the rows that pairs have in common; return the buffer, int32 of (columns, columns)."""
    rows, columns = raw.shape
    target = device.buffer("common rows", columns * columns * np.dtype(np.int32).itemsize)
    kernel = device.kernel("common_rows", ("pairwise/common_rows.cl",), TILE)
    sizes = (np.int32(columns), np.int32(-(-rows // BITS)))
    device.run(kernel, _tiles(columns), (1, 1), words, target, *sizes)
    return target


def _tiles(columns: int) -> tuple[int, int]:
    """How many such tiles there are, across and down."""
    return -(-columns // COLUMNS), -(-columns // ROWS)


def _listed(device: Device, centring: Centring, lists: Lists, slabs: list[slice]) -> ListedCentring:
    """Return `centring` as one that also sums over `lists`."""
    return ListedCentring(
        centring.raw,
        centring.table,
        centring.centre,
        centring.target,
        centring.found,
        centring.chunk,
        lists=lists,
        sums=device.buffer("listed sums", 2 * len(lists.columns) * centring.raw.width * SUM.itemsize),
        rows=device.send("listed rows", lists.rows),
        edges={slab.start: lists.edges(slab) for slab in slabs},
    )


def _differences(
    device: Device,
    centring: ListedCentring,
    products: Any,
    counts: Any,
    chosen: tuple[Vector, NDArray[np.int64]],
) -> tuple[PairMoments, NDArray[np.bool_]]:
    """Return the moments, and for which pairs the sums of column j lost digits on the way to them."""
    raw, columns, width = centring.raw, centring.shape[1], centring.raw.width
    signs, at = centring.lists.shares(width)
    table = np.vstack([centring.mean(device) * centring.shape[0], signs])
    table_buffer = device.send("differences table", table)
    # where nothing is missing no sum is taken, but any that is there is read
    sums = centring.sums if len(centring.lists.columns) else table_buffer
    square = (columns, columns)
    comoment, squares, mean = (device.result(slot, square, SUM) for slot in ("comoment", "squares", "mean"))
    n = device.result("rows of pairs", square, np.dtype(np.int64))
    doubtful = device.result("doubtful", square, np.dtype(np.uint8))
    results = (comoment, squares, mean, n, doubtful)
    defines = {**TILE, "SUM_BITS": 8 * SUM.itemsize, "LEAST": int(1 / SHARE[raw.dtype])}
    kernel = device.kernel("differences", ("pairwise/differences.cl",), defines)
    given = (products, counts, sums, table_buffer, device.send("list places", at))
    sizes = (np.int32(columns), np.int32(len(centring.lists.columns) * width))
    device.run(kernel, _tiles(columns), (1, 1), *given, *(target for target, _ in results), *sizes)
    arrays: list[NDArray[Any]] = [device.receive(target, array) for target, array in results]
    origin, exponent = chosen
    right = Side(origin[np.newaxis], exponent[np.newaxis], arrays[2], arrays[1])
    return PairMoments(arrays[3], arrays[0], right.transposed, right), arrays[4].view(bool)
