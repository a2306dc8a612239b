"""Covariances and correlations of every column with every other one some rows later, all lags at once.

At lag l, column i at row t - l goes with column j at row t: what j does l rows after i. Each pair is computed
on its own overlap: means and variances are of the rows that take part, never of the whole history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.centre import Centred, centre
from mtbridge.compute.engine import Engine
from mtbridge.compute.masked import Masked, masked_pair_moments
from mtbridge.compute.moments import Vector
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.pair_sums import SideSums, settled
from mtbridge.compute.sequence import Statistic
from mtbridge.errors import InputError, OptionError
from mtbridge.matrix import DTYPES, Matrix

FLOAT64 = np.dtype(np.float64)

LAGS_AT_ONCE = 8
"""Lags whose moments are held at a time: the columns are centred once for them all."""


@dataclass(frozen=True, slots=True, eq=False)
class Complete:
    """A matrix without NaN, centred once; each lag is the product of two parts of it."""

    data: Matrix
    centred: Centred

    def at(self, lag: int, engine: Engine) -> PairMoments:
        rows, columns = self.data.shape
        earlier, later = self.centred.values[:-lag], self.centred.values[lag:]
        products: Vector = engine.multiply(earlier.T, later)  # type: ignore[assignment]
        n = np.full((columns, columns), rows - lag, np.int64)
        left, right = self._sums(earlier), self._sums(later).transposed
        return settled(self.data[:-lag], self.data[lag:], n, products, left, right, dtype=FLOAT64, same=False)

    def _sums(self, part: Matrix) -> SideSums:
        """The sums of the rows that take part, added up anew: nothing is taken off the total of all rows."""
        squares = np.einsum("rc,rc->c", part, part)[:, np.newaxis]
        total = part.sum(axis=0)[:, np.newaxis]
        centred = self.centred
        return SideSums(
            centred.origin[:, np.newaxis], centred.exponent[:, np.newaxis], total, squares, terms=squares
        )


@dataclass(frozen=True, slots=True, eq=False)
class Gapped:
    """A matrix with NaN, centred once; each lag is the product of two parts of [z, mask, z squared].

    Attributes
    ----------
    stacked : float64 array of shape (rows, 3 * columns)
        Zero where a value is missing. A column with inf is NaN, so that its pairs are done with care.
    """

    data: Matrix
    origin: Vector
    exponent: NDArray[np.int64]
    stacked: Matrix

    @classmethod
    def of(cls, X: Matrix) -> Gapped:
        one = Masked.of(X, FLOAT64)
        one.values[:, one.infinite] = np.nan
        return cls(X, one.origin, one.exponent, np.hstack([one.values, one.present, one.values * one.values]))

    def at(self, lag: int, engine: Engine) -> PairMoments:
        columns = len(self.origin)
        whole = engine.multiply(self.stacked[:-lag].T, self.stacked[lag:])
        z, mask, square = (slice(k * columns, (k + 1) * columns) for k in range(3))
        n = np.rint(whole[mask, mask]).astype(np.int64)
        left = self._sums(whole[z, mask], whole[square, mask])
        right = self._sums(whole[mask, z].T, whole[mask, square].T).transposed
        products = whole[z, z].astype(np.float64)
        return settled(self.data[:-lag], self.data[lag:], n, products, left, right, dtype=FLOAT64, same=False)

    def _sums(self, total: Matrix, squares: Matrix) -> SideSums:
        origin, exponent = self.origin[:, np.newaxis], self.exponent[:, np.newaxis]
        totals, parts = total.astype(np.float64), squares.astype(np.float64)
        return SideSums(origin, exponent, totals, parts, terms=parts)


def lagged_moments(
    engine: Engine, X: Matrix, lags: Sequence[int], dtype: np.dtype[Any] | None = None
) -> list[PairMoments]:
    """Return, for each lag, the moments of column i at row t - lag with column j at row t.

    Parameters
    ----------
    engine : takes the products, in float64 where its device has that
    X : float32 or float64 array of shape (rows, columns); NaN is missing, inf makes NaN of pairs that meet it
    lags : whole numbers of 0 or more; beyond the last row, pairs have no rows
    dtype : of the products of lag 0, which are those of `Engine.pair_moments`, and of the other lags where
        the device has no float64; by default that of `X`
    """
    able = FLOAT64.name in getattr(engine, "dtypes", DTYPES)
    prepared: Complete | Gapped | None = None
    if able and X.size and any(lags):
        prepared = Gapped.of(X) if np.isnan(X).any() else Complete(X, centre(X, FLOAT64))
    found = []
    for lag in lags:
        if lag == 0:
            found.append(engine.pair_moments(X, dtype=dtype))
        elif prepared is not None and len(X) - lag > 1:
            found.append(prepared.at(lag, engine))
        else:
            kind = FLOAT64 if able else dtype
            found.append(masked_pair_moments(engine, X[: max(len(X) - lag, 0)], X[lag:], kind))
    return found


def lagged(
    engine: Engine,
    X: Matrix,
    most: int,
    statistic: Statistic = "correlation",
    ddof: int = 1,
    min_periods: int = 1,
    dtype: np.dtype[Any] | None = None,
) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the matrices of lags -most to most, and the counts.

    Parameters
    ----------
    X : float32 or float64 array of shape (rows, columns), oldest row first; NaN is missing
    most : the largest lag, 0 or more
    statistic : "covariance" or "correlation", each on the overlap of its pair
    ddof, min_periods : as for `PairMoments.covariance`
    dtype : of the answer, by default that of `X`

    Returns
    -------
    matrix : array of shape (2 * most + 1, columns, columns)
        Element [most + l, i, j] is of column i at row t - l with column j at row t. The matrix of -l is that
        of l transposed, bit for bit; that of lag 0 is the ordinary pairwise one.
    counts : int64 array of that shape, the rows of each pair

    Raises
    ------
    OptionError
        If `most` is not a whole number of 0 or more, or the statistic is another one.
    InputError
        If a covariance is past the range of float32 and that is the dtype.
    """
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
        raise OptionError(f"the largest lag is {most!r}; it must be a whole number of 0 or more.")
    if statistic not in ("covariance", "correlation"):
        raise OptionError(f"there is no lagged {statistic!r}; there are 'covariance' and 'correlation'.")
    kind = np.dtype(dtype or X.dtype)
    shape = (2 * most + 1, X.shape[1], X.shape[1])
    matrix, counts = np.empty(shape, kind), np.empty(shape, np.int64)
    for part in spans(most + 1, LAGS_AT_ONCE):
        lags = range(part.start, part.stop)
        for lag, moments in zip(lags, engine.lagged_moments(X, lags, dtype=kind), strict=True):
            if statistic == "covariance":
                answer = moments.covariance(ddof, min_periods)
                if kind == np.float32 and np.nanmax(np.abs(answer), initial=0.0) > np.finfo(np.float32).max:
                    raise InputError("a covariance is past the range of float32; use float64.")
            else:
                answer = moments.correlation(min_periods)
            matrix[most + lag], counts[most + lag] = answer, moments.n
            if lag:
                matrix[most - lag], counts[most - lag] = matrix[most + lag].T, moments.n.T
    return matrix, counts
