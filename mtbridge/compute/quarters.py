"""The blocks of a product as kernels/dmma.clh takes them: quarters, each of a left and a right panel.

A block of 128 x 128 has two panels of 64 columns of either side. Of one on the diagonal of a symmetric
matrix, three quarters have something of the upper triangle: four such quarters are put together to a block,
which never has more than four panels. So X'X of 2048 columns has 132 blocks instead of 136, one for each unit
of an H200.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.forms import nearby, upper_triangle, whole_grid
from mtbridge.compute.pieces import LEFT, QUARTERS, RIGHT

PANEL, BLOCK = 64, 128
"""Columns of a panel, and rows and columns of a block."""

WANTED = 16
"""Of a quarter that is not only there to make four."""

NEXT = (32, 32 << 8)
"""Of blocks whose slot 1, or 3, has the panel after that of slot 0, or 2; else it has the same."""


def product_quarters(rows: int, columns: int) -> NDArray[np.int32]:
    """Return the blocks of a (rows, columns) result, (blocks, 3): panels of slots 0 and 2, and quarters."""
    grid = nearby(whole_grid(rows, columns, (BLOCK, BLOCK)))
    return _squares(grid, -(-rows // PANEL), -(-columns // PANEL))


def gram_quarters(columns: int) -> NDArray[np.int32]:
    """Return blocks that cover the upper triangle of a (columns, columns) result, (blocks, 3), likewise."""
    panels = -(-columns // PANEL)
    grid = upper_triangle(columns, (BLOCK, BLOCK))
    beside = _squares(nearby(grid[grid[:, 0] != grid[:, 1]]), panels, panels)
    diagonal = [
        (left, right)
        for first in range(0, panels, 2)
        for left, right in ((first, first), (first, first + 1), (first + 1, first + 1))
        if right < panels
    ]
    fours = [_four(diagonal[start : start + 4]) for start in range(0, len(diagonal), 4)]
    return np.concatenate((beside, np.array(fours, np.int32)))


def within(pieces: NDArray[np.int32], start: int, stop: int) -> NDArray[np.int32]:
    """Return the pieces (pieces.py) with quarters of the rows `start` to `stop`, and these quarters alone."""
    out = pieces.copy()
    panels = panels_of(*pieces[:, [LEFT, RIGHT, QUARTERS]].T)
    for place in range(4):
        slot = pieces[:, QUARTERS] >> 8 * place & 3
        row = PANEL * np.take_along_axis(panels, slot[np.newaxis], axis=0)[0]
        outside = (row < start) | (row >= stop)
        out[:, QUARTERS] &= ~np.where(outside, WANTED << 8 * place, 0).astype(np.int32)
    wanted: NDArray[np.bool_] = out[:, QUARTERS] & sum(WANTED << 8 * place for place in range(4)) != 0
    return out[wanted].copy()


def panels_of(
    left: NDArray[np.int32], right: NDArray[np.int32], quarters: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the panels of the four slots of blocks or pieces, (4, blocks)."""
    second, last = (quarters & after != 0 for after in NEXT)
    return np.stack((left, left + second, right, right + last)).astype(np.int32)


def _squares(grid: NDArray[np.int32], down: int, across: int) -> NDArray[np.int32]:
    """Blocks of 128 x 128 at these places, of a result of so many panels down and across."""
    out = np.zeros((len(grid), 3), np.int32)
    wanted = []
    for side, panels in ((0, down), (1, across)):
        first = 2 * grid[:, side]
        second = first + 1 < panels
        out[:, side] = first
        out[:, 2] |= np.where(second, NEXT[side], 0)
        wanted.append((np.ones(len(grid), bool), second))
    for quarter in range(4):
        left, right = quarter % 2, quarter // 2
        there = wanted[0][left] & wanted[1][right]
        out[:, 2] |= (left + 4 * (2 + right) + np.where(there, WANTED, 0)).astype(np.int32) << 8 * quarter
    return out


def _four(pairs: list[tuple[int, int]]) -> tuple[int, int, int]:
    """One block of up to four quarters of these left and right panels, of which no more than four differ."""
    # one after the other, since their tiles are neighbours on the diagonal
    panels = sorted({panel for pair in pairs for panel in pair})
    slots = {panel: slot for slot, panel in enumerate(panels)}
    panels += panels[-1:] * (4 - len(panels))
    quarters = [slots[left] + 4 * slots[right] + WANTED for left, right in pairs]
    # what there is nothing of is done again, and left
    quarters += [quarters[0] - WANTED] * (4 - len(quarters))
    packed = sum(quarter << 8 * place for place, quarter in enumerate(quarters))
    packed += NEXT[0] * (panels[1] > panels[0]) + NEXT[1] * (panels[3] > panels[2])
    return panels[0], panels[2], packed
