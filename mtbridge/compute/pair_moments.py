"""`PairMoments`: what is known of pairs of columns, each on the rows that both have, and their covariances.

Where no value is missing, every pair has the same rows and `Moments` says all; with NaN, a column has
another mean and variance beside each partner. The left columns of lagged pairs are not the right ones; of
the pairs of one matrix they are, and everything of the right side is that of the left one transposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.centre import MODERATE
from mtbridge.compute.moments import NEAR_ONE, NO_EXPONENT, Moments, Vector
from mtbridge.errors import ShapeError
from mtbridge.matrix import Matrix
from mtbridge.shared_work import by_rows

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The left or the right column of each pair, on the rows of the pair.

    Values are kept as ``z = (x - origin) * 2**-exponent``. Every array broadcasts to the shape of the pairs:
    what is the same beside each partner has the length 1 there.

    Attributes
    ----------
    origin : float64, in the unit of the data
    exponent : int64
    mean : float64, of z
    squares : float64, the sum of ``(z - mean)**2``; exactly 0 for a constant, NaN where a value is inf
    """

    origin: Vector
    exponent: Counts
    mean: Vector
    squares: Vector

    @property
    def transposed(self) -> Side:
        return Side(self.origin.T, self.exponent.T, self.mean.T, self.squares.T)

    def spread(self, shape: tuple[int, ...]) -> Side:
        """Return the same with arrays of this whole shape, which may be written to."""
        return Side(
            origin=np.broadcast_to(self.origin, shape).copy(),
            exponent=np.broadcast_to(self.exponent, shape).copy(),
            mean=np.broadcast_to(self.mean, shape).copy(),
            squares=np.broadcast_to(self.squares, shape).copy(),
        )

    def put(self, at: Any, other: Side) -> None:
        """Write `other` over the elements `at`; for what `spread` returned."""
        self.origin[at] = other.origin
        self.exponent[at] = other.exponent
        self.mean[at] = other.mean
        self.squares[at] = other.squares


@dataclass(frozen=True, slots=True, eq=False)
class PairMoments:
    """Counts, co-moments and squares of pairs of columns.

    Attributes
    ----------
    n : int64 array of shape (left columns, right columns), the rows that both have
    comoment : float64 array of that shape
        The sum over those rows of ``(z_i - mean_i) (z_j - mean_j)``; NaN where one of their values is inf.
        Of the pairs of one matrix it is symmetric bit for bit.
    left, right : the columns i and j of a pair
    whole : the moments of the matrix, where its pairs all have all its rows
    """

    n: Counts
    comoment: Vector
    left: Side
    right: Side
    whole: Moments | None = None

    @classmethod
    def of(cls, moments: Moments) -> PairMoments:
        """Return the pairs of a matrix in which nothing is missing; answers are the same bit for bit."""
        left = Side(
            origin=moments.origin[:, np.newaxis],
            exponent=moments.exponent[:, np.newaxis],
            mean=moments.mean[:, np.newaxis],
            squares=np.diagonal(moments.comoment)[:, np.newaxis],
        )
        n = np.broadcast_to(np.int64(moments.n), moments.comoment.shape)
        return cls(n, moments.comoment, left, left.transposed, moments)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.comoment.shape

    def covariance(self, ddof: int = 1, min_periods: int = 1, *, out: Matrix | None = None) -> Matrix:
        """Return the covariances, float64, in the unit of the data, or `out`.

        ``comoment / (n - ddof)``; NaN where ``n <= ddof`` or ``n < min_periods``. Values past the range of
        float64 come out as inf or 0.

        Parameters
        ----------
        out : float32 or float64 array to write to
            It may be `comoment`, which is lost then, and these moments with it.
        """
        answer = np.empty(self.shape) if out is None else out
        if self.whole is not None:
            if self.whole.n < min_periods:
                answer[...] = np.nan
                return answer
            return self.whole.covariance(ddof, out=answer)
        scaled = self.left.exponent.any() or self.right.exponent.any()
        left, right = (np.broadcast_to(side.exponent, self.shape) for side in (self.left, self.right))

        def divide(some: slice) -> None:
            part = self.n[some].astype(np.float64)
            if ddof:
                part -= ddof
            part[self.n[some] < max(min_periods, ddof + 1)] = np.nan
            np.divide(self.comoment[some], part, out=part)
            with np.errstate(over="ignore", under="ignore"):
                if scaled:
                    np.ldexp(part, (left[some] + right[some]).astype(np.int32), out=part)
                answer[some] = part

        by_rows(divide, len(self.comoment), self.comoment.strides[0])
        return answer

    def correlation(self, min_periods: int = 1, *, out: Matrix | None = None) -> Matrix:
        """Return the correlations, float64, or `out`: of the pair's rows alone, means and variances too.

        Never outside [-1, 1], and exactly 1 or -1 within 4e-15 of it; a column with itself has exactly 1. NaN
        where a column never changes on the pair's rows or holds inf there, and where ``n < min_periods``.
        `out` is as for `covariance`.
        """
        answer = np.empty(self.shape) if out is None else out
        if self.whole is not None:
            if self.whole.n < min_periods:
                answer[...] = np.nan
                return answer
            return self.whole.correlation(out=answer)
        left, right = (np.broadcast_to(side.squares, self.shape) for side in (self.left, self.right))

        def divide(some: slice) -> None:
            with np.errstate(invalid="ignore", divide="ignore"):
                # a square that is 0 or NaN makes NaN: no comoment beside it is anything but 0 or NaN
                part = left[some] * right[some]
                np.sqrt(part, out=part)
                np.divide(self.comoment[some], part, out=part)
            near = np.abs(part) >= 1 - NEAR_ONE
            part[near] = np.sign(part[near])
            if min_periods > 1:
                part[self.n[some] < min_periods] = np.nan
            answer[some] = part

        by_rows(divide, len(self.comoment), self.comoment.strides[0])
        return answer

    def replaced(self, at: tuple[NDArray[np.intp], ...], others: PairMoments, *, mirror: bool) -> PairMoments:
        """Return these pairs with `others`, a list of pairs, in place of the elements `at`.

        `mirror` is for the pairs of one matrix: each of the others is put at (i, j) and at (j, i).
        """
        n, comoment = self.n.copy(), self.comoment.copy()
        left = self.left.spread(self.shape)
        n[at], comoment[at] = others.n, others.comoment
        left.put(at, others.left)
        if mirror:
            back = at[::-1]
            n[back], comoment[back] = others.n, others.comoment
            left.put(back, others.right)
            return PairMoments(n, comoment, left, left.transposed)
        right = self.right.spread(self.shape)
        right.put(at, others.right)
        return PairMoments(n, comoment, left, right)

    def merge(self, other: PairMoments) -> PairMoments:
        """Return the moments of both sets of rows together, pair by pair, by `Moments.merge`'s formula.

        Raises
        ------
        ShapeError
            If the two have pairs of different shapes.
        """
        if self.shape != other.shape:
            raise ShapeError(f"pairs of shape {self.shape} and {other.shape} cannot be merged.")
        if self.whole is not None and other.whole is not None:
            return PairMoments.of(self.whole.merge(other.whole))
        n = self.n + other.n
        share = self.n / np.maximum(n, 1) * other.n
        left, by_left = _merged(self.left, other.left, self.n, other.n)
        right, by_right = _merged(self.right, other.right, self.n, other.n)
        with np.errstate(invalid="ignore", under="ignore"):
            comoment = by_left * by_right * share
            for one in (self, other):
                shift = one.left.exponent - left.exponent + one.right.exponent - right.exponent
                comoment += np.where(one.n > 0, np.ldexp(one.comoment, shift.astype(np.int32)), 0.0)
        return PairMoments(n, comoment, left, right)


def _merged(mine: Side, theirs: Side, rows: Counts, more: Counts) -> tuple[Side, Vector]:
    """Return one side of merged pairs, of `rows` and of `more` rows, and the distance of the two means."""
    n = np.maximum(rows + more, 1)
    # a side without rows lies wherever the other one does
    origin = np.where(rows > 0, mine.origin, theirs.origin)
    with np.errstate(invalid="ignore", under="ignore"):
        # halves, so that levels of opposite sign near the largest float do not overflow
        gap = np.where((rows > 0) & (more > 0), theirs.origin / 2 - origin / 2, 0.0)
        reach = np.frexp(gap)[1] + 2
        needed = np.where(np.abs(reach) <= MODERATE, 0, reach)
        needed = np.where(np.isfinite(gap) & (gap != 0), needed, NO_EXPONENT)
        for side, count in ((mine, rows), (theirs, more)):
            still = (count == 0) | ((side.squares == 0) & (side.mean == 0))
            needed = np.maximum(needed, np.where(still, NO_EXPONENT, side.exponent))
        exponent = np.where(needed == NO_EXPONENT, 0, needed).astype(np.int64)
        scaled = [
            (
                np.where(count > 0, np.ldexp(side.mean, shift), 0.0),
                np.where(count > 0, np.ldexp(side.squares, 2 * shift), 0.0),
            )
            for side, count, shift in (
                (mine, rows, (mine.exponent - exponent).astype(np.int32)),
                (theirs, more, (theirs.exponent - exponent).astype(np.int32)),
            )
        ]
        (mean, squares), (their_mean, their_squares) = scaled
        step = np.ldexp(gap, (1 - exponent).astype(np.int32)) + their_mean - mean
        step = np.where((rows > 0) & (more > 0), step, 0.0)
        mean = np.where(rows > 0, mean + step * (more / n), their_mean)
        squares = squares + their_squares + step * step * (rows / n * more)
    return Side(origin, exponent, mean, squares), step
