"""`Moments`: what is known of some rows, and the only way to a covariance.

Blocks of rows, live sessions and distributed workers each make a `Moments` of their own rows and
merge them. Nothing here touches a device.

A column is kept as ``z = (x - origin) * 2**-exponent``. The origin keeps the digits that a large
level would eat (prices near 1e5 that move by cents); the exponent keeps 1e-170 and 1e200 inside
float64 when deviations are multiplied. Both steps are exact in binary but for the subtraction's own
rounding, so they cost no accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.centre import MODERATE
from mtbridge.errors import ShapeError
from mtbridge.matrix import Matrix
from mtbridge.shared_work import by_rows

Vector = NDArray[np.float64]

NO_EXPONENT = -(2**20)
NEAR_ONE = 16 * np.finfo(np.float64).eps
"""A correlation this near to 1 or -1, or beyond, is given as exactly that."""


SEEN = 2.0**-54
"""Share of a product of deviations below which a correction changes no digit of it that counts."""


def without_residue(products: Vector, mean: Vector, rows: int) -> Vector:
    """Take out of `products`, sums over `rows` rows of z_i z_j, what the `mean` of z put there; in place.

    The two-pass algorithm with correction. Rounding leaves so small a mean that mostly no correction is
    seen: by Cauchy and Schwarz that of i and j is at most the geometric mean of those of i and of j.
    """
    # NaN is not below
    if not (rows * mean * mean <= SEEN * np.diagonal(products)).all():

        def correct(some: slice) -> None:
            products[some] -= np.outer(mean[some], mean) * rows

        by_rows(correct, len(products), products.strides[0])
    return products


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean and co-moment of rows: of one matrix, or of each of a stack of matrices of one shape.

    Attributes
    ----------
    n : number of rows
    origin : float64 array of shape (…, columns), in the unit of the data
    exponent : int64 array of shape (…, columns)
    mean : float64 array of shape (…, columns), the mean of z
    comoment : float64 array of shape (…, columns, columns)
        The sum over rows of ``(z_i - mean_i) (z_j - mean_j)``, symmetric bit for bit. A column that
        never changes has exactly zeros; one that holds NaN or inf has NaN.
    """

    n: int
    origin: Vector
    exponent: NDArray[np.int64]
    mean: Vector
    comoment: Vector

    @classmethod
    def empty(cls, columns: int) -> Moments:
        """Return the moments of no rows at all."""
        return cls.stack(0, (), columns)

    @classmethod
    def stack(cls, n: int, lead: tuple[int, ...], columns: int) -> Moments:
        """Return moments of stacked matrices of `n` rows that never change; `put` fills them in."""
        return cls(
            n=n,
            origin=np.zeros((*lead, columns)),
            exponent=np.zeros((*lead, columns), np.int64),
            mean=np.zeros((*lead, columns)),
            comoment=np.zeros((*lead, columns, columns)),
        )

    def put(self, at: Any, one: Moments) -> None:
        """Write the moments of one matrix, of as many rows, over those of number `at` of this stack."""
        self.origin[at], self.exponent[at] = one.origin, one.exponent
        self.mean[at], self.comoment[at] = one.mean, one.comoment

    @classmethod
    def of_row(cls, row: Vector) -> Moments:
        """Return the moments of the single row `row`, of shape (columns,)."""
        one = cls.empty(len(row))
        lost = ~np.isfinite(row)
        one.comoment[lost, :] = one.comoment[:, lost] = np.nan
        return cls(1, np.where(lost, np.nan, row), one.exponent, one.mean, one.comoment)

    def shaped(self, lead: tuple[int, ...]) -> Moments:
        """Return the same with the matrices of the stack in the shape `lead`."""
        return Moments(
            n=self.n,
            origin=self.origin.reshape(*lead, self.columns),
            exponent=self.exponent.reshape(*lead, self.columns),
            mean=self.mean.reshape(*lead, self.columns),
            comoment=self.comoment.reshape(*lead, self.columns, self.columns),
        )

    @property
    def columns(self) -> int:
        columns: int = self.origin.shape[-1]
        return columns

    def add_row(self, row: Vector) -> Moments:
        """Return the moments with one more row, of shape (columns,): a rank-one update."""
        return self.merge(Moments.of_row(row))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together.

        The update of Chan, Golub and LeVeque (1983), formula 2.1: with d the difference of the two
        means, the co-moments add up with ``d_i d_j n_a n_b / n``.

        Raises
        ------
        ShapeError
            If the two have different numbers of columns.
        """
        if self.columns != other.columns:
            raise ShapeError(f"moments of {self.columns} and of {other.columns} columns cannot be merged.")
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        n = self.n + other.n
        with np.errstate(invalid="ignore", under="ignore"):
            # halves, so that levels of opposite sign near the largest float do not overflow
            gap = other.origin / 2 - self.origin / 2
            reach = np.frexp(gap)[1] + 2
            needed = np.where(np.abs(reach) <= MODERATE, 0, reach)
            needed = np.where(np.isfinite(gap) & (gap != 0), needed, NO_EXPONENT)
            exponent = np.maximum(np.maximum(self._needed(), other._needed()), needed)
            exponent = np.where(exponent == NO_EXPONENT, 0, exponent).astype(np.int64)
            mine, theirs = self.at(exponent), other.at(exponent)
            delta = np.ldexp(gap, (1 - exponent).astype(np.int32)) + theirs.mean - mine.mean
            return Moments(
                n=n,
                origin=self.origin,
                exponent=exponent,
                mean=mine.mean + delta * (other.n / n),
                comoment=mine.comoment + theirs.comoment + pairs(np.multiply, delta) * (self.n / n * other.n),
            )

    def _needed(self) -> NDArray[np.int64]:
        """The exponents, or NO_EXPONENT where all rows lie on the origin and any exponent would do."""
        still = (diagonal(self.comoment) == 0) & (self.mean == 0)
        return np.where(still, NO_EXPONENT, self.exponent)

    def at(self, exponent: NDArray[np.int64]) -> Moments:
        """Return the same moments written with other exponents."""
        shift = (self.exponent - exponent).astype(np.int32)
        if not shift.any():
            return self
        return Moments(
            n=self.n,
            origin=self.origin,
            exponent=exponent,
            mean=np.ldexp(self.mean, shift),
            comoment=np.ldexp(self.comoment, pairs(np.add, shift)),
        )

    def covariance(self, ddof: int = 1, *, out: Matrix | None = None) -> Matrix:
        """Return the covariance matrix, float64 of the shape of `comoment`, or `out`.

        ``comoment / (n - ddof)`` in the unit of the data; NaN everywhere if ``n <= ddof``. Values past
        the range of float64 come out as inf or 0, as they must.

        Parameters
        ----------
        out : float32 or float64 array to write to
            It may be `comoment`, which is lost then, and these moments with it.
        """
        answer = np.empty_like(self.comoment) if out is None else out
        if self.n <= ddof:
            answer[...] = np.nan
            return answer
        shift = self.exponent.astype(np.int32) if self.exponent.any() else None
        wide = answer.dtype == np.float64

        def scale(some: slice) -> None:
            with np.errstate(over="ignore", under="ignore"):
                part = np.divide(self.comoment[some], self.n - ddof, out=answer[some] if wide else None)
                if shift is not None:
                    left, right = self._sides(shift, some)
                    np.ldexp(part, left + right, out=part)
                if not wide:
                    answer[some] = part

        by_rows(scale, len(self.comoment), self.comoment.strides[0])
        return answer

    def correlation(self, *, out: Matrix | None = None) -> Matrix:
        """Return the correlation matrix, float64 of the shape of `comoment`, or `out` as for `covariance`.

        Never outside [-1, 1], and exactly 1 or -1 within 4e-15 of it. The diagonal is exactly 1, and NaN for
        a column that never changes or holds NaN or inf.
        """
        answer = np.empty_like(self.comoment) if out is None else out
        # a copy, since `out` may be what it is a view of
        variance = diagonal(self.comoment).copy()
        flat = ~(variance > 0)
        wide = answer.dtype == np.float64

        def divide(some: slice) -> None:
            left, right = self._sides(variance, some)
            with np.errstate(invalid="ignore", divide="ignore"):
                # sqrt(v * v) is exactly v, so two equal columns correlate by exactly 1
                root = left * right
                np.sqrt(root, out=root)
                part = np.divide(self.comoment[some], root, out=answer[some] if wide else root)
            # a BLAS may add up the products of two equal columns in two orders, which gave up to 6 eps
            near = np.abs(part) >= 1 - NEAR_ONE
            part[near] = np.sign(part[near])
            if flat.any():
                left, right = self._sides(flat, some)
                part[left | right] = np.nan
            if not wide:
                answer[some] = part

        by_rows(divide, len(self.comoment), self.comoment.strides[0])
        one = np.where(flat, np.nan, 1.0)
        np.einsum("...ii->...i", answer)[...] = one
        return answer

    def _sides(self, values: NDArray[Any], some: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return `values` beside the left and the right columns of some rows, or of some matrices."""
        if self.comoment.ndim == 2:
            return values[some, np.newaxis], values
        return values[some, ..., np.newaxis], values[some, ..., np.newaxis, :]


@dataclass(frozen=True, slots=True, eq=False)
class CompleteCovariance:
    """The covariance matrix of columns in which nothing is missing.

    Attributes
    ----------
    matrix : float32 or float64 array of shape (columns, columns), symmetric bit for bit
    exponent : int64 array of shape (columns,), of the columns as products were taken of them, see `Moments`
    """

    matrix: Matrix
    exponent: NDArray[np.int64]


def diagonal(matrices: NDArray[Any]) -> NDArray[Any]:
    """Return the diagonals of matrices, of shape (…, columns, columns)."""
    return np.diagonal(matrices, axis1=-2, axis2=-1)


def pairs(operation: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return what `operation` makes of each two of the `values` of a matrix, of shape (…, columns)."""
    found: NDArray[Any] = operation(values[..., np.newaxis], values[..., np.newaxis, :])
    return found
