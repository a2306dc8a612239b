"""Numbers that numpy keeps as objects, and whole numbers that float64 would round.

decimal.Decimal and fractions.Fraction are numbers. Text is not, even where it looks like one.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from mtbridge.matrix import past_float64

LARGEST_WHOLE = 2**53
"""Every whole number up to this one is a float64."""


def as_numbers(values: Any) -> Any:
    """Return an array of objects as float64 where each is a number or missing; all else as it is."""
    if not isinstance(values, np.ndarray) or values.dtype != np.dtype(object) or not _are_numbers(values):
        return values
    flat = [np.nan if _missing(value) else float(value) for value in values.flat]
    return np.array(flat, np.float64).reshape(values.shape)


def less_level(values: Any) -> Any:
    """Return numbers past 2**53 less the first of their column, exactly, as float64; all else as it is.

    Parameters
    ----------
    values : array of one or two dimensions, of whole numbers or objects, or a column of pandas' nullable ones
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu":
            if not (values.size and past_float64(values)):
                return values
            # Python's whole numbers do not overflow
            return (values.astype(object) - values[0].astype(object)).astype(np.float64)
        if values.dtype != np.dtype(object) or not _are_numbers(values):
            return values
        if values.ndim == 2:
            columns = [less_level(values[:, column]) for column in range(values.shape[1])]
            return np.stack([as_numbers(column) for column in columns], axis=1) if columns else values
        return _objects_less_level(values)
    if values.dtype.kind not in "iu" or values.isna().all() or not past_float64(values.dropna().to_numpy()):
        return values
    return _objects_less_level(values.to_numpy(dtype=object))


def _objects_less_level(values: Any) -> Any:
    there = [value for value in values if not _missing(value) and _finite(value)]
    if not there or max(abs(value) for value in there) <= LARGEST_WHOLE:
        return values
    level = Fraction(there[0])
    return np.array([_difference(value, level) for value in values], np.float64)


def _difference(value: Any, level: Fraction) -> float:
    if _missing(value):
        return np.nan
    return float(Fraction(value) - level) if _finite(value) else float(value)


def _are_numbers(values: Any) -> bool:
    return all(_missing(value) or isinstance(value, Real | Decimal) for value in values.flat)


def _missing(value: Any) -> bool:
    """Whether this is None, NaN, or what pandas puts for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real | Decimal) and value != value


def _finite(value: Any) -> bool:
    return not (isinstance(value, Decimal) and value.is_infinite()) and abs(value) != float("inf")
