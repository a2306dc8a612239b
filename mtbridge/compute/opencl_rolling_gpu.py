"""Rolling matrices on a graphics card: tiles of pairs over chunks of windows (kernels/rolling_gpu.clh)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import padded
from mtbridge.compute.sequence import STATISTICS, Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device, Kernel

SUM = np.dtype(np.float64)
Chunks = NDArray[np.int32]

WINDOWS = 16
"""Windows of a chunk, halved four times by the kernels."""

SLOTS = 2 * WINDOWS - 2
"""Rows of a chunk outside its core; as many as there are where each window is a row on."""

LINES = 4
"""Lines of the answer that a work-item has, 16 bytes of each."""

TILE_LINES = 32
TILE_COLUMNS = {8: 64, 4: 128}
"""By the bytes of an element in a product; 32 items write a line, 256 share a tile."""

GROUP = 64
GROUPS_PER_UNIT = 16
"""Groups that share what columns with missing values leave to do."""

LONGEST_NARROW = 120
"""Rows of a window whose products are added up in float32; of 250 the error passed 1e-6."""

MOSTLY = 0.9
"""Of chunks that have a large core; the others cost time, not accuracy."""

MOST_CHUNKS = 1 << 15
"""A launch cannot have more groups in its second dimension on some cards."""


class RollingTiles:
    """The matrices of the windows of `plan` over `X`; `queue` writes any of them, in any order.

    Parameters
    ----------
    X : float64 of shape (rows, columns), NaN where missing
    plan : its windows lie within the rows
    limit : bytes of the largest buffer

    Notes
    -----
    What is known of the columns of a window is computed first and stays on the device: 16 or 24 bytes a
    window and column, little beside the matrices.
    """

    def __init__(self, device: Device, X: Matrix, plan: Rolling, wanted: Wanted, *, limit: int) -> None:
        rows, self.columns = X.shape
        self.device = device
        self.wanted = wanted
        least = max(wanted.min_periods, 1 if wanted.statistic != "covariance" else wanted.ddof + 1, 1)
        self.chunks, regular = chunk_tables(plan, least)
        narrow = (
            wanted.statistic == "correlation"
            and wanted.dtype == np.float32
            and plan.rows.max(initial=0) <= LONGEST_NARROW
            and mostly_core(self.chunks)
        )
        self.term = wanted.dtype if narrow else SUM
        self.across = TILE_COLUMNS[self.term.itemsize]
        vector = 16 // min(self.term.itemsize, wanted.dtype.itemsize)
        self.wide = not wanted.packed and self.columns % vector == 0
        self.stride = padded(self.columns, self.across)
        # windows that go on behind the last one find rows there
        held = np.zeros((rows + WINDOWS, self.stride))
        held[:rows, : self.columns] = X
        left = np.arange(self.columns) if wanted.left is None else np.asarray(wanted.left, np.int64)
        self.lines = len(left)
        # lines that do not exist are those of the first column, and are not written
        lines_of = np.zeros(padded(self.lines, TILE_LINES), np.int32)
        lines_of[: self.lines] = left
        self.regular, self.other = np.flatnonzero(regular), np.flatnonzero(~regular)
        # whole launches of one kernel are runs of this list
        order = np.concatenate((self.regular, self.other)).astype(np.int32)
        tiles = [
            (line, column)
            for line in range(len(lines_of) // TILE_LINES)
            for column in range(self.stride // self.across)
            if not wanted.packed or (column + 1) * self.across > line * TILE_LINES
        ]
        self.tiles = len(tiles)
        self._x, self._chunks, self._order, self._tiles, self._lines_of, self._lengths = (
            device.uploaded(array)
            for array in (
                *(held, self.chunks, order),
                *(np.array(tiles, np.int32), lines_of, np.zeros(2, np.int32)),
            )
        )
        self._batch = max(1, min(MOST_CHUNKS, limit // (WINDOWS * self.stride * self.term.itemsize)))
        self._turn = 0

    @property
    def _items(self) -> int:
        """Work-items of a tile."""
        return TILE_LINES // LINES * self.across * self.term.itemsize // 16

    def queue(self, target: Any, start: int, count: int) -> None:
        """Queue the kernels that write matrices `start` to `start + count` from the start of `target` on.

        Chunks begin at the same windows whatever is asked for, so the answers have the same bits.
        """
        begins = self.chunks[:, 0]
        chunk = int(np.searchsorted(begins, start, side="right")) - 1
        behind = int(np.searchsorted(begins, start + count))
        while chunk < behind:
            after = min(chunk + self._batch, behind)
            self._batch_of(target, chunk, after, start, count)
            chunk = after

    def _batch_of(self, target: Any, chunk: int, after: int, start: int, count: int) -> None:
        device, wanted, chunks = self.device, self.wanted, after - chunk
        known = chunks * WINDOWS * self.stride * self.term.itemsize
        origin, scale = (
            device.buffer(f"rolling {name}", chunks * self.stride * SUM.itemsize)
            for name in ("origin", "scale")
        )
        part, left = (device.buffer(f"rolling {name}", known) for name in ("part", "left"))
        right = left if wanted.statistic == "correlation" else device.buffer("rolling right", known)
        marks = device.buffer("rolling marks", chunks * self.stride)
        special = device.buffer("rolling special", chunks * self.stride * 4)
        limits = (np.int32(wanted.ddof), np.int32(wanted.min_periods))
        turn, first, stride = np.int32(self._turn), np.int32(chunk), np.int32(self.stride)
        device.run(
            self._kernel("columns_gpu", COLUMNS=GROUP),
            (self.stride // GROUP, chunks),
            (GROUP, 1),
            *(self._x, self._chunks, origin, scale, part, left, right, marks, special, self._lengths),
            *(stride, np.int32(self.columns), first, turn, *limits),
        )
        shape = (np.int32(self.columns), np.int32(self.lines))
        asked = (np.int32(start), np.int32(count))
        for regular, listed, base in ((1, self.regular, 0), (0, self.other, len(self.regular))):
            at, end = np.searchsorted(listed, (chunk, after))
            if at == end:
                continue
            kernel = self._kernel(
                "pairs_gpu",
                TILE_LINES=TILE_LINES,
                TILE_COLUMNS=self.across,
                REGULAR=regular,
                WIDE=int(self.wide),
                PACKED=int(wanted.packed),
            )
            device.run(
                kernel,
                (self.tiles, int(end - at)),
                (self._items, 1),
                *(self._x, self._chunks, origin, scale, part, left, right, self._order, self._tiles),
                *(self._lines_of, target, stride, *shape, first, np.int32(base + at), *asked),
            )
        groups = min(chunks * self.columns, GROUPS_PER_UNIT * device.units)
        device.run(
            self._kernel("masked_gpu", GROUP=GROUP, PACKED=int(wanted.packed)),
            (groups, 2),
            (GROUP, 1),
            *(self._x, self._chunks, origin, marks, special, self._lengths, self._lines_of, target),
            *(stride, *shape, np.int32(wanted.left is None), first, turn, *asked, *limits),
        )
        self._turn = 1 - self._turn

    def _kernel(self, name: str, **settings: int) -> Kernel:
        defines = {
            "REAL_BITS": 8 * self.wanted.dtype.itemsize,
            "SUM_BITS": 8 * SUM.itemsize,
            "TERM_BITS": 8 * self.term.itemsize,
            "LANES": 1,
            "STATISTIC": STATISTICS.index(self.wanted.statistic),
            **settings,
        }
        headers = (
            "rolling.clh",
            "rolling_gpu.clh",
            *(("rolling/tile_gpu.clh",) if name == "pairs_gpu" else ()),
        )
        return self.device.kernel(name, (*headers, f"rolling/{name}.cl"), defines)


def mostly_core(chunks: Chunks) -> bool:
    """Whether nearly all chunks have a core of at least half the rows of their longest window.

    The squares about the mean of such a core are at most twice those about a window's own mean, so their
    products lose one bit at most, and may be taken in float32 for an answer in float32.
    """
    _, _, first, last, heads, tails = chunks.T[:6]
    return not len(chunks) or bool(
        np.mean(2 * (last + 1 - first - heads) >= last + 1 - first + tails) >= MOSTLY
    )


def chunk_tables(plan: Rolling, least: int) -> tuple[Chunks, NDArray[np.bool_]]:
    """Cut the windows into chunks as kernels/rolling_gpu.clh describes them.

    Chunks all of whose windows have fewer than `least` rows are given none at all.

    Returns
    -------
    int32 of shape (chunks, 6 + 2 * WINDOWS)
    bool of shape (chunks,)
        Whether each window of a chunk is one row on from the one before.
    """
    first, last, count = plan.first, plan.last, len(plan)
    ends = np.minimum(
        np.minimum(
            np.arange(count) + WINDOWS, np.searchsorted(first + last, first + last + SLOTS, side="right")
        ),
        np.searchsorted(first, last + 1, side="right"),
    ).tolist()
    begins = []
    window = 0
    while window < count:
        begins.append(window)
        window = ends[window]
    begin = np.array(begins, np.int64)
    counts = np.diff([*begins, count])
    on = np.arange(WINDOWS)
    # windows behind the last of a chunk repeat it
    windows = begin[:, None] + np.minimum(on, counts[:, None] - 1)
    firsts, lasts = first[windows] - first[begin][:, None], last[windows] - last[begin][:, None]
    there = on < counts[:, None]
    regular = (((firsts == on) & (lasts == on)) | ~there).all(axis=1)
    # one that the plan's end cuts short goes on as if there were more; a core may not go below no rows
    regular &= (counts == WINDOWS) | ((begin + counts == count) & (last[begin] + 2 - first[begin] >= WINDOWS))
    firsts[regular] = lasts[regular] = on
    blank = ((last - first + 1)[windows] < least).all(axis=1)
    firsts[blank] = lasts[blank] = 0
    heads = np.stack((begin, counts, first[begin], last[begin], firsts[:, -1], lasts[:, -1]), axis=1)
    heads[blank, 2:4] = 0, -1
    return np.concatenate((heads, firsts, lasts), axis=1).astype(np.int32), regular & ~blank
