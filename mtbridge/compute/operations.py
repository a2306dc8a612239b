"""The operations that the worker, the command line and the Python functions share.

Each takes arrays and an engine, refuses what it cannot answer, and returns a `Result`.
"""

from __future__ import annotations

import time
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import is_whole, refuse_other, short
from mtbridge.compute.alike import rounded_alike
from mtbridge.compute.engine import Engine, check_out
from mtbridge.compute.moments import Moments
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import Matrix, Result, narrowed, refuse_missing

Missing: TypeAlias = Literal["pairwise", "drop", "error"]

MOST_ROWS = 2**31 - 1
"""No table has more."""


def multiply(A: Matrix, B: Matrix, *, engine: Engine) -> Result:
    """Return the product of `A`, (rows, inner), and `B`, (inner, columns), both of one dtype.

    NaN and inf pass through as in IEEE arithmetic.

    Raises
    ------
    ShapeError
        If the inner sizes differ.
    """
    start = time.perf_counter()
    matrix = engine.multiply(A, B)
    return finished(matrix, start, engine, rows=len(A))


def gram(X: Matrix, *, engine: Engine) -> Result:
    """Return X'X, (columns, columns), for `X` of shape (rows, columns); not centred."""
    start = time.perf_counter()
    matrix = engine.gram(X)
    return finished(matrix, start, engine, rows=len(X))


def covariance(
    X: Matrix,
    *,
    engine: Engine,
    ddof: int = 1,
    symbols: tuple[str, ...] | None = None,
    dtype: str | None = None,
    missing: Missing = "pairwise",
    min_periods: int = 1,
    out: Matrix | None = None,
) -> Result:
    """Return the covariance matrix of the columns of `X`, shape (rows, columns).

    Products are taken and the matrix is returned in `dtype`, by default that of `X`; centring and sums are
    in float64. The result's `counts` are the rows of each pair.

    Parameters
    ----------
    ddof : the divisor is the rows of the pair - ddof; NaN where that is not positive
    missing : "pairwise", each pair on the rows that both of its columns have; "drop", on those that all
        columns have; "error", NaN is refused
    min_periods : rows that a pair needs, else it is NaN
    out : array of shape (columns, columns) that the matrix is written to, such as one of `empty_pinned`

    An inf makes the pairs NaN that have its row in common, and no other.

    Raises
    ------
    MissingValueError
        If `X` holds NaN and `missing` is "error".
    OptionError
        If `ddof` or `min_periods` is not a whole number of 0 or more, or `missing` another word.
    InputError
        If a covariance is past the range of float32 and that is the dtype.
    ShapeError
        If `out` has another shape or dtype, is read-only, or not C-ordered.
    """
    kind = np.dtype(dtype) if dtype else X.dtype
    if out is not None:
        check_out((X.shape[1], X.shape[1]), kind, out, X)
    ddof, min_periods = counted("ddof", ddof), counted("min_periods", min_periods)
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    refuse_other_missing(missing)
    rows, X = len(X), complete_rows(X) if missing == "drop" else X
    if min_periods <= len(X) > ddof:
        found = complete_covariance(X, engine, kind, ddof, out)
        if found is not None:
            counts = np.broadcast_to(np.int64(len(X)), found.shape)
            return finished(found, start, engine, rows=rows, symbols=symbols, counts=counts)
    moments = pairs_of(X, engine, kind, "error" if missing == "drop" else missing, symbols)
    room = room_of(moments, kind) if out is None else out
    matrix = narrowed(moments.covariance(ddof, min_periods, out=room), kind)
    return finished(matrix, start, engine, rows=rows, symbols=symbols, counts=moments.n)


def correlation(
    X: Matrix,
    *,
    engine: Engine,
    symbols: tuple[str, ...] | None = None,
    dtype: str | None = None,
    missing: Missing = "pairwise",
    min_periods: int = 1,
) -> Result:
    """Return the correlation matrix of the columns of `X`; parameters and errors as for `covariance`.

    Never outside [-1, 1], the diagonal exactly 1; means and variances are of the pair's own rows. NaN where
    one side never changes on them.
    """
    kind = np.dtype(dtype) if dtype else X.dtype
    min_periods = counted("min_periods", min_periods)
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    moments = pairs_of(X, engine, kind, missing, symbols)
    matrix = moments.correlation(min_periods, out=room_of(moments, kind))
    return finished(matrix, start, engine, rows=len(X), symbols=symbols, counts=moments.n)


def pairs_of(
    X: Matrix, engine: Engine, dtype: np.dtype[Any], missing: Missing, symbols: tuple[str, ...] | None
) -> PairMoments:
    """Return the moments of the pairs of columns of `X`, with missing values taken as `missing` says.

    Products are taken in `dtype`; those of a matrix with a column that float32 rounds alike, in float64.
    """
    refuse_other_missing(missing)
    if missing == "drop":
        X = complete_rows(X)

    def found(kind: np.dtype[Any]) -> PairMoments:
        if missing == "pairwise":
            return engine.pair_moments(X, dtype=kind)
        return PairMoments.of(complete_moments(X, engine, kind, symbols))

    moments = found(dtype)
    if dtype == np.float32 and X.size and "float64" in engine.dtypes:
        exponent = np.diagonal(np.broadcast_to(moments.left.exponent, moments.shape))
        squares = np.diagonal(np.broadcast_to(moments.left.squares, moments.shape))
        if rounded_alike(X, exponent, squares):
            return found(np.dtype(np.float64))
    return moments


def complete_covariance(
    X: Matrix, engine: Engine, dtype: np.dtype[Any], ddof: int, out: Matrix | None
) -> Matrix | None:
    """Return the covariance matrix where the engine makes it of complete columns, and of none alike."""
    found = engine.complete_covariance(X, dtype=dtype, ddof=ddof, out=out)
    if found is None or dtype != np.float32:
        return None if found is None else found.matrix
    variance = np.diagonal(found.matrix).astype(np.float64)
    squares = np.ldexp((len(X) - ddof) * variance, -2 * found.exponent.astype(np.int32))
    return None if rounded_alike(X, found.exponent, squares) else found.matrix


def complete_rows(X: Matrix) -> Matrix:
    """Return the rows of `X` in which nothing is missing."""
    complete = ~np.isnan(X).any(axis=1)
    return X if complete.all() else X[complete]


def refuse_other_missing(missing: Missing) -> None:
    """Refuse a word that says nothing about missing values."""
    refuse_other("missing", missing, ("pairwise", "drop", "error"))


def refuse_count(name: str, count: Any) -> None:
    """Refuse what is no whole number of 0 or more."""
    if not is_whole(count) or count < 0:
        raise OptionError(f"{name} is {short(count)}; it must be a whole number of 0 or more.")


def counted(name: str, count: Any) -> int:
    """Return `count`, a whole number of 0 or more; past 2**31 - 1, where no row is, as that."""
    refuse_count(name, count)
    return min(int(count), MOST_ROWS)


def refuse_symbols(X: Matrix, symbols: tuple[str, ...] | None) -> None:
    """Refuse more or fewer symbols than columns."""
    if symbols is not None and len(symbols) != X.shape[1]:
        raise ShapeError(f"there are {len(symbols)} symbols for {X.shape[1]} columns; they must be equal.")


def complete_moments(
    X: Matrix, engine: Engine, dtype: np.dtype[Any], symbols: tuple[str, ...] | None
) -> Moments:
    """The moments of `X`, refused if it holds NaN, which an origin tells without one more pass."""
    moments = engine.moments(X, dtype=dtype)
    if np.isnan(moments.origin).any():
        refuse_missing(X, symbols=symbols)
    return moments


def room_of(moments: PairMoments, dtype: np.dtype[Any]) -> Matrix:
    """Return an array for the matrix of `moments`, which nobody needs any more: their own, where it fits."""
    if moments.comoment.dtype == dtype and moments.comoment.flags.writeable:
        return moments.comoment
    return np.empty(moments.shape, dtype)


def finished(
    matrix: Matrix,
    start: float,
    engine: Engine,
    *,
    rows: int,
    symbols: tuple[str, ...] | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Result:
    """Return `matrix` as a `Result` of this engine; the seconds are those since `start`.

    Counts that are the same for all pairs are one number in memory, and cannot be written to.
    """
    return Result(
        matrix=matrix,
        symbols=symbols,
        counts=counts,
        rows=rows,
        engine=engine.used.name,
        device=engine.used.device,
        seconds=time.perf_counter() - start,
    )
