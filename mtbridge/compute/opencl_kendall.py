"""Kendall's tau-b on an OpenCL device: columns are sorted once, on the host; a work-item does each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.ordering import Ordering
from mtbridge.compute.ranks import Answer, rank_correlation
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SHORT_ROWS = (1 << 16) - 1
"""Places up to here are numbers of 16 bits."""

MOST_ROWS = 1 << 24

GPU_GROUP = 64
GROUPS_PER_UNIT = 8
WORD = 64
SUMS = 4
SUMS_BYTES = 1 << 26


def kendall(device: Device, X: Matrix, *, limit: int, packed: bool = True) -> Answer:
    """Return Kendall's tau-b and the counts, as `ranks.kendall` does.

    Parameters
    ----------
    device : with float64 or without: the sums are whole numbers
    X : float32 or float64 array of shape (rows, columns)
    limit : bytes of the largest buffer
    packed : whether a group is one item, as suits a CPU

    Raises
    ------
    MemoryError
        If a buffer would be larger, or the device has no memory for it; or for more than 2**24 rows.
    """
    rows, columns = X.shape
    if rows > MOST_ROWS:
        raise MemoryError(f"orders of {rows} rows are counted on the host, beyond {MOST_ROWS}")
    ordering = Ordering.of(X)
    index = np.dtype(np.uint16 if rows <= SHORT_ROWS else np.uint32)
    group = 1 if packed else GPU_GROUP
    # one more place, for the one behind the last
    words = rows // WORD + 1
    left, right = (side.astype(np.int32) for side in np.triu_indices(columns, 1))
    tasks = np.stack([left, right], axis=1)
    set_bytes = words * group * 8
    groups = max(1, min(-(-len(tasks) // group), device.units * GROUPS_PER_UNIT, limit // set_bytes))
    if max(set_bytes, columns * rows * index.itemsize) > limit:
        raise MemoryError(f"the tables of {columns} columns are larger than a buffer of {limit} bytes")
    tables = [table.astype(index) for table in _places(ordering)]
    tied = np.zeros(columns, np.int32)
    tied[ordering.ties(np.arange(columns))[0]] = 1
    order, present = ordering.order.astype(index), ordering.present.astype(np.int32)
    arrays = (order, present, *tables, tied)
    sums = np.empty((len(tasks), SUMS), np.int64)
    if len(tasks) and rows:
        sent = [device.send(f"orders {at}", array) for at, array in enumerate(arrays)]
        bits = device.buffer("orders bits", groups * set_bytes)
        before = device.buffer("orders before", groups * words * group * index.itemsize)
        kernel = device.kernel(
            "kendall", ("ranks/kendall.cl",), {"INDEX_BITS": 8 * index.itemsize, "GROUP": group}
        )
        for part in spans(len(tasks), max(1, min(SUMS_BYTES, limit) // (8 * SUMS))):
            todo, target = tasks[part], device.over("orders sums", sums[part])
            pairs = device.send("orders tasks", todo)
            sizes = (np.int32(rows), np.int32(words), np.int32(len(todo)))
            device.run(kernel, (groups,), (group,), *sent, pairs, bits, before, target, *sizes)
            device.receive(target, sums[part])
    else:
        sums[:] = 0
    excess, n, tied_left, tied_right = sums.T
    matrix, counts = np.empty((columns, columns)), np.empty((columns, columns), np.int64)
    whole = n * (n - 1) // 2
    matrix[left, right] = matrix[right, left] = rank_correlation(
        excess, whole - tied_left, whole - tied_right
    )
    counts[left, right] = counts[right, left] = n
    np.fill_diagonal(matrix, np.where(ordering.changing(np.arange(columns)), 1.0, np.nan))
    np.fill_diagonal(counts, ordering.present)
    return matrix, counts


def _places(ordering: Ordering) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """For each row of each column: 1 + its place or 0, the first place of its equals, the one behind them."""
    columns, rows = ordering.order.shape
    place = np.arange(rows)
    begin, end = ordering.edges()
    found = []
    for table in (np.broadcast_to(place + 1, ordering.order.shape), begin, end):
        by_row = np.empty((columns, rows), np.intp)
        np.put_along_axis(by_row, ordering.order, table, axis=1)
        found.append(by_row)
    found[0][~ordering.here.T] = 0
    return found[0], found[1], found[2]
