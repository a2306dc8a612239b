"""Covariances and correlations of every column with every other one some rows later, all lags at once.

At lag l, column i at row t - l goes with column j at row t: what j does l rows after i. Each pair is computed
on its own overlap: means and variances are of the rows that take part, never of the whole history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.compute.blocks import spans
from mtbridge.compute.centre import Centred, centre
from mtbridge.compute.engine import Engine
from mtbridge.compute.masked import Masked, masked_pair_moments
from mtbridge.compute.moments import Vector
from mtbridge.compute.operations import refuse_count
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.pair_sums import SideSums, settled
from mtbridge.compute.sequence import FLOAT64, Statistic
from mtbridge.errors import InputError, OptionError
from mtbridge.matrix import Matrix, narrowed

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
    dtype : of the products where the device has no float64; by default that of `X`
    """
    able = FLOAT64.name in engine.dtypes
    prepared: Complete | Gapped | None = None
    if able and X.size and any(lags):
        prepared = Gapped.of(X) if np.isnan(X).any() else Complete(X, centre(X, FLOAT64))
    found = []
    for lag in lags:
        if lag == 0:
            found.append(engine.pair_moments(X, dtype=FLOAT64 if able else dtype))
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
        If a covariance is past the range of float32 and that is the dtype, or the answer past the memory.
    """
    refuse_count("the largest lag", most)
    most = int(most)
    if not isinstance(statistic, str) or statistic not in ("covariance", "correlation"):
        raise OptionError(f"there is no lagged {short(statistic)}; there are 'covariance' and 'correlation'.")
    kind = np.dtype(dtype or X.dtype)
    shape = (2 * most + 1, X.shape[1], X.shape[1])
    matrix, counts = _empty(shape, kind)
    # past the last row no pair has any rows, however many such lags there are
    reach = min(most, max(len(X) - 1, 0))
    for beyond in (slice(0, most - reach), slice(most + reach + 1, None)):
        matrix[beyond], counts[beyond] = np.nan, 0
    for part in spans(reach + 1, LAGS_AT_ONCE):
        lags = range(part.start, part.stop)
        for lag, moments in zip(lags, engine.lagged_moments(X, lags, dtype=kind), strict=True):
            if statistic == "covariance":
                answer = narrowed(moments.covariance(ddof, min_periods), kind)
            else:
                answer = moments.correlation(min_periods)
            matrix[most + lag], counts[most + lag] = answer, moments.n
            if lag:
                matrix[most - lag], counts[most - lag] = matrix[most + lag].T, moments.n.T
    return matrix, counts


def _empty(shape: tuple[int, ...], kind: np.dtype[Any]) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the arrays of the answer, not filled in yet."""
    try:
        return np.empty(shape, kind), np.empty(shape, np.int64)
    except (MemoryError, ValueError):
        gigabytes = math.prod(shape) * (kind.itemsize + 8) // 10**9
        raise InputError(
            f"{short(shape[0])} lags take {short(gigabytes)} GB, more than there is; use fewer of them."
        ) from None
