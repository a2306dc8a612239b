"""`Ordering`: the columns of a matrix, each sorted once; every rank of every pair is counted along it.

Whoever ranks a pair of columns on the rows that both have walks a column from its smallest value up and
counts the rows that its partner has too. So nothing is sorted again, however many pairs there are.

Ranks are doubled, so that the average of tied ranks is a whole number: of values that share the places
p + 1 to q, the doubled rank is p + q + 1. An infinity has a rank like any other value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbridge.matrix import Matrix

Places = NDArray[np.int64]


MISSING = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    """Where the values of each column lie when they are sorted.

    Attributes
    ----------
    order : integer array of shape (columns, rows)
        The rows of a column from its smallest value to its largest; those where it is missing come last.
    fresh : bool array of shape (columns, rows), whether a sorted value differs from the one before it
    here : bool array of shape (rows, columns), whether a value is present
    present : int64 array of shape (columns,), how many are
    """

    order: NDArray[np.intp]
    fresh: NDArray[np.bool_]
    here: NDArray[np.bool_]
    present: Places

    @classmethod
    def of(cls, X: Matrix) -> Ordering:
        """Sort the columns of `X`, of shape (rows, columns), where NaN is missing."""
        keys = _keys(np.ascontiguousarray(X.T, np.float64))
        order = keys.argsort(axis=1)
        there = np.take_along_axis(keys, order, axis=1)
        fresh = np.ones(order.shape, np.bool_)
        np.not_equal(there[:, 1:], there[:, :-1], out=fresh[:, 1:])
        here = ~np.isnan(X)
        return cls(order, fresh, here, here.sum(axis=0))

    @property
    def rows(self) -> int:
        return len(self.here)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which columns have no missing value."""
        found: NDArray[np.bool_] = self.present == self.rows
        return found

    def changing(self, columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these columns have two different values."""
        there = np.arange(self.rows) < self.present[columns, np.newaxis]
        found: NDArray[np.bool_] = (self.fresh[columns] & there).sum(axis=1) > 1
        return found

    def groups(self, column: int | np.intp) -> tuple[Places, Places]:
        """Return the places where each group of equal values of a column begins, and behind its end."""
        begin = np.flatnonzero(self.fresh[column, : self.present[column]])
        return begin, np.append(begin[1:], self.present[column])

    def edges(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the first place of the values equal to the one at each place, and the place behind the last.

        Both of shape (columns, rows).
        """
        place = np.arange(self.rows)
        begin = np.maximum.accumulate(np.where(self.fresh, place, 0), axis=1)
        last = np.ones_like(self.fresh)
        last[:, :-1] = self.fresh[:, 1:]
        end = np.minimum.accumulate(np.where(last, place + 1, self.rows)[:, ::-1], axis=1)[:, ::-1]
        return begin, end

    def doubled_ranks(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the doubled ranks of complete `columns` less their mean, rows + 1; of shape (rows, columns).

        Whole numbers, exact in float64.
        """
        begin, end = self.edges()
        places = (begin[columns] + end[columns] - self.rows).astype(np.float64)
        ranks = np.empty((len(columns), self.rows))
        np.put_along_axis(ranks, self.order[columns], places, axis=1)
        return ranks.T

    def counted(self, column: int | np.intp, partners: NDArray[np.intp]) -> Places:
        """Return how many of the first k sorted values of `column` lie in rows that each partner has too.

        Of shape (present + 1, partners); the first row is 0, the last the count of the pair.
        """
        walk = self.order[column, : self.present[column]]
        counts = np.zeros((len(walk) + 1, len(partners)), np.int64)
        np.cumsum(self.here[np.ix_(walk, partners)], axis=0, dtype=np.int64, out=counts[1:])
        return counts

    def ties(self, columns: NDArray[np.intp]) -> tuple[NDArray[np.intp], Places, Places]:
        """Return every group of two or more equal values: the number of its column among `columns`, and where
        it begins and ends. Column by column, from the smallest value up.
        """
        joined = ~self.fresh[columns]
        joined &= np.arange(self.rows) < self.present[columns, np.newaxis]
        # a place is inside a group where it or the next one is joined to the one before
        steps = np.diff(joined.astype(np.int8), axis=1, append=0)
        column, begin = np.nonzero(steps == 1)
        return column, begin, np.nonzero(steps == -1)[1] + 1


def _keys(values: NDArray[np.float64]) -> Places:
    """Return whole numbers in the order of `values`, which sort faster; MISSING for NaN."""
    # 0.0 + -0.0 is 0.0; the bits of a negative number run the other way
    keys = (values + 0.0).view(np.int64)
    keys ^= (keys >> 63) & MISSING
    keys[np.isnan(values)] = MISSING
    return keys
