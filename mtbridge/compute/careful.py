"""The careful routine: a pair of columns in two passes over its own rows, right for values of any magnitude.

The fast paths hand over the pairs whose sums would have lost digits. Here the origin of a column is its first
value on the pair's rows, its range decides the scale, and whether it is constant is a matter of equality.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.matrix import Matrix

ELEMENTS = 1 << 16
"""Values of one side that are worked on at a time: all steps on them find them in the cache."""

Indices = NDArray[np.intp]


def careful_pairs(X: Matrix, Y: Matrix, pairs: tuple[Indices, Indices]) -> PairMoments:
    """Return the moments of a list of pairs: column ``pairs[0][p]`` of `X`, column ``pairs[1][p]`` of `Y`.

    Parameters
    ----------
    X, Y : float32 or float64 matrices of as many rows; NaN is missing, inf makes its pair NaN
    pairs : two integer arrays of one length

    Returns
    -------
    PairMoments
        Of shape (pairs,), with an origin and an exponent for each side of each pair: 1e-170 and 1e200 in one
        column are no trouble where they do not meet.
    """
    rows, count = len(X), len(pairs[0])
    lefts, left_at = np.unique(pairs[0], return_inverse=True)
    rights, right_at = np.unique(pairs[1], return_inverse=True)
    # the values of a column side by side
    left_columns = np.ascontiguousarray(X[:, lefts].T, np.float64)
    right_columns = np.ascontiguousarray(Y[:, rights].T, np.float64)
    n, comoment = np.zeros(count, np.int64), np.zeros(count)
    empty = Side(np.zeros(count), np.zeros(count, np.int64), np.zeros(count), np.zeros(count))
    left, right = empty.spread((count,)), empty.spread((count,))
    if not rows:
        return PairMoments(n, comoment, left, right)
    for part in spans(count, max(1, ELEMENTS // rows)):
        x, y = left_columns[left_at[part]], right_columns[right_at[part]]
        present = ~(np.isnan(x) | np.isnan(y))
        n[part] = present.sum(axis=1)
        z, one = _deviations(x, present, n[part])
        w, other = _deviations(y, present, n[part])
        with np.errstate(invalid="ignore"):
            products = np.einsum("pr,pr->p", z, w)
            products -= z.sum(axis=1) * (w.sum(axis=1) / np.maximum(n[part], 1))
        products[(one.squares == 0) | (other.squares == 0)] = 0
        products[np.isnan(one.squares) | np.isnan(other.squares)] = np.nan
        comoment[part] = products
        left.put(part, one)
        right.put(part, other)
    return PairMoments(n, comoment, left, right)


def _deviations(x: Matrix, present: NDArray[np.bool_], n: NDArray[np.int64]) -> tuple[Matrix, Side]:
    """Return the scaled deviations of each row of `x` from its mean, 0 where not present, and the side."""
    low = np.where(present, x, np.inf).min(axis=1)
    high = np.where(present, x, -np.inf).max(axis=1)
    finite = np.isfinite(low) & np.isfinite(high)
    constant = low == high
    origin = np.where(n > 0, x[np.arange(len(x)), present.argmax(axis=1)], 0.0)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        spread = high - low
        # halves where the range itself overflows
        vast = finite & np.isinf(spread)
        mantissa, reach = np.frexp(np.where(vast, high / 2 - low / 2, spread))
        exponent = np.where(finite & ~constant & (mantissa > 0), reach.astype(np.int64) + vast, 0)
        # by two factors, for one of 2**1074 would be no number; both steps are exact where it matters
        half = -exponent // 2
        factors = np.ldexp(1.0, half.astype(np.int32)), np.ldexp(1.0, (-exponent - half).astype(np.int32))
        z = x * factors[0][:, np.newaxis]
        z *= factors[1][:, np.newaxis]
        z -= (origin * factors[0] * factors[1])[:, np.newaxis]
        z[~present] = 0
        rows = np.maximum(n, 1)
        mean = z.sum(axis=1) / rows
        z -= mean[:, np.newaxis]
        z[~present] = 0
        squares = np.einsum("pr,pr->p", z, z)
        # what rounding left in the mean
        residue = z.sum(axis=1)
        squares -= residue * residue / rows
    squares[constant] = 0
    mean[constant] = 0
    lost = ~finite & (n > 0)
    squares[lost] = np.nan
    return z, Side(np.where(lost, np.nan, origin), exponent, np.where(lost, 0.0, mean), squares)
