"""Covariance, correlation and products of arrays and DataFrames: what `import mtbridge` offers.

A DataFrame in gives a DataFrame out, with its labels; rows are bars, columns are symbols, as in pandas.
pandas itself is never imported here: whoever holds a DataFrame has it already.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import open_engine, operations
from mtbridge.compute.devices import VARIABLE
from mtbridge.compute.engine import Engine
from mtbridge.errors import InputError, OptionError, ShapeError
from mtbridge.matrix import DTYPES, Matrix, Result, as_matrix, past_float64

Table: TypeAlias = Any
"""An array-like of numbers or a pandas DataFrame."""

_mine = threading.local()


@overload
def covariance(
    data: Table,
    *,
    ddof: int = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[False] = ...,
) -> Table: ...
@overload
def covariance(
    data: Table,
    *,
    ddof: int = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[True],
) -> Result: ...
def covariance(
    data: Table,
    *,
    ddof: int = 1,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Table:
    """Return the covariance matrix of the columns of `data`.

    Parameters
    ----------
    data : array or DataFrame of numbers, of shape (rows, symbols); rows are bars
    ddof : the divisor is ``rows - ddof``; 1 as in pandas
    engine : "auto", "opencl", "numpy", "serial", or an engine that `open_engine` returned
        By name, one engine is kept open for each thread. `auto` takes numpy or OpenCL, whichever is faster
        for the shape by a measurement that is made once, at the first call that is large enough to matter.
    device : which OpenCL device: an index of `mtbridge devices`, a part of a name, "gpu" or "cpu"
    dtype : "float32" or "float64"; by default that of `data`, and float64 for all but float32
        In float32 products are taken in float32 and added up so over at most 64 rows; centring and all
        other sums stay in float64.
    full : return a `Result`, which also has the counts, the engine, the device and the time

    Returns
    -------
    DataFrame if `data` is one, else array; of shape (symbols, symbols), symmetric bit for bit
        NaN everywhere if ``rows <= ddof``. A column that holds inf makes its own row and column NaN.

    Raises
    ------
    MissingValueError
        If there is a NaN.
    InputError
        If a column does not hold numbers.
    DeviceError
        If OpenCL is asked for and no device is usable.
    """
    X, labels = table(without_level(data))
    result = operations.covariance(
        X, engine=opened(engine, device), ddof=ddof, symbols=names(labels), dtype=checked(dtype)
    )
    return result if full else square(result, labels)


@overload
def correlation(
    data: Table,
    *,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[False] = ...,
) -> Table: ...
@overload
def correlation(
    data: Table,
    *,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[True],
) -> Result: ...
def correlation(
    data: Table,
    *,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Table:
    """Return the correlation matrix of the columns of `data`; parameters and errors as for `covariance`.

    Never outside [-1, 1]; the diagonal is exactly 1, and NaN for a column that never changes or holds inf.
    """
    X, labels = table(without_level(data))
    result = operations.correlation(
        X, engine=opened(engine, device), symbols=names(labels), dtype=checked(dtype)
    )
    return result if full else square(result, labels)


@overload
def multiply(
    A: Table,
    B: Table,
    *,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[False] = ...,
) -> Table: ...
@overload
def multiply(
    A: Table,
    B: Table,
    *,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[True],
) -> Result: ...
def multiply(
    A: Table,
    B: Table,
    *,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Table:
    """Return the matrix product of `A`, (rows, inner), and `B`, (inner, columns).

    The error of an element is at most ``inner * eps * (|A| |B|)``, eps of the dtype. NaN and inf pass
    through as in IEEE arithmetic. `engine`, `device`, `dtype` and `full` as for `covariance`; without
    `dtype` the product is float32 only if both are.

    Returns
    -------
    DataFrame if `A` or `B` is one, with the rows of `A` and the columns of `B`, else array

    Raises
    ------
    ShapeError
        If the inner sizes differ, or the inner labels of two DataFrames do.
    """
    left, right = factors(A, B, dtype=dtype)
    result = operations.multiply(left, right, engine=opened(engine, device))
    return result if full else product_table(result.matrix, A, B)


def empty_pinned(
    shape: int | tuple[int, ...],
    dtype: Any = "float64",
    *,
    engine: str | Engine = "auto",
    device: str | None = None,
) -> NDArray[Any]:
    """Return an uninitialised array for data that goes to a device again and again.

    Parameters
    ----------
    shape : lengths, such as (rows, symbols)
    dtype : float32 or float64
    engine, device : where it will be used, as for `covariance`
        A CPU device computes on the array where it lies; for a graphics card it is page-locked and copied
        straight. The numpy and serial engines return a plain aligned array.

    Returns
    -------
    C-ordered array of `shape`; it is memory like any other and may outlive the engine

    Raises
    ------
    ShapeError
        If a length is negative or no whole number.
    OptionError
        If `dtype` is another type.
    """
    return opened(engine, device).empty_pinned(shape, dtype)


def factors(A: Table, B: Table, *, dtype: str | None = None) -> tuple[Matrix, Matrix]:
    """Return the numbers of `A` and `B` in one dtype, once their inner labels are known to agree."""
    left, inner = table(A, name="A", dtype=dtype)
    right, _ = table(B, name="B", dtype=dtype)
    if inner is not None and is_frame(B) and not inner.equals(B.index):
        raise ShapeError("the columns of A and the rows of B have different labels; align them first.")
    if left.dtype != right.dtype:
        left, right = left.astype(np.float64, copy=False), right.astype(np.float64, copy=False)
    return left, right


def product_table(matrix: Matrix, A: Table, B: Table) -> Table:
    """Return the product `matrix` as a DataFrame if `A` or `B` is one, with the labels that there are."""
    if not (is_frame(A) or is_frame(B)):
        return matrix
    rows = A.index if is_frame(A) else None
    columns = B.columns if is_frame(B) else None
    return sys.modules["pandas"].DataFrame(matrix, index=rows, columns=columns)


def is_frame(data: Table) -> bool:
    """Whether `data` is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def table(data: Table, *, name: str = "data", dtype: str | None = None) -> tuple[Matrix, Any]:
    """Return the numbers of `data` as a matrix, and its column labels, None for an array."""
    if not is_frame(data):
        return as_matrix(data, name=name, dtype=dtype), None
    pandas = sys.modules["pandas"]
    for label, kind in zip(data.columns, data.dtypes, strict=True):
        if not pandas.api.types.is_numeric_dtype(kind) or pandas.api.types.is_complex_dtype(kind):
            raise InputError(
                f"column {label!r} of {name} holds {kind} values, not numbers; drop it or convert it first."
            )
        if kind.kind in "iu" and len(data) and past_float64(data[label].dropna().to_numpy()):
            raise InputError(
                f"column {label!r} of {name} holds whole numbers past 2**53, which float64 would round; "
                "subtract a common level first."
            )
    # the nullable types of pandas and arrow name the numpy type that they hold
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in data.dtypes]
    single = len(kinds) > 0 and all(kind == np.float32 for kind in kinds)
    values = data.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return as_matrix(values, name=name, dtype=dtype), data.columns


def without_level(data: Table) -> Table:
    """Return `data` with whole numbers past 2**53 less the first row, exactly.

    A covariance does not see a level that a column has throughout, and float64 would round it.
    """
    if is_frame(data):
        large = [
            position
            for position, kind in enumerate(data.dtypes)
            if isinstance(kind, np.dtype) and kind.kind in "iu" and len(data)
            if past_float64(data.iloc[:, position].to_numpy())
        ]
        if not large:
            return data
        columns = [
            _less_first(column.to_numpy()) if position in large else column.array
            for position, (_, column) in enumerate(data.items())
        ]
        pandas = sys.modules["pandas"]
        frame = pandas.DataFrame(dict(enumerate(columns)), index=data.index)
        return frame.set_axis(data.columns, axis=1)
    array = data if isinstance(data, np.ma.MaskedArray) else _plain(data)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or array.ndim not in (1, 2):
        return array
    return _less_first(array) if array.size and past_float64(array) else array


def _plain(data: Table) -> Table:
    """Return `data` as an array, or as it is where it is none; `as_matrix` then says what is wrong."""
    try:
        return np.asarray(data)
    except ValueError:
        return data


def _less_first(column: Any) -> Any:
    # Python's whole numbers do not overflow
    return (column.astype(object) - column[0].astype(object)).astype(np.float64)


def checked(dtype: str | None) -> str | None:
    if dtype is not None and dtype not in DTYPES:
        raise OptionError(f"dtype is {dtype!r}; it can be 'float32' or 'float64'.")
    return dtype


def names(labels: Any) -> tuple[str, ...] | None:
    return None if labels is None else tuple(str(label) for label in labels)


def square(result: Result, labels: Any) -> Table:
    """Return the matrix of `result`, in a DataFrame if there are labels."""
    if labels is None:
        return result.matrix
    return sys.modules["pandas"].DataFrame(result.matrix, index=labels, columns=labels)


def opened(engine: str | Engine, device: str | None) -> Engine:
    """Return `engine` itself, or the one of that name that this thread keeps open."""
    if isinstance(engine, Engine):
        return engine
    kept: dict[tuple[str, str | None], Engine] = _mine.__dict__.setdefault("engines", {})
    # an index may come as a number, and 0 is one
    device = None if device is None else str(device)
    key = engine, device or os.environ.get(VARIABLE)
    if key not in kept:
        kept[key] = open_engine(engine, device=device)
    return kept[key]
