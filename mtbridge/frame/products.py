"""`multiply` and `empty_pinned`: what there is besides statistics."""

from __future__ import annotations

from typing import Any, Literal, overload

from numpy.typing import NDArray

from mtbridge.compute import operations
from mtbridge.compute.engine import Engine
from mtbridge.frame.engines import opened
from mtbridge.frame.options import checked, refuse_no_flags
from mtbridge.frame.tables import Table, factors, product_table
from mtbridge.matrix import Result


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

    The error of an element is at most ``inner * eps * (|A| |B|)``, eps of the dtype, unless `engine` was
    opened in another precision of float32 (`open_engine`). NaN and inf pass through as in IEEE arithmetic.
    `engine`, `device`, `dtype` and `full` as for `covariance`; without `dtype` the product is float32 only if
    both are.

    Returns
    -------
    DataFrame if `A` or `B` is one, with the rows of `A` and the columns of `B`, else array

    Raises
    ------
    ShapeError
        If the inner sizes differ, or the inner labels of two DataFrames do.
    """
    refuse_no_flags(full=full)
    left, right = factors(A, B, dtype=checked(dtype))
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
