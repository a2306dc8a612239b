"""How the blocks of a product are cut into pieces so that all compute units of a GPU end together.

A product of 1664 x 1664 has 169 blocks of 128 x 128: each of 132 units does one, then 37 do another while the
rest wait. So the inner indices of some blocks, all of them put one after the other, are shared out evenly: a
unit's share begins and ends anywhere in a block. What shares have of a block are its pieces, and the kernel
adds up their sums itself (kernels/dmma_parts.clh), two at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Steps of the thinnest share
THINNEST = 8
# A share ends where a block does if that is so many steps away
NEAR_EDGE = 2
# What steps cost of blocks that are cut: then units read other inner indices at a time, and share little
APART = 1.1
# What writing out the sums of a block costs, and what adding up those of two pieces does, in steps, each of
# which takes 1.2 us on a unit of an H200
WRITING = 2.5
ADDING = 2.0
# Parts that blocks leave are fewer than so many for each unit
MOST_PARTS = 3
# Columns of the table of pieces (kernels/dmma.clh)
LEFT, RIGHT, FIRST, END, BASE, INDEX, COUNT, QUARTERS = range(8)
BLOCK = [LEFT, RIGHT, QUARTERS]


def pieces_of(
    blocks: NDArray[np.int32], steps: int, *, units: int, most: int
) -> tuple[NDArray[np.int32], int]:
    """Return the pieces of a product, one a work-group and in their order, and the parts they leave at most.

    Parameters
    ----------
    blocks : (blocks, 3), of each LEFT, RIGHT and QUARTERS (quarters.py)
    steps : of the inner size, at least 1
    units : compute units of the device, which do a piece at a time
    most : parts, each the sums of a block, that there is memory for

    Returns
    -------
    int32 of shape (pieces, 8)
        LEFT, RIGHT and QUARTERS of the block; the piece has steps FIRST to END; BASE is the first part of its
        block, INDEX which of its COUNT pieces it is.
    """
    count = len(blocks)
    cut, shares = _cut(count, steps, units=units, most=most)
    edges = np.arange(shares + 1, dtype=np.int64) * (cut * steps) // max(shares, 1)
    nearest = (edges + steps // 2) // steps * steps
    edges = np.where(np.abs(edges - nearest) <= min(NEAR_EDGE, steps // 4), nearest, edges)
    bounds = np.union1d(edges, np.arange(cut + 1) * steps)
    block, first = np.divmod(bounds[:-1], steps)
    table = np.zeros((len(block), 8), np.int32)
    table[:, BLOCK] = blocks[block]
    table[:, FIRST] = first
    table[:, END] = first + np.diff(bounds)
    base = np.searchsorted(block, block)
    table[:, INDEX] = np.arange(len(block)) - base
    table[:, COUNT] = np.bincount(block)[block]
    table[:, BASE] = base
    # the first piece of every share, then of every share the second, as units come to it
    share = np.searchsorted(edges, bounds[:-1], side="right")
    begin = bounds[:-1] - edges[share - 1] if cut else bounds[:-1]
    turn = np.arange(len(share)) - np.searchsorted(share, share)
    order = np.lexsort((begin, turn))
    whole = np.zeros((count - cut, 8), np.int32)
    whole[:, BLOCK] = blocks[cut:]
    whole[:, END] = steps
    whole[:, COUNT] = 1
    return np.concatenate((table[order], whole)), len(table)


def _cut(blocks: int, steps: int, *, units: int, most: int) -> tuple[int, int]:
    """How many blocks are cut, and into how many shares all of them together."""
    rest = blocks % units
    best, chosen = (-(-blocks // units)) * (steps + WRITING), (0, 0)
    for cut in {rest, rest + units} if rest and blocks > units else {rest}:
        for shares in range(cut % units + 1, units + 1) if cut else ():
            length = cut * steps / shares
            deepest = int(steps // length) + 2
            if length < THINNEST or shares + cut > most:
                continue
            levels = (deepest - 1).bit_length()
            whole = (blocks - cut) // units * (steps + WRITING)
            cost = whole + APART * length + (1 + length / steps) * WRITING + levels * ADDING
            if cost < best:
                best, chosen = cost, (cut, shares)
    return chosen
