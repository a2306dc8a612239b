"""Columns whose float32 products are all rounded alike, so that roundings add up instead of cancelling.

Float32 sums are taken over a few rows at a time (`forms.WIDE_SUM`), and of ordinary columns their roundings
go either way. Of a column of two or three levels they do not: equal products are added to equal sums. Nor of
one that lies still but for a few outliers: beside the square of one, all others are lost. A correlation may
then be off by 2e-6. Such columns are rare, so their matrix is computed once more, in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.moments import Vector
from mtbridge.matrix import Matrix

SAMPLE = 32
"""Rows that are looked at, evenly spaced."""

FEW_LEVELS = 3
STILL = 2.0**-10
"""Share of a column's range: a median deviation below it is still beside the outliers."""

OUTLYING = 4
"""So many times the squares of still rows are those of a column that its outliers rule."""


def rounded_alike(X: Matrix, exponent: NDArray[np.int64], squares: Vector) -> bool:
    """Whether a column of `X` is such a one; a sample of rows tells.

    Parameters
    ----------
    exponent, squares : of each column; the sum of the squares of ``(x - mean) * 2**-exponent``
    """
    rows = len(X)
    sample = X[np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.intp)].astype(np.float64)
    sample[np.isinf(sample)] = np.nan
    # what is missing comes last
    sample.sort(axis=0)
    there = np.count_nonzero(~np.isnan(sample), axis=0)
    levels = np.count_nonzero(sample[1:] > sample[:-1], axis=0) + (there > 0)
    columns = np.arange(X.shape[1])
    middle = np.maximum(there - 1, 0) // 2
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(sample - sample[middle, columns])
        size.sort(axis=0)
        median = np.ldexp(size[middle, columns], -exponent.astype(np.int32))
        outlying = (median < STILL) & (squares > OUTLYING * rows * median * median)
    # constants, and what holds inf, are what they are in any type
    return bool((((levels <= FEW_LEVELS) | outlying) & (squares > 0)).any())
