"""Moments and covariances of pairs of columns on a GPU, where values are missing.

Products of zero-filled columns come from the kernel of a gram matrix that is fastest for the element type,
the sums over the rows of pairs from lists and runs (opencl_gaps.py); kernels/pairwise/answers.cl puts them
together. A covariance matrix may stay on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
from mtbridge.compute.opencl_gaps import WORD, GappedCentring, GapSums, found_columns, tiles_of
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.opencl_presence import BITS, queue_presence
from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.compute.pair_sums import SHARE, done_again
from mtbridge.compute.slices import slab_depth

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

ELEMENTS = 1 << 20
"""Words of bits that are counted at a time."""

LARGEST_EXPONENT = {np.dtype(np.float32): 62, SUM: 120}
"""Of columns whose covariances are in the range of a type."""


def ordinary_gaps(
    device: Device, launches: Launches, form: Form, X: Operand, dtype: np.dtype[Any], *, limit: int
) -> GapPairs | None:
    """Queue sums over the rows of pairs of the columns of `X`, which is contiguous and has elements.

    None where a column is not ordinary (it holds inf, or is vast, or tiny), or a buffer would have more than
    `limit` bytes. The device may still read arrays of this function if it raises; wait for it then.
    """
    rows, columns = X.shape
    whole, size = (columns, rows, columns), dtype.itemsize
    if block_sizes(form, whole, size=size, total=SUM.itemsize, limit=limit, square=True) != whole:
        return None
    source, steps = launches.source("right", X)
    raw = Uncentred(source, (rows, columns), steps, X.dtype, dtype, form, missing=True)
    if raw.largest_buffer > limit:
        return None
    bits = device.buffer("presence", -(-rows // BITS) * columns * WORD)
    queue_presence(device, raw, bits)
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
    begun = lru_cache(lambda: GapSums(device, plain, found, deepest))
    parts = (plain.table, plain.centre, plain.target, plain.found, plain.chunk)
    centring = GappedCentring(raw, *parts, begun, [])
    products = device.buffer("pair products", columns * columns * SUM.itemsize)
    launches.gram(form, centring, SUM, products, limit, mirrored=False)
    centring.summed()
    own = device.buffer("own sums", 2 * columns * SUM.itemsize)
    kernel = device.kernel(
        "own_sums", ("pairwise/own_sums.cl",), {"SUM_BITS": 8 * SUM.itemsize, "ITEMS": SQUARE}
    )
    sizes = (np.int32(columns), np.int32(raw.width), np.int32(len(centring.found) - 2))
    device.run(kernel, (-(-columns // SQUARE),), (SQUARE,), centring.target, products, own, *sizes)
    return GapPairs(device, centring, begun(), products, own, *chosen, X, limit)


@dataclass(frozen=True, slots=True, eq=False)
class GapPairs:
    """What is known of pairs of columns, once the device is done.

    Attributes
    ----------
    sums : over the rows of pairs
    products : buffer of the sums of z_i z_j, of which the upper triangle is right
    own : buffer of what each column sums up to on its own rows, and of its squares
    origin, exponent : of z, as `Side` has them
    data : the matrix
    limit : bytes of the largest buffer
    """

    device: Device
    centring: Centring
    sums: GapSums
    products: Any
    own: Any
    origin: Vector
    exponent: NDArray[np.int64]
    data: Operand
    limit: int

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
        """Run answers.cl; return which pairs of the upper triangle lost their digits, None if none did."""
        device, centring, sums = self.device, self.centring, self.sums
        (_, columns), plan = centring.shape, sums.plan
        key, side = (columns, (SQUARE, SQUARE)), (SQUARE, SQUARE)
        blocks, count = device.table(key, lambda: upper_triangle(columns, side))
        doubts, doubted = device.result("doubts", (count, 1), np.dtype(np.int32))
        flags, doubtful = device.result("doubtful", (columns, columns), np.dtype(np.uint8))
        defines = {
            **defines,
            "SUM_BITS": 8 * SUM.itemsize,
            "SOURCE_BITS": 8 * centring.itemsize,
            "DOWN": sums.down,
            "LEAST": int(1 / SHARE[centring.dtype]),
            "RUNS": int(len(plan.edges) > 0),
            "LISTS": int(len(plan.lists) > 0),
        }
        kernel = device.kernel("answers", ("pairwise/answers.cl",), defines)
        given = (
            self.products,
            self.own,
            device.send("places", plan.places),
            sums.run_sums,
            sums.run_counts,
            sums.list_sums,
            sums.list_counts,
        )
        numbers = (columns, centring.raw.width, sums.across, len(plan.edges), len(plan.lists))
        sizes = (np.int32(number) for number in numbers)
        local = (SQUARE, sums.down)
        device.run(kernel, (count, 1), local, *given, *outputs, flags, doubts, *sizes, blocks)
        if not device.receive(doubts, doubted).any():
            return None
        # what lies below the diagonal was never written
        found: NDArray[np.bool_] = np.triu(device.receive(flags, doubtful)).view(bool)
        return found
