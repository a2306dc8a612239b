"""Covariances and correlations of each matrix of a batch: what `operations` does for one, for all at once."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import operations
from mtbridge.compute.engine import Engine
from mtbridge.compute.operations import Missing, counted, finished, refuse_other_missing
from mtbridge.matrix import Matrix, Result, narrowed

SUM = np.dtype(np.float64)


def batch_statistic(
    X: Matrix,
    statistic: Literal["covariance", "correlation"],
    *,
    engine: Engine,
    ddof: int = 1,
    dtype: str | None = None,
    missing: Missing = "pairwise",
    min_periods: int = 1,
) -> Result:
    """Return the covariance or correlation matrix of the columns of each matrix of `X`, (…, rows, columns).

    Products are taken in float64, which costs small matrices little; the answer is in `dtype`, by default
    that of `X`. Matrices that miss values are done one by one, as `operations.covariance` does them: its
    parameters and errors.

    Returns
    -------
    Result
        Its matrix and counts have the shape (…, columns, columns); its `effective_rows` are the smallest
        count of each matrix.
    """
    refuse_other_missing(missing)
    kind = np.dtype(dtype) if dtype else X.dtype
    ddof, min_periods = counted("ddof", ddof), counted("min_periods", min_periods)
    start = time.perf_counter()
    rows = X.shape[-2]
    found, gaps = _found(X, statistic, engine, ddof, kind)
    used = engine.used
    if rows < min_periods:
        found[...] = np.nan
    matrix = narrowed(found, kind)
    counts: NDArray[np.int64] = np.broadcast_to(np.int64(rows), matrix.shape)
    if len(gaps):
        counts = counts.copy()
        for at in map(tuple, gaps):
            common: dict[str, Any] = {"engine": engine, "dtype": kind.name, "missing": missing}
            if statistic == "covariance":
                one = operations.covariance(X[at], ddof=ddof, min_periods=min_periods, **common)
            else:
                one = operations.correlation(X[at], min_periods=min_periods, **common)
            matrix[at] = one.matrix
            counts[at] = rows if one.counts is None else one.counts
    result = finished(matrix, start, used, rows=rows, counts=counts)
    return replace(result, effective=partial(_effective, counts))


def _found(
    X: Matrix, statistic: str, engine: Engine, ddof: int, kind: np.dtype[Any]
) -> tuple[Matrix, NDArray[np.intp]]:
    """The matrices, for an answer in `kind`, and the places of those that miss values, or seem to."""
    if statistic == "covariance" and kind.itemsize <= X.itemsize:
        quick = engine.batch_covariance(X, ddof)
        if quick is not None:
            return quick[0], np.argwhere(quick[1])
    moments = engine.moments(X, dtype=SUM if SUM.name in engine.dtypes else X.dtype)
    found = moments.covariance(ddof) if statistic == "covariance" else moments.correlation()
    return found, np.argwhere(np.isnan(moments.origin).any(axis=-1))


def _effective(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The smallest count of each matrix; 0 where it has no columns."""
    if not counts.shape[-1]:
        return np.zeros(counts.shape[:-2])
    found: NDArray[np.float64] = counts.min(axis=(-2, -1)).astype(np.float64)
    return found
