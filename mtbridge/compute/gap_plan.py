"""How a GPU finds what columns sum up to on the rows of others: by lists of rows, and by runs.

With S(i, j) the sum of column j over the rows of column i, in each of three kinds of a column i:

0. S is the sum of all rows of j, less that of the rows that i misses: of those before its first one by a run,
   a running sum of j that all columns share which begin at that row, and of the others by a list;
1. i begins in the lower half: S is the run of the rows from there on, less the list;
2. i has fewer rows than it misses: S is the sum over a list of the rows that it has.

A run costs little more than writing it, however many rows it takes; each row of a list costs one addition a
column. Neither costs anything where nothing is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST = 16
"""Rows from which on those before a column's first value are left to a run, if it misses others too."""

QUAD = 4
"""Rows of a list that are read at a time; kernels/pairwise/gaps.clh."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What of each column is left to runs, and what to lists; arrays of shape (columns,).

    Attributes
    ----------
    led : whether the rows before its first one are left to a run
    have : whether its list names the rows that it has, rather than those that it misses
    lengths : rows of its list, int64
    """

    led: NDArray[np.bool_]
    have: NDArray[np.bool_]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, counts: NDArray[np.int64], leads: NDArray[np.int64], height: int) -> Shares:
        """Return the shares of columns of `height` rows; the rest as for `GapPlan.of`."""
        led = (leads > 0) & (counts > 0) & ((leads >= SHORTEST) | (counts + leads == height))
        gaps = height - counts - np.where(led, leads, 0)
        have = counts < gaps
        return cls(led & ~have, have, np.where(have, counts, gaps))


@dataclass(frozen=True, slots=True, eq=False)
class GapPlan:
    """The lists and runs of a matrix.

    Attributes
    ----------
    lists : int32 of shape (lists, 4): column, whether it names the rows that the column has, the rows at the
        beginning that it leaves to a run, and the first quad of its block. The longest come first.
    edges : int32, increasing: the rows at which runs end, or begin for those behind the first `downs`
    downs : how many of them are of columns that begin in the upper half
    places : int32 of shape (columns, 4): run and list of each column, or -1, its kind, and its rows
    quads : quads of all lists
    longest : rows of the longest list
    """

    lists: NDArray[np.int32]
    edges: NDArray[np.int32]
    downs: int
    places: NDArray[np.int32]
    quads: int
    longest: int

    @classmethod
    def of(
        cls, counts: NDArray[np.int64], leads: NDArray[np.int64], height: int, *, tiles: int, block: int
    ) -> GapPlan:
        """Return the plan of a matrix of `height` rows.

        Parameters
        ----------
        counts : the rows that each column has
        leads : those before the first of them; `height` where it has none
        tiles : tiles of rows of a slab, each of which may fill up a quad of a list
        block : lists of a block
        """
        shares = Shares.of(counts, leads, height)
        led, have, lengths = shares.led, shares.have, shares.lengths
        edges, runs = np.unique(leads[led], return_inverse=True)
        places = np.full((len(counts), 4), -1, np.int32)
        places[led, 0] = runs
        order = np.argsort(-lengths, kind="stable")
        order = order[: np.count_nonzero(lengths)]
        places[order, 1] = np.arange(len(order))
        places[:, 2] = np.where(have, 2, led & (2 * leads > height))
        places[:, 3] = counts
        room = -(-(lengths[order] + (QUAD - 1) * tiles) // QUAD)
        begins = np.concatenate([[0], np.cumsum(room)])
        first = begins[np.arange(len(order)) // block * block]
        lists = np.stack([order, have[order], np.where(led, leads, 0)[order], first], axis=1)
        return cls(
            lists=lists.astype(np.int32),
            edges=edges.astype(np.int32),
            downs=int(np.count_nonzero(2 * edges <= height)),
            places=places,
            quads=int(begins[-1]),
            longest=int(lengths.max(initial=0)),
        )
