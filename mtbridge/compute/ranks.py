"""Rank correlations on the host: Spearman's by exact whole ranks, Kendall's tau-b by products of signs.

NaN is missing, and each pair of columns is ranked on the rows that both have. An infinity is an ordinary
value here: it has a rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.engine import Engine, gram_in
from mtbridge.compute.host import mirrored
from mtbridge.compute.ordering import Ordering
from mtbridge.matrix import Matrix

Answer = tuple[NDArray[np.float64], NDArray[np.int64]]

BLOCK_ELEMENTS = 1 << 19
"""Ranks of one side of a block of pairs: what is added up is still in the cache."""

SIGN_BYTES = 1 << 21
"""Of one block of signs, which stays in the cache; float32 counts exactly up to 2**24 rows."""


def host_spearman(engine: Engine, X: Matrix) -> Answer:
    """Return Spearman's rank correlations of the columns of `X`, and the counts.

    Parameters
    ----------
    engine : takes the product of the ranks of the columns without NaN
    X : float32 or float64 array of shape (rows, columns); NaN is missing, inf has a rank

    Returns
    -------
    matrix : float64 array of shape (columns, columns)
        Pearson's correlation of average ranks, each pair ranked on its common rows; NaN where those are fewer
        than two or a column is constant on them. The diagonal is exactly 1, and so is any pair whose ranks
        agree; symmetric bit for bit.
    counts : int64 array of that shape, the common rows
    """
    ordering = Ordering.of(X)
    columns = X.shape[1]
    matrix, counts = np.empty((columns, columns)), np.empty((columns, columns), np.int64)
    complete, partial = np.flatnonzero(ordering.complete), np.flatnonzero(~ordering.complete)
    if len(complete):
        both = np.ix_(complete, complete)
        matrix[both], counts[both] = complete_spearman(engine, ordering, complete), len(X)
    side = max(1, min(64, int((BLOCK_ELEMENTS / max(len(X), 1)) ** 0.5)))
    blocks = [complete[part] for part in spans(len(complete), side)]
    for part in spans(len(partial), side):
        right = partial[part]
        blocks.append(right)
        for left in blocks:
            mine, theirs = _ranks(ordering, left, right), _ranks(ordering, right, left)
            product = np.einsum("itj,jti->ij", mine, theirs)
            found = rank_correlation(
                product, np.einsum("itj,itj->ij", mine, mine), np.einsum("jti,jti->ij", theirs, theirs)
            )
            if left is right:
                # the same whole numbers in both triangles, but past 2**53 they are rounded as they are added
                np.fill_diagonal(mirrored(found), np.where(np.isnan(np.diagonal(found)), np.nan, 1.0))
            matrix[np.ix_(left, right)], matrix[np.ix_(right, left)] = found, found.T
            common = ordering.here[:, left].T.astype(np.float64) @ ordering.here[:, right]
            counts[np.ix_(left, right)], counts[np.ix_(right, left)] = common, common.T
    return matrix, counts


def complete_spearman(engine: Engine, ordering: Ordering, columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the rank correlations of columns without NaN, by one product of their ranks."""
    products = gram_in(engine, ordering.doubled_ranks(columns), "float64")
    squares = np.diagonal(products)
    return rank_correlation(products, squares[:, np.newaxis], squares)


def rank_correlation(product: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``product / sqrt(left * right)``, NaN where a square is 0; never outside [-1, 1].

    Of exact whole numbers 1 and -1 come out exactly, and only where the ranks agree.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        # sqrt(v * v) is exactly v
        matrix: NDArray[np.float64] = product / np.sqrt(np.multiply(left, right, dtype=np.float64))
    return np.clip(matrix, -1, 1, out=matrix)


def _ranks(ordering: Ordering, columns: NDArray[np.intp], partners: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the doubled ranks of each column on the rows of each pair, less their mean, 0 in all other rows.

    Of shape (columns, rows, partners).
    """
    ranks = np.zeros((len(columns), ordering.rows, len(partners)))
    here = ordering.here[:, partners].astype(np.float64)
    for at, column in enumerate(columns):
        walk = ordering.order[column, : ordering.present[column]]
        common = here.take(walk, axis=0)
        doubled = common.cumsum(axis=0)
        n = doubled[-1].copy() if len(walk) else 0.0
        begin, end = ordering.groups(column)
        if len(begin) == len(walk):
            # the k-th of n common rows has the doubled rank 2 k, the mean is n + 1
            doubled *= 2
            doubled -= n + 1
        else:
            last = doubled[end - 1]
            last[1:] += last[:-1].copy()
            doubled = np.repeat(last - n, end - begin, axis=0)
        doubled *= common
        ranks[at, walk] = doubled
    return ranks


def kendall(engine: Engine, X: Matrix) -> Answer:
    """Return Kendall's tau-b of the columns of `X`, and the counts.

    Parameters
    ----------
    engine : takes the products of signs
    X : float32 or float64 array of shape (rows, columns); NaN is missing, inf is a value like any other

    Returns
    -------
    matrix : float64 array of shape (columns, columns)
        Concordant less discordant pairs of rows, divided by the root of the product of the pairs of rows that
        are not tied in the one column and those not tied in the other; all on the rows that both columns
        have. NaN where those are fewer than two or a column is constant on them. The diagonal is exactly 1,
        and so is any pair whose orders agree; symmetric bit for bit.
    counts : int64 array of that shape, the common rows

    Notes
    -----
    The numerator is X'X of the signs of all differences between two rows, of which there are rows**2 / 2.
    They are made block by block, and counted exactly.
    """
    ordering = Ordering.of(X)
    columns = X.shape[1]
    everyone = np.arange(columns)
    counts, loose = np.empty((columns, columns), np.int64), np.empty((columns, columns))
    for column in everyone:
        along = ordering.counted(column, everyone)
        begin, end = ordering.groups(column)
        tied = along[end] - along[begin]
        n = counts[column] = along[-1]
        # pairs of rows that differ in this column
        loose[column] = n * (n - 1) // 2 - (tied * (tied - 1) // 2).sum(axis=0)
    excess = np.zeros((columns, columns))
    for signs in _signs(ordering):
        excess += gram_in(engine, signs, "float32")
    return rank_correlation(excess, loose, loose.T), counts


def _signs(ordering: Ordering) -> Iterator[Matrix]:
    """Yield signs of the differences between every two rows, 0 where one is NaN: (differences, columns)."""
    rows, columns = ordering.here.shape
    ranks = np.empty((columns, rows), np.float32)
    # the groups of equal values in their order; float32 holds them up to 2**24 rows
    np.put_along_axis(ranks, ordering.order, np.cumsum(ordering.fresh, axis=1, dtype=np.float32), axis=1)
    levels, here = np.ascontiguousarray(ranks.T), ordering.here
    missing = not here.all()
    most = max(rows, SIGN_BYTES // (4 * max(columns, 1)))
    block = np.empty((most, columns), np.float32)
    filled = 0
    for apart in range(1, rows):
        if filled + rows - apart > most:
            yield np.clip(block[:filled], -1, 1, out=block[:filled])
            filled = 0
        part = block[filled : filled + rows - apart]
        np.subtract(levels[apart:], levels[:-apart], out=part)
        if missing:
            part *= here[apart:] & here[:-apart]
        filled += rows - apart
    if filled:
        yield np.clip(block[:filled], -1, 1, out=block[:filled])
