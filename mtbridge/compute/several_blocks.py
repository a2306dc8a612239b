"""How a product is cut for several devices: into pairs of blocks of columns, each the work of one device.

C = L'R, with L of (inner, rows) and R of (inner, columns), is made of the products of a block of columns of L
with one of R. X'X needs the pairs of its upper triangle only, and those on the diagonal are X'X of a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mtbridge.compute.blocks import padded

# The width of a block depends on the shape of the matrix alone. If it went by the number of devices, two of
# them would cut inner sizes into other slices than three, and round otherwise: equal bits need equal blocks.
BLOCKS = 8
"""Blocks of a side: 36 pairs of a triangle, so that several devices end together, each of them large."""

NARROWEST, WIDEST, UNIT = 512, 4096, 128
"""Columns of a block: narrower ones keep no card busy, wider ones need more than 128 MB for one answer. Whole
tiles of every kernel."""

COPIED = 1e10
"""Bytes a second between a card and memory that is not page-locked: 8 to 15 GB/s were measured on an H200."""

MULTIPLIED = 2.5e13
"""Multiplications a second, measured on an H200 in float64 and, by the portable kernels, in float32. A slower
card has more to share than this says: it shares later than it could, which costs little."""

STARTED = 0.01
"""Seconds allowed for threads, page-locked memory and the first blocks, before anything is shared."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One block of the result.

    Attributes
    ----------
    left, right : which block of columns of L, and of R
    down, across : the rows and the columns of the result
    half : of X'X: L and R are one block, so half of the products are enough
    mirrored : of X'X: the block belongs below the diagonal too, transposed
    """

    left: int
    right: int
    down: slice
    across: slice
    half: bool = False
    mirrored: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.down.stop - self.down.start, self.across.stop - self.across.start

    @property
    def work(self) -> int:
        """Elements that are computed, twice."""
        rows, columns = self.shape
        return rows * columns * (1 if self.half else 2)


def block_width(columns: int) -> int:
    """Return how many of `columns` make a block."""
    return min(max(padded(-(-columns // BLOCKS), UNIT), NARROWEST), WIDEST)


def pairs_of_product(downs: list[slice], acrosses: list[slice]) -> list[Pair]:
    """Return the pairs of a product, the largest first."""
    return _largest_first(
        Pair(left, right, down, across)
        for left, down in enumerate(downs)
        for right, across in enumerate(acrosses)
    )


def pairs_of_triangle(parts: list[slice]) -> list[Pair]:
    """Return the pairs of X'X, the largest first: ragged ones and those of the diagonal fill up the end."""
    return _largest_first(
        Pair(left, right, parts[left], parts[right], half=left == right, mirrored=left < right)
        for left in range(len(parts))
        for right in range(left, len(parts))
    )


def _largest_first(pairs: Iterable[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: -pair.work)


def divided_seconds(shape: tuple[int, int, int], *, total: int, half: bool) -> tuple[float, float]:
    """Return how long the products, and the way of the answer, take one device: what sharing divides.

    Parameters
    ----------
    shape : (rows, inner, columns) of the product
    total : bytes of an element of the answer
    half : whether a triangle is enough
    """
    rows, inner, columns = shape
    return rows * inner * columns / (2 if half else 1) / MULTIPLIED, rows * columns * total / COPIED


def pays(shape: tuple[int, int, int], *, size: int, total: int, half: bool) -> bool:
    """Return whether two devices would be done sooner than one; of more it is never asked, for the same bits.

    Products and answer are divided, but every device needs the factors whole: so those, of elements of `size`
    bytes, must take less time than the rest, of which the second device saves half.
    """
    rows, inner, columns = shape
    whole = inner * (columns if half else rows + columns) * size / COPIED
    return sum(divided_seconds(shape, total=total, half=half)) > whole + 2 * STARTED
