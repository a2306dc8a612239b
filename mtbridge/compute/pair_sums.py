"""From sums over the rows of a pair to its moments, and which pairs must be done again with care.

The sums are about one origin a column, so on few of its rows a column may lie far from it, and the difference
of its sums then has lost digits. Nothing is guessed about that: the difference itself tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.careful import Indices, careful_pairs
from mtbridge.compute.moments import Vector
from mtbridge.compute.pair_moments import Counts, PairMoments, Side
from mtbridge.matrix import Matrix

SHARE = {np.dtype(np.float64): 2.0**-10, np.dtype(np.float32): 2.0**-1}
"""Share of its terms that a sum of squared deviations must have, by the type of the products."""

SMALLEST, LARGEST = 2.0**-480, 2.0**480
"""Between these, the product of two sums of squares keeps its digits."""


Again = Callable[[Indices, Indices, Counts], PairMoments]
"""From the left columns, the right ones and the common rows of some pairs to their moments, (pairs,)."""


@dataclass(frozen=True, slots=True, eq=False)
class SideSums:
    """Sums of the left or the right column of each pair, over the rows of the pair.

    Attributes
    ----------
    origin, exponent : of z, as `Side` has them
    total : float64 of the shape of the pairs, the sums of z
    squares : the sums of z squared
    terms : the sums of squares out of which those have been computed: themselves, or larger ones
    """

    origin: Vector
    exponent: Counts
    total: Vector
    squares: Vector
    terms: Vector

    @property
    def transposed(self) -> SideSums:
        return SideSums(self.origin.T, self.exponent.T, self.total.T, self.squares.T, self.terms.T)


def settled(
    X: Matrix,
    Y: Matrix,
    n: Counts,
    products: Vector,
    left: SideSums,
    right: SideSums,
    *,
    dtype: np.dtype[Any],
    same: bool,
) -> PairMoments:
    """Return the moments of the pairs of columns of `X` and `Y`.

    Parameters
    ----------
    n : int64 array of shape (columns of X, columns of Y)
    products : the sums of z_i z_j; may be overwritten
    left, right : of the columns of `X`, and of `Y`; the arrays may be overwritten
    dtype : in which products were taken
    same : `Y` is `X`, `left` is `right` transposed, and the answer is symmetric
    """
    if same:
        # one column is its own partner: what is subtracted from the same sum gives the same difference
        np.fill_diagonal(right.squares, np.diagonal(products))
    rows = np.maximum(n, 1).astype(np.float64)
    sides = []
    doubtful = np.zeros(n.shape, bool)
    share = SHARE[dtype]
    for sums in (right,) if same else (right, left):
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = sums.squares - sums.total * sums.total / rows
            doubtful |= ~(
                (deviations >= share * sums.terms) & (deviations > SMALLEST) & (deviations < LARGEST)
            )
        sides.append(Side(sums.origin, sums.exponent, sums.total / rows, deviations))
    other = sides[0]
    one = other.transposed if same else sides[1]
    with np.errstate(over="ignore", invalid="ignore"):
        # both orders of a pair give the same bits
        comoment = np.subtract(products, left.total * right.total / rows, out=products)
    # a single row has no deviation, unless it holds inf: then the products are NaN
    few = (n < 2) & ~np.isnan(comoment)
    if few.any():
        for array in (comoment, *(side.squares for side in sides)):
            array[few] = 0
        doubtful &= ~few
    found = PairMoments(n, comoment, one, other)

    def again(lefts: Indices, rights: Indices, _rows: Counts) -> PairMoments:
        return careful_pairs(X, Y, (lefts, rights))

    return done_again(found, doubtful, again, same=same)


def done_again(found: PairMoments, doubtful: NDArray[np.bool_], again: Again, *, same: bool) -> PairMoments:
    """Return `found` with its doubtful pairs done by `again`; of one matrix, (i, j) is as good as (j, i)."""
    if not doubtful.any():
        return found
    if same:
        doubtful = np.triu(doubtful | doubtful.T)
    lefts, rights = np.nonzero(doubtful)
    others = again(lefts, rights, found.n[lefts, rights])
    return found.replaced((lefts, rights), others, mirror=same)
