"""What every engine takes and gives: checked arrays in, a `Result` out.

Matrices are (rows, columns) = (bars, symbols), oldest bar first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import refuse_other
from mtbridge.errors import InputError, MissingValueError, ShapeError
from mtbridge.shared_work import by_rows

Matrix: TypeAlias = NDArray[np.floating[Any]]
"""A float32 or float64 array of two dimensions, C or Fortran order."""

Effective: TypeAlias = float | NDArray[np.float64] | None
"""Rows that count: of one matrix, or of each window."""

DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A matrix, or one for each window or lag, with what was decided on the way to it.

    Attributes
    ----------
    matrix : float array of shape (symbols, symbols), or (rows, columns) for a product
        Of windows and lags, of shape (windows, ...); of a reducer, what is kept of each window.
    symbols : names of the columns, or None where the input had none
    counts : int64 array of the shape of `matrix`, or None for a product and for windows
        Rows that went into each element; not to be written to where all are the same.
    rows : rows of the input
    engine : "opencl", "numpy" or "serial"; "auto" if a worker did it that chooses by the request
    device : the device's own name
    seconds : from array to array, copies included
    effective : what `effective_rows` says where it is not the smallest of `counts`, or a function that tells
    packed : `matrix` holds the upper triangles only, row by row
    notes : sentences about what the answer cannot show by itself
    pairs : int32 array of shape (windows, k, 2), the columns of each of the largest pairs, -1 where there are
        fewer; None for all else
    """

    matrix: Matrix
    symbols: tuple[str, ...] | None
    counts: NDArray[np.int64] | None
    rows: int
    engine: str
    device: str
    seconds: float
    effective: Effective | Callable[[], Effective] = None
    packed: bool = False
    notes: tuple[str, ...] = ()
    pairs: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.matrix.shape))
        return f"Result({shape} {self.matrix.dtype}, {self.engine} on {self.device}, {self.seconds:.4f} s)"

    @property
    def effective_rows(self) -> Effective:
        """How many equally weighted rows say as much: the rows themselves where the data are complete.

        The smallest count of a pair where values are missing; with weights Kish's ``sum(w)**2 / sum(w**2)``;
        an array of one a window; None for windows over missing values, whose pairs are not counted.
        """
        found = self.effective() if callable(self.effective) else self.effective
        if found is not None or self.counts is None:
            return found
        return float(self.counts.min()) if self.counts.size else 0.0

    @property
    def smallest_eigenvalue(self) -> float | NDArray[np.float64]:
        """The smallest eigenvalue; an array of one a window. Below 0 the matrix is no covariance of any data.

        Computed when it is asked for; NaN where the matrix holds NaN or inf.

        Raises
        ------
        ShapeError
            If the matrix is not symmetric: a product, a beta, a lag.
        """
        return _plain(_eigenvalues(self.matrix, self.packed)[..., 0])

    @property
    def condition_number(self) -> float | NDArray[np.float64]:
        """The largest eigenvalue over the smallest, by absolute value; inf where one is 0.

        As `smallest_eigenvalue`. Past about 1e15 it says no more than that the matrix is singular.
        """
        sizes = np.abs(_eigenvalues(self.matrix, self.packed))
        with np.errstate(divide="ignore", invalid="ignore"):
            return _plain(sizes.max(axis=-1) / sizes.min(axis=-1))


def triangle_side(length: int) -> int:
    """Return the side of the square matrix whose upper triangle has `length` elements."""
    side = (math.isqrt(8 * length + 1) - 1) // 2
    if side * (side + 1) // 2 != length:
        raise ShapeError(f"{length} elements are no upper triangle.")
    return side


def unpacked(triangles: Matrix) -> Matrix:
    """Return the symmetric matrices of `triangles`, of shape (..., elements)."""
    side = triangle_side(triangles.shape[-1])
    rows, columns = np.triu_indices(side)
    square = np.empty((*triangles.shape[:-1], side, side), triangles.dtype)
    square[..., rows, columns] = triangles
    square[..., columns, rows] = triangles
    return square


EIGEN_BYTES = 1 << 24
"""So much of a stack of matrices is looked at a time."""


def _eigenvalues(matrix: Matrix, packed: bool) -> NDArray[np.float64]:
    """The eigenvalues of symmetric matrices in rising order, NaN where one holds NaN or inf."""
    single = matrix[np.newaxis] if matrix.ndim == (1 if packed else 2) else matrix
    if single.ndim != (2 if packed else 3) or not (packed or single.shape[-1] == single.shape[-2]):
        raise ShapeError("eigenvalues are of whole square matrices, and this result has none.")
    side = triangle_side(single.shape[-1]) if packed else single.shape[-1]
    if side == 0:
        raise ShapeError("a matrix of no columns has no eigenvalues.")
    found = np.full((len(single), side), np.nan)
    block = max(1, EIGEN_BYTES // (8 * side * side))
    for first in range(0, len(single), block):
        part = single[first : first + block]
        part = (unpacked(part) if packed else part).astype(np.float64, copy=False)
        if not np.array_equal(part, part.swapaxes(-1, -2), equal_nan=True):
            raise ShapeError("the matrix is not symmetric, so it has no eigenvalues to judge it by.")
        whole = np.isfinite(part).all(axis=(-1, -2))
        if whole.any():
            # a power of two keeps products of tiny or huge elements inside the range
            _, exponent = np.frexp(np.abs(part[whole]).max(axis=(-1, -2)))
            scaled = np.ldexp(part[whole], -exponent[:, np.newaxis, np.newaxis])
            found[first : first + block][whole] = np.ldexp(
                np.linalg.eigvalsh(scaled), exponent[:, np.newaxis]
            )
    return found if single is matrix else found[0]


def _plain(values: NDArray[np.float64]) -> float | NDArray[np.float64]:
    return values if values.ndim else float(values)


def as_matrix(data: Any, *, name: str = "data", dtype: str | None = None, batch: bool = False) -> Matrix:
    """Return `data` as a float32 or float64 matrix, without a copy where it is one already.

    Parameters
    ----------
    data : array-like of numbers, of shape (rows, columns); one dimension is one column
        A masked element becomes NaN.
    name : what to call it in a message
    dtype : "float32" or "float64"; by default float32 stays float32 and all else becomes float64
    batch : leading dimensions are allowed, of which each place has a matrix

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
    if dtype is not None:
        refuse_other("dtype", dtype, DTYPES)
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind in "fiub":
        data = np.ma.filled(data.astype(np.result_type(data.dtype, np.float32)), np.nan)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ShapeError(f"{name} has rows of different length; a matrix needs equal ones.") from None
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 and not (batch and array.ndim > 2):
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
    if array.dtype.itemsize > wanted.itemsize:
        lost = np.isinf(matrix) & ~np.isinf(array)
        if lost.any():
            mend = "use float64" if wanted == np.float32 else "divide it by a power of ten"
            raise InputError(f"{name} holds {array[lost][0]!s}, past the range of {wanted}; {mend}.")
    return matrix


def past_float64(array: NDArray[Any]) -> bool:
    """Whether whole numbers are so large that float64 does not hold each of them."""
    if array.dtype.itemsize < 8 or not array.size:
        return False
    return max(-int(array.min()), int(array.max())) > 2**53


def narrowed(matrix: Matrix, dtype: np.dtype[Any], *, what: str = "a covariance") -> Matrix:
    """Return computed numbers in `dtype`, without a copy where they are; `what` names one in a message.

    Infinite data make NaN, so an inf is a number that the dtype cannot hold.

    Raises
    ------
    InputError
        If there is one and the dtype is float32.
    """
    with np.errstate(over="ignore"):
        found: Matrix = matrix.astype(dtype, copy=False)
    if found.dtype == np.float32 and holds_inf(found):
        raise InputError(f"{what} is past the range of float32; use float64.")
    return found


def holds_inf(array: Matrix) -> bool:
    """Whether an element is inf; block by block, without a mask as large as the array."""
    array, blocks = np.atleast_1d(array), []

    def look(rows: slice) -> None:
        blocks.append(bool(np.isinf(array[rows]).any()))

    by_rows(look, len(array), array.nbytes // max(len(array), 1))
    return any(blocks)


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
