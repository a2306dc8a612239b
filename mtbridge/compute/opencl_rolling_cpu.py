"""Rolling matrices on a processor: lanes of columns over chunks of windows (kernels/rolling.clh)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.sequence import STATISTICS, Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device, Kernel

SUM = np.dtype(np.float64)

SHORT_CHUNK, LONG_CHUNK = 64, 256
"""The most windows of a chunk; the core of long windows is worth sharing among more of them."""

CORE_SHARE = 64
"""A core is at least this part of the first window: n rows with m in the core lose log2(n / m) bits."""

TABLE_BYTES = 1 << 21
"""Chunks are done in batches whose tables of columns are not larger, so that they stay in cache."""

MOST_VECTORS, MASKED_VECTORS = 8, 1
"""Vectors of a row that one work-item does: all of a row where they suffice, for writes in order."""


class RollingLanes:
    """The matrices of the windows of `plan` over `X`; `queue` writes any of them, in any order.

    Parameters
    ----------
    X : float64 of shape (rows, columns), C-ordered, at least one of each, NaN where missing
    plan : its windows lie within the rows
    """

    def __init__(self, device: Device, X: Matrix, plan: Rolling, wanted: Wanted) -> None:
        self.device = device
        self.wanted = wanted
        columns = self.columns = X.shape[1]
        widest = max(device.native_bytes // SUM.itemsize, 1) if device.host_memory else 1
        self.lanes = next(n for n in (8, 4, 2, 1) if n <= min(widest, columns))
        self.groups = -(-columns // self.lanes)
        left = np.arange(columns) if wanted.left is None else np.asarray(wanted.left, np.int64)
        self.long_chunk = int(plan.rows.max(initial=1)) > LONG_CHUNK
        self.chunks = chunks_of(plan, LONG_CHUNK if self.long_chunk else SHORT_CHUNK)
        holes = chunks_with_missing(X, plan, self.chunks)
        # a device reads these where they lie, so they live as long as the sequence
        self._arrays: dict[str, NDArray[Any]] = {
            "x": X,
            "windows": np.stack((plan.first, plan.last), axis=1).astype(np.int32),
            "chunks": self.chunks,
            "holes": np.flatnonzero(holes).astype(np.int32),
            "left": left.astype(np.int32),
        }
        self._buffers = {name: self._sent(array) for name, array in self._arrays.items() if array.size}

    def _sent(self, array: NDArray[Any]) -> Any:
        # a kept slot would be overwritten by another sequence on the device
        return self.device.send("rolling", array) if self.device.host_memory else self.device.uploaded(array)

    def queue(self, target: Any, start: int, count: int) -> None:
        """Queue the kernels that write matrices `start` to `start + count` from the start of `target` on.

        Chunks begin at the same windows whatever is asked for, so the answers have the same bits.
        """
        end = start + count
        begins = self.chunks[:, 0]
        chunk = int(np.searchsorted(begins, start, side="right")) - 1
        behind = int(np.searchsorted(begins, end))
        windows = max(TABLE_BYTES // (2 * SUM.itemsize * self.columns), 1)
        while chunk < behind:
            # as many chunks as fit in the tables, one at least
            after = int(np.searchsorted(begins, int(begins[chunk]) + windows, side="right")) - 1
            after = min(max(after, chunk + 1), behind)
            self._batch(target, chunk, after, start, end)
            chunk = after

    def _batch(self, target: Any, chunk: int, after: int, start: int, end: int) -> None:
        """Queue the windows `start` to `end` of the chunks `chunk` to `after`."""
        device, wanted, columns, count = self.device, self.wanted, self.columns, after - chunk
        base = int(self.chunks[chunk, 0])
        elements = (int(self.chunks[after - 1].sum()) - base) * columns
        lefts = len(self._arrays["left"])
        origin = device.buffer("rolling origin", count * columns * SUM.itemsize)
        part = device.buffer("rolling part", elements * SUM.itemsize)
        factor = device.buffer("rolling factor", elements * SUM.itemsize)
        doubt = device.buffer("rolling doubt", elements)
        doubts = device.buffer("rolling doubts", count * self.groups * 4)
        holes = device.buffer("rolling holes", count * columns)
        history = tuple(self._buffers[name] for name in ("x", "windows", "chunks"))
        known = (origin, part, factor, doubt, doubts, holes)
        listed = self._arrays["holes"]
        offset, hollow = (int(at) for at in np.searchsorted(listed, (chunk, after)))
        gaps = np.int32(hollow > offset)
        size, first, asked = np.int32(columns), np.int32(chunk), (np.int32(start), np.int32(end))
        limits = (np.int32(wanted.ddof), np.int32(wanted.min_periods))

        groups = (self.groups, count)
        device.run(self._kernel("origin"), groups, (1, 1), *history, origin, size, first)
        numbers = (size, first, np.int32(base), gaps, *limits)
        device.run(self._kernel("columns"), groups, (1, 1), *history, *known, *numbers)
        rows, vectors = self._tile
        device.run(
            self._kernel("windows", ROWS=rows, VECTORS=vectors, PACKED=int(wanted.packed)),
            (-(-self.groups // vectors), -(-lefts // rows), count),
            (1, 1, 1),
            *(*history, self._buffers["left"], *known, target),
            *(size, np.int32(lefts), first, np.int32(base), gaps, *asked, *limits),
        )
        if gaps:
            vectors = min(MASKED_VECTORS, self.groups)
            device.run(
                self._kernel("masked", VECTORS=vectors, PACKED=int(wanted.packed)),
                (-(-self.groups // vectors), lefts, hollow - offset),
                (1, 1, 1),
                *(*history, self._buffers["holes"], self._buffers["left"], origin, holes, target),
                *(size, np.int32(lefts), np.int32(offset), first, *asked, *limits),
            )

    @property
    def _tile(self) -> tuple[int, int]:
        """Rows of the matrices and vectors of a row that one work-item does."""
        strips = -(-self.groups // MOST_VECTORS)
        return min(2, len(self._arrays["left"])), -(-self.groups // strips)

    def _kernel(self, name: str, **settings: int) -> Kernel:
        defines = {
            "REAL_BITS": 8 * self.wanted.dtype.itemsize,
            "SUM_BITS": 8 * SUM.itemsize,
            "LANES": self.lanes,
            "CHUNK": LONG_CHUNK if self.long_chunk else SHORT_CHUNK,
            "STATISTIC": STATISTICS.index(self.wanted.statistic),
            **settings,
        }
        return self.device.kernel(name, ("rolling.clh", f"rolling/{name}.cl"), defines)


def chunks_of(plan: Rolling, most: int) -> NDArray[np.int32]:
    """Cut the windows into chunks that share rows: int32 of shape (chunks, 2), first window and count.

    A chunk has up to `most` windows, and a core of at least 1 / CORE_SHARE of its first window.
    """
    if not len(plan):
        return np.empty((0, 2), np.int32)
    reach = np.searchsorted(plan.first, plan.last - plan.rows // CORE_SHARE, side="right")
    begins, window, count = [0], 0, len(plan)
    ends = np.minimum(reach, np.arange(most, count + most)).tolist()
    while (window := ends[window]) < count:
        begins.append(window)
    return np.stack((begins, np.diff([*begins, count])), axis=1).astype(np.int32)


def chunks_with_missing(X: Matrix, plan: Rolling, chunks: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each chunk holds a NaN."""
    before = np.concatenate(([0], np.cumsum(np.isnan(X).any(axis=1))))
    ends = chunks.sum(axis=1) - 1
    found: NDArray[np.bool_] = before[plan.last[ends] + 1] > before[plan.first[chunks[:, 0]]]
    return found
