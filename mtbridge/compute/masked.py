"""Pairwise moments by products with masks, on any engine: of one matrix, or of the columns of two.

With z centred and 0 where missing, and m 1 where present and 0 elsewhere, the sums over the rows that i and
j have in common are products of matrices: of z_i z_j, ``z'z``; of z_j, ``m'z``; of z_j squared, ``m'(z*z)``;
and the rows themselves, ``m'm``. A column in which nothing is missing needs no mask: beside it the sums are
those of the other column. Where a difference of such sums lost digits, the pair is done again with care.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.centre import centre
from mtbridge.compute.forms import WIDE_SUM
from mtbridge.compute.moments import Vector
from mtbridge.compute.pair_moments import Counts, PairMoments
from mtbridge.compute.pair_sums import SideSums, settled
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.engine import Engine


COUNTED = 1 << 24
"""Rows up to which float32 counts without a rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """A matrix that is centred, with zeros for what is missing or inf.

    Attributes
    ----------
    data : as it came
    values : of the dtype of the products
    origin, exponent : of each column, as `centre` gives them
    present : whether an element is not NaN
    counts : rows that each column has
    gaps : the columns that miss some
    mask : 1 and 0 for `gaps`, of the dtype of `values`
    infinite : the columns that hold inf
    """

    data: Matrix
    values: Matrix
    origin: NDArray[np.float64]
    exponent: Counts
    present: NDArray[np.bool_]
    counts: Counts
    gaps: NDArray[np.intp]
    mask: Matrix
    infinite: NDArray[np.intp]

    @classmethod
    def of(cls, X: Matrix, dtype: np.dtype[Any]) -> Masked:
        """Return `X`, of at least one row, ready for products in `dtype`."""
        present = ~np.isnan(X)
        counts = present.sum(axis=0)
        lost = ~np.isfinite(X)
        held = len(X) - lost.sum(axis=0)
        # one copy, filled with what is neutral to each step in turn
        filled = np.where(lost, X.dtype.type(np.inf), X)
        low = filled.min(axis=0)
        np.copyto(filled, -np.inf, where=lost)
        high = filled.max(axis=0)
        np.copyto(filled, 0, where=lost)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = filled.sum(axis=0, dtype=np.float64) / np.maximum(held, 1)
        # a mean that overflowed, or that rounding took out of a constant, is brought back
        fill = np.where(held > 0, np.clip(np.where(np.isfinite(mean), mean, 0.0), low, high), 0.0)
        np.copyto(filled, fill.astype(X.dtype), where=lost)
        centred = centre(filled, dtype)
        values = centred.values
        np.copyto(values, 0, where=lost)
        gaps = np.flatnonzero(counts < len(X))
        return cls(
            data=X,
            values=values,
            origin=centred.origin,
            exponent=centred.exponent,
            present=present,
            counts=counts.astype(np.int64),
            gaps=gaps,
            mask=present[:, gaps].astype(dtype),
            infinite=np.flatnonzero(held < counts),
        )


def holds_missing(X: Matrix) -> bool:
    """Whether `X` holds a NaN; a sum tells that there is none without a mask as large as the matrix."""
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isnan(X.sum()) and np.isnan(X).any())


def masked_moments(engine: Engine, X: Matrix, dtype: np.dtype[Any] | None = None) -> PairMoments:
    """Return the pairwise moments of `X`, float32 or float64 of shape (rows, columns), NaN where missing.

    Products are taken by `engine` in `dtype`, by default that of `X`.
    """
    if not len(X) or not holds_missing(X):
        return PairMoments.of(engine.moments(X, dtype=dtype))
    one = Masked.of(X, np.dtype(dtype or X.dtype))
    products = engine._gram(one.values, wide=True).astype(np.float64, copy=False)
    return _moments(engine, one, one, products, same=True)


def masked_pair_moments(
    engine: Engine, X: Matrix, Y: Matrix, dtype: np.dtype[Any] | None = None
) -> PairMoments:
    """Return the moments of each column of `X` with each of `Y`, which has as many rows."""
    kind = np.dtype(dtype or X.dtype)
    if not len(X):
        # any values: without a row, nothing is read but how many columns there are
        X, Y = np.full((1, X.shape[1]), np.nan, X.dtype), np.full((1, Y.shape[1]), np.nan, Y.dtype)
    one, other = Masked.of(X, kind), Masked.of(Y, kind)
    return _moments(engine, one, other, _product(engine, one.values, other.values), same=False)


def _moments(engine: Engine, one: Masked, other: Masked, products: Vector, *, same: bool) -> PairMoments:
    n = _counts(engine, one, other)
    right = _sums(engine, one, other)
    left = right.transposed if same else _sums(engine, other, one).transposed
    found = settled(one.data, other.data, n, products, left, right, dtype=one.values.dtype, same=same)
    _lose_infinite(found, one, other, same=same)
    return found


def _sums(engine: Engine, rows: Masked, summed: Masked) -> SideSums:
    """Return what each column j of `summed` sums up to on the rows of each column i of `rows`."""
    values = summed.values.astype(np.float64, copy=False)
    total = np.empty((len(rows.counts), len(summed.counts)))
    squares = np.empty_like(total)
    total[...] = values.sum(axis=0)
    squares[...] = np.einsum("rc,rc->c", values, values)
    if len(rows.gaps):
        total[rows.gaps] = _product(engine, rows.mask, summed.values)
        squares[rows.gaps] = _product(engine, rows.mask, summed.values * summed.values)
    return SideSums(summed.origin[np.newaxis], summed.exponent[np.newaxis], total, squares, squares)


def _counts(engine: Engine, one: Masked, other: Masked) -> Counts:
    n = np.minimum(one.counts[:, np.newaxis], other.counts)
    if len(one.gaps) and len(other.gaps):
        both = np.zeros((len(one.gaps), len(other.gaps)))
        left, right = (side.mask.astype(np.float32, copy=False) for side in (one, other))
        for part in spans(len(left), COUNTED):
            both += engine.gram(left[part]) if one is other else engine.multiply(left[part].T, right[part])
        n[np.ix_(one.gaps, other.gaps)] = both
    return n


def _product(engine: Engine, left: Matrix, right: Matrix) -> Vector:
    """Return left' right, summed in float64 over a few float32 rows at a time."""
    if left.dtype == np.float64:
        return engine.multiply(left.T, right).astype(np.float64, copy=False)
    total = np.zeros((left.shape[1], right.shape[1]))
    for part in spans(len(left), WIDE_SUM):
        total += engine.multiply(left[part].T, right[part])
    return total


def _lose_infinite(found: PairMoments, one: Masked, other: Masked, *, same: bool) -> None:
    """Make NaN, in place, what has an inf on the rows of its pair."""
    sides = [(one, other, found.left, found.comoment)]
    # the other side of the pairs of one matrix is a view of this one
    sides.append((other, one, found.right.transposed, found.comoment.T))
    for here, there, side, comoment in sides:
        if len(here.infinite):
            values = np.isinf(here.data[:, here.infinite]).astype(np.float32)
            columns, partners = np.nonzero(values.T @ there.present.astype(np.float32))
            at = here.infinite[columns], partners
            comoment[at] = np.nan
            if not same or side is found.left:
                side.squares[at] = np.nan
