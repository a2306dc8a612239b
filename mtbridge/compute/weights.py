"""Weighted covariances and correlations, by numpy's definitions: frequency and reliability weights.

With f the frequency of a row and a its reliability, its weight is w = f a, and with V the sum of w
and effective = V**2 / sum(f a**2)

    covariance = sum(w (x - mean) (y - mean)) / (V (1 - ddof / effective)),    mean = sum(w x) / V

which is what ``np.cov(fweights=f, aweights=a, ddof=ddof)`` computes. A row of frequency 3 is three equal
rows; of reliabilities only the ratios matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtbridge.compute.engine import Engine, gram_in
from mtbridge.compute.moments import Moments, Vector
from mtbridge.compute.operations import counted
from mtbridge.errors import InputError, MissingValueError, ShapeError
from mtbridge.matrix import Matrix, narrowed

Weights: TypeAlias = ArrayLike | None

MODERATE = 60
"""Values within 2**-60 .. 2**60 need no scaling before their deviations are multiplied."""

LARGEST_FREQUENCY = 2.0**53


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """The weights of some rows.

    Attributes
    ----------
    kept : int array, the rows whose weight is not 0; no other one counts for anything, whatever it holds
    weights : float64 array of their weights; scaled by a power of two, so that the largest is near one
    effective : Kish's number of rows that weigh as much: ``sum(w)**2 / sum(w**2)``, where a row of frequency
        f is f rows
    spread : ``1 - 1 / effective``, with all its digits where one row has nearly all the weight
    """

    kept: NDArray[np.intp]
    weights: Vector
    effective: float
    spread: float

    @classmethod
    def of(cls, rows: int, frequency: Weights, reliability: Weights) -> Weighing:
        """Check the weights for so many rows, and multiply the two kinds.

        Raises
        ------
        ShapeError
            If there are not as many weights as rows.
        InputError
            If one is no number, NaN, infinite or negative, a frequency not whole, or all are 0.
        """
        counts = np.ones(rows) if frequency is None else _checked("frequency", frequency, rows)
        broken = counts[counts != np.floor(counts)]
        if len(broken):
            raise InputError(f"a frequency weight is {broken[0]:g}; it counts rows, so it must be whole.")
        if counts.max(initial=0.0) > LARGEST_FREQUENCY:
            raise InputError(f"a frequency weight is {counts.max():g}; it must not be above 2**53.")
        shares = np.ones(rows) if reliability is None else _checked("reliability", reliability, rows)
        kept = np.flatnonzero((counts > 0) & (shares > 0))
        if rows and not len(kept):
            raise InputError("every weight is 0, so no row counts; give some row a weight above 0.")
        counts, shares = counts[kept], _near_one(shares[kept])
        weights = counts * shares
        if (shares == shares[:1]).all():
            effective = counts.sum()
        else:
            effective = weights.sum() ** 2 / (weights * shares).sum()
        return cls(kept, _near_one(weights), float(effective), _spread(counts, shares))


def weighted_covariance(
    X: Matrix,
    *,
    engine: Engine,
    frequency: Weights = None,
    reliability: Weights = None,
    ddof: int = 1,
    dtype: np.dtype[Any] | None = None,
) -> tuple[Matrix, float]:
    """Return the weighted covariance matrix of the columns of `X`, and the effective rows.

    Parameters
    ----------
    X : float32 or float64 array of shape (rows, columns); a row of weight 0 may hold anything
    engine : takes the product, in float64 where its device has that
    frequency : whole numbers of 0 or more, how many times each row counts; all 1 by default
    reliability : numbers of 0 or more, of which only the ratios matter; all equal by default
    ddof : as in `np.cov`; NaN everywhere where the effective rows are not more
    dtype : of the answer, by default that of `X`

    Returns
    -------
    matrix : array of shape (columns, columns), symmetric bit for bit
        Exactly 0 for a column that never changes; NaN for one that holds inf.
    effective : Kish's number of effective rows, ``sum(w)**2 / sum(w**2)``, a row of frequency f taken f times

    Raises
    ------
    ShapeError
        If there are not as many weights as rows.
    InputError
        If weights are not as said above or all 0, or a covariance is past the range of float32.
    MissingValueError
        If a row that counts holds NaN.
    OptionError
        If `ddof` is not a whole number of 0 or more.
    """
    ddof = counted("ddof", ddof)
    weighing = Weighing.of(len(X), frequency, reliability)
    moments = _moments(engine, X, weighing)
    kind = np.dtype(dtype or X.dtype)
    # of one row, 1 - 1 / effective is exactly 0
    share = weighing.spread if ddof == 1 else 1 - ddof / weighing.effective if weighing.effective else 0.0
    if share <= 0:
        return np.full(moments.comoment.shape, np.nan, kind), weighing.effective
    divisor = weighing.weights.sum() * share
    shift = moments.exponent.astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        matrix = np.ldexp(moments.comoment / divisor, shift[:, np.newaxis] + shift)
    return narrowed(matrix, kind), weighing.effective


def weighted_correlation(
    X: Matrix,
    *,
    engine: Engine,
    frequency: Weights = None,
    reliability: Weights = None,
    dtype: np.dtype[Any] | None = None,
) -> tuple[Matrix, float]:
    """Return the weighted correlation matrix of the columns of `X`, and the effective rows.

    As `weighted_covariance`; the divisor of a covariance has no part in it. Never outside [-1, 1], the
    diagonal exactly 1; NaN for a column that does not change on the rows that count, or holds inf there.
    """
    weighing = Weighing.of(len(X), frequency, reliability)
    matrix = _moments(engine, X, weighing).correlation()
    return matrix.astype(dtype or X.dtype, copy=False), weighing.effective


def _checked(kind: str, weights: ArrayLike, rows: int) -> Vector:
    try:
        found = np.asarray(weights)
    except ValueError:
        raise ShapeError(f"the {kind} weights are uneven lists; give one number a row.") from None
    if found.dtype.kind not in "iufb":
        raise InputError(f"the {kind} weights are {found.dtype} values; they must be numbers.")
    if found.shape != (rows,):
        given = f"{len(found)}" if found.ndim == 1 else f"an array of shape {found.shape} with"
        raise ShapeError(f"there are {given} {kind} weights for {rows} rows; each row needs one.")
    found = found.astype(np.float64)
    refused = found[~(np.isfinite(found) & (found >= 0))]
    if len(refused):
        raise InputError(f"a {kind} weight is {refused[0]:g}; it must be a finite number of 0 or more.")
    return found


def _spread(counts: Vector, shares: Vector) -> float:
    """Return 1 less the sum of the squared shares of all rows, of reliabilities seen so often.

    As a sum of the weight of each row times that of all others, of which only the heaviest row has so little
    that a difference would lose it.
    """
    if not len(counts):
        return 0.0
    weights = counts * shares
    heaviest = int(shares.argmax())
    others = weights.sum() - shares
    others[heaviest] = np.delete(weights, heaviest).sum() + (counts[heaviest] - 1) * shares[heaviest]
    total = weights.sum()
    return float((weights / total) @ (others / total))


def _near_one(weights: Vector) -> Vector:
    """Scale by the power of two that brings the largest to 1/2 or above, below 1."""
    with np.errstate(under="ignore"):
        scaled: Vector = np.ldexp(weights, -np.frexp(weights.max(initial=0.0))[1])
    return scaled


def _moments(engine: Engine, X: Matrix, weighing: Weighing) -> Moments:
    """Return the moments of the rows that count; their co-moment is the weighted one, `n` says nothing."""
    kept, weights = weighing.kept, weighing.weights
    columns = X.shape[1]
    if not len(kept):
        return Moments.empty(columns)
    Z = X.astype(np.float64) if len(kept) == len(X) else X[kept].astype(np.float64)
    if np.isnan(Z).any():
        missing = int(np.isnan(Z).any(axis=1).sum())
        raise MissingValueError(
            f"{missing} rows with a weight hold NaN, and a weighted row needs all its values; drop them "
            'first, for example with missing="drop".'
        )
    lost = np.isinf(Z).any(axis=0)
    Z[:, lost] = 0
    constant = Z.min(axis=0) == Z.max(axis=0)
    origin = np.where(constant, Z[0], 0.0)
    reach = np.frexp(np.abs(Z).max(axis=0))[1].astype(np.int64)
    exponent = np.where((np.abs(reach) > MODERATE) & ~constant, reach, 0)
    Z[:, constant] = 0
    with np.errstate(under="ignore"):
        if exponent.any():
            Z = np.ldexp(Z, -exponent.astype(np.int32))
        total = weights.sum()
        # the second time takes out what rounding left of the level in the first
        for _ in range(2):
            Z -= weights @ Z / total
        mean = weights @ Z / total
        Z *= np.sqrt(weights)[:, np.newaxis]
        comoment = gram_in(engine, Z, "float64").astype(np.float64, copy=False)
        comoment -= np.outer(mean, mean) * total
    comoment[lost, :] = comoment[:, lost] = np.nan
    return Moments(len(kept), origin, exponent, mean, comoment)
