"""What every engine takes and gives: checked arrays in, a `Result` out.

Matrices are (rows, columns) = (bars, symbols), oldest bar first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.errors import InputError, MissingValueError, OptionError, ShapeError

Matrix: TypeAlias = NDArray[np.floating[Any]]
"""A float32 or float64 array of two dimensions, C or Fortran order."""

DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A matrix with what was decided on the way to it.

    Attributes
    ----------
    matrix : float array of shape (symbols, symbols), or (rows, columns) for a product
    symbols : names of the columns, or None where the input had none
    counts : int64 array of shape (symbols, symbols), or None for a product
        Rows that went into each element.
    rows : rows of the input
    engine : "opencl", "numpy" or "serial"; "auto" if a worker did it that chooses by the request
    device : the device's own name
    seconds : from array to array, copies included
    """

    matrix: Matrix
    symbols: tuple[str, ...] | None
    counts: NDArray[np.int64] | None
    rows: int
    engine: str
    device: str
    seconds: float

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.matrix.shape))
        return f"Result({shape} {self.matrix.dtype}, {self.engine} on {self.device}, {self.seconds:.4f} s)"


def as_matrix(data: Any, *, name: str = "data", dtype: str | None = None) -> Matrix:
    """Return `data` as a float32 or float64 matrix, without a copy where it is one already.

    Parameters
    ----------
    data : array-like of numbers, of shape (rows, columns); one dimension is one column
        A masked element becomes NaN.
    name : what to call it in a message
    dtype : "float32" or "float64"; by default float32 stays float32 and all else becomes float64

    Raises
    ------
    InputError
        If an element is not a number: text, even if it looks like one, dates, objects, complex numbers; or
        if a number does not fit the dtype: whole numbers past 2**53, float64 past the range of float32.
    ShapeError
        If there are more than two dimensions, or rows of different length.
    OptionError
        If `dtype` is another name.
    """
    if dtype is not None and dtype not in DTYPES:
        raise OptionError(f"dtype is {dtype!r}; it can be 'float32' or 'float64'.")
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.result_type(data.dtype, np.float32)), np.nan)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ShapeError(f"{name} has rows of different length; a matrix needs equal ones.") from None
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ShapeError(f"{name} has {array.ndim} dimensions; a matrix has two, rows and columns.")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} holds {array.dtype} values; convert them to numbers first.")
    if array.dtype.kind in "iu" and array.size and past_float64(array):
        raise InputError(
            f"{name} holds whole numbers past 2**53, which float64 would round; subtract a level first."
        )
    wanted = np.dtype(dtype or ("float32" if array.dtype.newbyteorder("=") == np.float32 else "float64"))
    with np.errstate(over="ignore"):
        matrix: Matrix = array.astype(wanted, copy=False)
    if wanted == np.float32 and array.dtype.itemsize > 4:
        lost = np.isinf(matrix) & ~np.isinf(array)
        if lost.any():
            raise InputError(f"{name} holds {array[lost][0]:g}, past the range of float32; use float64.")
    return matrix


def past_float64(array: NDArray[Any]) -> bool:
    """Whether whole numbers are so large that float64 does not hold each of them."""
    return array.dtype.itemsize == 8 and bool(max(-int(array.min()), int(array.max())) > 2**53)


def refuse_missing(array: Matrix, *, name: str = "data", symbols: tuple[str, ...] | None = None) -> None:
    """Raise MissingValueError if `array` has a NaN, naming the first column that has one."""
    # one sum finds a NaN without a mask as large as the array; inf - inf also gives one, so look again
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isnan(array.sum()):
            return
    bad = np.isnan(array).any(axis=0)
    if not bad.any():
        return
    first = int(np.flatnonzero(bad)[0])
    label = symbols[first] if symbols else f"number {first}"
    missing = int(np.isnan(array).sum())
    raise MissingValueError(
        f"{name} has {missing} missing values, the first in column {label}; "
        "drop those rows first, for example with DataFrame.dropna()."
    )
