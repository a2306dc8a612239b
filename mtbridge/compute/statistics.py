"""Windows, ranks, lags and weights: the operations beyond one covariance, each of arrays and a `Result`.

What the worker, the command line and the Python functions share, as `operations` is for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.decay import Decay
from mtbridge.compute.engine import Engine
from mtbridge.compute.lagged import lagged as lagged_matrices
from mtbridge.compute.newest import newest_matrix, newest_rows
from mtbridge.compute.operations import (
    Missing,
    complete_rows,
    counted,
    finished,
    refuse_other_missing,
    refuse_symbols,
)
from mtbridge.compute.reduced import Largest, Reducer, reduced
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.weights import Weighing, weighted_correlation, weighted_covariance
from mtbridge.compute.windows import Rolling
from mtbridge.errors import OptionError
from mtbridge.matrix import Matrix, Result, narrowed, refuse_missing

BLOCK_BYTES = 1 << 26
"""So much of an answer is written between two reports of progress."""

MODEST = 1e15
"""A range of data whose covariances float32 holds, whatever the divisor makes of their squares."""

Progress = Callable[[int, int], None]
"""Called with the windows that are done and all of them."""


def moving(
    X: Matrix,
    plan: Rolling | Decay,
    wanted: Wanted,
    *,
    engine: Engine,
    reducer: Reducer[Any] | None = None,
    symbols: tuple[str, ...] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Return one matrix for each window of `plan`, or what `reducer` keeps of each.

    Parameters
    ----------
    X : float array of shape (rows, columns), oldest row first; NaN is missing, inf is data
    plan : the windows: `Rolling`, or `Decay` for expanding and exponentially weighted ones
    wanted : what each matrix is
    reducer : of `compute.reducers`; the matrices themselves then never exist all at once
    progress : called after each block, of about 64 MB where the whole answer is written

    Returns
    -------
    Result
        Its matrix has shape (windows, *wanted.shape(columns)), or that of the reducer's answer; of the
        largest pairs it holds their values, and `pairs` their columns.
    """
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    pairs = None
    if reducer is None:
        sequence = engine.sequence(X, plan, wanted)
        matrix = aligned_empty((sequence.count, *sequence.shape), wanted.dtype)
        large = may_overflow(X, wanted)
        for first, block in _parts(matrix, BLOCK_BYTES):
            sequence.write(block)
            if large:
                narrowed(block, wanted.dtype, what=f"a {wanted.statistic}")
            if progress is not None:
                progress(first + len(block), sequence.count)
    else:
        sequence = engine.sequence(X, plan, reducer.wanted(wanted))
        answer = reduced(sequence, reducer, progress=progress)
        matrix, pairs = answer if isinstance(answer, Largest) else (answer, None)
    found = _moved(matrix, start, engine, X, plan, wanted, symbols)
    return replace(found, pairs=pairs, packed=wanted.packed and reducer is None)


def newest(
    X: Matrix,
    plan: Rolling | Decay,
    wanted: Wanted,
    *,
    engine: Engine,
    symbols: tuple[str, ...] | None = None,
) -> Result:
    """Return the last matrix of `plan` alone, of shape ``wanted.shape(columns)``; see `compute.newest`.

    Raises
    ------
    OptionError
        If there is no window at all.
    """
    refuse_symbols(X, symbols)
    if len(plan) == 0:
        raise OptionError("there are no rows, so there is no last window.")
    start = time.perf_counter()
    matrix = narrowed(newest_matrix(X, plan, wanted, engine), wanted.dtype, what=f"a {wanted.statistic}")
    if isinstance(plan, Rolling):
        X, plan = newest_rows(X, plan)
    found = _moved(matrix, start, engine, X, plan, wanted, symbols)
    return replace(found, packed=wanted.packed, effective=partial(_newest_effective, X, plan))


def may_overflow(X: Matrix, wanted: Wanted) -> bool:
    """Whether an answer in float32 may be past its range, so that it is worth one more look at the answer."""
    if wanted.dtype != np.float32 or wanted.statistic == "correlation" or not X.size:
        return False
    if wanted.statistic == "beta":
        return True
    finite = np.where(np.isfinite(X), X, 0.0)
    with np.errstate(over="ignore"):
        return bool(np.ptp(finite, axis=0).max() > MODEST)


def streamed(sequence: MatrixSequence, size: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (number of the first window, matrices), `size` windows at a time, each in an array of its own."""
    while sequence.done < sequence.count:
        first = sequence.done
        block = aligned_empty((min(size, sequence.count - first), *sequence.shape), sequence.wanted.dtype)
        sequence.write(block)
        yield first, block


def _parts(matrix: NDArray[Any], size: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (first, part) for parts of about `size` bytes."""
    each = matrix.nbytes // max(1, len(matrix))
    count = max(1, size // max(1, each))
    for first in range(0, len(matrix), count):
        yield first, matrix[first : first + count]


def _moved(
    matrix: Matrix,
    start: float,
    engine: Engine,
    X: Matrix,
    plan: Rolling | Decay,
    wanted: Wanted,
    symbols: tuple[str, ...] | None,
) -> Result:
    notes: tuple[str, ...] = ()
    if len(plan):
        longest = int((plan.last - plan.first).max()) + 1 if isinstance(plan, Rolling) else len(X)
        if longest < wanted.min_periods:
            notes = (
                f"min_periods asks for more rows than any window has, {longest} at most, so every answer is "
                "NaN.",
            )
    found = finished(matrix, start, engine, rows=len(X), symbols=symbols)
    return replace(found, effective=partial(_effective, X, plan), notes=notes)


def _effective(X: Matrix, plan: Rolling | Decay) -> NDArray[np.float64] | None:
    """Kish's number of equally weighted rows of each window; None where a pair may miss some of them."""
    if np.isnan(X).any():
        return None
    if isinstance(plan, Rolling):
        return plan.rows.astype(np.float64)
    found = np.empty(len(plan))
    total = squares = 0.0
    for row, factor in enumerate(plan.factor.tolist()):
        # without adjust the weights sum to 1 after each row, the first one has all of it
        weight = plan.weight if row else 1.0
        total, squares = total * factor + weight, squares * factor * factor + weight * weight
        found[row] = total * total / squares
    return found


def _newest_effective(X: Matrix, plan: Rolling | Decay) -> float | None:
    found = _effective(X, plan)
    return None if found is None else float(found[-1])


def rank_correlation(
    X: Matrix,
    method: Literal["spearman", "kendall"],
    *,
    engine: Engine,
    min_periods: int = 1,
    missing: Missing = "pairwise",
    symbols: tuple[str, ...] | None = None,
    dtype: str | None = None,
) -> Result:
    """Return Spearman's rank correlations of the columns of `X`, or Kendall's tau-b.

    Each pair is ranked on the rows that both columns have; equal values share their mean rank. `missing` and
    `dtype` as in `operations.covariance`; ranks and sums are whole numbers or float64 in either case.

    Raises
    ------
    OptionError
        If there is no such method.
    """
    if not isinstance(method, str) or method not in ("spearman", "kendall"):
        raise OptionError(
            f"there is no rank correlation {short(method)}; there are 'spearman' and 'kendall'."
        )
    min_periods = counted("min_periods", min_periods)
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    ranked = present(X, missing, symbols)
    matrix, counts = engine.spearman(ranked) if method == "spearman" else engine.kendall(ranked)
    matrix = np.where(counts < min_periods, np.nan, matrix).astype(dtype or X.dtype, copy=False)
    return finished(matrix, start, engine, rows=len(X), symbols=symbols, counts=counts)


def lagged(
    X: Matrix,
    most: int,
    statistic: Statistic = "correlation",
    *,
    engine: Engine,
    ddof: int = 1,
    min_periods: int = 1,
    symbols: tuple[str, ...] | None = None,
    dtype: str | None = None,
) -> Result:
    """Return the matrices of the lags -most to most, shape (2 * most + 1, columns, columns).

    Element (most + lag, i, j) is of column i at row t - lag with column j at row t, on the rows where both
    are there; see `compute.lagged.lagged`.
    """
    ddof, min_periods = counted("ddof", ddof), counted("min_periods", min_periods)
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    kind = np.dtype(dtype) if dtype else None
    matrix, counts = lagged_matrices(engine, X, most, statistic, ddof, min_periods, kind)
    return finished(matrix, start, engine, rows=len(X), symbols=symbols, counts=counts)


def weighted(
    X: Matrix,
    statistic: Literal["covariance", "correlation"],
    *,
    engine: Engine,
    frequency: Any = None,
    reliability: Any = None,
    ddof: int = 1,
    missing: Missing = "pairwise",
    min_periods: int = 1,
    symbols: tuple[str, ...] | None = None,
    dtype: str | None = None,
) -> Result:
    """Return the covariance or correlation matrix of weighted rows, by numpy's definitions.

    Parameters
    ----------
    frequency, reliability : one number for each row; see `compute.weights.weighted_covariance`
    missing : as in `operations.covariance`, but weighted pairs have no rows of their own: "pairwise", like
        "error", refuses a NaN in a row that has a weight
    min_periods : rows with a weight above 0 that there must be, else NaN

    Returns
    -------
    Result
        Its `effective_rows` are Kish's, its counts the rows with a weight above 0.
    """
    refuse_other_missing(missing)
    min_periods = counted("min_periods", min_periods)
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    rows, kind = len(X), np.dtype(dtype or X.dtype)
    if missing == "drop":
        complete = ~np.isnan(X).any(axis=1)
        # all weights are looked at, also those of rows that are left out
        Weighing.of(rows, frequency, reliability)
        X = X[complete]
        frequency, reliability = (
            None if weights is None else np.asarray(weights)[complete] for weights in (frequency, reliability)
        )
    kept = len(Weighing.of(len(X), frequency, reliability).kept)
    if statistic == "covariance":
        matrix, effective = weighted_covariance(
            X, engine=engine, frequency=frequency, reliability=reliability, ddof=ddof, dtype=kind
        )
    else:
        matrix, effective = weighted_correlation(
            X, engine=engine, frequency=frequency, reliability=reliability, dtype=kind
        )
    if kept < min_periods:
        matrix = np.full_like(matrix, np.nan)
    counts = np.full(matrix.shape, kept, np.int64)
    found = finished(matrix, start, engine, rows=rows, symbols=symbols, counts=counts)
    return replace(found, effective=effective)


def present(X: Matrix, missing: Missing, symbols: tuple[str, ...] | None) -> Matrix:
    """Return `X` with its missing values dealt with: kept for "pairwise", rows left out, or refused."""
    refuse_other_missing(missing)
    if missing == "drop":
        return complete_rows(X)
    if missing == "error":
        refuse_missing(X, symbols=symbols)
    return X
