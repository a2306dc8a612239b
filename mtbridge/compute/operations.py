"""The operations that the worker, the command line and the Python functions share.

Each takes arrays and an engine, refuses what it cannot answer, and returns a `Result`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.engine import Engine
from mtbridge.compute.moments import Moments
from mtbridge.errors import InputError, OptionError, ShapeError
from mtbridge.matrix import Matrix, Result, refuse_missing


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
) -> Result:
    """Return the covariance matrix of the columns of `X`, shape (rows, columns).

    Products are taken and the matrix is returned in `dtype`, by default that of `X`; centring and sums are
    in float64. NaN everywhere where ``rows <= ddof``; a column that holds inf makes its own row and column
    NaN.

    Raises
    ------
    MissingValueError
        If `X` holds NaN.
    OptionError
        If `ddof` is not a whole number of 0 or more.
    InputError
        If a covariance is past the range of float32 and that is the dtype.
    """
    kind = np.dtype(dtype) if dtype else X.dtype
    if isinstance(ddof, bool) or not isinstance(ddof, int | np.integer) or ddof < 0:
        raise OptionError(f"ddof is {ddof!r}; it must be a whole number of 0 or more (1 is usual).")
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    matrix = complete_moments(X, engine, kind, symbols).covariance(ddof)
    if kind == np.float32 and np.nanmax(np.abs(matrix), initial=0.0) > np.finfo(np.float32).max:
        raise InputError("a covariance is past the range of float32; use float64.")
    matrix = matrix.astype(kind, copy=False)
    return finished(matrix, start, engine, rows=len(X), symbols=symbols, counted=True)


def correlation(
    X: Matrix, *, engine: Engine, symbols: tuple[str, ...] | None = None, dtype: str | None = None
) -> Result:
    """Return the correlation matrix of the columns of `X`, shape (rows, columns); `dtype` as in `covariance`.

    Never outside [-1, 1], the diagonal exactly 1; NaN for a column that never changes or holds inf.

    Raises
    ------
    MissingValueError
        If `X` holds NaN.
    """
    kind = np.dtype(dtype) if dtype else X.dtype
    refuse_symbols(X, symbols)
    start = time.perf_counter()
    matrix = complete_moments(X, engine, kind, symbols).correlation()
    matrix = matrix.astype(kind, copy=False)
    return finished(matrix, start, engine, rows=len(X), symbols=symbols, counted=True)


def refuse_symbols(X: Matrix, symbols: tuple[str, ...] | None) -> None:
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


def finished(
    matrix: Matrix,
    start: float,
    engine: Engine,
    *,
    rows: int,
    symbols: tuple[str, ...] | None = None,
    counted: bool = False,
) -> Result:
    counts: NDArray[np.int64] | None = np.full(matrix.shape, rows, np.int64) if counted else None
    return Result(
        matrix=matrix,
        symbols=symbols,
        counts=counts,
        rows=rows,
        engine=engine.used.name,
        device=engine.used.device,
        seconds=time.perf_counter() - start,
    )
