"""Lists of the rows that columns miss, or of those that they have: whichever are fewer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.moments import Vector


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """For each column in which something is missing, the rows that it misses, or those that it has.

    Attributes
    ----------
    columns : the columns in which something is missing
    missed : whether the list of a column names the rows that it misses; else it has fewer, and names those
    rows : int32, all lists one behind the other, each in order
    keys : ``list * rows of the matrix + row``, increasing
    counts : the rows that each column of the matrix has
    height : rows of the matrix
    """

    columns: NDArray[np.intp]
    missed: NDArray[np.bool_]
    rows: NDArray[np.int32]
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    height: int

    @classmethod
    def of(cls, words: NDArray[np.uint32], height: int) -> Lists:
        """Return the lists of a matrix of `height` rows, of what presence.cl says of it."""
        octets = np.ascontiguousarray(words.T).astype("<u4", copy=False).view(np.uint8)
        counts = np.bitwise_count(octets).sum(axis=1, dtype=np.int64)
        columns = np.flatnonzero(counts < height)
        named = np.unpackbits(octets[columns], axis=1, count=height, bitorder="little").view(bool)
        missed = 2 * counts[columns] >= height
        named ^= missed[:, np.newaxis]
        keys = np.flatnonzero(named)
        rows = (keys % height).astype(np.int32)
        return cls(columns, missed, rows, keys, counts, height)

    def edges(self, slab: slice) -> NDArray[np.int32]:
        """Return where each list has its first row of `slab`, and its first one behind that: (2, lists)."""
        starts = np.arange(len(self.columns)) * self.height
        ends = [np.searchsorted(self.keys, starts + row) for row in (slab.start, slab.stop)]
        return np.array(ends, np.int32)

    def shares(self, width: int) -> tuple[Vector, NDArray[np.int32]]:
        """Return how differences.cl puts sums together: base and sign, (2, columns), and where sums begin."""
        signs = np.zeros((2, len(self.counts)))
        signs[0] = 1
        signs[0, self.columns[~self.missed]] = 0
        signs[1, self.columns] = np.where(self.missed, -1.0, 1.0)
        at = np.zeros(len(self.counts), np.int32)
        at[self.columns] = np.arange(len(self.columns)) * width
        return signs, at
