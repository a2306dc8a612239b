"""Numbers that numpy keeps as objects, and whole numbers that float64 would round.

decimal.Decimal and fractions.Fraction are numbers. Text is not, even where it looks like one.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from mtbridge.allowed import short
from mtbridge.errors import InputError, ShapeError
from mtbridge.matrix import past_float64

LARGEST_WHOLE = 2**53
"""Every whole number up to this one is a float64."""


LARGEST = float(np.finfo(np.float64).max)
LEAST_EXPONENT = -400
"""A decimal whose first digit stands there is 0 in float64, and as a fraction it may fill the memory."""


def as_numbers(values: Any) -> Any:
    """Return an array of objects as float64 where each is a number or missing; all else as it is.

    Raises
    ------
    InputError
        If a number is past the range of float64.
    """
    if not isinstance(values, np.ndarray) or values.dtype != np.dtype(object) or not _are_numbers(values):
        return values
    flat = [np.nan if _missing(value) else float(_inside(value)) for value in values.flat]
    return np.array(flat, np.float64).reshape(values.shape)


def weight_numbers(weights: Any) -> Any:
    """Return weights, array-like, as an array of real numbers; how many and how large, the caller looks at.

    Raises
    ------
    InputError
        If they are no numbers, or one is masked or past the range of float64.
    ShapeError
        If they have rows of different length.
    """
    if np.ma.is_masked(weights):
        raise InputError("a weight is masked; give each one a number.")
    try:
        array = np.asarray(weights)
    except ValueError:
        raise ShapeError("the weights have rows of different length; give each as many.") from None
    array = as_numbers(array)
    if array.dtype.kind not in "fiub":
        raise InputError(f"the weights are {array.dtype} values, not numbers; convert them first.")
    return array


def less_level(values: Any) -> Any:
    """Return numbers past 2**53 less the first of their column, exactly, as float64; all else as it is.

    Parameters
    ----------
    values : array of one or two dimensions, of whole numbers or objects, or a column of pandas' nullable ones

    Raises
    ------
    InputError
        If such a difference is itself past 2**53 and no float64, or a number is past the range of float64.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu":
            if not (values.size and past_float64(values)):
                return values
            # Python's whole numbers do not overflow
            exact = values.astype(object) - values[0].astype(object)
            less = exact.astype(np.float64)
            _refuse_rounded(less[less != exact])
            return less
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
    there = [_inside(value) for value in values if not _missing(value) and _finite(value)]
    if all(-LARGEST_WHOLE <= value <= LARGEST_WHOLE or value == float(value) for value in there):
        return values
    level = _exact(there[0])
    return np.array([_difference(value, level) for value in values], np.float64)


def _difference(value: Any, level: Fraction) -> float:
    if _missing(value):
        return np.nan
    if not _finite(value):
        return float(value)
    exact = _exact(_inside(value)) - level
    less = float(exact)
    if less != exact:
        _refuse_rounded(np.array([less]))
    return less


def _refuse_rounded(differences: Any) -> None:
    """Refuse differences that are not exact where they are past 2**53; below, what is lost is a fraction."""
    large = differences[np.abs(differences) >= LARGEST_WHOLE]
    if large.size:
        raise InputError(
            f"a column holds numbers past 2**53 that are {large[0]:.6g} away from its first one, which "
            "float64 would round; take differences of its rows first, or convert it to float64."
        )


def _exact(value: Any) -> Fraction:
    if isinstance(value, Decimal) and value.adjusted() < LEAST_EXPONENT:
        return Fraction(0)
    return Fraction(*value.as_integer_ratio())


def _inside(value: Any) -> Any:
    """The number `value`, refused if it is finite but past float64: a decimal would become an infinity."""
    # numpy's own would be rounded, overflow or warn when they are compared or subtracted
    value = value.item() if isinstance(value, np.generic) else value
    if _finite(value) and not -LARGEST <= value <= LARGEST:
        raise InputError(f"{short(value)} is past the range of float64; divide it by a power of ten.")
    return value


def _are_numbers(values: Any) -> bool:
    return all(_missing(value) or isinstance(value, Real | Decimal) for value in values.flat)


def _missing(value: Any) -> bool:
    """Whether this is None, NaN, or what pandas puts for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        # a signalling NaN may not even be compared
        return value.is_nan()
    return isinstance(value, Real) and value != value


def _finite(value: Any) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else value not in (np.inf, -np.inf)
