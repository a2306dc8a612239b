"""Tables in, labels out: the numbers of a DataFrame or an array, and a matrix back as a DataFrame.

pandas itself is not imported here: whoever holds a DataFrame has it already.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from mtbridge.allowed import short
from mtbridge.errors import InputError, ShapeError
from mtbridge.frame.objects import as_numbers, less_level
from mtbridge.matrix import Matrix, Result, as_matrix, past_float64

Table: TypeAlias = Any
"""An array-like of numbers or a pandas DataFrame."""


def is_frame(data: Table) -> bool:
    """Whether `data` is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_series(data: Any) -> bool:
    """Whether `data` is a pandas Series."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.Series)


def table(data: Table, *, name: str = "data", dtype: str | None = None) -> tuple[Matrix, Any]:
    """Return the numbers of `data` as a matrix, and its column labels, None for an array."""
    if not is_frame(data):
        return as_matrix(as_numbers(data), name=name, dtype=dtype), None
    pandas = sys.modules["pandas"]
    kinds = list(data.dtypes)
    plain = {kind for kind in set(kinds) if isinstance(kind, np.dtype) and kind.kind == "f"}
    objects = {}
    for position, (label, kind) in enumerate(zip(data.columns, kinds, strict=True)):
        if kind in plain:
            continue
        if kind == np.dtype(object):
            numbers = as_numbers(data.iloc[:, position].to_numpy())
            if numbers.dtype.kind == "f":
                objects[position] = numbers
                continue
        # pandas calls bool numeric, but not that of arrow
        numeric = kind.kind == "b" or pandas.api.types.is_numeric_dtype(kind)
        if not numeric or pandas.api.types.is_complex_dtype(kind):
            raise InputError(
                f"column {short(label)} of {name} holds {kind} values, not numbers; drop it or convert it "
                "first."
            )
        if kind.kind in "iu" and len(data) and past_float64(data.iloc[:, position].dropna().to_numpy()):
            raise InputError(
                f"column {short(label)} of {name} holds whole numbers past 2**53, which float64 would round; "
                "subtract a common level first."
            )
    if objects:
        data = _replaced(data, objects)
        kinds = list(data.dtypes)
    # the nullable types of pandas and arrow name the numpy type that they hold
    held = {getattr(kind, "numpy_dtype", kind) for kind in set(kinds)}
    single = held == {np.dtype(np.float32)}
    values = data.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return as_matrix(values, name=name, dtype=dtype), data.columns


def without_level(data: Table) -> Table:
    """Return `data` with numbers past 2**53 less the first of their column, exactly.

    A covariance does not see a level that a column has throughout, and float64 would round it.
    """
    if is_frame(data):
        replaced = {}
        large = {kind for kind in set(data.dtypes) if kind == np.dtype(object) or kind.kind in "iu"}
        for position, kind in enumerate(data.dtypes) if large and len(data) else ():
            if kind in large:
                column = data.iloc[:, position]
                values = column.to_numpy() if isinstance(kind, np.dtype) else column.array
                less = less_level(values)
                if less is not values:
                    replaced[position] = less
        return _replaced(data, replaced) if replaced else data
    array = data if isinstance(data, np.ma.MaskedArray) else _plain(data)
    if isinstance(array, np.ma.MaskedArray) or not isinstance(array, np.ndarray) or array.ndim not in (1, 2):
        return array
    return less_level(array)


def _plain(data: Table) -> Table:
    """Return `data` as an array, or as it is where it is none; `as_matrix` then says what is wrong."""
    try:
        return np.asarray(data)
    except ValueError:
        return data


def _replaced(data: Table, columns: dict[int, Any]) -> Table:
    """Return the DataFrame `data` with other values in the columns at these positions."""
    pandas = sys.modules["pandas"]
    values = [columns.get(position, data.iloc[:, position].array) for position in range(data.shape[1])]
    return pandas.DataFrame(dict(enumerate(values)), index=data.index).set_axis(data.columns, axis=1)


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


def names(labels: Any) -> tuple[str, ...] | None:
    return None if labels is None else tuple(str(label) for label in labels)


def square(result: Result, labels: Any) -> Table:
    """Return the matrix of `result`, in a DataFrame if there are labels."""
    if labels is None:
        return result.matrix
    return sys.modules["pandas"].DataFrame(result.matrix, index=labels, columns=labels)
