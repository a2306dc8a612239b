"""Moments and covariances of pairs of columns on a GPU, where values are missing.

Products of zero-filled columns come from the kernel of a gram matrix that is fastest for the element type,
the sums over the rows of pairs from lists and runs (opencl_gaps.py) or from products with masks
(opencl_masks.py), and kernels of kernels/pairwise put them together. A covariance matrix may stay on the
device.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, padded, spans
from mtbridge.compute.careful import Indices
from mtbridge.compute.centre import ordinary_centre
from mtbridge.compute.forms import SQUARE, Form, upper_triangle
from mtbridge.compute.launches import Launches, Operand
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_careful import CarefulDevice
from mtbridge.compute.opencl_gap_columns import FACTS, WORD, FoundColumns, found_columns
from mtbridge.compute.opencl_gaps import GappedCentring, GapSums, plan_of, tiles_of
from mtbridge.compute.opencl_masks import MaskSums, worthwhile
from mtbridge.compute.opencl_moments import MOST_CHUNKS, SUM, Centring, Uncentred
from mtbridge.compute.opencl_presence import BITS
from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.compute.pair_sums import SHARE, done_again
from mtbridge.compute.slices import slab_depth
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

ELEMENTS = 1 << 20
"""Words of bits that are counted at a time."""

MOST_DOUBTFUL = 1 / 64
"""Share of all elements: where more are doubtful, of which masks tell too little, lists take less time."""

LARGEST_EXPONENT = {np.dtype(np.float32): 62, SUM: 120}
"""Of columns whose covariances are in the range of a type."""


def ordinary_gaps(
    device: Device,
    launches: Launches,
    form: Form,
    X: Operand,
    dtype: np.dtype[Any],
    *,
    limit: int,
    masks: bool = False,
) -> GapPairs | None:
    """Queue sums over the rows of pairs of the columns of `X`, which is contiguous and has elements.

    With `masks` they may come from products with masks (opencl_masks.py), which are enough for covariances.
    None where a column is not ordinary (it holds inf, or is vast, or tiny), or a buffer would have more than
    `limit` bytes. The device may still read arrays of this function if it raises; wait for it then.
    """
    rows, columns = X.shape
    whole, size = (columns, rows, columns), dtype.itemsize
    if block_sizes(form, whole, size=size, total=SUM.itemsize, limit=limit, square=True) != whole:
        return None
    source, steps = launches.source("right", X)
    raw = Uncentred(source, (rows, columns), steps, X.dtype, dtype, form, missing=True)
    if max(raw.largest_buffer, FACTS * MOST_CHUNKS * columns * SUM.itemsize) > limit:
        return None
    bits = device.buffer("presence", -(-rows // BITS) * columns * WORD)
    found = found_columns(device, raw, bits)
    there = found.counts > 0
    total, low, high = (np.where(there, one, 0.0) for one in (found.total, found.low, found.high))
    chosen = ordinary_centre(total, low, high, rows=np.maximum(found.counts, 1), dtype=dtype)
    # a device that takes subnormal numbers for 0 sees a constant where there may be none
    unsure = not device.subnormals and (there & (low == 0) & (high == 0)).any()
    if chosen is None or unsure:
        return None
    slabs = list(spans(rows, slab_depth(form, whole, size=size, units=device.units)))
    deepest = max(slab.stop - slab.start for slab in slabs)
    # no list is longer than half of all rows, and quads are filled up in each tile
    lists = columns * (rows + 6 * tiles_of(device, raw, deepest))
    counts = columns * padded(columns, BITS * SQUARE) * WORD
    if max(2 * columns * raw.width * size, lists, counts) > limit:
        return None
    plain = raw.centred(device, *chosen, slabs)
    begun = lru_cache(lambda: _sums(device, plain, found, deepest, limit=limit, masks=masks))
    parts = (plain.table, plain.centre, plain.target, plain.found, plain.chunk)
    centring = GappedCentring(raw, *parts, begun, [])
    products = device.buffer("pair products", columns * columns * SUM.itemsize)
    launches.gram(form, centring, SUM, products, limit, mirrored=False)
    centring.summed()
    sums, by_lists = begun(), None
    if isinstance(sums, MaskSums):
        by_lists = partial(ordinary_gaps, device, launches, form, X, dtype, limit=limit)
    return GapPairs(device, centring, sums, products, *chosen, X, limit, by_lists)


def _sums(
    device: Device, centring: Centring, found: FoundColumns, deepest: int, *, limit: int, masks: bool
) -> GapSums | MaskSums:
    """Begin the sums over the rows of pairs, by what is faster."""
    raw = centring.raw
    if masks and worthwhile(raw.form, found.counts, found.leads, raw.shape[0]):
        # where a kernel cannot be built, or there is no room
        with suppress(DeviceError, MemoryError):
            return MaskSums(device, centring, found.bits, found.counts, limit)
    return GapSums(device, centring, found.bits, plan_of(device, raw, found, deepest))


@dataclass(frozen=True, slots=True, eq=False)
class GapPairs:
    """What is known of pairs of columns, once the device is done.

    Attributes
    ----------
    sums : over the rows of pairs
    products : buffer of the sums of z_i z_j, of which the upper triangle is right
    origin, exponent : of z, as `Side` has them
    data : the matrix
    limit : bytes of the largest buffer
    by_lists : does the same by lists, where sums come from masks; these know of covariances alone
    """

    device: Device
    centring: Centring
    sums: GapSums | MaskSums
    products: Any
    origin: Vector
    exponent: NDArray[np.int64]
    data: Operand
    limit: int
    by_lists: Callable[[], GapPairs | None] | None = None

    @property
    def careful(self) -> CarefulDevice:
        """What does again the pairs that lost their digits."""
        return CarefulDevice(self.device, self.centring.raw, self.data, self.exponent, self.limit)

    def moments(self) -> PairMoments:
        """Return the moments; those of pairs whose sums lost digits are exact."""
        columns = self.centring.shape[1]
        square = (columns, columns)
        results = [self.device.result(slot, square, SUM) for slot in ("comoment", "squares", "mean")]
        results.append(self.device.result("rows of pairs", square, np.dtype(np.int64)))
        doubtful = self._answer({"MOMENTS": 1}, *(target for target, _ in results))
        comoment, squares, mean, n = (self.device.receive(*result) for result in results)
        right = Side(self.origin[np.newaxis], self.exponent[np.newaxis], mean, squares)
        found = PairMoments(n, comoment, right.transposed, right)
        if doubtful is None:
            return found
        return done_again(found, doubtful, self.careful.pairs, same=True)

    def covariance(self, target: Any, dtype: np.dtype[Any], *, ddof: int, min_periods: int) -> bool:
        """Write the covariances as `dtype` into the buffer `target`; False where they are past its range."""
        device, columns = self.device, self.centring.shape[1]
        if self.exponent.max(initial=0) > LARGEST_EXPONENT[dtype]:
            return False
        units = np.ldexp(1.0, self.exponent.astype(np.int32))
        least = np.int32(max(min_periods, ddof + 1))
        given = (target, device.send("units", units), np.int32(ddof), least)
        doubtful = self._answer({"REAL_BITS": 8 * dtype.itemsize}, *given)
        if doubtful is not None:
            lefts, rights = np.nonzero(doubtful)
            if self.by_lists is not None and len(lefts) > MOST_DOUBTFUL * columns * columns:
                others = self.by_lists()
                return others is not None and others.covariance(
                    target, dtype, ddof=ddof, min_periods=min_periods
                )
            again = self.careful.pairs(lefts, rights, self._rows(lefts, rights))
            values = again.covariance(ddof, min_periods).astype(dtype)
            pairs = np.stack([lefts, rights], axis=1).astype(np.int32)
            kernel = device.kernel("put_pairs", ("pairwise/put_pairs.cl",), {"REAL_BITS": 8 * dtype.itemsize})
            buffers = (target, device.send("pairs again", pairs), device.send("pairs' values", values))
            device.run(kernel, (len(pairs),), (1,), *buffers, np.int32(columns))
            device.finish()
        return True

    def _rows(self, lefts: Indices, rights: Indices) -> NDArray[np.int64]:
        """Return the rows that some pairs have in common."""
        rows, columns = self.centring.shape
        bits = np.empty((-(-rows // BITS), columns), np.uint32)
        columns_of = np.ascontiguousarray(self.device.downloaded(self.sums.bits, bits).T)
        n = np.empty(len(lefts), np.int64)
        for part in spans(len(lefts), ELEMENTS // len(bits) + 1):
            both = columns_of[lefts[part]] & columns_of[rights[part]]
            n[part] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
        return n

    def _answer(self, defines: dict[str, int], *outputs: Any) -> NDArray[np.bool_] | None:
        """Have answers made; return which pairs of the upper triangle lost their digits, None if none did."""
        device, centring, columns = self.device, self.centring, self.centring.shape[1]
        key, side = (columns, (SQUARE, SQUARE)), (SQUARE, SQUARE)
        blocks = device.table(key, lambda: upper_triangle(columns, side))
        doubts, doubted = device.result("doubts", (blocks[1], 1), np.dtype(np.int32))
        flags, doubtful = device.result("doubtful", (columns, columns), np.dtype(np.uint8))
        defines = {
            **defines,
            "SUM_BITS": 8 * SUM.itemsize,
            "SOURCE_BITS": 8 * centring.itemsize,
            "LEAST": int(1 / SHARE[centring.dtype]),
        }
        self.sums.queue_answers(defines, self.products, outputs, (flags, doubts), blocks)
        if not device.receive(doubts, doubted).any():
            return None
        # what lies below the diagonal was never written
        found: NDArray[np.bool_] = np.triu(device.receive(flags, doubtful)).view(bool)
        return found
