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

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.centre import MODERATE
from mtbridge.errors import ShapeError

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
        products -= np.outer(mean, mean) * rows
    return products


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean and co-moment of rows.

    Attributes
    ----------
    n : number of rows
    origin : float64 array of shape (columns,), in the unit of the data
    exponent : int64 array of shape (columns,)
    mean : float64 array of shape (columns,), the mean of z
    comoment : float64 array of shape (columns, columns)
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
        return cls(
            n=0,
            origin=np.zeros(columns),
            exponent=np.zeros(columns, np.int64),
            mean=np.zeros(columns),
            comoment=np.zeros((columns, columns)),
        )

    @classmethod
    def of_row(cls, row: Vector) -> Moments:
        """Return the moments of the single row `row`, of shape (columns,)."""
        one = cls.empty(len(row))
        lost = ~np.isfinite(row)
        one.comoment[lost, :] = one.comoment[:, lost] = np.nan
        return cls(1, np.where(lost, np.nan, row), one.exponent, one.mean, one.comoment)

    @property
    def columns(self) -> int:
        return len(self.origin)

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
                comoment=mine.comoment + theirs.comoment + np.outer(delta, delta) * (self.n / n * other.n),
            )

    def _needed(self) -> NDArray[np.int64]:
        """The exponents, or NO_EXPONENT where all rows lie on the origin and any exponent would do."""
        still = (np.diagonal(self.comoment) == 0) & (self.mean == 0)
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
            comoment=np.ldexp(self.comoment, shift[:, np.newaxis] + shift),
        )

    def covariance(self, ddof: int = 1) -> Vector:
        """Return the covariance matrix, float64 of shape (columns, columns).

        ``comoment / (n - ddof)`` in the unit of the data; NaN everywhere if ``n <= ddof``. Values past
        the range of float64 come out as inf or 0, as they must.
        """
        if self.n <= ddof:
            return np.full_like(self.comoment, np.nan)
        scaled = self.comoment / (self.n - ddof)
        if self.exponent.any():
            shift = self.exponent.astype(np.int32)
            with np.errstate(over="ignore", under="ignore"):
                scaled = np.ldexp(scaled, shift[:, np.newaxis] + shift)
        return scaled

    def correlation(self) -> Vector:
        """Return the correlation matrix, float64 of shape (columns, columns).

        Never outside [-1, 1], and exactly 1 or -1 within 4e-15 of it. The diagonal is exactly 1, and NaN for
        a column that never changes or holds NaN or inf.
        """
        variance = np.diagonal(self.comoment)
        with np.errstate(invalid="ignore", divide="ignore"):
            # sqrt(v * v) is exactly v, so two equal columns correlate by exactly 1
            matrix = self.comoment / np.sqrt(np.outer(variance, variance))
        # a BLAS may add up the products of two equal columns in two orders, which gave up to 6 eps
        near = np.abs(matrix) >= 1 - NEAR_ONE
        matrix[near] = np.sign(matrix[near])
        flat = ~(variance > 0)
        matrix[flat, :] = np.nan
        matrix[:, flat] = np.nan
        np.fill_diagonal(matrix, np.where(flat, np.nan, 1.0))
        return matrix
