"""Spearman's rank correlation on an OpenCL device: columns are sorted once, on the host, pairs ranked there.

Pairs of columns without NaN share one set of ranks and need a product only, which the caller takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.blocks import spans
from mtbridge.compute.ordering import Ordering
from mtbridge.compute.ranks import Answer, rank_correlation
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

MOST_ROWS = 1 << 21
"""The cube of the rows must stay below 2**63."""

SHORT_ROWS = (1 << 15) - 1
"""Doubled ranks up to here are numbers of 16 bits."""

CPU_LANES, GPU_GROUP = 8, 64
GROUPS_PER_UNIT = 8
"""Groups that share the tasks: some more than units, so that all end at about the same time."""

LONG_TIE = 4
"""Values of a tie that the kernel takes as it comes to it; shorter ones it mends afterwards."""

SUMS = 4
SUMS_BYTES = 1 << 26


def spearman(
    device: Device,
    X: Matrix,
    *,
    limit: int,
    packed: bool = True,
    gram: Callable[[Matrix], Matrix] = lambda ranks: ranks.T @ ranks,
) -> Answer:
    """Return Spearman's rank correlations and the counts, as `ranks.host_spearman` does.

    Parameters
    ----------
    device : with float64 or without: the sums are whole numbers
    X : float32 or float64 array of shape (rows, columns)
    limit : bytes of the largest buffer
    packed : whether the lanes of a vector share a walk, as suits a CPU, or the items of a group
    gram : returns Z'Z of a float64 matrix, for the columns without NaN; the host's by default

    Raises
    ------
    MemoryError
        If a buffer would be larger, or the device has no memory for it; or for more than 2**21 rows.
    """
    if len(X) > MOST_ROWS:
        raise MemoryError(f"ranks of {len(X)} rows are counted on the host, beyond {MOST_ROWS}")
    ordering = Ordering.of(X)
    columns = X.shape[1]
    matrix, counts = np.full((columns, columns), np.nan), np.full((columns, columns), len(X), np.int64)
    complete, partial = np.flatnonzero(ordering.complete), np.flatnonzero(~ordering.complete)
    if len(complete):
        ranks = ordering.doubled_ranks(complete)
        products = gram(ranks)
        squares = np.diagonal(products)
        matrix[np.ix_(complete, complete)] = rank_correlation(products, squares[:, np.newaxis], squares)
    if len(partial):
        form = (CPU_LANES, 1) if packed else (1, GPU_GROUP)
        columns_in_turn = np.concatenate([complete, partial])
        _partial(device, ordering, columns_in_turn, len(complete), form, limit, matrix, counts)
        matrix[partial, partial] = np.where(ordering.changing(partial), 1.0, np.nan)
        counts[partial, partial] = ordering.present[partial]
    return matrix, counts


def _partial(
    device: Device,
    ordering: Ordering,
    columns: NDArray[np.intp],
    first: int,
    form: tuple[int, int],
    limit: int,
    matrix: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Fill in the pairs of `columns`, in this sequence, whose second one is number `first` or a later one."""
    rows = ordering.rows
    index = np.dtype(np.uint16 if rows <= SHORT_ROWS else np.uint32)
    lanes, group = form
    block = lanes * group
    tasks = _tasks(first, len(columns), block)
    scratch_bytes = rows * block * index.itemsize
    groups = min(len(tasks), device.units * GROUPS_PER_UNIT, max(1, limit // max(scratch_bytes, 1)))
    blocks = -(-len(columns) // block)
    if max(scratch_bytes, blocks * scratch_bytes, len(columns) * rows * index.itemsize) > limit:
        raise MemoryError(f"the tables of {len(columns)} columns are larger than a buffer of {limit} bytes")
    # vectors are read from it
    masks = aligned_empty((blocks, rows, block), index)
    by_column = np.zeros((rows, blocks * block), index)
    by_column[:, : len(columns)] = ordering.here[:, columns]
    masks[...] = by_column.reshape(rows, blocks, block).swapaxes(0, 1)
    ties, firsts = _ties(ordering, columns)
    order = ordering.order[columns].astype(index)
    present = ordering.present[columns].astype(np.int32)
    sent = [
        device.send(f"ranks {name}", array)
        for name, array in (("order", order), ("present", present), ("ties", ties), ("firsts", firsts))
    ]
    sent.append(device.send("ranks masks", masks))
    scratch = device.buffer("ranks scratch", groups * scratch_bytes)
    defines = {"INDEX_BITS": 8 * index.itemsize, "LANES": lanes, "GROUP": group}
    kernel = device.kernel("spearman", ("ranks/spearman.cl",), defines)
    for part in spans(len(tasks), max(1, min(SUMS_BYTES, limit) // (8 * SUMS * block))):
        todo = np.ascontiguousarray(tasks[part])
        sums = np.zeros((len(todo), SUMS, block), np.int64)
        target = device.over("ranks sums", sums)
        busy = min(groups, len(todo))
        sizes = (np.int32(rows), np.int32(len(todo)))
        device.run(
            kernel, (busy,), (group,), *sent, device.send("ranks tasks", todo), scratch, target, *sizes
        )
        device.receive(target, sums)
        _place(sums, todo, columns, matrix, counts)


def _tasks(first: int, columns: int, block: int) -> NDArray[np.int32]:
    """Pairs of a block of columns and a column behind its first; block by block, so that masks are kept."""
    found = []
    for at in range(0, columns - 1, block):
        right = np.arange(max(first, at + 1), columns, dtype=np.int32)
        found.append(np.stack([np.full_like(right, at // block), right], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2), np.int32)


def _ties(ordering: Ordering, columns: NDArray[np.intp]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Places where ties begin and end, in each column the long ones first, and where either kind begins."""
    column, begin, end = ordering.ties(columns)
    kind = 2 * column + (end - begin < LONG_TIE)
    sequence = kind.argsort(kind="stable")
    # one more, for a table must not be empty
    ties = np.zeros((len(column) + 1, 2), np.int32)
    ties[:-1, 0], ties[:-1, 1] = begin[sequence], end[sequence]
    firsts = np.searchsorted(kind[sequence], np.arange(2 * len(columns) + 1)).astype(np.int32)
    return ties, firsts


def _place(
    sums: NDArray[np.int64],
    tasks: NDArray[np.int32],
    columns: NDArray[np.intp],
    matrix: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Turn the sums of these tasks into correlations, at (i, j) and (j, i) of `matrix`."""
    block = sums.shape[2]
    left = tasks[:, 0, np.newaxis] * block + np.arange(block)
    right = np.broadcast_to(tasks[:, 1, np.newaxis], left.shape)
    inside = left < right
    i, j = columns[left[inside]], columns[right[inside]]
    product, n, mine, theirs = (sums[:, at][inside] for at in range(SUMS))
    # about the mean; the sum itself may have passed 2**63, the difference has not
    product = product - n * (n + 1) * (n + 1)
    whole = n * n * n - n
    found = rank_correlation(
        product,
        (whole - mine) // 3,
        (whole - theirs) // 3,
    )
    matrix[i, j] = matrix[j, i] = found
    counts[i, j] = counts[j, i] = n
